"""User-defined GPU kernels: `numba.cuda` kernels are compiled to PTX and interpreted, and CUDA C is
passed to a fake of CuPy.
"""

import importlib.util
import math
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import accnp as jnp
from accnp.compiler.numba import user_cuda
from accnp.compiler.ptx import ptx_of
from accnp.errors import JaxRuntimeError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # numba.cuda as a part of Numba is deprecated
    from numba import cuda, float32

ROOT = Path(__file__).resolve().parents[2]
X = np.random.default_rng(0).random((21, 35)).astype(np.float32)
SIDE, WIDE = 16, 17  # one more, so that columns lie in all banks


@cuda.jit
def tiles(x, y):
    """Transpose a matrix in tiles of shared memory."""
    tile = cuda.shared.array((SIDE, WIDE), float32)
    across = (x.shape[1] + SIDE - 1) // SIDE
    row, column = cuda.blockIdx.x // across, cuda.blockIdx.x % across
    i, j = cuda.threadIdx.x // SIDE, cuda.threadIdx.x % SIDE
    a, b = row * SIDE + i, column * SIDE + j
    if a < x.shape[0] and b < x.shape[1]:
        tile[i, j] = x[a, b]
    cuda.syncthreads()
    a, b = row * SIDE + j, column * SIDE + i
    if a < x.shape[0] and b < x.shape[1]:
        y[b, a] = tile[j, i]


