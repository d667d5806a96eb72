"""`vmap` outside of `shard_map` keeps the shardings of the axes that it does not map, as in JAX."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from processes.launch import launch, run
from processes.mapped_functions import MAPPED, VALUES, results

import accnp

RANKS = 2


@pytest.fixture(scope="module")
def outputs() -> dict[str, Any]:
    """Return the output of the processes."""
    return json.loads(run(RANKS, "mapped.py").splitlines()[-1])


@pytest.fixture(scope="module")
def simulated() -> dict[str, Any]:
    """Return the output of one process with as many devices."""
    return results(accnp, RANKS, lambda y: y)


def check(result: tuple[str, Any], name: str) -> None:
    """Compare with the same function of an unsharded array."""
    axes, spec, make = MAPPED[name]
    operands = (VALUES,) * (len(axes) if isinstance(axes, tuple) else 1)
    expected = accnp.vmap(make(accnp, None), axes)(*operands)
    assert result[0] == spec
    np.testing.assert_allclose(np.array(result[1]), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("jit", ["", "jit: "])
@pytest.mark.parametrize("name", MAPPED)
def test_vmap_in_one_process(name: str, jit: str, simulated: dict[str, Any]) -> None:
    check(simulated[jit + name], name)


@pytest.mark.parametrize("jit", ["", "jit: "])
@pytest.mark.parametrize("name", MAPPED)
def test_vmap_over_processes(name: str, jit: str, outputs: dict[str, Any]) -> None:
    check(outputs[jit + name], name)


APART = """
import accnp as jnp
jnp.distributed.initialize()
x = jnp.device_put(jnp.ones((4, 3)), jnp.NamedSharding(jnp.make_mesh((2,), ("d",)), jnp.P("d")))
f = jnp.jit(lambda r: r * 2)
jnp.vmap(f, 1)(x)
g = jnp.jit(lambda r: r + x.sum())
assert (jnp.vmap(g)(jnp.zeros(3)) == 12).all()
assert g(jnp.zeros(())) == 12
assert f(x[:, 0] * 1).sum() == 8  # the trace inside of vmap is not used outside of it
y = x[:, 0] * 1
jnp.vmap(lambda r: (jnp.abs(r) + r * 2 + 1 / r).sum(), 1)(x)
assert (jnp.abs(y) + y * 2 + 1 / y).sum() == 16  # nor is what single operations remember
assert (jnp.vmap(jnp.sin, 1)(x).sum() > 10.0).item()
"""


def test_traces_are_cached_separately() -> None:
    ended = launch(RANKS, APART)
    assert ended.code == 0, ended.err
