"""Reductions and cumulative reductions compared with JAX: values, dtypes, weak types, axes and
errors.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
import scipy.special
from api.support import assert_agree, assert_same, assert_same_type, value_of

import accnp
import accnp.numpy as jnp
from accnp import lax, nn
from accnp.ir.op import OPS

DATA = {
    "bool": np.array([[True, False, True], [True, True, True]]),
    "int8": np.array([[-3, 100, 5], [100, 7, 2]], np.int8),
    "uint8": np.array([[200, 100, 5], [100, 7, 2]], np.uint8),
    "int32": np.array([[-3, 0, 5], [1, 7, 5]], np.int32),
    "float16": np.array([[-3, 0.5, 2048], [1, 7, 1]], np.float16),
    "float32": np.array([[-3, 0.5, 5], [np.inf, 7, 1]], np.float32),
    "complex64": np.array([[-3 + 1j, 0.5, 5j], [1, 7 - 2j, 1]], np.complex64),
}
MASK = np.array([[True, False, True], [True, True, True]])
NAN = np.array([[np.nan, 0.5, 5], [np.nan, -7, 1]], np.float32)
FOLDS = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "count_nonzero"]
CUMULATIVE = ["cumsum", "cumprod"]
SKIPPING = [
    "nansum",
    "nanprod",
    "nanmax",
    "nanmin",
    "nanmean",
    "nanvar",
    "nanstd",
    "nancumsum",
    "nancumprod",
    "nanargmax",
    "nanargmin",
]


@pytest.mark.parametrize("name", [*FOLDS, *CUMULATIVE, "argmax", "argmin", "ptp"])
def test_every_dtype_along_one_axis(name: str) -> None:
    for dtype, x in DATA.items():
        if (name[:3], dtype) != ("arg", "complex64"):  # jax refuses those after typing them
            assert_same_type(getattr(jnp, name), getattr(jax.numpy, name), x, axis=1)
        truth = name in ("all", "any") and dtype == "complex64"  # jax looks at the real part alone
        if (name, dtype) == ("std", "float16"):  # jax takes the root of a square that overflows
            expected = np.std(x.astype(float), axis=1).astype(dtype)
            np.testing.assert_allclose(jnp.std(x, axis=1), expected, rtol=1e-3)
        elif dtype in ("bool", "int8", "float16", "float32", "complex64") and not truth:
            assert_agree(getattr(jnp, name), getattr(jax.numpy, name), x, axis=1)


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint32", "float32"])
@pytest.mark.parametrize("name", FOLDS)
def test_types_with_x64_do_not_depend_on_earlier_calls(name: str, dtype: str) -> None:
    """Cached recordings are not shared between calls with and without `enable_x64`."""
    x = jnp.ones((2, 3), dtype)
    for x64 in (False, True, False):
        with jax.enable_x64(x64):
            expected = getattr(jax.numpy, name)(np.ones((2, 3), dtype)).dtype
        with accnp.enable_x64(x64):
            dtypes = [getattr(jnp, name)(x).dtype for _ in range(2)]
            if hasattr(x, name):
                dtypes += [getattr(x, name)().dtype for _ in range(2)]
        assert set(dtypes) == {expected}


@pytest.mark.parametrize(
    "kw",
    [
        {},
        {"axis": -2},
        {"axis": (0, 1)},
        {"axis": (1,), "keepdims": True},
        {"keepdims": True},
        {"axis": ()},
    ],
)
@pytest.mark.parametrize("name", FOLDS)
def test_axes(name: str, kw: dict) -> None:
    assert_agree(
        getattr(jnp, name), getattr(jax.numpy, name), DATA["float32"][:, ::-1].copy(), **kw
    )


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "cumsum"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_requested_dtype(name: str, dtype: str) -> None:
    if (name, dtype) != ("var", "int32"):  # of which jax makes a weak float, and std an error
        assert_agree(
            getattr(jnp, name), getattr(jax.numpy, name), DATA["int32"], axis=0, dtype=dtype
        )


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all"])
def test_where(name: str) -> None:
    mask = np.array([True, False, True])
    kw = {"initial": 0.5} if name in ("max", "min") else {}
    x = DATA["float32"]
    for axis in (None, 1):
        ours = getattr(jnp, name)(jnp.asarray(x), axis=axis, where=jnp.asarray(mask), **kw)
        assert_same(ours, getattr(jax.numpy, name)(x, axis=axis, where=mask, **kw))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_initial(name: str) -> None:
    assert_agree(getattr(jnp, name), getattr(jax.numpy, name), DATA["int32"], axis=0, initial=3)


@pytest.mark.parametrize("name", SKIPPING)
def test_nan_functions_ignore_nan(name: str) -> None:
    assert_agree(getattr(jnp, name), getattr(jax.numpy, name), NAN, axis=0)
    assert_agree(getattr(jnp, name), getattr(jax.numpy, name), DATA["int32"], axis=0)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "var", "argmax"])
def test_nan_propagates(name: str) -> None:
    assert_agree(getattr(jnp, name), getattr(jax.numpy, name), NAN, axis=1)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_argmax_and_argmin_over_all_elements(name: str) -> None:
    assert_agree(getattr(jnp, name), getattr(jax.numpy, name), DATA["int32"])
    assert_agree(getattr(jnp, name), getattr(jax.numpy, name), DATA["int32"], keepdims=True)


def test_weak_types_stay_weak() -> None:
    for fn, peer in (
        (jnp.sum, jax.numpy.sum),
        (jnp.mean, jax.numpy.mean),
        (jnp.max, jax.numpy.max),
    ):
        for value in (1.5, 2):
            assert_same(fn(value), peer(value))


@pytest.mark.parametrize("ddof", [0, 1, 6, 7])
def test_degrees_of_freedom(ddof: int) -> None:
    x = DATA["int32"]
    assert_agree(jnp.var, jax.numpy.var, x, ddof=ddof)
    assert_agree(jnp.std, jax.numpy.std, x, correction=ddof)


def test_variance_of_complex_numbers_is_real() -> None:
    assert_agree(jnp.var, jax.numpy.var, DATA["complex64"])


def test_average() -> None:
    x = DATA["int32"]
    assert_agree(jnp.average, jax.numpy.average, x, axis=1)
    w = np.array([1, 2, 4], np.float32)
    ours = jnp.average(jnp.asarray(x), axis=1, weights=w, returned=True)
    assert_same(ours, jax.numpy.average(x, axis=1, weights=w, returned=True))


@pytest.mark.parametrize("axis", [(1, 0), (2, 0), (-1, 0), (2, 0, 1), (0, 2), (1, 2, 0)])
def test_average_along_axes_in_any_order(axis: tuple[int, ...]) -> None:
    for shape in ((2, 2, 3), (2, 3, 4)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        w = (1.0 + np.arange(np.prod([shape[d] for d in axis]))).astype(np.float32)
        w = w.reshape([shape[d] for d in axis])
        for f in (jnp.average, accnp.jit(jnp.average, static_argnames="axis")):
            np.testing.assert_allclose(
                f(x, axis=axis, weights=w), np.average(x, axis=axis, weights=w), rtol=1e-6
            )
        method: Any = {"method": "inverted_cdf", "weights": w}
        np.testing.assert_array_equal(
            jnp.quantile(x, 0.3, axis=axis, **method), np.quantile(x, 0.3, axis=axis, **method)
        )


@pytest.mark.parametrize("kw", [{}, {"axis": 0}, {"axis": -1, "keepdims": True}])
def test_logsumexp(kw: dict) -> None:
    x = np.array([[1000.0, 1000.5, -np.inf], [-np.inf, -np.inf, -np.inf]], np.float32)
    assert_agree(jnp_logsumexp, jax.nn.logsumexp, x, **kw)
    assert_agree(jnp_logsumexp, jax.nn.logsumexp, DATA["int32"], **kw)


def jnp_logsumexp(*args: Any, **kw: Any) -> Any:
    return nn.logsumexp(*args, **kw)


def test_logsumexp_with_weights_and_sign() -> None:
    x, b = DATA["int32"].astype(np.float32), np.array([1.0, -2, 0], np.float32)
    ours = jnp_logsumexp(jnp.asarray(x), axis=1, b=b, return_sign=True)
    assert_same(ours, jax.nn.logsumexp(x, axis=1, b=b, return_sign=True))


def _beside_zero(n: int, dtype: Any) -> np.ndarray:
    """Return rows of n numbers whose logsumexp is near 0: one dominates, ties with another, or is
    far away."""
    rng = np.random.default_rng(n)
    x = rng.uniform(-30, -9, (120, n))
    top = rng.standard_normal(120) * 10.0 ** -rng.integers(0, 12, 120)
    top = np.where(np.abs(top) < np.exp(-9) * n, np.abs(top), top)
    x[range(120), rng.integers(0, n, 120)] = top
    x[-40:] = rng.standard_normal((40, n)) + 5
    x[-50:-40] = 0.25
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 4, 7, 70, 1500, 40000])
def test_logsumexp_near_zero_is_accurate(n: int, dtype: str) -> None:
    """Results near 0 have as many correct digits as SciPy's, whatever the layout."""
    x = _beside_zero(n, dtype)[:: 1 + 30 * (n > 9999)]
    wide = x.astype(np.longdouble)
    top = wide.max(1, keepdims=True)
    rest = np.where(wide == top, 0, np.exp(wide - top)).sum(1) + ((wide == top).sum(1) - 1)
    expected = np.log1p(rest) + top[:, 0]
    with accnp.enable_x64(dtype == "float64"):
        across = np.ascontiguousarray(x.T)
        results = {
            "rows": nn.logsumexp(x, axis=1),
            "rows, compiled": accnp.jit(lambda x: nn.logsumexp(x, axis=1))(x),
            "columns": accnp.jit(lambda x: nn.logsumexp(x, axis=0))(across),
            "columns across": accnp.jit(lambda x: nn.logsumexp(x.T, axis=0))(x),
            "rows across": accnp.jit(lambda x: nn.logsumexp(x.T, axis=1))(across),
            "examples": accnp.jit(accnp.vmap(nn.logsumexp))(x),
            "each": np.stack([nn.logsumexp(row) for row in x[:9]]),
            "computed": accnp.jit(lambda x: nn.logsumexp(x * 2 - x, axis=1, keepdims=True))(x),
        }
    theirs = scipy.special.logsumexp(x, axis=1)
    assert theirs.dtype == dtype

    def error(y: Any) -> float:
        exact = expected[: len(y)]
        return float((np.abs(y - exact) / np.spacing(np.abs(exact).astype(dtype))).max())

    for name, y in results.items():
        y = np.asarray(y).ravel()
        assert y.dtype == dtype
        # Columns are added up one after the other.
        more = 1.5 if "rows" in name else 3
        assert error(y) <= max(4, more * error(theirs)), (name, error(y), error(theirs))
    np.testing.assert_array_equal(results["rows"], results["rows, compiled"])


