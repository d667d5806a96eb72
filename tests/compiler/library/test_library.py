"""Kernels of the library: compiled, and their texts as plain Python, against NumPy; what they may
read and write; loading of object files that ask for them."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from compiler.library.support import token
from fuzz import executors

from accnp.compiler import kernel_cache
from accnp.compiler.ir_tools import python_gemm
from accnp.compiler.library import library
from accnp.compiler.library.sizes import RUN, VECTOR_RUN
from accnp.compiler.llvm.scalars import cold
from accnp.config import cache_dir

FLOATS = ["f4", "f8", "c8", "c16"]


def numbers(rng, shape, dtype):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


def laid_out(rng, shape, dtype):
    """A matrix by rows, by columns, of every other column, backwards, or of one row or column."""
    m, n = shape
    kind = rng.integers(6)
    if kind == 0:
        return numbers(rng, (n, m), dtype).T
    if kind == 1:
        return numbers(rng, (m, 2 * n), dtype)[:, ::2]
    if kind == 2:
        return numbers(rng, (2 * n, m + 1), dtype)[::-2, 1:].T
    if kind == 3:
        one = (m, 1) if rng.random() < 0.5 else (1, n)
        return np.broadcast_to(numbers(rng, one, dtype), shape)
    return numbers(rng, shape, dtype)


def caller(name):
    arguments = [f"x{k}" for k in range(len(library.SIGNATURES[name]))]
    text = f"def kernel(lo, hi, {', '.join(arguments)}):\n    {name}({', '.join(arguments)})\n"
    return kernel_cache.get_kernel(text, "kernel", signature(name))


def signature(name):
    """The types of the arguments, complex pointers as they are."""
    code = name.split("_")[1]
    return tuple(f"{code}*" if t.endswith("*") else t for t in library.SIGNATURES[name])


def product(a, b, c, how):
    kernel = caller(f"gemm_{token(a.dtype)}")
    size = a.itemsize
    strides = [s // size for x in (a, b) for s in x.strides]
    (m, k), n = a.shape, b.shape[1]
    where = (a.ctypes.data, *strides[:2], b.ctypes.data, *strides[2:], c.ctypes.data)
    kernel.call(1, 1, m, n, k, *where, c.strides[0] // size, how)


def reference(a, b, old, how):
    wide = "c16" if a.dtype.kind == "c" else "f8"
    with np.errstate(all="ignore"):
        y = a.astype(wide) @ b.astype(wide)
        return (y if how == 0 else old + how * y).astype(a.dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_of_any_size_and_layout(dtype):
    rng = np.random.default_rng(0)
    sizes = [1, 1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 33, 40, 65, 130]
    eps = np.finfo(dtype).eps
    for _ in range(150):
        m, n, k = (int(rng.choice(sizes)) for _ in range(3))
        k = int(rng.choice([k, k, k, 0, RUN, 2 * RUN + 3]))
        a, b = laid_out(rng, (m, k), dtype), laid_out(rng, (k, n), dtype)
        how = int(rng.choice([0, 1, -1]))
        whole = numbers(rng, (m + 1, n + 3), dtype)
        before = whole.copy()
        c = whole[:m, :n]
        if how == 0:
            c[:] = np.nan  # memory that has not been written to
        product(a, b, c, how)
        expected = reference(a, b, before[:m, :n], how)
        np.testing.assert_allclose(c, expected, rtol=0, atol=30 * eps * (1 + np.sqrt(k)) ** 2)
        c[:] = before[:m, :n]
        np.testing.assert_array_equal(whole, before)  # nothing beside c


def pairs(x):
    """Integers of 16 bits along the last axis, two in a word."""
    padded = np.zeros((*x.shape[:-1], x.shape[-1] + x.shape[-1] % 2), "i2")
    padded[..., : x.shape[-1]] = x
    return padded.view("i4")


def test_products_of_short_integers():
    """Sums wrap around; the second operand in rows or in columns of pairs."""
    rng = np.random.default_rng(0)
    kernel = caller("gemm_i2")
    scope = dict(executors.NAMESPACE)
    exec(library.source("gemm_i2", python_gemm.VECTOR_BYTES), scope)
    for m, n, k in ((1, 1, 1), (3, 35, 2), (9, 18, 7), (40, 33, 1030), (2, 5, 0), (65, 3, 40)):
        a, b = (rng.integers(-(2**15), 2**15, s, "i2") for s in ((m, k), (n, k)))
        expected = (a.astype("i8") @ b.T.astype("i8")).astype("i4")
        x, y = pairs(a), pairs(b)
        words = x.shape[1]
        for right, steps in ((y, (1, words)), (np.ascontiguousarray(y.T), (n, 1))):
            for how in (0, 1):
                c = np.ones((m, n), "i4")
                at = x.ctypes.data, words, 1, right.ctypes.data, *steps, c.ctypes.data, n
                kernel.call(1, 1, m, n, words, *at, how)
                np.testing.assert_array_equal(c, expected + np.int32(how))
            if words < 9:
                out = np.empty((m, n), "i4")
                where = [pointer(v.ravel(), "i4", v is not out) for v in (x, right, out)]
                scope["gemm_i2"](
                    0, 1, m, n, words, where[0], words, 1, where[1], *steps, where[2], n, 0
                )
                np.testing.assert_array_equal(out, expected)


def vector_product(x, b, c, how):
    kernel = caller(f"gemv_{token(x.dtype)}")
    size, (k, n) = x.itemsize, b.shape
    strides = [s // size for s in (*x.strides, *b.strides)]
    where = (x.ctypes.data, strides[0], b.ctypes.data, *strides[1:], c.ctypes.data)
    kernel.call(1, 1, n, k, *where, how)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_with_a_vector(dtype):
    """The order of summation is the same for every layout."""
    rng = np.random.default_rng(5)
    eps = np.finfo(dtype).eps
    for n, k in (
        (1, 1),
        (3, 0),
        (7, 5),
        (8, 16),
        (17, 33),
        (300, 70),
        (5, VECTOR_RUN + 40),
        (90, 31),
    ):
        first = numbers(rng, (k, n), dtype)
        x = numbers(rng, (1, k), dtype)
        old = numbers(rng, n + 1, dtype)
        apart = np.zeros((2 * k, 2 * n), dtype)
        apart[::2, ::2] = first
        for how in (0, 1, -1):
            results = []
            for b in (first, np.asfortranarray(first), apart[::2, ::2], apart[::2, ::2].T.copy().T):
                for left in (x[0], np.repeat(x[0], 3)[::3], x[0][::-1].copy()[::-1]):
                    c = np.full(n + 1, np.nan, dtype) if how == 0 else old.copy()
                    c[n] = old[n]
                    vector_product(left, b, c, how)
                    assert c[n] == old[n]
                    results.append(c[:n])
            expected = reference(x, first, old[:n], how)[0]
            np.testing.assert_allclose(
                results[0], expected, rtol=0, atol=30 * eps * (1 + np.sqrt(k)) ** 2
            )
            for c in results:
                np.testing.assert_array_equal(c, results[0])


def chain(a, b):
    """The sum of products in the order that is promised."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for p0 in range(0, a.shape[1], RUN):
        run = np.zeros_like(total, np.float32)
        for p in range(p0, min(a.shape[1], p0 + RUN)):
            # The product of two float32 is exact in float64, the sum is not always: ties are rare.
            run = (a[:, p : p + 1].astype("f8") * b[p].astype("f8") + run).astype("f4")
        total = (total + run).astype("f4") if p0 else run
    return total


