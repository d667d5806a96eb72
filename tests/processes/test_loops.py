"""Loops and branches outside of `shard_map` run on shards; several processes agree with one."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from processes.launch import run
from processes.sharded_loops import OPERANDS, SPECS, functions, results

import accnp

RANKS = 2
KINDS = ("Explicit", "Auto")
NAMES = list(functions(accnp))


@cache
def over_processes(kind: str) -> dict[str, Any]:
    return json.loads(run(RANKS, "loops.py", kind).splitlines()[-1])


@cache
def simulated(kind: str) -> dict[str, Any]:
    return results(accnp, RANKS, kind == "Explicit", lambda y: y)


@cache
def expected(name: str) -> list[np.ndarray]:
    """Return the values of the same function of unsharded arrays."""
    operands = map(accnp.numpy.asarray, OPERANDS)
    return [np.asarray(x) for x in accnp.tree.leaves(functions(accnp)[name](*operands))]


def check(outcomes: dict[str, Any], name: str) -> None:
    for place in SPECS:
        for label in (name, f"jit: {name}"):
            shards = outcomes[f"{label}, {place}"]
            for (_, values), reference in zip(shards, expected(name), strict=True):
                np.testing.assert_allclose(np.array(values), reference, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_loops_in_one_process(name: str, kind: str) -> None:
    check(simulated(kind), name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_loops_over_processes(name: str, kind: str) -> None:
    check(over_processes(kind), name)


# In one process, tangents of a value that the loop itself divides are not divided, a reference is
# divided as the value that was last written to it, and a batch of numbers as the batch of bounds.
OTHER = ("tangents of while_loop", "reference", "vmap of while_loop with bounds")


@pytest.mark.parametrize("name", [n for n in NAMES if n not in OTHER])
def test_shardings_are_those_of_one_process(name: str) -> None:
    for label, outcomes in over_processes("Explicit").items():
        if re.fullmatch(rf"(jit: )?{name}, .*", label):
            assert [x[0] for x in outcomes] == [x[0] for x in simulated("Explicit")[label]], label


def test_an_axis_that_is_divided_is_not_looped_over() -> None:
    mesh = accnp.make_mesh((2,), ("d",))
    xs = accnp.device_put(OPERANDS[0], accnp.NamedSharding(mesh, accnp.P("d")))
    with pytest.raises(ValueError, match="scan: the first axis of xs must not be sharded"):
        accnp.lax.scan(lambda c, x: (c, x), 0, xs)


@pytest.mark.parametrize("ranks", [2, 4])
def test_native_loops_send_parts_of_buffers(ranks: int) -> None:
    run(ranks, "messages_of_views.py")