def test_logsumexp_derivatives_match_softmax_near_zero() -> None:
    x = _beside_zero(7, np.float32)
    for axis, operand in ((1, x), (0, x.T)):
        gradient = accnp.jit(accnp.grad(lambda x, a=axis: nn.logsumexp(x, axis=a).sum()))(operand)
        np.testing.assert_allclose(gradient, nn.softmax(operand, axis=axis), rtol=1e-5, atol=1e-30)
    twice = accnp.hessian(nn.logsumexp)(x[0])
    np.testing.assert_allclose(twice, jax.hessian(jax.nn.logsumexp)(x[0]), rtol=1e-4, atol=1e-9)
    _, tangent = accnp.jvp(nn.logsumexp, (x[0],), (x[1],))
    expected = jax.jvp(jax.nn.logsumexp, (x[0],), (x[1],))[1]
    np.testing.assert_allclose(tangent, expected, rtol=1e-5)


@pytest.mark.parametrize("fill", [0.0, -0.0, np.inf, -np.inf, np.nan, -1e-40, 88.0])
def test_logsumexp_of_special_values(fill: float) -> None:
    for shape in ((3, 1), (3, 2), (3, 9), (3, 0)):
        x = np.full(shape, fill, np.float32)
        if x.size:
            assert_agree(jnp_logsumexp, jax.nn.logsumexp, x, axis=0)
            x[1:, 0] = -np.inf, 1e-3
        assert_agree(jnp_logsumexp, jax.nn.logsumexp, x, axis=1)
        assert_agree(jnp_logsumexp, jax.nn.logsumexp, x, axis=1, where=x > -1)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_array_api_cumulative_functions(name: str) -> None:
    fn, peer = getattr(jnp, name), getattr(jax.numpy, name)
    assert_agree(fn, peer, DATA["int32"], axis=1, include_initial=True)
    assert_agree(fn, peer, DATA["int32"][0])
    assert_agree(fn, peer, DATA["int32"])
    for kind in (np.int8, np.uint8):  # jax leaves products as narrow as they are
        wide = np.dtype(np.int32 if kind is np.int8 else np.uint32)
        actual = fn(np.array([3, 100, 100], kind))
        assert actual.dtype == wide
        assert actual.tolist() == ([3, 103, 203] if "sum" in name else [3, 300, 30000])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), ()])