def test_summation_order_follows_runs():
    rng = np.random.default_rng(1)
    a, b = numbers(rng, (40, 2 * RUN + 9), "f4"), numbers(rng, (2 * RUN + 9, 70), "f4")
    c = np.empty((40, 70), "f4")
    product(a, b, c, 0)
    assert np.mean(c == chain(a, b)) > 0.999


@pytest.mark.parametrize("dtype", FLOATS)
def test_results_do_not_depend_on_layout_or_size(dtype):
    rng = np.random.default_rng(2)
    a, b = numbers(rng, (70, 300), dtype), numbers(rng, (300, 270), dtype)
    whole = np.empty((70, 270), dtype)  # so wide that rows of the left matrix may be laid out
    product(a, b, whole, 0)
    for x, y in itertools.product((a, np.asfortranarray(a)), (b, np.asfortranarray(b))):
        for rows, columns in ((1, 1), (1, 270), (70, 1), (3, 5), (69, 89), (69, 269)):
            part = np.empty((rows, columns), dtype)
            product(x[:rows], y[:, :columns], part, 0)
            np.testing.assert_array_equal(part, whole[:rows, :columns])


@pytest.mark.parametrize("dtype", FLOATS)
def test_results_do_not_depend_on_vector_width(dtype, monkeypatch):
    rng = np.random.default_rng(9)
    code = token(np.dtype(dtype))
    one = numbers(rng, (1, 1), dtype)  # the library's own kernels are made for this machine
    product(one, one, one.copy(), 0)
    if dtype[0] == "f":
        vector_product(one[0], one, one[0].copy(), 0)
    for nbytes in (32, 64):
        monkeypatch.setattr(cold, "vector_bytes", nbytes)
        for name in (f"gemm_{code}", f"gemv_{code}"):
            if name not in library.SIGNATURES:
                continue
            text = library.source(name, nbytes)
            kernel = kernel_cache.get_kernel(text, name, library.SIGNATURES[name])
            for m, n, k in ((13, 70, 300), (1, 30, 40), (3, 5, 2), (40, 7, 9), (2, 90, 30)):
                a, b = numbers(rng, (m, k), dtype), numbers(rng, (k, n), dtype)
                expected, out = np.empty((m, n), dtype), np.empty((m, n), dtype)
                x, y, z = (v.ctypes.data for v in (a, b, out))
                if name.startswith("gemm"):
                    product(a, b, expected, 0)
                    kernel.call(1, 1, m, n, k, x, k, 1, y, n, 1, z, n, 0)
                elif m == 1:
                    vector_product(a[0], b, expected[0], 0)
                    kernel.call(1, 1, n, k, x, 1, y, n, 1, z, 0)
                else:
                    continue
                np.testing.assert_array_equal(out, expected)


