"""Kernels: values, the entry function, caches in the process, vectorization, errors."""

import ctypes
import re
import threading

import numpy as np
import pytest
from runtime import sources

from accnp.compiler import kernel_cache

BY_LLVM = True


pytestmark = pytest.mark.usefixtures("own_cache")


def kernel(source, signature, fastmath=False, name="kernel"):
    return kernel_cache.get_kernel(source, name, signature, fastmath=fastmath)


def run(k, n, *arrays, chunk=None):
    argv = kernel_cache.pack([a.ctypes.data if isinstance(a, np.ndarray) else a for a in arrays])
    k.run(argv, n, chunk or max(n, 1))


@pytest.mark.parametrize("chunk", [1, 7, 100, 1000, 1 << 40])
def test_values_for_any_chunk(chunk):
    x = np.linspace(-3, 3, 1001, dtype=np.float32)
    out = np.full(1002, 9, np.float32)
    run(kernel(sources.elementwise(), sources.SIGNATURE), 1001, x, out, chunk=chunk)
    np.testing.assert_array_equal(out[:1001], x * x + x * np.float32(2))
    assert out[1001] == 9


def test_call_takes_integers_and_counts():
    k = kernel(sources.elementwise(), sources.SIGNATURE)
    x = np.arange(10, dtype=np.float32)
    before = kernel_cache.counters.launches
    for call in (k.call, k.call_brief):
        out = np.zeros_like(x)
        assert call(10, 3, x.ctypes.data, out.ctypes.data) is None
        np.testing.assert_array_equal(out, x * x + 2 * x)
    assert kernel_cache.counters.launches - before == 2
    with pytest.raises(TypeError, match="integer"):
        k.call(10, 3, "text", 0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(OverflowError):
        k.call(1 << 70, 3, 0, 0)
    assert kernel_cache.counters.launches - before == 2


def test_only_call_releases_the_interpreter_lock():
    source = (
        "def chain(lo, hi, o):\n"
        " for i in range(lo, hi):\n  o[0] = f4(f4(o[0] * f4(0.999)) + f4(1.0))\n"
    )
    k = kernel(source, ("f4*",), name="chain")
    out = np.ones(1, np.float32)
    steps = {}
    for name in ("call", "call_brief"):
        begun, ended = threading.Event(), []

        def work(name=name, begun=begun, ended=ended):
            begun.set()
            getattr(k, name)(100_000_000, 100_000_000, out.ctypes.data)
            ended.append(1)

        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
        steps[name] = 0
        while not ended:
            steps[name] += 1
        thread.join()
    assert steps["call"] > 3 * steps["call_brief"]


def test_empty_range():
    out = np.full(3, 9, np.float32)
    run(kernel(sources.elementwise(), sources.SIGNATURE), 0, out, out, chunk=4)
    assert (out == 9).all()


def test_every_argument_type():
    numpy_names = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16", "b1"]
    for code in numpy_names:
        source = "def copy(lo, hi, x, shift, o):\n for i in range(lo, hi):\n  o[i] = x[i + shift]\n"
        x = np.array([0, 1, 0, 1, 1]).astype(np.dtype("?" if code == "b1" else code))
        out = np.zeros(4, x.dtype)
        k = kernel(source, (f"{code}*", "i8", f"{code}*"), name="copy")
        run(k, 4, x, 1, out)
        np.testing.assert_array_equal(out, x[1:])


def test_division_follows_numpy():
    source = "def div(lo, hi, x, o):\n for i in range(lo, hi):\n  o[i] = f4(f4(1.0) / x[i])\n"
    x = np.array([0.0, -0.0, np.nan, 4.0], np.float32)
    out = np.zeros(4, np.float32)
    run(kernel(source, ("f4*", "f4*"), name="div"), 4, x, out)
    np.testing.assert_array_equal(out, [np.inf, -np.inf, np.nan, 0.25])


def test_name_can_hold_two_types():
    source = (
        "def two(lo, hi, x, o):\n for i in range(lo, hi):\n"
        "  a = i\n  a = f4(a) + x[i]\n  o[i] = a\n"
    )
    x = np.full(3, 0.5, np.float32)
    out = np.zeros(3, np.float32)
    run(kernel(source, ("f4*", "f4*"), name="two"), 3, x, out)
    np.testing.assert_array_equal(out, [0.5, 1.5, 2.5])


def test_a_name_with_two_types_is_not_widened():
    # With one type for `a` (float64) the sum would not round to float32 between the steps.
    source = (
        "def two(lo, hi, x, o):\n for i in range(lo, hi):\n"
        "  a = 1\n  o[i] = f4(x[i])\n  a = x[i]\n  b = a + x[i + 1]\n  o[i] = b - a\n"
    )
    x = np.array([1.0, 1e-8], np.float32)
    out = np.ones(1, np.float32)
    run(kernel(source, ("f4*", "f4*"), name="two"), 1, x, out)
    assert out[0] == 0


def test_helper_functions_in_the_source():
    source = (
        "def square(v):\n return v * v\n"
        "def outer(lo, hi, x, o):\n for i in range(lo, hi):\n  o[i] = square(x[i])\n"
    )
    x = np.arange(5, dtype=np.float32)
    out = np.zeros(5, np.float32)
    run(kernel(source, ("f4*", "f4*"), name="outer"), 5, x, out)
    np.testing.assert_array_equal(out, x * x)


def test_user_arithmetic_is_not_contracted_unless_asked():
    plain = kernel(sources.elementwise(3.0), sources.SIGNATURE)
    fast = kernel(sources.elementwise(3.0), sources.SIGNATURE, fastmath=True)
    assert plain is not fast
    assert not re.search(r"\bvf(n?)m(add|sub)", plain.assembly())
    assert "reassoc" not in plain.llvm()
    assert re.search(r"fmul (reassoc|contract|nsz|arcp|afn)", fast.llvm())
    assert "nnan" not in fast.llvm()


def test_fastmath_reassociates():
    source = (
        "def f(lo, hi, x, y, o):\n for i in range(lo, hi):\n  o[i] = f4(f4(x[i] + y[i]) - x[i])\n"
    )
    x, y = np.array([1.0], np.float32), np.array([0.001], np.float32)
    out = np.zeros(1, np.float32)
    run(kernel(source, ("f4*",) * 3, name="f"), 1, x, y, out)
    assert out[0] == (x + y - x)[0] != y[0]
    run(kernel(source, ("f4*",) * 3, True, name="f"), 1, x, y, out)
    assert out[0] == y[0]


@pytest.mark.parametrize("t", ["f4", "f8"])
def test_fastmath_keeps_the_formulas_of_functions(t):
    """Their compensated arithmetic is lost if it is reordered."""
    x = np.array([0.5, 1.5, 3.0, 10.0, -4.0], t)
    out = np.zeros_like(x)
    for name in ("sin", "cos", "tan", "expm1", "exp2", "erf", "log1p"):
        source = f"def f(lo, hi, x, o):\n for i in range(lo, hi):\n  o[i] = {name}(x[i] * x[i])\n"
        expected = np.zeros_like(x)
        run(kernel(source, (f"{t}*",) * 2, name="f"), 5, x, expected)
        run(kernel(source, (f"{t}*",) * 2, True, name="f"), 5, x, out)
        np.testing.assert_array_equal(out, expected, err_msg=name)


def test_many_pointers_vectorize_without_checks_at_run_time():
    count = 12
    names = [f"x{i}" for i in range(count - 1)]
    total = "f4(0.0)"
    for name in names:
        total = f"f4({total} + {name}[i])"
    source = (
        f"def many(lo, hi, {', '.join(names)}, o):\n for i in range(lo, hi):\n  o[i] = {total}\n"
    )
    k = kernel(source, ("f4*",) * count, name="many")
    text = k.llvm()
    assert re.search(r"fadd <\d+ x float>", text)
    assert "vector.memcheck" not in text
    arrays = [np.arange(100, dtype=np.float32) + i for i in range(count)]
    run(k, 100, *arrays)
    np.testing.assert_array_equal(arrays[-1], sum(arrays[:-1]))


def test_a_process_compiles_once():
    before = kernel_cache.counters.as_dict()
    source = sources.elementwise(11.0)
    first = kernel(source, sources.SIGNATURE)
    assert first.origin == "compiled"
    assert kernel(source, sources.SIGNATURE) is first
    after = kernel_cache.counters.as_dict()
    assert after["compiles"] - before["compiles"] == 1
    assert after["memory_hits"] - before["memory_hits"] == 1


def test_threads_compile_once():
    before = kernel_cache.counters.compiles
    kernels = []

    def compile_it():
        kernels.append(kernel(sources.elementwise(12.0), sources.SIGNATURE))

    threads = [threading.Thread(target=compile_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kernel_cache.counters.compiles - before == 1
    assert len(kernels) == 4
    assert len(set(map(id, kernels))) == 1


def test_a_shared_counter_divides_the_work():
    k = kernel(sources.elementwise(), sources.SIGNATURE)
    x = np.ones(100, np.float32)
    out = np.zeros(100, np.float32)
    argv = kernel_cache.pack([x.ctypes.data, out.ctypes.data])
    counter = ctypes.c_int64(40)
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)(k.address)
    entry(ctypes.addressof(argv), ctypes.addressof(counter), 100, 16)
    assert (out[:40] == 0).all()
    assert (out[40:] == 3).all()
    assert counter.value >= 100


def test_invalid_source_is_explained():
    with pytest.raises(
        kernel_cache.CompileError, match=r"bad does not compile[\s\S]*undefined_name"
    ) as e:
        kernel("def bad(lo, hi, x):\n x[lo] = undefined_name\n", ("f4*",), name="bad")
    assert "signature: f4*" in str(e.value)
    with pytest.raises(
        kernel_cache.CompileError, match=r"not defined, at line 2: 'x\[lo\] = nowhere"
    ):
        kernel("def lost(lo, hi, x):\n x[lo] = nowhere(x[lo])\n", ("f8*",), name="lost")
    with pytest.raises(ValueError, match="unknown argument type"):
        kernel("def f(lo, hi, x):\n pass\n", ("q9*",), name="f")
    with pytest.raises(ValueError, match="takes 1 arguments"):
        kernel("def f(lo, hi, x):\n pass\n", ("f4*", "f4*"), name="f")
    with pytest.raises(ValueError, match="must define"):
        kernel("g = 1\n", (), name="f")
    # A failed compile leaves nothing behind.
    with pytest.raises(ValueError, match="must define"):
        kernel("g = 1\n", (), name="f")
