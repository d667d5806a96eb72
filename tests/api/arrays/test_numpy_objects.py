"""Operations that accnp does not compute under the option `numpy_dispatch`: reductions of
comparisons, and arrays of strings and objects, which NumPy computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import accnp as jnp

V = np.array([3.0, 1.0, 2.0, 2.0], np.float32)
numpy: Any = np


@pytest.fixture(autouse=True)
def _enable_dispatch() -> Iterator[None]:
    with jnp.numpy_dispatch():
        yield


def compare(actual: Any, expected: Any) -> None:
    assert type(actual) is jnp.Array
    assert np.asarray(actual).tolist() == np.asarray(expected).tolist()


def test_comparisons_are_reduced_for_bools_only() -> None:
    flags = np.array([True, False, True])
    for ufunc in (np.less, np.equal, np.not_equal, np.greater_equal):
        for method in ("reduce", "accumulate"):
            call = getattr(ufunc, method)
            with pytest.raises(TypeError):
                call(V)
            with pytest.raises(TypeError, match=rf"np.{ufunc.__name__}.{method}: results are bool"):
                call(jnp.asarray(V))
            compare(call(jnp.asarray(flags)), call(flags))
    compare(np.logical_and.reduce(jnp.asarray(V)), np.logical_and.reduce(V))


def test_text_and_objects_are_compared_by_numpy() -> None:
    x = jnp.arange(3)
    assert np.isin(x, ["a"]).tolist() == [False] * 3
    assert np.isin(x, np.array([None, 1], object)).tolist() == [False, True, False]
    numbers, nothing = numpy.broadcast_arrays(x, None)  # as matplotlib's bar does
    assert numbers.tolist() == [0, 1, 2]
    assert nothing.tolist() == [None] * 3
    compare(numpy.einsum("i,i", x, x, optimize=["einsum_path", (0, 1)]), np.int32(5))
