"""Quantiles compared with JAX (values, dtypes, errors, derivatives, batches) and with NumPy."""

import jax
import numpy as np
import pytest
from api.support import assert_same, result_or_error
from api.tables import compare_expression, compare_gradients, split_cases

import accnp
import accnp.numpy as jnp

RNG = np.random.default_rng(0)
X = RNG.permutation(120).reshape(4, 6, 5).astype(np.float32)
Z = X.copy()
Z[1, 2, 3] = Z[2, :, 1] = np.nan
W = RNG.random((4, 6, 5)).astype(np.float32)
P = np.array([0.0, 0.1, 0.5, 0.77, 1.0], np.float32)
E = np.array([], np.float32)

TABLE = """
median(X) | median(X, 1) | median(X, (0, 2)) | median(X, (2, 0, 1), keepdims=True) | median(Z, 0)
median(X, -1, keepdims=True) | median(X.astype('int32')) | median(X > 50) | median(3.0)
median(X.astype('float16'), 1) | median(jnp.asarray(X, 'bfloat16'), 0) | nanmedian(Z)
nanmedian(Z, 1) | nanmedian(Z, (0, 1), keepdims=True) | nanmedian(X.astype('int8'), 2)
quantile(X, 0.3) | quantile(X, P) | quantile(X, P, 1) | quantile(X, P, (0, 2), keepdims=True)
quantile(X, P, None, keepdims=True) | quantile(Z, P, 2) | nanquantile(Z, P, 1)
nanquantile(Z, P, (0, 1), keepdims=True) | nanquantile(Z, 0.4, None)
nanquantile(Z, P, 1, keepdims=True)
percentile(X, 50) | percentile(X, np.array([10, 50, 99]), 0) | nanpercentile(Z, 100 * P, 1)
quantile(X, P, 0, method='lower') | quantile(X, P, 1, method='higher')
quantile(X, P, 2, method='nearest') | quantile(X, P, method='midpoint')
nanquantile(Z, P, 1, method='lower') | nanquantile(Z, P, 1, method='nearest')
nanquantile(Z, P, 0, method='midpoint', keepdims=True) | nanquantile(Z, 0.3, 0, method='higher')
quantile(X, P, 1, method='inverted_cdf') | quantile(Z, P, 1, method='inverted_cdf', keepdims=True)
quantile(X, 0.4, 0, method='inverted_cdf', weights=W)
quantile(X, P, method='inverted_cdf', weights=W)
quantile(X, P, 1, method='inverted_cdf', weights=W[0, :, 0])
quantile(X, 0.5, 1, method='inverted_cdf', weights=W - 0.1)
nanquantile(Z, P, 1, method='inverted_cdf') | nanquantile(Z, P, 2, method='inverted_cdf', weights=W)
percentile(X, 30.0, 1, method='inverted_cdf', weights=W) | median(X[:0, :, :0], 1)
"""


@pytest.mark.parametrize("text", split_cases(TABLE))
def test_as_jax(text):
    compare_expression(text, jnp, jax.numpy, X=X, Z=Z, W=W, P=P)


@pytest.mark.parametrize(
    "text",
    [
        "median(D)", "median(D, 1)", "quantile(D, Q)", "quantile(D, Q, (0, 2))",
        "nanquantile(D, 0.3, 1)", "quantile(D, Q, method='lower')", "percentile(D, 30.0, 0)",
    ],
)  # fmt: skip
def test_derivatives(text):
    distinct = (X + W / 4)[:2, :4, :3]
    compare_gradients(text, 10.0, D=distinct, **({"Q": P[1:4]} if "Q" in text else {}))


REFUSED = """
quantile(X, 1) | quantile(X, np.array([0, 1])) | median(X, out=1) | median(X, None, None, True)
quantile(X, 0.5, method='hazen') | median(X + 1j) | quantile(X, np.ones((2, 2), 'f4'))
quantile(X, 0.5, axis=(0, 0)) | quantile(X, 0.5, axis=3) | quantile(X, 0.5, weights=X)
quantile(X, 0.5, method='inverted_cdf', weights=X[0]) | median([1, 2]) | quantile(X, [0.5])
quantile(X, 0.5, axis=0, method='inverted_cdf', weights=X[0, 0])
quantile(X, 0.5, method='inverted_cdf', weights=X + 1j)
"""


@pytest.mark.parametrize("text", split_cases(REFUSED))
def test_raises_where_jax_raises(text):
    jax_error = result_or_error(lambda: eval(text, {**vars(jax.numpy), "np": np, "X": X}))
    error = result_or_error(
        lambda: eval(text, {**{n: getattr(jnp, n) for n in dir(jnp)}, "np": np, "X": X})
    )
    assert isinstance(jax_error, Exception)
    assert isinstance(error, type(jax_error)), error


def test_no_elements():
    for f in (jnp.median, jnp.nanmedian):
        with pytest.raises(ValueError, match="the array is empty"):
            f(E)


