"""Typical user programs, each written once and run with both libraries.

Values, gradients, dtypes, weak types and structures agree with JAX's. `jit` gives the bits of eager
code, and `vmap` of a whole program agrees with a loop over its examples.
"""

from typing import Any

import jax
import numpy as np
import pytest
from api.oracle import jax_result
from programs import dynamics, inference, learning

import accnp

PROGRAMS = {p.__name__: p for p in (learning.PROGRAMS + inference.PROGRAMS + dynamics.PROGRAMS)}


def run(library: Any, program: Any, jit: bool) -> tuple[list, Any]:
    """Return the leaves of a program's result, and its structure as text."""
    f, arguments = program(library)
    arguments = library.tree_util.tree_map(library.numpy.asarray, arguments)
    leaves, structure = library.tree_util.tree_flatten((library.jit(f) if jit else f)(*arguments))
    return leaves, str(structure)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    eager, structure = run(accnp, PROGRAMS[name], jit=False)
    jitted, jitted_structure = run(accnp, PROGRAMS[name], jit=True)
    answer: Any = jax_result(lambda: run(jax, PROGRAMS[name], jit=True), PROGRAMS[name])
    expected, want_structure = answer
    assert structure == jitted_structure == want_structure
    for a, b, w in zip(eager, jitted, expected, strict=True):
        assert np.isfinite(np.asarray(w)).all()
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg="eager and jit")
        np.testing.assert_allclose(np.asarray(a), np.asarray(w), rtol=2e-4, atol=2e-5)
        assert (a.dtype, a.shape, a.weak_type) == (w.dtype, w.shape, w.weak_type)
        assert (b.dtype, b.shape, b.weak_type) == (w.dtype, w.shape, w.weak_type)


def another(x: Any) -> np.ndarray:
    """Return an example that differs from the first one in its real numbers."""
    x = np.asarray(x)
    return x * np.float32(0.9) if x.dtype == np.float32 else x


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_over_a_batch(name):
    f, first = PROGRAMS[name](accnp)
    tree_map, leaves = accnp.tree_util.tree_map, accnp.tree_util.tree_leaves
    second = tree_map(another, first)
    batch = tree_map(lambda a, b: np.stack([a, b]), first, second)
    actual = leaves(accnp.vmap(f)(*batch))
    for i, example in enumerate((first, second)):
        expected = leaves(f(*tree_map(accnp.numpy.asarray, example)))
        for a, w in zip(actual, expected, strict=True):
            np.testing.assert_allclose(np.asarray(a[i]), np.asarray(w), rtol=2e-4, atol=2e-5)
            assert a.dtype == w.dtype
