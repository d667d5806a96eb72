"""Random expressions of all kinds of functions, compared with JAX: values, types, weak types and
refusals.
"""

import jax
import jax.numpy
import numpy as np
import pytest
from fuzz.texts import Texts, arrays

import accnp
import accnp.numpy

SEEDS = range(40)
QUICK = {"xla_backend_optimization_level": 0}  # its programs run once


def evaluate_texts(library, texts, operands):
    """Return the leaves of each text and their weak flags, or the class of the error."""
    jnp = library.numpy
    scope = {"jax": library, "lax": library.lax, "jnp": jnp, "np": np, **operands}
    results, weak_types = [], []
    for text in texts:
        try:
            leaves = [jnp.asarray(x) for x in library.tree.leaves(eval(text, scope))]
            results.append(leaves)
            weak_types.append([x.weak_type for x in leaves])
        except Exception as error:
            results.append([])
            weak_types.append(next(c for c in type(error).__mro__ if c.__module__ == "builtins"))
    return results, weak_types


@pytest.fixture(scope="module")
def jax_results():
    texts, weak = [Texts(seed, 3).text for seed in SEEDS], []

    def run():
        results, weak_types = evaluate_texts(jax, texts, arrays())
        weak.extend(weak_types)
        return results

    with jax.enable_x64(True):
        compiled = jax.jit(run, compiler_options=QUICK)()
        return [(x, w, [np.asarray(v) for v in y]) for x, w, y in zip(texts, weak, compiled)]


@pytest.mark.parametrize("seed", SEEDS)
def test_texts(seed, jax_results):
    text, weak, expected = jax_results[seed]
    with accnp.enable_x64(True):
        (actual,), (weak_types,) = evaluate_texts(accnp, [text], arrays())
        actual = [np.asarray(x) for x in actual]
    assert weak_types == weak, text
    for a, b in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), text
        scale = np.max(np.abs(b), initial=1e-3)
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9 * scale, err_msg=text)