def test_empty_and_scalar(shape: tuple) -> None:
    for name in ("sum", "prod", "any", "all"):
        assert_agree(getattr(jnp, name), getattr(jax.numpy, name), np.ones(shape, np.float32))
    for name in ("max", "argmin"):
        assert_agree(getattr(jnp, name), getattr(jax.numpy, name), np.ones(shape, np.float32))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda x: jnp.sum(x, axis=2),
            ValueError,
            "axis 2 is out of bounds for array of dimension 2",
        ),
        (
            lambda x: jnp.max(x, axis=-3),
            ValueError,
            "axis -3 is out of bounds for array of dimension 2",
        ),
        (lambda x: jnp.sum(x, axis=(0, 0)), ValueError, "(0, 0)"),
        (lambda x: jnp.sum(x, axis=1.0), TypeError, "axis"),
        (lambda x: jnp.max(x[:0]), ValueError, "zero-size array to reduction operation max"),
        (lambda x: jnp.argmax(x[:0]), ValueError, "attempt to get argmax of an empty sequence"),
        (lambda x: jnp.max(x, where=x > 0), ValueError, "pass initial="),
        (lambda x: jnp.sum(x, out=x), NotImplementedError, "'out'"),
        (lambda x: jnp.sum([1, 2]), TypeError, "sum requires ndarray or scalar arguments"),
        (lambda x: jnp.sum(x, where=1), ValueError, "where must be None or a boolean array"),
        (lambda x: jnp.std(x, dtype="int32"), ValueError, "dtype argument must be inexact"),
        (lambda x: jnp.cumsum(x, axis=7), ValueError, "axis 7 is out of bounds"),
    ],
)
def test_errors(call: object, kind: type, text: str) -> None:
    with pytest.raises(kind) as caught:
        call(jnp.asarray(DATA["float32"]))  # type: ignore[operator]
    assert text in str(caught.value)


