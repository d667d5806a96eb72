"""Arrays go into other libraries and come back: one test for each row of the table "Data" in
`docs/libraries.md`.
"""

from __future__ import annotations

import copy
import io
import multiprocessing
import operator
import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas
import PIL.Image
import pyarrow
import pytest
import safetensors.numpy
import xarray as xr
import zarr

import accnp

# These have no types, or types of their own for what is tested here.
jnp: Any = accnp
pd: Any = pandas
pa: Any = pyarrow

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def floats(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def arrays() -> tuple[Any, Any]:
    """A computed and a pending array."""
    return jnp.asarray(X), jnp.asarray(X[0]) * 2


def same(actual: Any, expected: Any) -> None:
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


# --- pandas --------------------------------------------------------------------------------------


def test_pandas() -> None:
    x, pending = arrays()
    series, frame = pd.Series(pending), pd.DataFrame(x, columns=["a", "b", "c"])
    assert series.dtype == np.float32
    assert series.to_list() == [0, 2, 4]
    same(jnp.asarray(frame), X)
    same(jnp.asarray(series), X[0] * 2)
    frame["d"] = jnp.ones(2)
    frame.loc[0, "a"] = jnp.float32(5)
    assert frame["d"].dtype == np.float32
    assert frame["a"].to_list() == [5, 3]
    same(jnp.sum(frame.to_numpy(), axis=0), floats([8, 5, 7, 2]))


def number(v: Any) -> Any:
    return jnp.where(v > 1, jnp.sin(v), v * v)


@pytest.mark.parametrize("engine", [jnp.jit, jnp.jit(fastmath=True)], ids=["jit", "jit()"])
def test_pandas_map(engine: Any) -> None:
    series = pd.Series([0.5, 1.5, np.nan, 3.0], index=list("abcd"), name="s")

    def numpys(v: float) -> float:
        return float(np.sin(v) if v > 1 else v * v)

    actual, expected = series.map(number, engine=engine), series.map(numpys)
    assert actual.dtype == np.float64
    pd.testing.assert_series_equal(actual, expected, rtol=1e-14)
    shifted = series.map(lambda v: jnp.nan_to_num(v) + 1, engine=engine)
    ignored = series.map(lambda v: jnp.nan_to_num(v) + 1, engine=engine, na_action="ignore")
    assert shifted["c"] == 1
    assert np.isnan(ignored["c"])
    ints = pd.Series([1, 2, 1 << 40]).map(lambda v: v + 1, engine=engine)
    assert ints.to_list() == [2, 3, (1 << 40) + 1]
    nullable = pd.Series([1, None], dtype="Int64").map(lambda v: v * 2, engine=engine)
    assert nullable[0] == 2
    assert np.isnan(nullable[1])
    with pytest.raises(TypeError, match="computes numbers; got dtype"):
        pd.Series(["a"]).map(number, engine=engine)


@pytest.mark.parametrize("engine", [jnp.jit, jnp.jit(fastmath=True)], ids=["jit", "jit()"])
def test_pandas_apply(engine: Any) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(4, 3)), columns=["a", "b", "c"], index=list("wxyz"))
    flags = frame.assign(flag=[True, False, True, True])
    for axis in (0, 1, "index", "columns"):
        for f, reference in [
            (lambda v: v.sum(), None),
            (lambda v: jnp.max(v) - v.min(), lambda v: v.max() - v.min()),
            (lambda v: (v - v.mean()) / 2, None),
            (lambda v: 1 - v, None),
        ]:
            for raw in (False, True):
                actual = frame.apply(f, axis=axis, engine=engine, raw=raw)
                expected = frame.apply(reference or f, axis=axis, raw=raw and reference is None)
                assert type(actual) is type(expected)
                pd.testing.assert_frame_equal(pd.DataFrame(actual), pd.DataFrame(expected))
    rows = frame.apply(lambda r: r["a"] * r.b + abs(r)[2], axis=1, engine=engine)
    pd.testing.assert_series_equal(rows, frame.a * frame.b + frame.c.abs())
    total = frame.apply(lambda c, k, by: k * c["x"] / by, args=(2,), by=4, engine=engine)
    pd.testing.assert_series_equal(total, frame.loc["x"] / 2, check_names=False)
    chosen = flags.apply(lambda r: jnp.where(r["flag"], r["a"], -1.0), axis=1, engine=engine)
    pd.testing.assert_series_equal(chosen, frame.a.where(flags.flag, -1.0), check_names=False)
    with pytest.raises(KeyError):
        frame.apply(lambda r: r["nosuch"], axis=1, engine=engine)
    assert frame.iloc[:0].apply(lambda v: v, engine=engine).shape == (0, 3)


