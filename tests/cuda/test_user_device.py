"""Functions that `numba.cuda` kernels may call: their PTX is interpreted and compared with
NumPy.
"""

import math
import re
import warnings

import numpy as np
import pytest

import accnp as jnp
from accnp.compiler.numba.user_cuda import Argument, ptx_of_user

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # numba.cuda as a part of Numba is deprecated
    import numba
    from numba import cuda

ALL = 0xFFFFFFFF
N = 64  # two warps
V = np.random.default_rng(0).permutation(N).astype(np.float32) - 20


def run(gpu, kernel, *operands, out=None, **rest):
    f = jnp.kernel(kernel, lambda x, *_: out or x, **{"grid": (1, N)} | rest)
    return np.asarray(f(*[jnp.device_put(x, gpu) for x in operands]))


@cuda.jit
def warp(x, y):
    i = cuda.grid(1)
    v = x[i]
    y[0, i] = cuda.shfl_sync(ALL, v, 3)
    y[1, i] = cuda.shfl_up_sync(ALL, v, 1)
    y[2, i] = cuda.shfl_down_sync(ALL, v, 2)
    y[3, i] = cuda.shfl_xor_sync(ALL, v, 5)
    y[4, i] = cuda.all_sync(ALL, v > -100)
    y[5, i] = cuda.any_sync(ALL, v > 42)
    y[6, i] = cuda.eq_sync(ALL, i < 32)
    y[7, i] = cuda.ballot_sync(ALL, i % 32 < 5)
    y[8, i] = cuda.popc(cuda.match_any_sync(ALL, i % 3))
    mask, same = cuda.match_all_sync(ALL, i // 32)
    y[9, i] = same and mask != 0
    cuda.syncwarp()


def test_threads_of_a_warp(gpu):
    for dtype in (np.float32, np.int64):  # words of 64 bits go in two
        v = V.astype(dtype)
        actual = run(gpu, warp, v, out=jnp.ShapeDtypeStruct((10, N), v.dtype))
        rows, lane, thirds = v.reshape(2, 32), np.arange(32), np.arange(N).reshape(2, 32) % 3
        alike = (thirds[:, :, None] == thirds[:, None]).sum(2)
        one = np.ones((2, 32))
        expected = np.stack([
            one * rows[:, 3:4], rows[:, np.maximum(lane - 1, 0)],
            rows[:, np.where(lane < 30, lane + 2, lane)], rows[:, lane ^ 5],
            one, one * (rows > 42).any(1)[:, None], one, one * 31, alike, one,
        ])  # fmt: skip
        np.testing.assert_array_equal(actual, expected.reshape(10, N))


@cuda.jit
def atomics(x, y):
    v = x[cuda.grid(1)]
    cuda.atomic.sub(y, 0, v)
    cuda.atomic.max(y, 1, v)
    cuda.atomic.min(y, 2, v)
    cuda.atomic.nanmax(y, 3, v)
    cuda.atomic.nanmin(y, 4, v)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_atomic_operations_on_floats(gpu, dtype):
    with jnp.enable_x64(True):
        x = V.astype(dtype)
        x[5] = np.nan
        out = jnp.ShapeDtypeStruct((5,), dtype)
        # A nan that comes changes neither: the largest is that of the others.
        expected = [np.nan, np.nanmax(x), np.nanmin(x), np.nanmax(x), np.nanmin(x)]
        np.testing.assert_array_equal(run(gpu, atomics, x, out=out, fill=0), expected)
        expected = [np.nan, np.nan, np.nan, np.nanmax(x), np.nanmin(x)]  # one that is there stays
        np.testing.assert_array_equal(run(gpu, atomics, x, out=out, fill=np.nan), expected)


@cuda.jit
def numbers(x, y):
    i = cuda.grid(1)
    v, n = x[i], int(i)
    y[0, i] = max(v, numba.float32(3))
    y[1, i] = min(v, 2, n)
    y[2, i] = max(n, 7)
    y[3, i] = math.isnan(v) + 2 * math.isinf(v) + 4 * math.isfinite(v)
    y[4, i] = math.hypot(v, 2 * v)
    y[5, i] = math.ldexp(v, n - 40)
    m, e = math.frexp(v)
    y[6, i] = m
    y[7, i] = e
    part, whole = math.modf(v * numba.float32(0.3))
    y[8, i] = part
    y[9, i] = whole
    y[10, i] = abs(complex(v, 1))
    y[11, i] = cuda.ffs(n) + 100 * cuda.ffs(numba.int32(n * 8))
    y[12, i] = cuda.brev(numba.uint32(n)) >> 8


def round_finite(v):
    return float(round(v)) if np.isfinite(v) else v


@cuda.jit
def roundings(x, y):
    i = cuda.grid(1)
    y[i] = round(x[i] * numba.float32(0.5)) + round(x[i], 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers(gpu, dtype):
    with jnp.enable_x64(True):
        x = V.astype(dtype)
        tiny = np.finfo(dtype).smallest_subnormal
        x[:8] = [
            np.inf,
            -np.inf,
            0,
            -0.0,
            tiny,
            3 * tiny,
            np.finfo(dtype).max,
            -np.finfo(dtype).tiny,
        ]
        actual = run(gpu, numbers, x, out=jnp.ShapeDtypeStruct((13, N), dtype))
        i = np.arange(N)
        with np.errstate(all="ignore"):
            part, whole = np.modf(x * np.float32(0.3))
            lowest = np.array([(k & -k).bit_length() for k in range(N)])
            reverse = [int(f"{k:032b}"[::-1], 2) >> 8 for k in range(N)]
            expected = [
                np.maximum(x, 3), np.minimum(np.minimum(x, 2), i), np.maximum(i, 7),
                np.where(np.isfinite(x), 4, 2), np.hypot(x, 2 * x), np.ldexp(x, i - 40),
                *np.frexp(x), part, whole, np.hypot(x, 1),
                lowest + 100 * np.where(i > 0, lowest + 3, 0), reverse,
            ]  # fmt: skip
        for k, row in enumerate(expected):
            row = np.asarray(row).astype(dtype)
            close = k in (4, 10)
            np.testing.assert_allclose(actual[k], row, rtol=2e-7 if close else 0, err_msg=str(k))
        x = V.astype(dtype)
        expected = [round_finite(v * 0.5) + round(float(v), 1) for v in x]
        np.testing.assert_allclose(run(gpu, roundings, x), expected, rtol=1e-6)


@cuda.jit(fastmath=True)
def fast_math_calls(x, y):
    i = cuda.grid(1)
    v = x[i]
    y[0, i] = math.exp(v)
    y[1, i] = math.log(v) + math.log2(v) + math.log10(v)
    y[2, i] = math.sin(v)
    y[3, i] = math.cos(v)
    y[4, i] = math.tan(v)
    y[5, i] = math.pow(v, numba.float32(1.5))
    y[6, i] = v / (v + 1)
    y[7, i] = math.tanh(v)


def test_fast_kernels(gpu):
    x = np.linspace(0.1, 3, N, dtype="f4")
    actual = run(gpu, fast_math_calls, x, out=jnp.ShapeDtypeStruct((8, N), "f4"))
    logs = np.log(x) + np.log2(x) + np.log10(x)
    expected = [np.exp(x), logs, np.sin(x), np.cos(x), np.tan(x), x**1.5, x / (x + 1), np.tanh(x)]
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-5)
    text = ptx_of_user(fast_math_calls, [Argument(x.dtype, 1, True), Argument(x.dtype, 2)], N).text
    assert {"ex2", "lg2", "sin", "cos", "rcp", "tanh"} == set(re.findall(r"(\w+)\.approx", text))


@cuda.jit
def places(x, y):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[i, j] = x[i, j] + 100 * cuda.blockIdx.y + 1000 * cuda.threadIdx.z


@cuda.jit
def dynamic_shared_memory(x, y):
    room = cuda.shared.array(0, numba.float32)
    i = cuda.grid(1)
    room[i] = x[i]
    cuda.syncthreads()
    y[i] = room[N - 1 - i]


@cuda.jit
def squares(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * x[i] + abs(x[i])


@cuda.jit
def print_values(x, y):
    i = cuda.grid(1)
    if i < 2:
        print("thread", i, x[i])
    y[i] = x[i]


def test_grids_of_two_axes_and_memory_by_the_launch(gpu):
    x = V[:35].reshape(5, 7)
    expected = x + 100 * (np.arange(7) // 4)
    actual = run(gpu, places, x, grid=((2, 2), (4, 4)))
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(run(gpu, dynamic_shared_memory, V, grid=(1, N, 4 * N)), V[::-1])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_arrays(gpu, dtype):
    with jnp.enable_x64(True):
        x = (V + 1j * V[::-1]).astype(dtype)
        np.testing.assert_allclose(run(gpu, squares, x), x * x + abs(x), rtol=1e-6)


def test_printing(fake, capsys):
    run(jnp.devices("gpu")[0], print_values, V)
    assert capsys.readouterr().out == f"thread 0 {V[0]:f}\nthread 1 {V[1]:f}\n"
