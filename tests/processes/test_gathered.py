"""Operations with several results, callbacks, and functions over some axes of a mesh, with gathered
operands.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from processes.gathered_operations import NOTED, SPECS, VALUES, functions, results
from processes.launch import PROGRAMS, run

import accnp

RANKS = 2
NAMES = list(functions(accnp))


@pytest.fixture(scope="module")
def outputs() -> dict[str, Any]:
    """Return the output of the processes."""
    return json.loads(run(RANKS, "gathered.py").splitlines()[-1])


@pytest.fixture(scope="module")
def simulated() -> dict[str, Any]:
    """Return the output of one process with as many devices."""
    NOTED.clear()
    return json.loads(json.dumps(results(accnp, RANKS, lambda y: y)))


def check(gathered: dict[str, Any], name: str) -> None:
    leaves = accnp.tree.leaves(functions(accnp)[name](accnp.numpy.asarray(VALUES)))
    for place in SPECS:
        for label in (name, f"jit: {name}"):
            for values, expected in zip(gathered[f"{label}, {place}"], leaves, strict=True):
                np.testing.assert_allclose(np.array(values), expected, rtol=3e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_gathering_in_one_process(name: str, simulated: dict[str, Any]) -> None:
    check(simulated, name)


@pytest.mark.parametrize("name", NAMES)
def test_gathering_over_processes(name: str, outputs: dict[str, Any]) -> None:
    check(outputs, name)


def test_callbacks_are_called_once_by_each_process(
    outputs: dict[str, Any], simulated: dict[str, Any]
) -> None:
    for noted in (outputs["noted"], simulated["noted"]):
        np.testing.assert_allclose(noted, [VALUES.sum()] * 2 * len(SPECS), rtol=1e-5)


def test_shard_map_over_some_axes() -> None:
    run(4, "some_axes.py")
    program = PROGRAMS / "some_axes.py"
    environment = {**os.environ, "ACCNP_NUM_CPU_DEVICES": "4"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    subprocess.run([sys.executable, str(program)], env=environment, check=True, timeout=120)
