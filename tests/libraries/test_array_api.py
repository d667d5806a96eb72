"""SciPy and scikit-learn compute with accnp arrays, by the array API standard, if the option
`item_assignment` is enabled, and recognize them as JAX arrays under `as_jax`.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import accnp

HERE = Path(__file__).parent


@pytest.mark.parametrize(("library", "least"), [("scipy", 50), ("sklearn", 40)])
def test_programs_have_the_results_of_numpy(library: str, least: int) -> None:
    command = [sys.executable, str(HERE / "array_api_programs.py"), library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    faults = json.loads(done.stdout)
    assert {name: fault for name, fault in faults.items() if fault} == {}
    assert len(faults) >= least


def test_arrays_have_the_namespace_of_jax() -> None:
    """array-api-compat and SciPy compare the module or its name."""
    x: Any = accnp.ones(1)
    with accnp.as_jax(replace=True):
        jnp = importlib.import_module("jax.numpy")
        with accnp.as_jax():
            assert x.__array_namespace__() is jnp
        assert x.__array_namespace__() is jnp
        assert jnp.__name__ == "jax.numpy"
    assert x.__array_namespace__() is accnp.numpy


def test_libraries_can_find_out_whether_they_are_traced() -> None:
    """array-api-extra converts a bool to an array, which is a tracer in JAX, and reads its
    value.
    """
    with accnp.as_jax(replace=True):
        jax = importlib.import_module("jax")
        jnp = importlib.import_module("jax.numpy")

        def is_traced() -> bool:
            try:
                return bool(jnp.asarray(False))
            except jax.errors.TracerBoolConversionError:
                return True

        seen: list[bool] = []

        def f(x: Any) -> Any:
            seen.append(is_traced())
            return x + 1

        x = jnp.ones(2)
        f(x), jax.jit(f)(x), jax.grad(f)(1.0), jax.vmap(f)(x), jax.jit(jax.vmap(f))(x)
        assert seen == [False, True, False, False, True]
        assert int(jnp.asarray(3)) == 3
        assert jax.jit(lambda: jnp.where(jnp.asarray(True), 1, 2))() == 1
