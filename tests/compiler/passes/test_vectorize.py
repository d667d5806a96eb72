"""Loops as vectors: the same bits as step by step, for any length; loops that may not be."""

import ctypes
import mmap
import re

import numpy as np
import pytest

import accnp.numpy as jnp
from accnp.compiler import kernel_cache
from accnp.compiler.llvm import lower, objects
from accnp.compiler.llvm.scalars import cold
from accnp.config import cache_dir
from accnp.ir.kernel import STRIDES

BY_LLVM = True

LENGTHS = (0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 100, 1000, 1037)


pytestmark = pytest.mark.usefixtures("own_cache")


def text_of(source, signature, lane_bytes, monkeypatch):
    monkeypatch.setattr(objects, "LANE_BYTES", lane_bytes)
    # What vectors of 32 bytes may use is what there is without AVX-512.
    monkeypatch.setattr(cold, "vector_bytes", min(lane_bytes or 64, objects.VECTOR_BYTES))
    lower._templates.clear()
    text = kernel_cache.lower(source, "kernel", signature)[0]
    lower._templates.clear()
    return text


def kernels(source, signature, monkeypatch, vectors=True):
    """The kernel with vectors of either width, and step by step."""
    variants = []
    for lane_bytes in (objects.VECTOR_BYTES, 32, 0):
        text = text_of(source, signature, lane_bytes, monkeypatch)
        assert ("!accnp.vectors" in text) is (vectors and lane_bytes > 0)
        kernel_cache.clear_kernels()
        with cache_dir(""):
            variants.append(kernel_cache.get_kernel(source, "kernel", signature))
        lower._templates.clear()
    return variants


def run(kernel, n, *arguments):
    passed = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
    kernel.call(n, max(n, 1), *passed)


def loop(*lines, arguments="a, x, y"):
    body = "".join(f"        {line}\n" for line in lines)
    return f"def kernel(lo, hi, {arguments}):\n    for i in range(lo, hi):\n{body}"


BODIES = {
    "arithmetic": (["a[i] = x[i] * y[i] - x[i] / y[i]"], "f4", "f4"),
    "double": (["t = x[i] + 1.5", "a[i] = t * y[0]"], "f8", "f8"),
    "functions": (["t = exp(x[i])", "a[i] = tanh(t) + pow(fabs_(y[i]), x[i])"], "f4", "f4"),
    "many calls": (
        [f"t{k} = tanh({f't{k - 1}' if k else 'x[i]'} + y[i])" for k in range(7)] + ["a[i] = t6"],
        "f4",
        "f4",
    ),
    "choice": (["a[i] = x[i] if x[i] > y[i] else -y[i]"], "f4", "f4"),
    "select": (
        ["c = not (x[i] < y[i]) and x[i] == x[i]", "a[i] = select(c, x[i], y[i])"],
        "f4",
        "f4",
    ),
    "widths": (["a[i] = f4(f8(x[i]) * 3.0) + f4(i + 5)"], "f4", "f4"),
    "integers": (["a[i] = i4((x[i] * y[i]) ^ (x[i] >> 3))"], "i4", "i4"),
    "bytes": (["a[i] = i1(x[i] + y[i])"], "i1", "i1"),
    "truth": (["a[i] = (x[i] < y[i]) | (y[i] != y[i])"], "b1", "f4"),
    "clip": (["a[i] = i4(x[i] * 1e9)"], "i4", "f4"),
    "in place": (["a[i] = a[i] * x[i] + y[i]"], "f4", "f4"),
    "looked up": (["a[i] = erf(x[i]) + erfc(y[i] * 0.3)"], "f4", "f4"),
    "logarithms": (["t = log(x[i] * 1e-38)", "a[i] = t + log2(y[i]) * log1p(x[i])"], "f4", "f4"),
    "rotations": (["a[i] = sin(x[i]) * cos(y[i] * 1e6)"], "f4", "f4"),
}
BODIES["functions"][0][1] = "a[i] = tanh(t) + pow(abs(y[i]), x[i])"