def tile_grid(x):
    return -(-x.shape[0] // SIDE) * -(-x.shape[1] // SIDE), SIDE * SIDE


def transposed_struct(x):
    return jnp.ShapeDtypeStruct(x.shape[::-1], x.dtype)


@cuda.jit(device=True)
def half_tanh(v):
    return math.tanh(v) * np.float32(0.5)


@cuda.jit
def scale_and_shift(x, factor, y, shift):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        y[i] = half_tanh(x[i]) * factor + math.pow(x[i], float32(2)) + shift


@cuda.jit
def count_bins(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)


def put_on(gpu, x):
    return jnp.device_put(x, gpu)


def test_a_numba_kernel_runs_on_a_gpu(gpu):
    transpose = jnp.kernel(tiles, transposed_struct, grid=tile_grid)
    x = put_on(gpu, X)
    np.testing.assert_array_equal(transpose(x), X.T)
    np.testing.assert_array_equal(jnp.jit(lambda x: transpose(x * 2) + 1)(x), X.T * 2 + 1)
    np.testing.assert_array_equal(transpose(transpose(x)[::2]), X[:, ::2])
    assert jnp.jit(transpose)(x).devices() == {gpu}


def test_numba_cuda_is_loaded_with_a_numpy_without_row_stack(monkeypatch):
    """numba-cuda 0.30.4 uses `row_stack`, which NumPy 2.5 removed; the name exists while it is
    loaded.
    """
    part, loaded = "numba.cuda.np.arrayobj", []
    with monkeypatch.context() as patch:
        patch.delattr(np, "row_stack", raising=False)
        patch.delitem(sys.modules, part, raising=False)
        patch.setattr(importlib.util, "find_spec", lambda name: name)
        patch.setattr(importlib, "import_module", lambda n: loaded.append((n, np.row_stack)))
        user_cuda._load_array_support()
        assert [name for name, _ in loaded] == [part]
        assert not hasattr(np, "row_stack")


def test_numbers_and_static_values(gpu):
    f = jnp.kernel(scale_and_shift, lambda x, _, **__: x, grid=(2, 32))
    x = X[0]
    expected = np.tanh(x) / 2 * 3 + x**2 + np.float32(0.25)
    np.testing.assert_allclose(f(put_on(gpu, x), 3.0, shift=0.25), expected, rtol=2e-6)


def test_results_can_start_with_a_value_and_loops(gpu):
    f = jnp.kernel(count_bins, jnp.ShapeDtypeStruct((5,), "int32"), grid=lambda x: (2, 64), fill=1)
    x = np.random.default_rng(0).integers(0, 5, 100).astype(np.int32)
    expected = np.bincount(x, minlength=5) + 1
    np.testing.assert_array_equal(f(put_on(gpu, x)), expected)
    rows = jnp.vmap(f)(put_on(gpu, np.stack([x, x % 3])))
    np.testing.assert_array_equal(rows, [expected, np.bincount(x % 3, minlength=5) + 1])


def test_a_function_of_numbers_is_in_the_gpus_kernels(gpu):
    @jnp.kernel
    def bent(x):
        return math.exp(x) if x < np.float32(0.5) else x * x

    expected = np.where(X < 0.5, np.exp(X), X * X)
    jitted = jnp.jit(lambda x: bent(x) * 2)
    np.testing.assert_allclose(jitted(put_on(gpu, X)), expected * 2, rtol=1e-6)
    np.testing.assert_array_max_ulp(np.asarray(jitted(put_on(gpu, X))), np.asarray(jitted(X)), 4)
    (kernel,) = jnp.inspect(jitted)(X).kernels
    text = ptx_of(kernel.text, kernel.signature, tasks=True).text
    assert ".f64" not in text
    assert "fma.rn.f32" in text  # of exp; the user's own products and sums are apart


def test_a_function_with_loops_is_in_the_gpus_kernels(gpu):
    @jnp.kernel
    def steps(re, im):
        x = y = np.float32(0)
        for n in range(20):
            if x * x + y * y > 4:
                return n
            before = x
            x = x * x - y * y + re
            y = np.float32(2) * before * y + im
        return 20

    re, im = np.linspace(-2, 1, 40, dtype=np.float32), np.linspace(-1, 1, 40, dtype=np.float32)
    jitted = jnp.jit(lambda re, im: steps(re, im) + 1)
    (kernel,) = jnp.inspect(jitted)(re, im).kernels
    assert ".f64" not in ptx_of(kernel.text, kernel.signature, tasks=True).text
    np.testing.assert_array_equal(jitted(put_on(gpu, re), put_on(gpu, im)), jitted(re, im))
    assert len(np.unique(jitted(re, im))) > 3


def lengths(x, y):
    return math.hypot(x, y)


def decompose_and_sum(x, y):
    return math.ldexp(math.frexp(x)[0], 3) + y


def complex_modulus(x, y):
    return abs(complex(x, y))


@pytest.mark.parametrize("function", [lengths, decompose_and_sum, complex_modulus])
def test_functions_that_numba_calls_in_c(gpu, function):
    """Numba compiles these separately or calls C functions, which accnp provides on GPUs."""
    f, expected = jnp.kernel(function), [function(*map(float, xy)) for xy in zip(X[0], X[1])]
    for x, y in ((X[0], X[1]), (put_on(gpu, X[0]), put_on(gpu, X[1]))):
        np.testing.assert_allclose(f(x, y), expected, rtol=1e-6)
        np.testing.assert_allclose(jnp.sum(f(x, y) * 2), np.sum(expected) * 2, rtol=1e-6)
    (kernel,) = jnp.inspect(f)(put_on(gpu, X[0]), put_on(gpu, X[1])).kernels
    assert kernel.device == gpu


def test_function_of_arrays_runs_on_the_host(gpu):
    @jnp.kernel(out=lambda x: x)
    def sums(x, y):
        y[0] = x[0]
        for i in range(1, x.size):
            y[i] = y[i - 1] + x[i]

    x = put_on(gpu, X[0])
    np.testing.assert_allclose(sums(x), np.cumsum(X[0]), rtol=1e-6)
    assert sums(x).devices() == {gpu}


def test_cpu_function_is_used_without_a_gpu():
    def plain(x, y):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[j, i] = x[i, j]

    f = jnp.kernel(tiles, transposed_struct, grid=tile_grid, cpu=plain)
    np.testing.assert_array_equal(f(X), X.T)
    np.testing.assert_array_equal(
        jnp.vmap(f)(X.reshape(3, 7, 35)), X.reshape(3, 7, 35).swapaxes(1, 2)
    )


def test_in_the_simulator():
    program = (
        "import os; os.environ['NUMBA_ENABLE_CUDASIM'] = '1'\n"
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "import numpy as np, accnp as jnp\n"
        "from cuda import test_user_kernels as t\n"
        "f = jnp.kernel(t.tiles, t.transposed_struct, grid=t.tile_grid)\n"
        "assert (np.asarray(jnp.jit(f)(t.X[:9, :20])) == t.X[:9, :20].T).all()\n"
        "g = jnp.kernel(t.scale_and_shift, lambda x, _, **__: x, grid=(1, 8))\n"
        "print(float(g(t.X[0, :9], 3.0, shift=0.25)[1]))\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", program, str(ROOT / "tests"), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    v = X[0, 1]
    assert float(done.stdout) == pytest.approx(np.tanh(v) / 2 * 3 + v**2 + 0.25, rel=1e-5)


@cuda.jit
def unknown_attribute(x, y):
    y[0] = x.nothing


TEXT = 'extern "C" __global__ void a(float* x) {}'


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: jnp.kernel(TEXT), ValueError, "needs the shapes of its results and a grid"),
        (
            lambda: jnp.kernel(tiles, transposed_struct),
            ValueError,
            "the shapes of its results and a grid",
        ),
        (
            lambda: jnp.kernel("int f;", transposed_struct, grid=1),
            ValueError,
            "has no __global__ void",
        ),
        (
            lambda: jnp.kernel(TEXT, transposed_struct, grid=1, name="b"),
            ValueError,
            "the text has a",
        ),
        (
            lambda: jnp.kernel(TEXT[11:], transposed_struct, grid=1),
            ValueError,
            'needs extern "C" before',
        ),
        (lambda: jnp.kernel(math.exp, grid=1), ValueError, "grid and cpu are for.*leave them out"),
        (
            lambda: jnp.kernel(TEXT, transposed_struct, grid=(1, 1))(X),
            JaxRuntimeError,
            r"is written for GPUs",
        ),
    ],
)
def test_errors(make, error, text):
    with pytest.raises(error, match=f"kernel: .*{text}"):
        jnp.block_until_ready(make())


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: jnp.kernel(unknown_attribute, transposed_struct, grid=(1, 1)),
            JaxRuntimeError,
            "'nothing'.*y.0. = x.no",
        ),
        (
            lambda: jnp.kernel(tiles, transposed_struct, grid=(0, 1)),
            ValueError,
            r"positive.*; got \(0, 1\)",
        ),
        (
            lambda: jnp.kernel(tiles, transposed_struct, grid=(1.5, 1)),
            ValueError,
            r"positive.*; got \(1.5, 1",
        ),
        (
            lambda: jnp.kernel(tiles, transposed_struct, grid=(1, 1, -1)),
            ValueError,
            "positive integers",
        ),
        (
            lambda: jnp.kernel(tiles, transposed_struct, grid=(1, (64, 32))),
            ValueError,
            "larger than CUDA has",
        ),
        (
            lambda: jnp.kernel(tiles, transposed_struct, grid=((1, 1 << 16), 1)),
            ValueError,
            "second and third",
        ),
        (
            lambda: jnp.kernel(scale_and_shift, transposed_struct, grid=(1, 1)),
            JaxRuntimeError,
            "the parameters x, fac",
        ),
    ],
)
def test_errors_on_a_gpu(gpu, make, error, text):
    with pytest.raises(error, match=f"kernel: .*{text}"):
        make()(put_on(gpu, X)).block_until_ready()
    np.testing.assert_array_equal(
        jnp.kernel(tiles, transposed_struct, grid=tile_grid)(put_on(gpu, X)), X.T
    )


