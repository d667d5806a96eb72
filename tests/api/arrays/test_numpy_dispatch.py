"""The option `numpy_dispatch`: NumPy functions on accnp arrays return accnp arrays with the values
that NumPy computes, also under `jit`, `grad` and `vmap`. Dask and xarray can contain accnp arrays.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.special
import xarray as xr

import accnp as jnp
from accnp.api.arrays.numpy_protocols import _counterpart

numpy: Any = np  # type checkers know NumPy's types of arguments and results

UFUNCS = {
    f.__name__: f for name in dir(np) if isinstance(f := getattr(np, name), np.ufunc)
}  # under one of their names
# Ufuncs without a function of accnp: those of dates.
UNSUPPORTED_UFUNCS = {"isnat"}
# What NumPy has for objects, texts and dates, for writing to arrays, and for asking about memory.
NO_COUNTERPART = {
    "np.busday_count", "np.busday_offset", "np.copyto", "np.datetime_as_string",
    "np.is_busday", "np.may_share_memory", "np.min_scalar_type", "np.putmask", "np.real_if_close",
    "np.shares_memory",
}  # fmt: skip
EXAMPLE_DTYPES = {"f": np.float32, "i": np.int32, "?": np.bool_}
SHAPES = {"matmul": [(3, 4), (4, 2)], "matvec": [(3, 4), (4,)], "vecmat": [(3,), (3, 4)],
          "vecdot": [(3, 4), (4,)]}  # fmt: skip


@pytest.fixture(autouse=True)
def _enable_dispatch() -> Iterator[None]:
    with jnp.numpy_dispatch():
        yield


def operands(ufunc: np.ufunc) -> list[list[np.ndarray]]:
    """Return operands for each float32, int32 and bool loop of a ufunc."""
    random = np.random.default_rng(0)
    shapes = SHAPES.get(ufunc.__name__, [(3, 4), (4,)])
    tuples = []
    for loop in ufunc.types:
        codes = loop.split("->")[0]
        if not all(c in EXAMPLE_DTYPES for c in codes):
            continue
        values = [random.uniform(0.1, 0.9, s) for s in shapes]
        if ufunc.__name__ in ("arccosh",):
            values = [v + 1 for v in values]
        if "i" in codes:
            values = [np.where(v > 0, v * 4 + 1, 1) for v in values]
        if codes in ("?", "??"):
            values = [v > 0.5 for v in values]
        tuples.append([v.astype(EXAMPLE_DTYPES[c]) for v, c in zip(values, codes)])
    return tuples


def arrays(xs: list[np.ndarray]) -> list[Any]:
    return [jnp.asarray(x) for x in xs]


def compare(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for g, w in zip(actual, expected):
            compare(g, w)
        return
    assert type(actual) is jnp.Array
    assert actual.shape == np.shape(expected)
    assert actual.dtype.kind == np.asarray(expected).dtype.kind
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(UFUNCS.keys() - UNSUPPORTED_UFUNCS))
def test_ufuncs(name: str) -> None:
    ufunc = UFUNCS[name]
    for xs in operands(ufunc):
        if name == "reciprocal" and xs[0].dtype.kind == "i":
            continue  # that of an integer is a float in jax
        expected = ufunc(*xs)
        compare(ufunc(*arrays(xs)), expected)
        if len(xs) == 2:  # one operand of NumPy's, on either side
            compare(ufunc(xs[0], jnp.asarray(xs[1])), expected)
            compare(ufunc(jnp.asarray(xs[0]), xs[1]), expected)
        compare(jnp.jit(lambda *a, f=ufunc: f(*a))(*arrays(xs)), expected)
        if (ufunc.nin, ufunc.nout) != (2, 1) or name in SHAPES or xs[0].dtype != xs[1].dtype:
            continue
        compare(ufunc.outer(*arrays(xs)), ufunc.outer(*xs))
        if ufunc(xs[0], xs[0]).dtype != xs[0].dtype or xs[0].dtype == bool:
            continue  # reduced in another dtype
        # The loops of NumPy for power and arctan2 in float32 are wrong here (AVX-512, NumPy 2.4).
        compare(ufunc.reduce(jnp.asarray(xs[0]), axis=1), functools.reduce(ufunc, xs[0].T))
        compare(ufunc.accumulate(jnp.asarray(xs[0])), ufunc.accumulate(xs[0]))
        compare(ufunc.reduceat(jnp.asarray(xs[0]), [0, 2]), ufunc.reduceat(xs[0], [0, 2]))


def test_ufuncs_without_a_counterpart() -> None:
    for name in UNSUPPORTED_UFUNCS:
        with pytest.raises(TypeError, match=rf"np.{name}: jnp.{name} does not exist; .*np.asarray"):
            UFUNCS[name](jnp.ones(2))


def test_ufuncs_of_scipy() -> None:
    x = np.linspace(0.1, 0.9, 5).astype(np.float32)
    for ufunc in (scipy.special.erf, scipy.special.expit, scipy.special.gammaln):
        compare(ufunc(jnp.asarray(x)), ufunc(x))
    with pytest.raises(TypeError, match=r"scipy.special.ellipj: accnp.scipy.special.ellipj"):
        scipy.special.ellipj(jnp.ones(2), 0.5)


A = np.random.default_rng(1).uniform(0.1, 0.9, (4, 4)).astype(np.float32)
V = np.array([3.0, 1.0, 2.0, 2.0], np.float32)
K = np.array([3, 0, 2, 2], np.int32)
FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda a, v, k: np.sum(a, axis=1, keepdims=True),
    "sum where": lambda a, v, k: np.sum(a, where=a > 0.5, initial=1.0),
    "mean": lambda a, v, k: np.mean(a, 0),
    "var": lambda a, v, k: np.var(a, ddof=1),
    "median": lambda a, v, k: np.median(a, axis=0),
    "percentile": lambda a, v, k: np.percentile(a, [10, 50], axis=1),
    "cumsum": lambda a, v, k: np.cumsum(v),
    "argmax": lambda a, v, k: np.argmax(a, axis=1),
    "sort": lambda a, v, k: np.sort(a, axis=0),
    "argsort": lambda a, v, k: np.argsort(v, kind="stable"),
    "unique": lambda a, v, k: np.unique(k, return_counts=True),
    "searchsorted": lambda a, v, k: np.searchsorted(np.sort(v), [1.5, 2.0]),
    "concatenate": lambda a, v, k: np.concatenate([a, a * 2], axis=1),
    "concatenate of both kinds": lambda a, v, k: np.concatenate([v, V, [5.0]]),
    "stack": lambda a, v, k: np.stack([v, v], axis=1),
    "vstack": lambda a, v, k: np.vstack([a, v]),
    "block": lambda a, v, k: np.block([[a, a], [a, a]]),
    "split": lambda a, v, k: np.split(a, 2),
    "tile": lambda a, v, k: np.tile(v, (2, 2)),
    "repeat": lambda a, v, k: np.repeat(a, 2, axis=0),
    "pad": lambda a, v, k: np.pad(a, ((1, 0), (0, 2)), mode="edge"),
    "roll": lambda a, v, k: np.roll(a, 1, axis=0),
    "flip": lambda a, v, k: np.flip(a),
    "take": lambda a, v, k: np.take(a, [0, 2], axis=1),
    "take_along_axis": lambda a, v, k: np.take_along_axis(a, np.argsort(a, 1), 1),
    "where": lambda a, v, k: np.where(a > 0.5, a, 0.0),
    "select": lambda a, v, k: np.select([a > 0.7, a > 0.3], [a, -a]),
    "clip": lambda a, v, k: np.clip(a, a_min=0.3, a_max=0.6),
    "clip by names": lambda a, v, k: np.clip(a=a, a_min=0.3, a_max=None),
    "reshape": lambda a, v, k: np.reshape(a, (2, 8)),
    "ravel": lambda a, v, k: np.ravel(a, order="C"),
    "transpose": lambda a, v, k: np.transpose(a),
    "moveaxis": lambda a, v, k: np.moveaxis(a, 0, 1),
    "expand_dims": lambda a, v, k: np.expand_dims(a, (0, 3)),
    "squeeze": lambda a, v, k: np.squeeze(a[None]),
    "broadcast_to": lambda a, v, k: np.broadcast_to(v, (2, 4)),
    "atleast_2d": lambda a, v, k: np.atleast_2d(v),
    "dot": lambda a, v, k: np.dot(a, v),
    "vdot": lambda a, v, k: np.vdot(v, v),
    "outer": lambda a, v, k: np.outer(v, [1.0, 2.0]),
    "tensordot": lambda a, v, k: np.tensordot(a, a, axes=2),
    "einsum": lambda a, v, k: np.einsum("ij,jk->k", a, a),
    "kron": lambda a, v, k: np.kron(v, v),
    "cross": lambda a, v, k: np.cross(v[:3], v[1:]),
    "trace": lambda a, v, k: np.trace(a),
    "diag": lambda a, v, k: np.diag(v),
    "tril": lambda a, v, k: np.tril(a, -1),
    "norm": lambda a, v, k: np.linalg.norm(a, axis=1),
    "solve": lambda a, v, k: np.linalg.solve(a + np.eye(4, dtype=np.float32) * 4, v),
    "det": lambda a, v, k: np.linalg.det(a),
    "svd": lambda a, v, k: np.linalg.svd(a, compute_uv=False),
    "qr": lambda a, v, k: np.abs(np.linalg.qr(a)[1]),
    "fft": lambda a, v, k: np.abs(np.fft.fft(v)),
    "rfft": lambda a, v, k: np.abs(np.fft.rfft(a, axis=0)),
    "diff": lambda a, v, k: np.diff(a, axis=0),
    "gradient": lambda a, v, k: np.gradient(v),
    "interp": lambda a, v, k: np.interp([0.5, 1.5], np.sort(v), v),
    "trapezoid": lambda a, v, k: np.trapezoid(v),
    "convolve": lambda a, v, k: np.convolve(v, [1.0, 2.0]),
    "histogram": lambda a, v, k: np.histogram(a, bins=4, weights=a),
    "bincount": lambda a, v, k: np.bincount(k, minlength=5),
    "digitize": lambda a, v, k: np.digitize(a, [0.3, 0.6]),
    "isin": lambda a, v, k: np.isin(k, [2, 3]),
    "nonzero": lambda a, v, k: np.nonzero(k),
    "nansum": lambda a, v, k: np.nansum(a, axis=0),
    "nan_to_num": lambda a, v, k: np.nan_to_num(a),
    "round": lambda a, v, k: np.round(a, 2),
    "real": lambda a, v, k: np.real(a),
    "zeros_like": lambda a, v, k: np.zeros_like(a, order="K", subok=False),
    "full_like": lambda a, v, k: np.full_like(a, 2, shape=(3,)),
    "asarray": lambda a, v, k: np.asarray([1.0, 2.0], dtype=np.float32, like=a),
    "arange": lambda a, v, k: np.arange(4, dtype=np.int32, like=a),
    "apply_along_axis": lambda a, v, k: numpy.apply_along_axis(np.sum, 0, a),
    "polyval": lambda a, v, k: np.polyval(v, a),
    "cov": lambda a, v, k: np.cov(a),
    "operators": lambda a, v, k: V + a * V - np.float32(2) * v,
    "matmul": lambda a, v, k: A @ a,
}  # fmt: skip
VALUES = {"unique", "nonzero", "histogram", "bincount"}  # shapes that depend on values, or static


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    call = FUNCTIONS[name]
    expected = call(A, V, K)
    compare(call(*arrays([A, V, K])), expected)
    if name not in VALUES:
        compare(jnp.jit(call)(*arrays([A, V, K])), expected)


def dispatched_functions() -> Iterator[Any]:
    for module in (np, np.linalg, np.fft):
        for name in dir(module):
            function = getattr(module, name)
            if hasattr(function, "_implementation"):
                yield function


def test_which_functions_have_counterparts() -> None:
    assert {
        match.name for f in dispatched_functions() if not (match := _counterpart(f)).function
    } == (NO_COUNTERPART)


def test_transformations() -> None:
    x = jnp.asarray([0.5, 1.0, 2.0])
    np.testing.assert_allclose(jnp.grad(lambda x: np.sum(np.sin(x) ** 2))(x), np.sin([1, 2, 4]),
                               rtol=1e-5)  # fmt: skip
    assert np.allclose(jnp.vmap(lambda row: np.linalg.norm(row))(jnp.asarray(A)),
                       np.linalg.norm(A, axis=1))  # fmt: skip
    assert "sin" in str(jnp.make_jaxpr(np.sin)(x))
    before = jnp.counters()["launches"]
    y = numpy.exp(np.sin(x)) + np.float32(1)
    assert not y.is_ready()
    assert jnp.counters()["launches"] == before


def test_functions_along_an_axis_may_use_values() -> None:
    def longest(v: Any, least: float) -> Any:
        """Return the sum and the number of the elements above `least`, using branches and masks."""
        chosen = v[v > least]
        return (
            np.array([0.0, 0.0]) if not np.any(v > least) else np.stack([chosen.sum(), chosen.size])
        )

    x = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    for axis in (0, 1, -1):
        actual = np.apply_along_axis(longest, axis, jnp.asarray(x), 0.5)
        expected = np.apply_along_axis(longest, axis, x, 0.5)
        assert type(actual) is jnp.Array
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
    calls: list[int] = []
    np.apply_along_axis(lambda v: calls.append(1) or v * 2, 0, jnp.asarray(x))
    assert calls == [1]  # a function that can be traced is not called for each vector
    with pytest.raises(jnp.errors.NonConcreteBooleanIndexError):
        jnp.jit(lambda v: np.apply_along_axis(longest, 0, v, 0.5))(x)


def test_results_are_stored_in_numpy_arrays() -> None:
    x = jnp.asarray(V)
    buffer = np.zeros(4, np.float32)
    assert np.sqrt(x, out=buffer) is buffer
    np.testing.assert_allclose(buffer, np.sqrt(V))
    assert np.add(x, 1, out=buffer, where=x > 1.5) is buffer
    np.testing.assert_allclose(buffer, np.add(V, 1, out=np.sqrt(V), where=V > 1.5))
    assert np.sum(x, 0, None, total := np.zeros(())) is total
    assert total == V.sum()
    fraction, whole = np.zeros(4, np.float32), np.zeros(4, np.float32)
    np.modf(x, out=(fraction, whole))
    np.testing.assert_array_equal(whole, V)
    buffer += x  # an operation of NumPy's array
    assert type(buffer) is np.ndarray
    np.copyto(buffer, x)
    np.testing.assert_array_equal(buffer, V)
    np.add.at(buffer, K, x)
    with pytest.raises(TypeError, match="same_kind"):
        np.sqrt(x, out=np.zeros(4, np.int32))
    with pytest.raises(
        ValueError, match=r"np.sqrt: out= must have the shape of the result, \(4,\)"
    ):
        np.sqrt(x, out=np.zeros((2, 4), np.float32))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.sin(x, out=x), r"np.sin: out= must be a NumPy array.*immutable"),
        (lambda x: np.sum(x, out=x), r"np.sum: out= must be a NumPy array.*immutable"),
        (lambda x: np.sin(x, where=x > 1), r"np.sin: where= without out=.*jnp.where.*jnp.sin"),
        (lambda x: np.add.at(x, 0, 1), r"np.add.at: .*immutable.*x.at\[indices\]"),
        (lambda x: np.copyto(x, 1), r"np.copyto: .*immutable.*x.at"),
        (lambda x: np.add(x, 1, casting="no"), r"np.add: jnp.add does not have.*casting='no'"),
        (lambda x: np.less(x, 1, dtype=float), r"np.less: results are bool"),
        (lambda x: np.real_if_close(x), r"np.real_if_close: jnp.real_if_close does not exist"),
        (lambda x: numpy.linalg.lstsq(x, x, hope=1), "lstsq.*hope"),
        (lambda x: numpy.array_equal(x, x, equal_nan="a", z=1), "z"),
        (lambda x: np.ptp(x, axis=5), "axis"),
    ],
)  # fmt: skip
def test_errors_name_the_function(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call(jnp.ones(3))


def test_arguments_that_jnp_lacks() -> None:
    with pytest.raises(TypeError, match=r"np.unravel_index: jnp.unravel_index does not have the ar"
                                        r"gument order; got order='F'"):  # fmt: skip
        np.unravel_index(jnp.asarray([1, 2]), (3, 4), order="F")
    with pytest.raises(TypeError, match=r"np.concatenate: .*casting='no'"):
        np.concatenate([jnp.ones(2)] * 2, casting="no")
    assert np.concatenate([jnp.ones(2)] * 2, casting="same_kind", out=None).shape == (4,)


def test_other_array_types_take_precedence() -> None:
    class Other:
        def __array_ufunc__(self, *args: Any, **kwargs: Any) -> str:
            return "ufunc"

        def __array_function__(self, *args: Any, **kwargs: Any) -> str:
            return "function"

    x = jnp.ones(3)
    assert numpy.add(x, Other()) == "ufunc"
    assert numpy.concatenate([x, Other()]) == "function"


def test_protocols_are_absent_when_disabled() -> None:
    x = jnp.ones(3)
    with jnp.numpy_dispatch(False):
        assert not hasattr(x, "__array_ufunc__")
        assert not hasattr(x, "__array_function__")
        assert type(np.sin(x)) is type(np.concatenate([x, x])) is np.ndarray
        assert type(np.ones(3) + x) is jnp.Array
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(type(np.sin(x))))
    thread.start()
    thread.join()
    assert seen == [np.ndarray]  # the context manager is of one thread
    code = (
        "import sys, accnp; assert not hasattr(accnp.Array, '__array_ufunc__')\n"
        "assert 'accnp.api.arrays.numpy_protocols' not in sys.modules\n"
        "import numpy as np; print(type(np.sin(accnp.ones(2))).__name__)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "ndarray\n"


def test_the_environment_and_the_option() -> None:
    code = (
        "import os; os.environ['ACCNP_NUMPY_DISPATCH'] = '1'; import accnp, numpy as np\n"
        "print(type(np.sin(accnp.ones(2))).__name__)\n"
        "accnp.config.update('numpy_dispatch', False)\n"
        "print(type(np.sin(accnp.ones(2))).__name__)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "Array\nndarray\n"


def test_dispatch_option_is_part_of_cache_key() -> None:
    f = jnp.jit(lambda x: np.sin(x))
    f(jnp.ones(2))
    with jnp.numpy_dispatch(False), pytest.raises(jnp.errors.TracerArrayConversionError):
        f(jnp.ones(2))


@pytest.fixture
def enabled_globally() -> Iterator[None]:
    """Enable the option for all threads, as Dask requires."""
    jnp.config.update("numpy_dispatch", True)
    yield
    jnp.config.update("numpy_dispatch", False)


@pytest.mark.usefixtures("enabled_globally")
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_dask_keeps_arrays(scheduler: str) -> None:
    values = np.random.default_rng(2).uniform(size=(60, 40)).astype(np.float32)
    chunks: Any = (20, 40)
    x = da.from_array(jnp.asarray(values), chunks=chunks, asarray=False)
    assert type(x._meta) is jnp.Array
    for f in (
        lambda x, m: m.sin(x).sum(axis=0),
        lambda x, m: (x - x.mean(axis=0)) / x.std(axis=0),
        lambda x, m: m.concatenate([x, x[:, ::-1]], axis=1),
        lambda x, m: m.where(x > 0.5, x, 0).max(),
        lambda x, m: m.exp(x) @ x.T,
        lambda x, m: m.tensordot(x, x, axes=((0,), (0,))),
        lambda x, m: m.stack([x[0], x[1]]),
    ):
        result = f(x, da).compute(scheduler=scheduler)
        assert type(result) is jnp.Array
        np.testing.assert_allclose(result, f(values, np), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("enabled_globally")
def test_xarray_keeps_arrays() -> None:
    values = np.random.default_rng(3).uniform(size=(6, 4)).astype(np.float32)
    ours = xr.DataArray(jnp.asarray(values), dims=("t", "x"), coords={"t": range(6)})
    theirs = xr.DataArray(values, dims=("t", "x"), coords={"t": range(6)})
    for f in (
        lambda x: np.sin(x).sum("t"),
        lambda x: x - x.mean("x"),
        lambda x: x.isel(t=slice(1, 4)).std("t"),
        lambda x: x.where(x > 0.5, 0.0),
        lambda x: xr.concat([x, x], dim="t"),
        lambda x: x.transpose("x", "t").max("x"),
        lambda x: xr.dot(x, x, dim="x"),
        lambda x: x.shift(t=1, fill_value=0.0),
        lambda x: x.clip(0.2, 0.8),
        lambda x: x.expand_dims("y"),
        lambda x: x.rolling(t=3).mean(),
        lambda x: x.rolling(t=2, center=True).construct("window", fill_value=0.0),
    ):
        result = f(ours)
        assert type(result.data) is jnp.Array
        np.testing.assert_allclose(np.asarray(result.data), f(theirs).data, rtol=1e-5, atol=1e-6)
