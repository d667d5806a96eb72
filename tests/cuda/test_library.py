"""Operations that the array library computes: the arguments that CuPy accepts, the precision of
products, and types that CuPy lacks.
"""

import importlib

import numpy as np
import pytest
from cuda.strict_cupy import Array, library

import accnp as jax
import accnp.numpy as jnp
from accnp import lax

cupy_calls = importlib.import_module("accnp.compiler.library.cupy.calls")

TF32, FULL = 3, 0
RNG = np.random.default_rng(0)


def put_on_gpu(x):
    return jax.device_put(x, jax.devices("gpu")[0])


def test_fake_cupy_raises_where_cupy_does():
    xp = library()
    x = np.ones(3).view(Array)
    with pytest.raises(AttributeError, match="cupy_names"):
        xp.nanmedian(x)
    with pytest.raises(TypeError):
        xp.sort(x, order="C")
    with pytest.raises(TypeError, match="Unsupported type"):
        xp.cumsum(np.ones(3))
    with pytest.raises(TypeError, match="stacks of bfloat16"):
        xp.matmul(*[np.ones((2, 3, 3), jnp.bfloat16).view(Array)] * 2)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 5)])
def test_products_of_halves(fake, name, shape):
    fake.gemm = False  # by CuPy's calls; test_products.py has the others
    a = jnp.asarray(RNG.normal(size=shape), name)
    b = jnp.asarray(RNG.normal(size=(*shape[:-2], 5, 6)), name)
    expected = np.asarray(a, "f4") @ np.asarray(b, "f4")
    actual = put_on_gpu(a) @ put_on_gpu(b)
    assert actual.dtype == name
    np.testing.assert_allclose(np.asarray(actual, "f4"), expected, rtol=1e-2, atol=1e-2)
    wide = jnp.matmul(put_on_gpu(a), put_on_gpu(b), preferred_element_type="float32")
    np.testing.assert_allclose(wide, expected, rtol=1e-5, atol=1e-5)
    # Made of TF32, which holds halves as they are; afterwards the mode is what it was.
    assert fake.xp.cuda.cublas.seen[-2:] == [TF32, FULL]


def test_precision_of_products(fake):
    fake.gemm = False
    a, b = (put_on_gpu(RNG.normal(size=(2, 3, 3)).astype("f4")) for _ in range(2))
    seen = fake.xp.cuda.cublas.seen
    (a @ b).block_until_ready()
    jnp.matmul(a, b, precision="highest").block_until_ready()
    jnp.matmul(a, b, precision=("default", "highest")).block_until_ready()
    assert seen == []
    jnp.matmul(a, b, precision="default").block_until_ready()
    assert seen == [TF32, FULL]
    del seen[:]
    for precision in (lax.Precision.HIGH, lax.Precision.DEFAULT, "TF32_TF32_F32"):
        lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))), precision).block_until_ready()
        assert seen == [TF32, FULL]
        del seen[:]
    (a @ b).block_until_ready()
    assert seen == []
    jnp.matmul(a, b, precision="default").block_until_ready()
    with jax.default_matmul_precision("tensorfloat32"):
        (a @ b + 1).block_until_ready()
    assert seen == [TF32, FULL] * 2


def test_types_that_the_library_lacks(fake):
    a = jnp.asarray(RNG.normal(size=(4, 4)), "float8_e4m3fn")
    actual = jnp.matmul(put_on_gpu(a), put_on_gpu(a), preferred_element_type="float32")
    expected = np.asarray(a, "f4") @ np.asarray(a, "f4")
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [1, 3, cupy_calls.MAX_SEQUENTIAL_SYSTEMS + 1])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
def test_triangular_systems(fake, monkeypatch, count, left, transposed):
    monkeypatch.setattr(cupy_calls, "MAX_SMALL_SYSTEM", 4 if count == 3 else 512)
    fake.solver_functions = None  # test_cusolver_factorizations.py has those by cuBLAS
    n = 112  # more than a kernel of ours does
    a = (np.eye(n) * 3 + RNG.normal(size=(count, n, n)) / 40).astype("f4")
    b = RNG.normal(size=(count, n, 2) if left else (count, 2, n)).astype("f4")
    how = {"left_side": left, "lower": True, "transpose_a": transposed}
    before = dict(fake.calls)
    actual = lax.linalg.triangular_solve(put_on_gpu(a), put_on_gpu(b), **how)
    expected = lax.linalg.triangular_solve(jnp.asarray(a), jnp.asarray(b), **how)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
    assert fake.calls["call"] == before.get("call", 0) + 1
    assert fake.calls["copy_out"] == before.get("copy_out", 0) + 1  # that of the last line


