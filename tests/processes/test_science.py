"""Scientific programs in 2 and 4 processes agree with one process and with JAX."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from processes.launch import run
from processes.science_programs import PROGRAMS

import accnp

# Sums over shards are made in another order than those within a process.
ROUNDED = {"data-parallel training", "tensor-parallel network", "Markov chains"}


@pytest.fixture(scope="module", params=[2, 4])
def outputs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the number of processes and the results of each."""
    path = Path(tmp_path_factory.mktemp("science")) / "outputs"
    run(request.param, "science.py", str(path))
    return request.param, [
        pickle.loads(Path(f"{path}.{rank}").read_bytes()) for rank in range(request.param)
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_processes_match_one_process(name: str, outputs: Any) -> None:
    count, processes = outputs
    leaves = [np.asarray(x) for x in accnp.tree.leaves(PROGRAMS[name](accnp, count))]
    alone = [np.asarray(x) for x in accnp.tree.leaves(PROGRAMS[name](accnp, 2))]
    for x, y in zip(leaves, alone, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
    for results in processes:
        assert len(results[name]) == len(leaves)
        for x, ((index, part),) in zip(leaves, results[name], strict=True):
            if name in ROUNDED:
                np.testing.assert_allclose(part, x[index], rtol=1e-5, atol=1e-6)
            else:
                assert part.tobytes() == np.ascontiguousarray(x[index]).tobytes()


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_match_jax(name: str) -> None:
    expected = jax.tree.leaves(PROGRAMS[name](jax, 2))
    actual = accnp.tree.leaves(PROGRAMS[name](accnp, 2))
    for x, y in zip(actual, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)