def test_kernels_match_the_reference() -> None:
    x = jnp.asarray(np.linspace(-2, 3, 24, dtype=np.float32).reshape(4, 6))
    for out in (jnp.var(x, axis=0), jnp.max(x, axis=1), jnp.mean(x), jnp.any(x > 2, axis=0)):
        expected = value_of(out)
        np.testing.assert_allclose(np.asarray(out), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [4, 32, 100, 5000])
def test_products_overflow_only_if_the_result_does(dtype, n):
    """Some lanes of a block hold only large numbers, others only small ones."""
    big = 1e30 if dtype == np.float32 else 1e250
    with accnp.enable_x64(True):
        for pair in ([big, 1 / big], [big, big, 1 / big, 1 / big], [1 / big, -big]):
            x = np.resize(np.array(pair, dtype), n)
            actual = float(jnp.prod(jnp.array(x)))
            assert abs(abs(actual) - 1) < 1e-3
        assert jnp.prod(jnp.full(n, 1 / big, dtype)) == 0
        assert jnp.prod(jnp.full(n, -0.125, dtype)) == (-0.125) ** n
        x = np.full(n, 1.5, dtype)
        tiny = np.finfo(dtype).smallest_subnormal * 4
        for edge in (0.0, -0.0, np.inf, -np.inf, np.nan, -tiny):
            y = np.where(np.arange(n) == n // 2, edge, x if np.abs(edge) > 1 else 1).astype(dtype)
            with np.errstate(all="ignore"):
                expected = np.prod(y)
            np.testing.assert_array_equal(np.asarray(jnp.prod(jnp.array(y))), expected)


def walk(n, dtype):
    """Return numbers whose prefix products are in range while products of some inner
    parts are not."""
    rng, top = np.random.default_rng(3), 100 if np.finfo(dtype).bits == 32 else 1000
    powers = [0]
    for step in rng.integers(-top, top, n - 1):
        powers.append(min(max(powers[-1] + step, -top), top))
    turns = np.exp(1j * np.arange(n)) if np.dtype(dtype).kind == "c" else 1
    return (np.exp2(np.diff(powers, prepend=0.0)) * rng.uniform(0.9, 1.1, n) * turns).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("n", [6, 203])
def test_running_products_overflow_only_where_one_from_the_start_does(dtype, n):
    reference = OPS["cumprod"].numpy
    assert reference is not None
    with accnp.enable_x64(True):
        x = walk(n, dtype)
        expected = np.multiply.accumulate(x.astype("G" if dtype[0] == "c" else "g"))
        rtol = 1e-4 if dtype in ("f4", "c8") else 1e-12
        both = np.stack([x, x, 1 / x, x, x])
        for actual in (
            jnp.cumprod(jnp.asarray(x)),
            jnp.cumprod(jnp.asarray(both), 1)[1],
            jnp.cumprod(jnp.asarray(both.T.copy()), 0)[:, 3],
            lax.cumprod(jnp.asarray(x[::-1].copy()), reverse=True)[::-1],
            reference(x, axis=0),
        ):
            error = np.abs(np.asarray(actual) - expected) / np.abs(expected)
            assert error.max() < rtol


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_derivatives_of_products_that_overflow_from_either_side(dtype):
    big = 1e250 if dtype == "f8" else 1e30
    x = np.array([big, big, 1 / big, 1 / big], dtype)
    with accnp.enable_x64(True):
        gradient = accnp.grad(jnp.prod, holomorphic=dtype[0] == "c")(jnp.asarray(x))
        np.testing.assert_allclose(gradient, 1 / x, rtol=1e-5)
        zero = accnp.hessian(jnp.prod)(np.array([0.0, 2.0, 3.0]))
        np.testing.assert_array_equal(zero, [[0, 3, 2], [3, 0, 0], [2, 0, 0]])


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_mask_larger_than_its_array(name):
    x, mask = np.float32([0.3, 1.7, -2.4]), np.array([[True, True, False], [False, True, True]])
    f = getattr(nn, name)
    np.testing.assert_array_equal(f(x, where=mask), f(np.broadcast_to(x, (2, 3)), where=mask))


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5, 1e7])
@pytest.mark.parametrize("shape", [(900, 70), (70, 900), (3, 5), (40_000, 2)])
def test_variance_is_the_rounded_one_of_float64(offset: float, shape: tuple[int, int]) -> None:
    x = (offset + np.random.default_rng(5).random(shape)).astype(np.float32)
    for axis in (None, 0, 1):
        for name in ("var", "std"):
            expected = np.asarray(getattr(np, name)(x.astype(float), axis=axis), np.float32)
            f = partial(getattr(jnp, name), axis=axis)
            for actual in (f(x), accnp.jit(f)(x), accnp.jit(f)(np.asfortranarray(x))):
                assert (np.abs(np.asarray(actual) - expected) <= np.spacing(expected)).all()


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("options", [{}, {"ddof": 1}, {"where": MASK}])
def test_second_derivatives_of_deviations(name: str, options: dict[str, Any]) -> None:
    x = np.float32([[1, 2.5, -3], [0.5, 1, 2]])
    for dtype in (np.float32, np.complex64):
        z = (x * (1 + 0.5j) if dtype == np.complex64 else x).astype(dtype)
        for around in (lambda f: f, accnp.jit):
            ours = around(lambda s, z: getattr(jnp, name)(z * s + s**2 * z[0], **options).sum())

            def theirs(s: Any, z: Any) -> Any:
                return getattr(jax.numpy, name)(z * s + s**2 * z[0], **options).sum()

            for order in range(3) if around is accnp.jit else (2,):
                f, g = ours, theirs
                for _ in range(order):
                    f, g = accnp.grad(f), jax.grad(g)
                np.testing.assert_allclose(f(1.3, z), g(1.3, z), rtol=3e-5, atol=1e-4)
    ours, theirs = getattr(jnp, name), getattr(jax.numpy, name)
    actual = accnp.hessian(lambda x: ours(x, **options))(x)
    expected = jax.hessian(lambda x: theirs(x, **options))(x)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e20, 1e30])