@pytest.mark.skipif(cold.vector_bytes < 64, reason="masks of 16 lanes need AVX-512")
def test_no_masks_are_joined_in_products():
    # In each step of the innermost loop they would take the place of a multiplication.
    name = "gemm_f4"
    text = library.source(name, 64)
    kernel = kernel_cache.get_kernel(text, name, library.SIGNATURES[name])
    assembly = kernel.assembly()
    assert "zmm" in assembly
    assert "kunpck" not in assembly


@pytest.mark.parametrize("n", [3, 16, 21])
def test_underflowing_negative_products_sum_to_positive_zero(n):
    """Sums begin with 0, and so -0, which a chain of tiny products rounds to, is none of them."""
    a, b = np.full((9, 2), -1e-30, "f4"), np.full((2, n), 1e-30, "f4")
    c = np.empty((9, n), "f4")
    product(a, b, c, 0)
    assert not np.signbit(c).any()


def test_nan_and_infinity_propagate():
    rng = np.random.default_rng(3)
    a, b = numbers(rng, (9, 20), "f4"), numbers(rng, (20, 40), "f4")
    a[2, 3], b[4, 5], b[3] = np.nan, np.inf, 0
    c = np.empty((9, 40), "f4")
    product(a, b, c, 0)
    assert np.isnan(c[2]).all()
    others = np.delete(np.arange(9), 2)
    assert np.isinf(c[others, 5]).all()
    assert np.isfinite(np.delete(c[others], 5, axis=1)).all()
    a[2, 3], b[3, 7] = np.inf, 0
    product(a, b, c, 0)
    assert np.isnan(c[2, 7])


