"""Libraries written for JAX run on accnp, with the results that they have with JAX."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "expected.json").read_text())  # python tests/libraries/run.py, by JAX
# Rounding errors grow: in chains of samples, and in training.
LOOSE = {"numpyro": 2e-3, "keras": 1e-4, "flax_nnx": 1e-4, "haiku": 1e-4}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Run all programs in one process, which never imports JAX itself, and return their results."""
    out = tmp_path_factory.mktemp("libraries") / "found.json"
    command = [sys.executable, "-m", "accnp.as_jax", str(HERE / "run.py"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_a_library_has_the_results_of_jax(programs, name):
    assert "error" not in programs[name], programs[name]["error"]
    results, expected = programs[name]["results"], EXPECTED[name]
    assert results.keys() == expected.keys()
    tolerance = LOOSE.get(name, 2e-5)
    for key in expected:
        np.testing.assert_allclose(
            np.array(results[key]), np.array(expected[key]), rtol=tolerance, atol=tolerance / 10
        )


def test_all_programs_have_results():
    names = (HERE / "programs.py").read_text().split("PROGRAMS = ")[1]
    listed = names[names.index("for f in [") + 10 : names.index("]}")].replace(",", " ").split()
    assert set(listed) == set(EXPECTED)


def test_a_test_suite_written_for_jax_runs_with_the_option(tmp_path):
    (tmp_path / "conftest.py").write_text("import jax.numpy as jnp\nONE = jnp.ones(())\n")
    (tmp_path / "test_it.py").write_text(
        "import jax\n\ndef test_it():\n    import accnp\n    assert jax.jit is accnp.jit\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "--accnp-as-jax", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stdout
