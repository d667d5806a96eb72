"""Operators between arrays and container classes that define the reflected method."""

from typing import NamedTuple

import pytest

import accnp.numpy as jnp


class Pair(NamedTuple):
    a: object

    def __rmul__(self, other):
        return Pair(other * self.a)

    def __gt__(self, other):
        return "greater"


def test_arrays_leave_operators_to_containers_that_define_them():
    assert (jnp.ones(3) * Pair(jnp.full(3, 2.0))).a.tolist() == [2.0] * 3
    assert (jnp.ones(3) < Pair(1)) == "greater"


@pytest.mark.parametrize("other", [(1, 2, 3), [1, 2, 3]])
def test_other_containers_are_refused(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        jnp.ones(3) * other
    with pytest.raises(TypeError, match="unsupported operand"):
        jnp.ones(3) - Pair(1)