def test_jit_and_vmap():
    for f in ("median", "nanmedian"):
        ours, theirs = getattr(jnp, f), getattr(jax.numpy, f)
        assert np.array_equal(accnp.jit(ours)(Z), ours(Z), equal_nan=True)
        assert_same(accnp.vmap(ours, in_axes=1)(Z), jax.vmap(theirs, in_axes=1)(Z))
    actual = accnp.vmap(jnp.quantile, in_axes=(None, 0))(X, P)
    assert_same(actual, jax.vmap(jax.numpy.quantile, in_axes=(None, 0))(X, P))


def test_long_arrays_match_numpy():
    x = RNG.standard_normal(100_001, np.float32)
    np.testing.assert_allclose(jnp.median(x), np.median(x), rtol=1e-6)
    np.testing.assert_allclose(jnp.percentile(x, P * 100), np.percentile(x, P * 100), rtol=1e-4)


METHODS = ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_positions_are_not_rounded_to_the_dtype(name: str, method: str) -> None:
    ours, exact = getattr(jnp, name), getattr(np, name)
    for x in (np.arange(3001), np.arange(65521) < 10):
        half = x.astype(np.float16)
        for q in (0.1, 0.5, 0.9, 0.999):
            expected = exact(half.astype(float), q, method=method).astype(np.float16)
            assert ours(half, q, method=method) == expected
            assert accnp.jit(lambda v, q=q: ours(v, q, method=method))(half) == expected
    assert jnp.median(np.array([60000, 65000], np.float16)) == 62500


def test_positions_beyond_float32_precision() -> None:
    n = 2**24 + 5
    x = np.arange(n, dtype=np.int32)
    x = (x >= n - 3).astype(np.float32)
    assert [float(v) for v in jnp.quantile(x, jnp.array([0.5, 1.0]))] == [0, 1]
    assert jnp.quantile(x, (n - 4) / (n - 1)) == 0
    assert jnp.quantile(x, (n - 3) / (n - 1)) == 1


def test_weights_are_added_up_in_float64() -> None:
    x = np.arange(5000, dtype=np.float32)
    w = np.full(5000, 1.0, np.float16)
    actual = jnp.quantile(x, 0.9, method="inverted_cdf", weights=jnp.asarray(w))
    assert actual == np.quantile(x, 0.9, method="inverted_cdf", weights=w)


@pytest.mark.parametrize("method", METHODS)
def test_infinite_elements(method: str) -> None:
    x = np.array([3.0, -np.inf, 1.0, np.inf, np.inf, 2.0, -np.inf], np.float32)
    order = np.sort(x)
    q = [k / 6 for k in range(7)]
    for f in (jnp.quantile, accnp.jit(jnp.quantile, static_argnames="method"), jnp.nanquantile):
        np.testing.assert_array_equal(f(x, np.array(q, np.float32), method=method), order)
        for share, expected in zip(q, order, strict=True):
            assert f(x, share, method=method) == expected
    np.testing.assert_array_equal(
        jnp.percentile(jnp.array([-np.inf, 0, np.inf, 3]), np.array([0, 100])), [-np.inf, np.inf]
    )
    mapped = accnp.vmap(lambda v: jnp.percentile(v, 100.0, method=method))
    np.testing.assert_array_equal(mapped(np.stack([x, -x])), [np.inf, np.inf])
    with_nan = np.append(x, np.float32(np.nan))
    assert jnp.nanpercentile(with_nan, 0.0, method=method) == -np.inf
    assert np.isnan(jnp.percentile(with_nan, 0.0, method=method))
    gradient = accnp.grad(lambda v: jnp.quantile(v, 0.5, method=method))(x)
    np.testing.assert_array_equal(gradient, [0, 0, 0, 0, 0, 1, 0])


@pytest.mark.parametrize(
    ("xp", "fp"),
    [
        ([0, 1, 2], [0, np.inf, 3]),
        ([0, 1, 2], [-np.inf, 1, np.inf]),
        ([-np.inf, 0, 1], [2, 3, 4]),
        ([0, 1, np.inf], [2, 3, 4]),
        ([-np.inf, np.inf], [1, 2]),
        ([-np.inf, np.inf], [1, 1]),
        ([0, 1, 2, 3], [np.inf, np.inf, np.inf, 2]),
        ([0, 1, 1, 2], [0, 5, 7, 9]),
        ([0, 1e-30, 2e-30], [1, 2, 4]),
    ],
)
def test_lines_through_infinite_and_near_points(xp: list, fp: list) -> None:
    x = np.array([-np.inf, -1, 0, 0.5e-30, 1.5e-30, 0.25, 1, 1.5, 2, 3, np.inf], np.float32)
    p, f = np.array(xp, np.float32), np.array(fp, np.float32)
    expected = np.interp(x, p, f).astype(np.float32)
    for how in (jnp.interp, accnp.jit(jnp.interp), accnp.vmap(jnp.interp, (0, None, None))):
        np.testing.assert_allclose(how(x, p, f), expected, rtol=1e-6)


def test_derivatives_of_lines_as_jax() -> None:
    p, f = np.array([3, 4, 5, 6], np.float32), np.array([1, 2, 2, 5], np.float32)
    for x in (3.5, 4.0, 4.25, 5.5):
        args = (np.float32(x), p, f)
        ours = accnp.grad(jnp.interp, (0, 1, 2))(*args)
        theirs = jax.grad(jax.numpy.interp, (0, 1, 2))(*args)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