@pytest.mark.parametrize("name", BODIES)
def test_vector_code_matches_scalar_steps_bitwise(name, monkeypatch):
    lines, out, code = BODIES[name]
    source = loop(*lines)
    variants = kernels(source, (f"{out}*", f"{code}*", f"{code}*"), monkeypatch)
    random = np.random.default_rng(0)
    for n in LENGTHS:
        x, y = (random.standard_normal(n + 1) * 20 for _ in "xy")
        x[: n // 5] *= 1e-3
        if code == "f4" and n > 20:
            x[3], x[7], y[9] = np.nan, np.inf, -0.0
        x, y = (v.astype(code) for v in (x, y))
        y[y == 0] = 1
        results = []
        for kernel in variants:
            a = np.full(n + 40, 3, np.dtype(bool) if out == "b1" else out)
            run(kernel, n, a, x, y)
            assert (a[n:] == a.dtype.type(3)).all()  # nothing behind the end
            results.append(a.tobytes())
        assert results[0] == results[1] == results[2]


@pytest.fixture(scope="module")
def guarded():
    """Memory before which and behind which nothing may be read."""
    page = mmap.PAGESIZE
    pages = mmap.mmap(-1, 4 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for place in (start, start + 3 * page):
        assert protect(place, page, 0) == 0
    return np.frombuffer(pages, np.uint8)[page : 3 * page]


@pytest.mark.parametrize("step", STRIDES)
@pytest.mark.parametrize("code", ["f4", "f8"])
@pytest.mark.parametrize("calls", [False, True])
def test_strided_loads_stay_in_bounds(step, code, calls, guarded, monkeypatch):
    body = f"x[i * {step}] + y[0]"
    if calls:  # so long that there is but the loop under masks
        body = " + ".join([f"f4(tanh(x[i * {step}] * {k}.0))" for k in range(1, 5)])
    variants = kernels(loop(f"a[i] = {code}({body})"), (f"{code}*",) * 3, monkeypatch)
    most = (guarded.nbytes // np.dtype(code).itemsize - 1) // abs(step) + 1
    for n in (0, 1, 2, 3, 7, 15, 16, 17, 31, 40, 63, 65, 200, most):
        reach = max(0, n - 1) * abs(step) + 1
        for at_end in (False, True):
            whole = guarded.view(code)
            part = whole[-reach:] if at_end else whole[:reach]
            part[:] = np.arange(reach) % 89
            first = part[-1:] if step < 0 else part[:1]
            y = np.full(1, 2, code)
            results = []
            for kernel in variants:
                a = np.full(n + 20, 3, code)
                run(kernel, n, a, first, y)
                assert (a[n:] == 3).all()
                results.append(a)
            np.testing.assert_array_equal(results[0], results[2])
            np.testing.assert_array_equal(results[1], results[2])
            if not calls:
                np.testing.assert_array_equal(results[0][:n], part[::step][:n] + 2)


PLACES = {
    "computed": ("i4(y[i])", lambda i, y, n: y[i]),
    "wide": ("i8(y[i]) * n", lambda i, y, n: y[i] * n),
    "unsigned": ("u4(y[i]) + n", lambda i, y, n: y[i] + n),
    "and in a row": ("i4(y[i]) + i * 2 + 1", lambda i, y, n: y[i] + i * 2 + 1),
    "two": ("i4(y[i]) * n + i4(y[i + 1])", lambda i, y, n: y[i] * n + y[i + 1]),
    "stride": ("i * n", lambda i, y, n: i * n),
    "from a place for all": ("i + i4(y[0])", lambda i, y, n: i + y[0]),
    "strided from there": ("i * 3 + i4(y[0]) + u4(n)", lambda i, y, n: i * 3 + y[0] + n),
    "long stride": ("i * 7 + n", lambda i, y, n: i * 7 + n),
    "stride and short": ("i * 4 + i4(n)", lambda i, y, n: i * 4 + n),
    "short and in a row": ("i4(n) + i", lambda i, y, n: i + n),
    "backwards": ("(n - i) * 5 + 900", lambda i, y, n: (n - i) * 5 + 900),
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("code", ["f4", "f8"])
def test_loads_at_computed_indices(name, code, monkeypatch):
    text, places = PLACES[name]
    source = loop(f"a[i] = {code}(x[{text}] * 2.0)", arguments="a, x, y, n")
    variants = kernels(source, (f"{code}*", f"{code}*", "f4*", "i8"), monkeypatch)
    random = np.random.default_rng(3)
    x = random.standard_normal(1100).astype(code)
    for count in (0, 1, 5, 16, 17, 33, 64, 70, 150):
        y = random.integers(0, 150, count + 1)
        expected = x[places(np.arange(count), y, 5)] * 2
        for kernel in variants:
            a = np.full(count + 20, 3, code)
            run(kernel, count, a, x, y.astype(np.float32), 5)
            np.testing.assert_array_equal(a[:count], expected)
            assert (a[count:] == 3).all()


DEPENDENT = {
    "a sum": ["t = t + x[i]", "a[0] = t"],
    "one place": ["a[0] = x[i]"],
    "the step before": ["a[i + 1] = a[i] + x[i]"],
    "strided": ["a[2 * i] = x[i]"],
    "scattered": ["a[i4(y[i])] = x[i]"],
    "gathered from the result": ["a[i] = a[i4(y[i])]"],
    "inner choice": ["if x[i] > y[i]:", "    a[i] = x[i]"],
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_dependent_steps_are_not_vectorized(name, monkeypatch):
    source = loop(*DEPENDENT[name]).replace("    for", "    t = f4(0)\n    for", 1)
    first, second, plain = kernels(source, ("f4*", "f4*", "f4*"), monkeypatch, vectors=False)
    n = 37
    x = np.random.default_rng(1).standard_normal(n + 1).astype(np.float32)
    y = np.arange(n, dtype=np.float32)[::-1].copy()
    results = []
    for kernel in (first, second, plain):
        a = np.ones(2 * n + 2, np.float32)
        run(kernel, n, a, x, y)
        results.append(a.tobytes())
    assert results[0] == results[1] == results[2]


def test_a_value_of_the_last_step_is_kept(monkeypatch):
    source = """
def kernel(lo, hi, a, x, n):
    for o in range(lo, hi):
        for j in range(n):
            t = x[j] * f4(2)
            a[j] = t
        a[n] = t
"""
    for kernel in kernels(source, ("f4*", "f4*", "i8"), monkeypatch, vectors=False):
        a, x = np.zeros(11, np.float32), np.arange(10, dtype=np.float32)
        run(kernel, 1, a, x, 10)
        assert a[10] == 18


def test_one_copy_of_long_bodies(monkeypatch):
    lines = ["t0 = x[i]", *[f"t{k + 1} = tanh(t{k}) * y[i]" for k in range(30)], "a[i] = t30"]
    text = text_of(loop(*lines), ("f4*", "f4*", "f4*"), objects.VECTOR_BYTES, monkeypatch)
    assert text.count("@accnp_lanes_tanh_") == 31  # a definition and 30 calls
    short = text_of(loop("a[i] = x[i] + y[i]"), ("f4*",) * 3, 32, monkeypatch)
    assert short.count("fadd") == 2  # a loop, and once what is left under a mask
    assert short.count("load.v16f32") == 3  # two vectors in one step; a declaration


SCRATCH = """
def kernel(lo, hi, a, x, n):
    buf0 = stack_f8()
    buf1 = stack_f4()
    for o in range(lo, hi):
        for j in range(n):
            buf0[j] = f8(o)
        for j in range(n):
            buf1[j] = x[o * n + j]
        for j in range(n):
            buf0[j] = f8(buf0[j] + f8(buf1[j]))
        for j in range(n):
            a[o * n + j] = f4(buf0[j])
"""


def test_scratch_has_room_for_whole_vectors(monkeypatch):
    """Loops over scratch alone have no steps that are left; results are masked."""
    signature = "f4*", "f4*", "i8"
    for width, lanes in ((64, 16), (32, 8)):
        text = text_of(SCRATCH, signature, width, monkeypatch)
        calls = [line for line in text.splitlines() if "call" in line and "masked" in line]
        assert sum("masked.store" in line for line in calls) == 1  # of the results
        assert sum("masked.load" in line for line in calls) == 1  # of the operand
        assert f"store <{lanes} x float>" in text
    for kernel in kernels(SCRATCH, signature, monkeypatch):
        for n in (0, 1, 7, 8, 15, 16, 17, 33, 1023, 1024):
            x = np.arange(2 * n, dtype=np.float32)
            a = np.full(2 * n + 16, -1, np.float32)
            run(kernel, 2, a, x, n)
            assert np.array_equal(a[: 2 * n], x + np.repeat([0, 1], n))
            assert np.all(a[2 * n :] == -1)


@pytest.mark.parametrize("n", [1, 3, 5, 8, 13])
def test_known_step_count_needs_no_mask(n, guarded, monkeypatch):
    """What a tiny kernel in a loop stores in pieces is not read back as a whole."""
    source = f"""
def kernel(lo, hi, a, x, y, n1):
    lo = 0
    hi = 3
    n1 = {n}
    for u in range(lo, hi):
        p = u * n1
        for o in range(n1):
            a[p + o] = x[p + o] * y[o * 3] + sqrt(y[o * -1 + {n - 1}])
"""
    signature = "f4*", "f4*", "f4*", "i8"
    for width in (64, 32) if n < 9 else (64,):
        text = text_of(source, signature, width, monkeypatch)
        assert "!accnp.vectors" in text
        assert "masked" not in text
    x, y = (np.arange(3 * n, dtype=np.float32) + k for k in (0, 1))
    expected = x.reshape(3, n) * y[::3] + np.sqrt(y[:n][::-1])
    views = [guarded.view(np.float32)[-len(v) :] for v in (x, y)]
    for kernel in kernels(source, signature, monkeypatch):
        for operand in (0, 1):  # each at the end of memory once
            operands = [x, y]
            operands[operand] = views[operand]
            views[operand][:] = (x, y)[operand]
            a = np.full(3 * n + 16, -1, np.float32)
            run(kernel, 3, a, *operands, n)
            assert np.array_equal(a[: 3 * n], expected.ravel())
            assert np.all(a[3 * n :] == -1)


COLUMNS = """
def kernel(lo, hi, a, x, n):
    buf0 = stack_f8()
    for u in range(lo, hi):
        p = u * 3
        for j in range(3):
            buf0[j] = f8(0)
        for r in range(n):
            d = r * 3
            for j in range(3):
                buf0[j] = f8(buf0[j] + f8(x[d + j] * x[p + j]))
        for j in range(3):
            a[p + j] = f4(buf0[j])
"""


def test_a_few_columns_are_one_vector(guarded, monkeypatch):
    """Loops over a short axis of constant length are unrolled, and the sums stay in a register."""
    signature = "f4*", "f4*", "i8"
    for width in (64, 32):
        text = text_of(COLUMNS, signature, width, monkeypatch)
        assert "!accnp.vectors" in text
        assert "masked" not in text
        assert "[1024 x double]" not in objects.show_llvm(text, [])  # scratch is none
    x = guarded.view(np.float32)[-15:]  # nothing is read behind it
    x[:] = np.arange(15)
    rows = x.reshape(5, 3)
    for kernel in kernels(COLUMNS, signature, monkeypatch):
        a = np.full(15 + 16, -1, np.float32)
        run(kernel, 5, a, x, 5)
        assert np.array_equal(a[:15].reshape(5, 3), rows * rows.sum(0))
        assert np.all(a[15:] == -1)


def test_quotients_by_sizes_are_rounded_down(monkeypatch):
    source = """
def kernel(lo, hi, a, x, n):
    for i in range(lo, hi):
        a[i] = (x[i] - 7) // n
"""
    for kernel in kernels(source, ("i8*", "i8*", "i8"), monkeypatch, vectors=False):
        for n in (1, 2, 3, 7):
            x, a = np.arange(20), np.zeros(20, np.int64)
            run(kernel, 20, a, x, n)
            assert np.array_equal(a, (x - 7) // n)


def test_long_loops_take_two_vectors_where_there_are_registers(monkeypatch):
    """One value of twice the lanes; with many registers not in inner loops, which may be shorter
    than that."""
    flat = loop("a[i] = x[i] + y[i]")
    rows = (
        "def kernel(lo, hi, a, x, y, n):\n    for o in range(lo, hi):\n        for i in range(n):\n"
    )
    rows += "            a[o * n + i] = x[o * n + i] + y[i]\n"
    for source, more, lanes in ((flat, (), 32), (rows, ("i8",), 16)):
        text = text_of(source, ("f4*", "f4*", "f4*", *more), 64, monkeypatch)
        assert f"fadd <{lanes} x float>" in text
    assert "fadd <16 x float>" in text_of(flat, ("f4*",) * 3, 32, monkeypatch)
    for width in (64, 32):  # chains of dependent instructions: four vectors
        long = text_of(loop("a[i] = exp(x[i])"), ("f4*",) * 3, width, monkeypatch)
        assert f"load.v{width}f32" in long


def test_nontemporal_stores_to_two_arrays_need_whole_lines(monkeypatch):
    """Where they are two vectors, lines of several results left before they were whole."""
    both = loop("t = x[i] + y[i]", "a[i] = t", "x[i] = t * t")
    for source, ways in ((loop("a[i] = x[i] + y[i]"), (True, True)), (both, (True, False))):
        for width, is_nontemporal in zip((64, 32), ways, strict=True):
            text = text_of(source, ("f4*",) * 3, width, monkeypatch)
            assert ("!nontemporal" in text) is is_nontemporal
            if is_nontemporal:  # a line at least
                assert "<16 x float>" in text or "<32 x float>" in text


def test_masks_that_are_vectors_are_left_to_the_last_steps(monkeypatch):
    """Without AVX-512 a store under a mask is slow, and a mask of bits is made lane by lane."""
    body = loop("a[i] = select(y[i], tanh(x[i]) * exp(x[i]), x[i])")
    for width, lanes in ((64, 64), (32, 32)):
        text = text_of(body, ("f4*", "f4*", "b1*"), width, monkeypatch)
        assert ("bitcast i" in text) is (width == 64)
        plain = [x for x in text.splitlines() if f"store <{lanes} x float>" in x]
        assert sum("nontemporal" not in x for x in plain) == (width == 32)
        assert text.count("masked.load.v32i8") == 2 * (width == 32)  # a call, a declaration
        assert (f"load <{lanes} x i8>" in text) is (width == 32)  # without an instruction for it


def test_long_bodies_prefetch_each_load_once(monkeypatch):
    body = ["a[i] = tanh(x[i]) * exp(x[i]) + tanh(y[i])"]
    text = text_of(loop(*body), ("f4*",) * 3, 64, monkeypatch)
    assert text.count("call void @llvm.prefetch") == 8  # two arrays, four lines of the cache each


def test_short_bodies_prefetch_only_with_nontemporal_stores(monkeypatch):
    # Two lines of the cache for each array, once, however many results there are.
    sums, both = ["a[i] = x[i] + y[i]"], ["v = x[i]", "a[i] = v + v", "y[i] = v"]
    for body, lines in ((sums, 4), (both, 2)):
        text = text_of(loop(*body), ("f4*",) * 3, 64, monkeypatch)
        fetch, past = "call void @llvm.prefetch", "!nontemporal"
        assert text.count(fetch) == lines
        blocks = re.split(r"\n\S+:", text)
        assert text.count(past) == sum(past in b for b in blocks) > 0
        assert all(past in b for b in blocks if fetch in b)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int16", "float32"])
def test_shared_functions_are_declared_once(dtype):
    """A fold of truth values reads bytes, as a loop over bytes does."""
    x = jnp.asarray(np.arange(300) % 2, dtype)
    assert bool((x == x).all())
    assert bool(jnp.array_equal(x, x))