@pytest.mark.parametrize("name", ["cummax", "cummin", "cumlogsumexp"])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_reductions(fake, name, reverse):
    x = RNG.normal(size=(3, 37, 2)).astype("f4")
    x[1, 5] = np.nan
    for axis in range(3):
        for dtype in ("float32", "bfloat16"):
            cumulative = getattr(lax, name)
            a = jnp.asarray(x, dtype)
            actual, expected = (
                cumulative(put_on_gpu(a), axis, reverse),
                cumulative(a, axis, reverse),
            )
            assert actual.dtype == dtype
            close = np.testing.assert_array_equal
            if name == "cumlogsumexp":
                close = lambda p, q: np.testing.assert_allclose(p, q, rtol=1e-2)  # noqa: E731
            close(np.asarray(actual, "f4"), np.asarray(expected, "f4"))
    assert fake.calls["call"] == 6


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_scatter_add_is_shared_by_threads(fake, dtype):
    places = RNG.integers(0, 9, 3000)
    for updates in (RNG.normal(size=3000) * 9, RNG.normal(size=(3000, 4)) * 9):
        y = jnp.asarray(updates, dtype)
        zeros = jnp.zeros((9, *y.shape[1:]), dtype)

        def add(zeros, y):
            return zeros.at[places].add(y)

        expected = add(zeros, y)
        actual = jax.jit(add)(put_on_gpu(zeros), put_on_gpu(y))
        again = jax.jit(add)(put_on_gpu(zeros), put_on_gpu(y))
        np.testing.assert_array_equal(actual, again)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-3)
        extents = [
            k.extent for k in jax.inspect(jax.jit(add))(put_on_gpu(zeros), put_on_gpu(y)).kernels
        ]
        assert max(extents) >= 9 * 4 or extents == [93, 9]
    # Rows of a table, many of them apart: a thread for each column, in the order of the updates.
    table, rows = jnp.zeros((500, 24)), jnp.asarray(RNG.normal(size=(200, 24)), "float32")
    at = RNG.integers(0, 500, 200)

    def put(table, rows):
        return table.at[at].add(rows)

    np.testing.assert_array_equal(
        jax.jit(put)(put_on_gpu(table), put_on_gpu(rows)), put(table, rows)
    )
    kernels = jax.inspect(jax.jit(put))(put_on_gpu(table), put_on_gpu(rows)).kernels
    assert kernels[-1].extent == 24


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_sort_keys_are_integers_in_the_order_of_numbers(dtype):
    """CuPy's kernels treat subnormal numbers as zeros, so the sort uses integers with the same
    order.
    """
    info = np.finfo(dtype)
    small = info.smallest_subnormal
    x = np.array([-np.inf, info.min, -1, -info.tiny, -small, -0.0, 0.0, small, info.tiny, 1,
                  info.max, np.inf, np.nan, -np.nan], dtype)  # fmt: skip
    keys = cupy_calls._sort_keys(np, x)
    assert keys.dtype == f"i{x.itemsize}"
    assert (np.diff(keys) > 0).tolist() == [True] * 5 + [False] + [True] * 6 + [False]
    assert keys[5] == keys[6] == 0
    assert keys[-1] == keys[-2]


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_cumulative_products_accumulate_in_float64(dtype):
    """CUB multiplies pairs first, and the product of the second and third number overflows
    float32.
    """

    class Library:
        flip = staticmethod(np.flip)

        @staticmethod
        def cumprod(x, axis, dtype):
            a, b, c, d = x.astype(dtype)
            return np.stack([a, a * b, a * (b * c), a * (b * c) * d])

    x = np.array([1e-30, 1e30, 1e30, 1e-30], dtype)
    products = cupy_calls.cumprod(Library, x, axis=0)
    assert products.dtype == dtype
    np.testing.assert_allclose(products, [1e-30, 1, 1e30, 1], rtol=1e-6)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_cumulative_extremes_keep_subnormals(name):
    """CuPy's kernels treat subnormal numbers as zeros. NaN propagates to all later elements."""

    def flushed(join):
        def call(*xs):
            assert all(x.dtype.kind != "f" for x in xs)
            return join(*xs)

        return call

    class Library:
        ascontiguousarray, where, empty = np.ascontiguousarray, np.where, np.empty
        maximum, minimum = staticmethod(flushed(np.maximum)), staticmethod(flushed(np.minimum))

    ufunc = np.maximum if name == "cummax" else np.minimum
    x = RNG.choice([1e-45, 3e-40, -1e-45, -3e-40, 0, 2, -np.inf, np.inf], (5, 40)).astype("f4")
    x[1, 20], x[2, 30] = np.nan, -np.nan
    for axis in (0, 1):
        actual = getattr(cupy_calls, name)(Library, x, axis=axis)
        np.testing.assert_array_equal(actual, ufunc.accumulate(x, axis))