@pytest.mark.parametrize("dtype", FLOATS)
def test_library_source_runs_as_plain_python(dtype):
    """Bounds are checked, and that nothing is read before it is written."""
    rng = np.random.default_rng(4)
    name = f"gemm_{token(np.dtype(dtype))}"
    scope = dict(executors.NAMESPACE)
    exec(library.source(name, python_gemm.VECTOR_BYTES), scope)
    real = library.SIGNATURES[name][3][:-1]
    for m, n, k in (
        (1, 1, 3),
        (3, 35, 2),
        (9, 18, 7),
        (7, 5, 9),
        (2, 40, 1),
        (65, 3, 0),
        (1, 37, 19),
    ):
        a, b = numbers(rng, (m, k), dtype), numbers(rng, (k, n), dtype)
        expected = np.zeros((m, n), dtype)
        product(a, b, expected, 0)
        for turned in (False, True):
            right = np.array((b.T if turned else b).ravel())
            steps = (1, k) if turned else (n, 1)
            pointers = [
                pointer(a, real),
                pointer(right, real),
                pointer(np.empty_like(expected), real, False),
            ]
            scope[name](0, 1, m, n, k, pointers[0], k, 1, pointers[1], *steps, pointers[2], n, 0)
            assert pointers[2].seen[:].all()
            actual = pointers[2].data.view(dtype).reshape(m, n)
            np.testing.assert_allclose(
                actual, expected, rtol=1e-5 if dtype in ("f4", "c8") else 1e-13
            )


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_vector_product_source_runs_as_plain_python(dtype):
    rng = np.random.default_rng(6)
    name = f"gemv_{dtype}"
    scope = dict(executors.NAMESPACE)
    exec(library.source(name, python_gemm.VECTOR_BYTES), scope)
    for n, k in ((1, 1), (9, 20), (3, 0), (1030, 3), (2, 140)):
        x, b = numbers(rng, k, dtype), numbers(rng, (k, n), dtype)
        expected = np.empty(n, dtype)
        vector_product(x, b, expected, 0)
        for values, steps in ((b, (n, 1)), (b.T, (1, k)), (np.repeat(b, 2), (2 * n, 2))):
            out = pointer(np.empty(n, dtype), dtype, False)
            arguments = pointer(x, dtype), 1, pointer(values, dtype), *steps, out
            scope[name](0, 1, n, k, *arguments, 0)
            same = executors.same_values if dtype == "f4" else np.allclose
            assert same(out.data, expected)


def pointer(x, real, written=True):
    data = np.ascontiguousarray(x).reshape(-1).view(real)
    return executors.CheckedPointer(data, 0, np.full(len(data), written))


def test_a_new_process_loads_caller_and_library_from_disk(tmp_path):
    code = (
        "import numpy as np, accnp as jnp\n"
        "from accnp.compiler.kernel_cache import counters\n"
        "x = np.arange(12, dtype=np.float32).reshape(3, 4)\n"
        "print(float(jnp.sum(jnp.asarray(x) @ x.T)), counters.compiles, counters.disk_hits)\n"
        "import sys; print('numba' in sys.modules, 'scipy' in sys.modules)\n"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", code],
            env={"ACCNP_CACHE_DIR": str(tmp_path), "PATH": "", "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout.split()
        for _ in range(2)
    )  # fmt: skip
    assert float(first[0]) == float(second[0]) == 1134.0
    assert int(first[1]) > 0
    assert second[1] == "0"
    assert first[1] == second[2]
    assert second[3:] == ["False", "False"]


def test_other_kernels_do_not_load_the_library(tmp_path):
    with cache_dir(str(tmp_path)):
        kernel_cache.clear_kernels()
        text = "def kernel(lo, hi, a):\n    a[0] = f4(1)\n"
        kernel_cache.get_kernel(text, "kernel", ("f4*",))
        assert not any(k.name.startswith("gemm") for k in kernel_cache._kernels.values())