def test_derivatives_of_deviations_have_no_scale(scale: float) -> None:
    x = np.float32([1, 2.5, -3, 0.5])
    expected = accnp.grad(jnp.std)(x)
    np.testing.assert_allclose(accnp.grad(jnp.std)(x * np.float32(scale)), expected, rtol=1e-5)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5, 1e7, -1e7, 1e9])
def test_variance_of_large_numbers(offset: float) -> None:
    spread = max(1.0, abs(offset) * 1e-6)
    x = (offset + spread * np.random.default_rng(7).random((2, 5000))).astype(np.float32)
    exact = x.astype(float)
    everywhere = np.ones(x.shape, bool)

    def near(actual: Any, expected: Any) -> None:
        expected = np.asarray(expected, np.float32)
        assert (np.abs(np.asarray(actual) - expected) <= 4 * np.spacing(np.abs(expected))).all()

    for name in ("var", "std", "nanvar", "nanstd"):
        ours, theirs = getattr(jnp, name), getattr(np, name)
        for axis in (None, 0, 1):
            expected = theirs(exact, axis=axis)
            near(ours(x, axis), expected)
            near(accnp.jit(ours, static_argnums=1)(x, axis), expected)
            near(ours(x, axis, where=everywhere), expected)
            near(ours(x, axis, ddof=1), theirs(exact, axis=axis, ddof=1))
        near(accnp.vmap(ours)(x), theirs(exact, axis=1))
    near(jnp.cov(x[0]), np.cov(exact[0]))
    np.testing.assert_allclose(
        jnp.cov(x), np.cov(exact), rtol=1e-5, atol=np.cov(exact).max() * 1e-6
    )
    z = (x + 1j * x[::-1]).astype(np.complex64)
    near(jnp.var(z), np.var(z.astype(complex)))
    standard = (exact - exact.mean()) / exact.std()
    np.testing.assert_allclose(nn.standardize(x, None, epsilon=0), standard, atol=1e-5)
    gradient = accnp.grad(lambda v: jnp.std(v))(x)
    np.testing.assert_allclose(gradient, standard / x.size, rtol=1e-4, atol=1e-9)


