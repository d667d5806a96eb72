"""Gradients on an Explicit mesh have the shardings of their operands, as in JAX."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from processes.launch import run
from processes.sharded_gradients import GRADIENTS, SPECS
from processes.sharded_operations import operands

import accnp


@pytest.fixture(scope="module")
def gradients() -> dict[str, Any]:
    """Return the output of four processes."""
    return json.loads(run(4, "gradients.py").splitlines()[-1])


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_sharded_as_their_operands(name: str, jit: bool) -> None:
    names, f = GRADIENTS[name]
    operand = operands(accnp)
    xs = [getattr(operand, n) for n in names]
    grad = accnp.grad(lambda a, b: f(accnp, a, b).sum(), (0, 1))
    ours = (accnp.jit(grad) if jit else grad)(*xs)
    assert [str(g.sharding.spec) for g in ours] == [SPECS[n] for n in names]
    expected = grad(*[accnp.numpy.asarray(np.asarray(x)) for x in xs])
    for g, w in zip(ours, expected, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_over_processes_are_sharded_alike(name: str, gradients: dict[str, Any]) -> None:
    names, f = GRADIENTS[name]
    specs, values = gradients[name]
    assert specs == [SPECS[n] for n in names]
    operand = operands(accnp)
    xs = [accnp.numpy.asarray(np.asarray(getattr(operand, n))) for n in names]
    expected = accnp.grad(lambda a, b: f(accnp, a, b).sum(), (0, 1))(*xs)
    for g, w in zip(values, expected, strict=True):
        np.testing.assert_allclose(np.array(g), w, rtol=1e-4, atol=1e-5)


def test_second_derivatives_have_the_sharding() -> None:
    operand = operands(accnp)

    def loss(x: Any) -> Any:
        return (accnp.numpy.tanh(x @ operand.w) ** 2).sum()

    second = accnp.grad(lambda x: (accnp.grad(loss)(x) ** 2).sum())(operand.y)
    assert str(second.sharding.spec) == SPECS["y"]
