"""Sorting, distinct values, sets, against jax: values, dtypes, derivatives, batching."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from api.tables import cases, compare, gradients_agree

import accnp
import accnp.numpy as jnp
from accnp import lax

Y = np.random.default_rng(0).integers(0, 5, (4, 6)).astype(np.float32)
Z = Y.copy()
Z[1, 2] = np.nan
DISTINCT = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)

SORTS = """
sort(Z) | sort(Z,0) | sort(Z,None) | sort(Z,descending=True) | argsort(Z) | argsort(Y,0)
argsort(Y,descending=True) | lexsort((Y[0],Y[1])) | lexsort((Y,-Y),axis=0) | sort_complex(Y)
unique(Y) | unique(Y,return_index=True,return_inverse=True,return_counts=True)
unique(Y,return_index=True,return_inverse=True,return_counts=True,size=7) | unique(Y,size=3)
unique(Y,size=9,fill_value=-1) | union1d(Y,Z[0]) | intersect1d(Y[0],Y[1]) | setdiff1d(Y[0],Y[1])
isin(Y,np.array([1.,3.])) | isin(Y,np.array([1.,3.]),invert=True) | sort(Y>2)
sort(Y.astype('int8')) | sort(Y.astype("float16")) | sort(-Z) | argsort(Z, None)
sort(jnp.asarray(Y, "bfloat16")) | partition(Y, 2)[:, 0] | unique_values(Y)
unique_counts(Y)[1] | setxor1d(Y[0], Y[1]) | sort(Y + 1j * Y[::-1])
"""


@pytest.mark.parametrize("text", cases(SORTS))
def test_as_jax(text: str) -> None:
    compare(text, jnp, jax.numpy, Y=Y, Z=Z)


@pytest.mark.parametrize(
    "text", ["sort(D)", "sort(D, 0)", "sort(D, None, descending=True)", "D[argsort(D[:, 0])]"]
)
def test_gradients(text: str) -> None:
    gradients_agree(text, D=DISTINCT)


def test_several_operands_and_keys() -> None:
    a, b, c = (Y.astype(int), DISTINCT, np.arange(24).reshape(4, 6))
    for keys in (1, 2):
        want = jax.lax.sort((a, b, c), dimension=0, num_keys=keys)
        got = lax.sort((jnp.asarray(a), jnp.asarray(b), jnp.asarray(c)), dimension=0, num_keys=keys)
        for x, y in zip(got, want):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_top_k() -> None:
    for x in (Y, Z, Y.astype(int)):
        for x_, y_ in zip(lax.top_k(jnp.asarray(x), 3), jax.lax.top_k(x, 3)):
            np.testing.assert_array_equal(np.asarray(x_), np.asarray(y_))
    got = accnp.grad(lambda v: jnp.sum(lax.top_k(v, 2)[0] ** 2))(jnp.asarray(DISTINCT))
    want = jax.grad(lambda v: jax.numpy.sum(jax.lax.top_k(v, 2)[0] ** 2))(DISTINCT)
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)


@pytest.mark.parametrize("fn", [jnp.sort, jnp.argsort, lambda v: lax.top_k(v, 2)[1],
                                lambda v: jnp.searchsorted(jnp.sort(v), 1.5)])  # fmt: skip
def test_batching_is_a_loop(fn: Any) -> None:
    got = np.asarray(accnp.vmap(fn)(jnp.asarray(Y)))
    np.testing.assert_array_equal(got, np.stack([np.asarray(fn(jnp.asarray(r))) for r in Y]))


def test_sizes_under_jit() -> None:
    got = accnp.jit(lambda v: jnp.unique(v, size=4))(jnp.asarray(Y))
    assert np.asarray(got).tolist() == np.unique(Y)[:4].tolist()
    with pytest.raises(TypeError, match="unique"):
        accnp.jit(jnp.unique)(jnp.asarray(Y))


def test_refused() -> None:
    with pytest.raises(TypeError, match="kind"):
        jnp.sort(Y, kind="heapsort")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="axis 2"):
        jnp.sort(jnp.asarray(Y), 2)
    with pytest.raises(ValueError, match="k must be"):
        lax.top_k(jnp.asarray(Y), 9)
    with pytest.raises(TypeError, match="keys"):
        jnp.lexsort([])