def test_variance_of_large_integers_and_doubles() -> None:
    x = 2**27 + np.random.default_rng(3).integers(0, 2, 1000).astype(np.int32)
    np.testing.assert_allclose(jnp.var(x), np.var(x), rtol=1e-6)
    with accnp.enable_x64():
        y = 2.0**50 + np.random.default_rng(3).integers(0, 3, 1001) / 4
        np.testing.assert_allclose(jnp.var(y), np.var(y - 2.0**50), rtol=1e-14)


def test_deviations_of_small_and_large_numbers() -> None:
    for scale in (1e-30, 1e30):
        x = np.array([3.0, 4.0, 8.0], np.float32) * np.float32(scale)
        exact = x.astype(float)
        np.testing.assert_allclose(jnp.std(x), exact.std(), rtol=1e-6)
        gradient = (exact - exact.mean()) / exact.std() / 3
        np.testing.assert_allclose(accnp.grad(jnp.std)(x), gradient, rtol=1e-5)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_reductions_that_were_recorded_before(name):
    """The second call with the same type and axis is recorded without checking the
    arguments again."""
    f, of_numpy = getattr(jnp, name), getattr(np, name)
    rng = np.random.default_rng(3)
    for dtype in ("float32", "int8", "bool", "float16", "complex64", "float64"):
        a = jnp.asarray(rng.integers(-2, 3, (3, 4)).astype(dtype))
        for axis in (None, 0, 1, -1, (0,), (0, 1), [1]):
            expected = of_numpy(np.asarray(a), tuple(axis) if type(axis) is list else axis)
            first, traced = f(a, axis), accnp.jit(partial(f, axis=axis))(a)
            for actual in (first, f(a, axis), f(a[::-1][::-1], axis), traced):
                assert actual.aval is first.aval
                np.testing.assert_array_equal(actual, expected)
    a = jnp.asarray(rng.standard_normal((3, 4)), "float32")
    for _ in range(3):
        np.testing.assert_array_equal(accnp.vmap(f)(a), f(a, 1))
        gradient = accnp.grad(f)(a)
        np.testing.assert_allclose(
            (gradient * a).sum(), {"prod": 12}.get(name, 1) * f(a), rtol=1e-5
        )
        with accnp.enable_x64():
            wide = jnp.asarray(np.ones(3))
            assert f(wide).dtype == np.float64
        assert f(wide).dtype == np.float32
        assert f(a, keepdims=True).shape == (1, 1)
        with pytest.raises((TypeError, ValueError)):
            f(a, 2)
    gone = a + 0
    gone.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(gone)
