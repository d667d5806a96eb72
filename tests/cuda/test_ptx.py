"""Compilation from source to PTX: names, caches, errors, calls of other kernels, both ways of
launching, and errors of the interpreter.
"""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from cuda.interpreter import Memory, Module, PTXError
from cuda.support import interpret

from accnp.caches import BoundedCache
from accnp.compiler import ptx
from accnp.compiler.kernel_cache import CompileError, counters
from accnp.compiler.llvm import ptx as ptx_module
from accnp.compiler.ptx import ptx_of
from accnp.config import cache_dir

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

SQUARE = """
def kernel(lo, hi, x, y, n0):
    for i in range(lo, hi):
        y[i] = x[i] * x[i] + f4(n0)
"""
SIGNATURE = ("f4*", "f4*", "i8")


def test_every_index_runs_once_for_any_grid():
    kernel = ptx_of(SQUARE, SIGNATURE, tasks=True)
    x = np.arange(100, dtype=np.float32)
    for blocks, threads in ((1, 1), (1, 32), (3, 64), (7, 96)):
        (_, y), _ = interpret(kernel, [x, np.zeros_like(x)], [100, 2], blocks, threads)
        np.testing.assert_array_equal(y, x * x + 2)


def test_kernel_names_are_unique_and_stable():
    a = ptx_of(SQUARE, SIGNATURE, tasks=True)
    b = ptx_of(SQUARE.replace("* x[i]", "+ x[i]"), SIGNATURE, tasks=True)
    c = ptx_of(SQUARE, SIGNATURE, tasks=True, cc=(8, 0))
    assert len({a.name, b.name, c.name}) == 3
    assert ptx_of(SQUARE, SIGNATURE, tasks=True) is a
    assert f".maxntid {a.threads}" in a.text


def test_newer_gpus_use_ptx_of_the_newest_known_target():
    newer = ptx_of(SQUARE, SIGNATURE, tasks=True, cc=(12, 0))
    assert newer == ptx_of(SQUARE, SIGNATURE, tasks=True)
    assert ".target sm_90" in newer.text


def test_ptx_is_cached_on_disk(tmp_path, monkeypatch):
    with cache_dir(str(tmp_path)):
        monkeypatch.setattr(ptx, "_ptx_cache", BoundedCache("kernel_cache_size"))
        before = counters.compiles
        kernel = ptx_of(SQUARE, SIGNATURE, tasks=True)
        assert counters.compiles == before + 1
        monkeypatch.setattr(ptx, "_ptx_cache", BoundedCache("kernel_cache_size"))
        hits = counters.disk_hits
        assert ptx_of(SQUARE, SIGNATURE, tasks=True) == kernel
        assert (counters.compiles, counters.disk_hits) == (before + 1, hits + 1)


def test_compile_errors_show_the_source():
    with pytest.raises(CompileError, match="no_such_function"):
        ptx_of("def kernel(lo, hi, x):\n    x[0] = no_such_function(x[1])\n", ("f4*",), tasks=True)
    with pytest.raises(ValueError, match="takes 3 arguments after lo, hi; got a signature of 1"):
        ptx_of(SQUARE, ("f4*",), tasks=True)
    with pytest.raises(ValueError, match="unknown argument type"):
        ptx_of(SQUARE, ("f4*", "f5*", "i8"), tasks=True)
    with pytest.raises(ValueError, match="pass a f4 by pointer"):
        ptx_of(SQUARE, ("f4*", "f4*", "f4"), tasks=True)


CALLING = """
def half(lo, hi, x, y):
    for i in range(lo, hi):
        y[i] = x[i] * f4(0.5)

def kernel(lo, hi, x, y):
    for i in range(lo, hi):
        half(i, i + 1, x, y)
        y[i] = y[i] + x[i]
"""


def test_a_kernel_calls_another():
    kernel = ptx_of(CALLING, ("f4*", "f4*"), tasks=True, callees=(("half", ("f4*", "f4*")),))
    x = np.arange(40, dtype=np.float32)
    (_, y), _ = interpret(kernel, [x, np.zeros_like(x)], [40])
    np.testing.assert_array_equal(y, x * np.float32(1.5))


def test_arithmetic_is_rounded_step_by_step():
    product = "def kernel(lo, hi, x, y, z):\n    for i in range(lo, hi):\n"
    product += "        z[i] = x[i] * y[i] + z[i]\n"
    plain = ptx_of(product, ("f4*",) * 3, tasks=True).text
    fast = ptx_of(product, ("f4*",) * 3, tasks=True, fastmath=True).text
    assert "fma" not in plain
    assert "mul.rn.f32" in plain
    assert "add.rn.f32" in plain
    assert "fma" in fast
    assert not re.search(r"(mul|add)\.(rn\.)?f32", fast)


