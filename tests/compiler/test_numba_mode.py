"""With ``ACCNP_COMPILER=numba``, Numba compiles every kernel, and the bits are those of LLVM."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from llvmlite import ir
from numba import njit, types

import accnp as jnp
from accnp import engine
from accnp.compiler import kernel_cache
from accnp.compiler.numba import compile as numba_compile
from accnp.compiler.numba import functions
from accnp.config import config, scope

BOTH_TIERS = True  # the disk cache holds optimized code only; see tests/conftest.py

PROGRAMS = """
import sys
import numpy as np
import accnp as jnp
from accnp.compiler import kernel_cache as compile_module

def lower(source, name, *args):
    print("compiled by LLVM:", name, file=sys.stderr)
    return lower_by_llvm(source, name, *args)

lower_by_llvm, compile_module.lower = compile_module.lower, lower
x = jnp.asarray(np.linspace(-3, 3, 40, dtype=np.float32))
a = jnp.asarray(np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32))
halves = jnp.asarray(np.arange(0x7A00, 0x8200, dtype=np.uint16).view(np.float16))
for name, f, *args in (
    ("elements", lambda x: jnp.tanh(x) * x, x),
    ("sort", lambda x: jnp.sort(-x), x),
    ("argsort", lambda x: jnp.argsort(-x), x),
    ("cumsum", jnp.cumsum, x),
    ("product", lambda a: a @ a, a),
    ("columns", lambda a: (a * 1e7).sum(0), a),
    ("neighbors", lambda x: x.at[1:-1].set(x[:-2] + x[2:]), x),
    ("transposed", lambda a: (a.T * 2).copy(), a),
    ("cholesky", lambda a: jnp.linalg.cholesky(a @ a.T + 9 * jnp.eye(6)), a),
    ("eigenvalues", lambda a: jnp.linalg.eigh(a + a.T)[0], a),
    ("scatter", lambda x: x.at[jnp.arange(5) * 3].add(x[:5]), x),
    ("while", lambda x: jnp.lax.while_loop(lambda c: c[0] > -99, lambda c: c * 2, x), x),
    ("scan", lambda x: jnp.lax.scan(lambda c, x: (c + x, c * x), 0.0, x)[1], x),
    ("complex", lambda x: 1 / (x + 1j), x),
    ("bits", lambda h: jnp.lax.bitcast_convert_type(h, "uint16"), halves),
    ("random", lambda: jnp.random.normal(jnp.random.key(0), (9,))),
    ("special", lambda x: jnp.scipy.special.gammainc(x * x + 1, x * x), x),
):
    print(name, np.asarray(f(*args)).tobytes().hex())
"""


def run(folder, compiler):
    return subprocess.run(
        [sys.executable, "-c", PROGRAMS],
        env={**os.environ, "ACCNP_CACHE_DIR": str(folder), "ACCNP_COMPILER": compiler},
        capture_output=True,
        text=True,
        check=True,
    )


def test_numba_compiles_all_kernels_to_the_same_bits(tmp_path):
    by_llvm, by_numba = [run(tmp_path, compiler) for compiler in ("llvm", "numba")]
    assert by_numba.stdout.splitlines() == by_llvm.stdout.splitlines()
    assert "compiled by LLVM: kernel" in by_llvm.stderr
    assert by_numba.stderr == ""


def test_a_symbol_that_no_library_has_is_an_error():
    """Numba would end the process."""

    def code(context, b, signature, values):
        kind = ir.FunctionType(ir.VoidType(), [])
        b.call(ir.Function(b.module, kind, "accnp_library_nothing"), [])
        return context.get_dummy_value()

    functions._define("call_nothing", 0, lambda: (types.void(), code))
    call_nothing = functions.__dict__.pop("call_nothing")
    functions.__all__.remove("call_nothing")
    with pytest.raises(Exception, match="accnp_library_nothing, which no library has"):
        njit(lambda: call_nothing())()


@pytest.mark.parametrize(("name", "of"), [("tanh", "f4"), ("sin", "f8"), ("erf", "f4")])
def test_loops_call_functions_for_vectors(name, of):
    scope = vars(functions).copy()
    exec(
        "def kernel(lo, hi, x, y):\n    distinct_buffers()\n"
        f"    for i in range(lo, hi):\n        y[i] = {name}(x[i])\n",
        scope,
    )
    pointer = types.CPointer(functions.NUMBA_TYPES[of])
    dispatcher = njit(types.void(types.int64, types.int64, pointer, pointer))(scope["kernel"])
    (text,) = dispatcher.inspect_llvm().values()
    assert re.search(rf"call <\d+ x (float|double)> @accnp_{name}_{of}_x\d+\(", text)


@pytest.fixture
def compiled(monkeypatch):
    """The functions for C that Numba compiles during a test."""
    kernels = []

    def compile_kernel(*args):
        kernels.append(compile_before(*args))
        return kernels[-1]

    compile_before = numba_compile._compile
    monkeypatch.setattr(numba_compile, "_compile", compile_kernel)
    before = config.compiler
    config.update("compiler", "numba")
    kernel_cache.clear_kernels()
    engine._plans.clear()
    yield kernels
    config.update("compiler", before)
    kernel_cache.clear_kernels()
    engine._plans.clear()


def seven_points(x):
    inner = x[1:-1, 1:-1, 1:-1]
    planes = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1]
    rows = x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1]
    return inner * -6 + planes + rows + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:]


def test_many_buffers_are_vectorized(compiled):
    """LLVM knows that nine buffers do not overlap, and does not compare them at run time."""
    x = jnp.arange(1000, dtype="float32").reshape(10, 10, 10)
    actual = np.asarray(seven_points(x))
    np.testing.assert_array_equal(actual, seven_points(np.asarray(x)))
    text = "\n".join([m.inspect_llvm() for m in compiled])
    assert re.search(r"fadd <\d+ x float>", text)
    assert "memcheck" not in text


def test_columns_are_reduced_several_rows_at_once(compiled, monkeypatch):
    sources = []

    def compile_source(source, *args):
        sources.append(source)
        return compile_before(source, *args)

    compile_before = numba_compile.compile_source
    monkeypatch.setattr(numba_compile, "compile_source", compile_source)
    x = np.arange(1200, dtype=np.float32).reshape(30, 40)
    np.testing.assert_array_equal(jnp.asarray(x).sum(0), x.sum(0))
    assert re.search(r"for \w+ in range\(\w+, \w+, 4\)", "\n".join(sources))


def test_disk_cache_separates_llvm_and_numba_kernels(own_cache):
    def f(x):
        return x * 2 - 1

    def origin():
        return jnp.inspect(jnp.jit(lambda x: f(x)))(x).kernels[0].origin

    x = jnp.ones(10)
    with scope("compiler", "llvm"):
        jnp.jit(f)(x).block_until_ready()
        kernel_cache.clear_kernels()
        assert origin() == "on disk"
    with scope("compiler", "numba"):
        assert origin() == "not compiled"