def test_pandas_traces_for_each_set_of_labels() -> None:
    def f(row: Any) -> Any:
        return row["a"]

    for columns in (["a", "b"], ["b", "a"]):
        frame = pd.DataFrame([[1.0, 2.0]], columns=columns)
        assert frame.apply(f, axis=1, engine=jnp.jit)[0] == frame["a"][0]


# --- other libraries -----------------------------------------------------------------------------


def test_xarray() -> None:
    x, _ = arrays()
    with jnp.numpy_dispatch():
        data = xr.DataArray(x, dims=("t", "p"), coords={"t": [10, 20]})
        result = (data - data.mean("p")).sel(t=20)
        assert type(data.data) is type(result.data) is jnp.Array
        same(result.data, floats([-1, 0, 1]))
        same(jnp.asarray(xr.Dataset({"v": data})["v"]), X)


@pytest.mark.parametrize("shape", [(6,), (6, 2), (3, 6, 2)])
def test_xarray_fits_polynomials_to_series_with_gaps(shape: tuple[int, ...]) -> None:
    values = np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape) ** 1.5
    values.flat[3] = np.nan
    dims = ("q", "t", "p")[-len(shape) :] if len(shape) > 1 else ("t",)
    expected = xr.DataArray(values, dims=dims, coords={"t": np.arange(6.0)}).polyfit("t", 2)
    with jnp.numpy_dispatch():
        data = xr.DataArray(jnp.asarray(values), dims=dims, coords={"t": np.arange(6.0)})
        actual = data.polyfit("t", 2)
    np.testing.assert_allclose(
        actual.polyfit_coefficients, expected.polyfit_coefficients, rtol=1e-3, atol=1e-3
    )


def test_matplotlib() -> None:
    mpl.use("agg")
    x, pending = arrays()
    figure, axes = plt.subplots()
    (line,) = axes.plot(pending, x[0])
    same(np.asarray(line.get_xdata(), np.float32), X[0] * 2)
    same(np.asarray(axes.imshow(x).get_array(), np.float32), X)
    axes.hist(pending), axes.scatter(pending, pending), axes.bar(jnp.arange(3), pending)
    figure.savefig(io.BytesIO())
    plt.close(figure)


def test_pil() -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    image = PIL.Image.fromarray(jnp.asarray(pixels))
    assert image.size == (4, 2)
    same(jnp.asarray(image), pixels)


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    x, pending = arrays()
    for array in (x, pending):
        tensor = torch.from_dlpack(array)
        same(tensor.numpy(), np.asarray(array))
        same(jnp.from_dlpack(tensor), np.asarray(array))
        assert tensor.data_ptr() == array.unsafe_buffer_pointer()
    same(jnp.asarray(torch.arange(3.0)), floats([0, 1, 2]))
    same(torch.asarray(x).numpy(), X)