def test_interpreter_checks_what_gpus_ignore():
    kernel = ptx_of(SQUARE, SIGNATURE, tasks=True)
    x = np.ones(10, np.float32)
    with pytest.raises(PTXError, match="out of bounds"):
        interpret(kernel, [x, np.zeros(9, np.float32)], [10, 0])
    with pytest.raises(PTXError, match="takes 4 arguments"):
        interpret(kernel, [x, x], [10])
    with pytest.raises(PTXError, match="blocks of 256"):
        interpret(kernel, [x, x], [10, 0], 1, 512)
    memory = Memory()
    a = memory.put(x)
    with pytest.raises(PTXError, match="not aligned"):
        Module(kernel.text).launch(kernel.name, 1, 32, [a + 2, a, 4, 0], memory)


OPERATIONS = """
import sys
import numpy as np
from cuda.fake import gpus
import accnp as jnp

with gpus():
    gpu = jnp.devices("gpu")[0]
    x = jnp.device_put(np.linspace(0, 1, 300, dtype=np.float32).reshape(15, 20), gpu)
    i = jnp.device_put(np.arange(9) % 4, gpu)
    found = [
        x @ x.T, jnp.sort(x, axis=1), jnp.cumsum(x, axis=1), x.sum(1), jnp.exp(x),
        x.at[i].add(1), x[i], jnp.argmax(x, axis=0), jnp.linalg.cholesky(x @ x.T + jnp.eye(15)),
        jnp.convolve(x[0], x[1]), jnp.searchsorted(x[0], x[1]), x.reshape(20, 15).T + 1,
    ]
    print(*[
        y.devices() == {gpu} and np.isfinite(np.asarray(y)).all() for y in found
    ])
print([m for m in sys.modules if m.split(".")[0] == "numba"][:5])
"""


def test_kernels_of_operations_need_no_numba():
    env = os.environ | {"ACCNP_CACHE_DIR": "", "PYTHONPATH": f"{HERE}{os.pathsep}{HERE}/tests"}
    done = subprocess.run(
        [sys.executable, "-c", OPERATIONS], capture_output=True, text=True, env=env
    )
    assert done.stdout.split("\n")[-2] == "[]", done.stdout + done.stderr
    assert done.stdout.split()[:-1] == ["True"] * 12, done.stdout + done.stderr


def test_a_user_function_that_numba_compiles_is_linked():
    """The function handles strings, which only Numba supports, and calls a CPU library function."""
    text = """
def bent(x):
    total = 0.0
    for name in ("a", "bb"):
        total += math.ldexp(x, len(name))
    return total

def kernel(lo, hi, x, y):
    for i in range(lo, hi):
        y[i] = bent(x[i])
"""
    kernel = ptx_of(text, ("f8*", "f8*"), tasks=True)
    x = np.linspace(-1, 1, 40)
    (_, y), _ = interpret(kernel, [x, np.zeros_like(x)], [40])
    np.testing.assert_array_equal(y, x * 6)


def test_missing_llvm_instruction_is_an_error():
    text = """
declare float @llvm.exp.f32(float)
define ptx_kernel void @k(ptr %x) {
  %a = load float, ptr %x
  %b = call float @llvm.exp.f32(float %a)
  store float %b, ptr %x
  ret void
}
"""
    with pytest.raises(NotImplementedError, match=r"cannot call llvm\.exp\.f32"):
        ptx_module.emit(text, [], "sm_90")


CYCLES = """
import gc
from accnp.compiler.llvm import ptx as ptx_module
from accnp.compiler.ptx import ptx_of

text = "def kernel(lo, hi, x, y):\\n    for i in range(lo, hi): y[i] = exp(x[i]) * %d\\n"
lowered = ptx_module.emit_ptx
def fails(module, cpu):
    raise RuntimeError("lost")
ptx_module.emit_ptx = fails
gc.disable()
for k in range(20):
    try:
        ptx_of(text % k, ("f4*", "f4*"), tasks=True)
    except Exception as error:
        error.others = [error, error.__cause__]
        error.__cause__.others = error.others
gc.collect()
ptx_module.emit_ptx = lowered
print("entry" in ptx_of(text % 1, ("f4*", "f4*"), tasks=True).text)
"""


def test_exceptions_in_cycles_do_not_free_llvm_objects_late():
    env = {**os.environ, "ACCNP_CACHE_DIR": "", "PYTHONPATH": HERE}
    done = subprocess.run(
        [sys.executable, "-c", CYCLES], capture_output=True, text=True, env=env, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
