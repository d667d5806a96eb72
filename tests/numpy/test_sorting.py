"""Sorting, unique values and sets, compared with JAX: values, dtypes, derivatives and batching."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from api.tables import compare_expression, compare_gradients, split_cases

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


@pytest.mark.parametrize("text", split_cases(SORTS))
def test_as_jax(text: str) -> None:
    compare_expression(text, jnp, jax.numpy, Y=Y, Z=Z)


@pytest.mark.parametrize(
    "text", ["sort(D)", "sort(D, 0)", "sort(D, None, descending=True)", "D[argsort(D[:, 0])]"]
)
def test_gradients(text: str) -> None:
    compare_gradients(text, D=DISTINCT)


def test_several_operands_and_keys() -> None:
    a, b, c = (Y.astype(int), DISTINCT, np.arange(24).reshape(4, 6))
    for keys in (1, 2):
        expected = jax.lax.sort((a, b, c), dimension=0, num_keys=keys)
        actual = lax.sort(
            (jnp.asarray(a), jnp.asarray(b), jnp.asarray(c)), dimension=0, num_keys=keys
        )
        for x, y in zip(actual, expected):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_top_k() -> None:
    for x in (Y, Z, Y.astype(int)):
        for x_, y_ in zip(lax.top_k(jnp.asarray(x), 3), jax.lax.top_k(x, 3)):
            np.testing.assert_array_equal(np.asarray(x_), np.asarray(y_))
    actual = accnp.grad(lambda v: jnp.sum(lax.top_k(v, 2)[0] ** 2))(jnp.asarray(DISTINCT))
    expected = jax.grad(lambda v: jax.numpy.sum(jax.lax.top_k(v, 2)[0] ** 2))(DISTINCT)
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-6)


@pytest.mark.parametrize("fn", [jnp.sort, jnp.argsort, lambda v: lax.top_k(v, 2)[1],
                                lambda v: jnp.searchsorted(jnp.sort(v), 1.5)])  # fmt: skip
def test_vmap_matches_a_loop(fn: Any) -> None:
    actual = np.asarray(accnp.vmap(fn)(jnp.asarray(Y)))
    np.testing.assert_array_equal(actual, np.stack([np.asarray(fn(jnp.asarray(r))) for r in Y]))


def test_sizes_under_jit() -> None:
    actual = accnp.jit(lambda v: jnp.unique(v, size=4))(jnp.asarray(Y))
    assert np.asarray(actual).tolist() == np.unique(Y)[:4].tolist()
    with pytest.raises(TypeError, match="unique"):
        accnp.jit(jnp.unique)(jnp.asarray(Y))


def test_invalid_arguments_raise() -> None:
    with pytest.raises(TypeError, match="kind"):
        jnp.sort(Y, kind="heapsort")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="axis 2"):
        jnp.sort(jnp.asarray(Y), 2)
    with pytest.raises(ValueError, match="k must be"):
        lax.top_k(jnp.asarray(Y), 9)
    with pytest.raises(TypeError, match="key"):
        jnp.lexsort([])


@pytest.mark.parametrize("n", [7, 3000, 40_000])
@pytest.mark.parametrize("dtype", ["f4", "i4", "u1", "f2"])
def test_partition(n: int, dtype: str) -> None:
    x = np.random.default_rng(n).integers(0, 200, (3, n)).astype(dtype)
    if dtype == "f4":
        x[0, ::3] = np.nan
    for kth in (0, n // 2, -1):
        y, places = jnp.partition(x, kth), jnp.argpartition(x.T, kth, axis=0)
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(np.sort(y), np.sort(x))
        np.testing.assert_array_equal(np.asarray(y)[:, kth], np.sort(x)[:, kth])
        picked = np.take_along_axis(x.T, np.asarray(places), 0).T
        for partitioned in (np.asarray(y), picked):
            low, high = partitioned[:, : kth % n], partitioned[:, kth % n :]
            ends = np.sort(x)[:, kth, None]
            assert (~(low > ends)).all()
            assert ((high >= ends) | np.isnan(high) | np.isnan(ends)).all()
        np.testing.assert_array_equal(accnp.jit(lambda v, k=kth: jnp.partition(v, k))(x), y)
        np.testing.assert_array_equal(accnp.vmap(lambda v, k=kth: jnp.partition(v, k))(x), y)


def test_derivatives_of_partition() -> None:
    x = np.random.default_rng(0).normal(size=3000).astype(np.float32)
    f = lambda m, v: m.sum(m.sin(m.partition(v, 1000)[:1000]))  # noqa: E731
    gradient = accnp.grad(lambda v: f(jnp, v))(x)
    np.testing.assert_allclose(gradient, jax.grad(lambda v: f(jax.numpy, v))(x), rtol=1e-5)


def test_approximate_extremes_are_exact() -> None:
    x = DISTINCT
    for ours, theirs in (
        (lax.approx_max_k, jax.lax.approx_max_k),
        (lax.approx_min_k, jax.lax.approx_min_k),
    ):
        for axis in (-1, 0):
            actual, expected = ours(x, 2, axis), theirs(x, 2, axis)
            assert isinstance(actual, list)
            for a, b in zip(actual, expected):
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        for bad in ((Y.astype(int), 2), (x, 9), (x, 0), (np.float32(1), 1)):
            with pytest.raises((ValueError, TypeError)) as jax_error:
                theirs(*bad)
            with pytest.raises(type(jax_error.value)):
                ours(*bad)


def test_partition_rejects_invalid_arguments() -> None:
    with pytest.raises(NotImplementedError, match="complex"):
        jnp.partition(Y + 1j, 1)
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.partition(Y, 6)
    with pytest.raises(TypeError, match="integer"):
        jnp.argpartition(Y, 1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [3, 5, 40, 600])
def test_nan_in_parts_of_complex_numbers(size: int) -> None:
    parts = [1.0, 2.0, np.nan, -0.0, np.inf, -np.inf]
    rng = np.random.default_rng(size)
    for _ in range(4):
        x = np.empty(size, np.complex64)
        x.real, x.imag = rng.choice(parts, size), rng.choice(parts, size)
        operand = jnp.asarray(x)
        np.testing.assert_array_equal(jnp.sort(operand), np.sort(x))
        order = np.argsort(x, kind="stable")
        for f in (jnp.argsort, accnp.jit(jnp.argsort), lambda v: jnp.lexsort((v,))):
            np.testing.assert_array_equal(f(operand), order)
        both = np.stack([x, x[::-1]])
        np.testing.assert_array_equal(jnp.sort(jnp.asarray(both), axis=0), np.sort(both, axis=0))
        for name in ("maximum", "minimum", "less", "less_equal", "greater", "greater_equal"):
            pair = (x[:-1], x[1:])
            with np.errstate(invalid="ignore"):
                expected = getattr(np, name)(*pair)
            np.testing.assert_array_equal(getattr(jnp, name)(*map(jnp.asarray, pair)), expected)
        table = np.sort(x)
        for side in ("left", "right"):
            expected = np.searchsorted(table, x, side=side)
            np.testing.assert_array_equal(jnp.searchsorted(table, x, side=side), expected)
            many = accnp.vmap(lambda t, v, s=side: jnp.searchsorted(t, v, side=s))
            np.testing.assert_array_equal(many(table[None], x[None])[0], expected)
