"""Functions of shards in several processes and in the simulator accept and reject the same uses as
JAX.

The values are those of JAX 0.10 on a mesh of type Auto. On Explicit meshes, JAX also rejects
closing over replicated arrays, and on both types gradients of loops that close over an array. Here,
these must equal the gradients of the same function without a loop.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from processes.functions_of_shards import outcomes
from processes.launch import run

import accnp

RANKS = 2
# Sums of the results if the array is sharded, and if each process has the whole.
CLOSURES = {
    "sum": (1568, 2352),
    "sum in scan": (1372, 2044),
    "sum in while_loop": (140, 196),
    "mean in cond": (62, 76),
    "mean in jit": (84, 112),
    "argument of jit": (84, 112),
    "argument of vmap": (476, 700),
    "rows of scan": (252, 364),
    "gradient": (224, 224),
    "doubled": (252, 364),
    "itself": (84, 112),
}
TWO_MESHES = {
    "add": 168,
    "matmul": 2000,
    "concatenate": 168,
    "where": 116,
    "scan": 308,
    "added in scan": 308,
    "while_loop": 1008,
    "gradients": 168,
    "one after the other": 336,
}
# Sums of the gradients with respect to an array that is closed over, or an argument.
GRADIENTS = {
    "a product": 224,
    "checkpoint": 224,
    "map": 224,
    "scan": 224,
    "nested scans": 224,
    "cond": 224,
    "vmap": 224,
    "a function with a rule": 224,
    "logaddexp": 5.788,
}
RESULTS = {
    "shard": None,
    "psum": 28,
    "all_gather": None,
    "ppermute": None,
    "axis_index": None,
    "loop over shards": None,
    "loop that adds shards": None,
    "loop over sums": 36,
    "loop that sums": 84,
    "rows of a loop": None,
    "while_loop over shards": None,
    "while_loop over sums": 92,
    "cond of shards": None,
    "cond of sums": 28,
    "checkpoint of shards": None,
    "checkpoint of sums": 56,
    "inverse of sums": 0.286,
    "callback of sums": 56,
}


def expected_outcomes(explicit: bool) -> dict[str, Any]:
    expected: dict[str, Any] = {}
    for name, (sharded, whole) in CLOSURES.items():
        refused = explicit and name != "itself"
        expected[f"{name}, sharded"] = "NotImplementedError" if refused else sharded
        expected[f"{name}, whole"] = whole
    for name, value in GRADIENTS.items():
        sharded = 4.5 if name == "logaddexp" else value
        expected[f"gradient of {name}, sharded"] = "NotImplementedError" if explicit else sharded
        expected[f"gradient of {name}, whole"] = expected[f"gradient of {name}, argument"] = value
    for name, value in TWO_MESHES.items():
        refused = explicit and name != "one after the other"
        for place in ("elsewhere", "whole elsewhere"):
            expected[f"{name}, {place}"] = "ValueError" if refused else value
    for name, value in RESULTS.items():
        expected[name] = "ValueError" if value is None else value
    return {**expected, **{f"jit: {name}": value for name, value in expected.items()}}


@cache
def simulated(kind: str) -> dict[str, Any]:
    return outcomes(accnp, kind == "Explicit")


@cache
def over_processes(kind: str) -> dict[str, Any]:
    return json.loads(run(RANKS, "functions_of_shards.py", kind).splitlines()[-1])


@pytest.mark.parametrize("run", [simulated, over_processes])
@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_outcomes_match_jax(kind: str, run: Any) -> None:
    assert run(kind) == expected_outcomes(kind == "Explicit")