@cuda.jit
def double_first(x, y):
    y[0] = x[0] * 2


@pytest.mark.parametrize(("dtype", "shape"), [("complex64", ()), ("bfloat16", (3,))])
def test_unsupported_numba_types(gpu, dtype, shape):
    f = jnp.kernel(double_first, lambda x: x, grid=(1, 1))
    with pytest.raises(JaxRuntimeError, match=f"for .{dtype}.*: numbers of type {dtype} cannot"):
        f(put_on(gpu, jnp.ones(shape, dtype))).block_until_ready()


@cuda.jit
def overwrite_operand(x, y):
    x[0] = 1
    y[0] = x[0]


def test_operands_are_not_modified(gpu):
    """A kernel that writes to an operand would change arrays that share its memory."""
    x = put_on(gpu, X[0])
    with pytest.raises(JaxRuntimeError, match="it writes to an operand, and these are read only"):
        jnp.kernel(overwrite_operand, lambda x: x, grid=(1, 1))(x).block_until_ready()

    @cuda.jit
    def counted(x, y):
        y[0] = cuda.atomic.add(x, 0, 1)

    with pytest.raises(JaxRuntimeError, match="it writes to an operand, and these are read only"):
        jnp.kernel(counted, lambda x: x, grid=(1, 1))(x).block_until_ready()
    np.testing.assert_array_equal(x, X[0])
    with user_cuda._without_device((9, 0)):  # one with a signature is compiled at once
        first = cuda.jit("f4(f4[:])", device=True)(lambda x: x[0])

    @cuda.jit
    def through(x, y):
        y[0] = first(x) * 2

    assert jnp.kernel(through, lambda x: x, grid=(1, 1))(x)[0] == X[0, 0] * 2