def test_arrow() -> None:
    x, pending = arrays()
    array = pa.array(pending)
    assert array.type == pa.float32()
    assert array.to_pylist() == [0, 2, 4]
    assert pa.array(pending, type=pa.float64()).type == pa.float64()
    assert pa.chunked_array([pending]).type == pa.float32()
    table = pa.table({"a": pending, "b": jnp.arange(3)})
    assert table.schema.types == [pa.float32(), pa.int32()]
    same(jnp.asarray(array), X[0] * 2)
    same(jnp.asarray(table["b"]), np.arange(3, dtype=np.int32))
    same(jnp.from_dlpack(array), X[0] * 2)
    flags = pa.array(jnp.arange(3) > 1)
    assert flags.type == pa.bool_()
    same(jnp.asarray(flags), np.array([False, False, True]))
    with pytest.raises(ValueError, match="1-dim"):
        pa.array(x)


def test_zarr(tmp_path: Path) -> None:
    x, pending = arrays()
    store: Any = zarr.create_array(tmp_path / "a.zarr", data=x)
    store[0] = pending
    same(jnp.asarray(zarr.open_array(tmp_path / "a.zarr")), np.stack([X[0] * 2, X[1]]))
    jnp.checkpoints.save(tmp_path / "tree", {"x": x})
    same(jnp.checkpoints.load(tmp_path / "tree")["x"], X)


def test_safetensors(tmp_path: Path) -> None:
    x, pending = arrays()
    path = tmp_path / "a.safetensors"
    jnp.checkpoints.save_safetensors(path, {"x": x, "p": pending})
    same(safetensors.numpy.load_file(path)["p"], X[0] * 2)
    safetensors.numpy.save_file({"x": np.asarray(x)}, path)
    same(jnp.checkpoints.load_safetensors(path)["x"], X)


def test_memoryview() -> None:
    x, pending = arrays()
    view = memoryview(x)
    assert (view.shape, view.format, view.readonly) == ((2, 3), "f", True)
    assert view.tolist() == X.tolist()
    same(jnp.asarray(view), X)
    same(np.frombuffer(pending, np.float32), X[0] * 2)
    assert bytes(pending) == (X[0] * 2).tobytes()


def test_copy_and_pickle() -> None:
    for x in arrays():
        for copied in (copy.copy(x), copy.deepcopy({"x": [x]})["x"][0]):
            assert copied is not x
            same(copied, np.asarray(x))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            same(pickle.loads(pickle.dumps(x, protocol)), np.asarray(x))


def test_cloudpickle() -> None:
    x, pending = arrays()
    f = jnp.jit(lambda v: v @ x.T + pending[0])
    loaded = cloudpickle.loads(cloudpickle.dumps(f))
    same(loaded(x), np.asarray(f(x)))


def test_joblib(tmp_path: Path) -> None:
    x, pending = arrays()
    joblib.dump({"x": x}, tmp_path / "x")
    same(joblib.load(tmp_path / "x")["x"], X)
    assert joblib.hash(x) == joblib.hash(jnp.asarray(X)) != joblib.hash(pending)
    rows: Any = joblib.Parallel(n_jobs=2, prefer="threads")(
        joblib.delayed(jnp.sum)(row) for row in (x, pending)
    )
    same(rows[1], np.float32(6))


def test_multiprocessing() -> None:
    x, pending = arrays()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        sums = pool.map(operator.methodcaller("sum"), [x, pending])
    for sent, total in zip((x, pending), sums):
        assert type(total) is accnp.Array
        same(total, np.asarray(sent).sum())


def test_big_endian() -> None:
    expected = np.arange(3, dtype=np.float32)
    for swapped in (expected.astype(">f4"), np.arange(3, dtype=">i4"), expected.astype(">c8")):
        native = swapped.astype(swapped.dtype.newbyteorder("="))
        for x in (jnp.asarray(swapped), jnp.array(swapped), jnp.jit(lambda v: v)(swapped)):
            same(x, native)
        same(jnp.ones(3, swapped.dtype), np.ones(3, native.dtype))
        same(jnp.asarray(swapped[1]), native[1])  # a scalar of NumPy
        same(jnp.asarray(pd.Series(swapped)), native)