def test_function_of_a_row_is_not_a_scalar_function(gpu):
    f = jnp.kernel(double_first, lambda x: x, grid=(1, 1))
    with pytest.raises(JaxRuntimeError, match=r"make no arrays.*write numbers|mul.readonly array"):
        f(put_on(gpu, X)).block_until_ready()


# Last: a GPU of its own takes the place of the others'.

CODE = """
// __global__ void not_this(int n);
extern "C" __global__ void add_scaled(const float* x, const float* y, float a, float* out, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) out[i] = x[i] + a * y[i];
}
"""


class Library:
    """NumPy with CuPy's functions for CUDA C source."""

    made = 0

    def __getattr__(self, name):
        return getattr(np, name)

    def RawKernel(self, source, name):
        assert source == CODE
        assert name == "add_scaled"
        Library.made += 1

        def launch(blocks, threads, arguments, shared_mem):
            x, y, a, out, n = arguments
            assert (blocks, threads, shared_mem) == ((2, 1), (32,), 64)
            assert type(a) is np.float32
            assert type(n) is np.int32
            out[:n] = x + a * y

        return launch


class LargeSharedMemoryKernel:
    """A CuPy kernel that requests more shared memory than the default limit."""

    def __call__(self, blocks, threads, arguments, shared_mem):
        assert self.max_dynamic_shared_size_bytes == shared_mem == 64 << 10
        arguments[-1][...] = 7


def test_kernel_in_cuda_c_with_large_shared_memory(fake):
    fake.xp = type("Other", (Library,), {"RawKernel": lambda *_: LargeSharedMemoryKernel()})()
    f = jnp.kernel(TEXT, lambda: jnp.ShapeDtypeStruct((3,), "f4"), grid=(1, 32, 64 << 10))
    with jnp.default_device(jnp.devices("gpu")[0]):
        np.testing.assert_array_equal(f(), [7, 7, 7])


def test_kernel_in_cuda_c(fake):
    fake.xp = Library()
    gpu = jnp.devices("gpu")[0]
    f = jnp.kernel(CODE, lambda x, y, a, n: x, grid=((2, 1), 32, 64))
    assert f.__name__ == "add_scaled"
    x, y = X[0], X[1]
    for _ in range(2):
        result = f(put_on(gpu, x), put_on(gpu, y), 2.0, n=x.size)
        np.testing.assert_array_equal(result, x + 2 * y)
    assert Library.made == 1
    assert "kernel_add_scaled[n=35] a b 2.0" in str(
        jnp.make_jaxpr(lambda x, y: f(x, y, 2.0, n=35))(x, y)
    )
