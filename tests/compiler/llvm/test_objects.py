"""Generation of object files: the same code from several threads, errors, and no memory leaks."""

import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import accnp.numpy as jnp
from accnp import counters, jit
from accnp.compiler import background_compile, kernel_cache
from accnp.compiler.library import addresses as library
from accnp.compiler.llvm import objects
from accnp.config import cache_dir
from accnp.engine import execute
from tests import memory

BY_LLVM = True

TEXT = """
define double @f{0}(ptr %p, i64 %n) {{
start:
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %loop]
  %s = phi double [0.0, %start], [%sum, %loop]
  %at = getelementptr double, ptr %p, i64 %i
  %x = load double, ptr %at
  %y = fmul double %x, {0}.0
  %sum = fadd double %s, %y
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret double %sum
}}
"""


def test_threads_make_the_same_code():
    texts = [TEXT.format(k) for k in range(2, 6)]
    alone = [objects.build(text, []) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            assert list(pool.map(lambda text: objects.build(text, []), texts)) == alone


def test_llvm_errors_are_reported():
    wrong = "define double @g() { ret float 1.0 }"
    caller = "declare double @g()\ndefine double @f() {\n %x = call double @g()\n ret double %x }"
    for text, linked in ((wrong, []), (caller, [wrong])):
        with pytest.raises(RuntimeError, match="float"):
            objects.build(text, linked)
    assert objects.build(TEXT.format(2), [])  # and the thread goes on


def test_link_errors_are_reported():
    twice = "define double @g() {\n  ret double 1.0 }"
    text = f"{twice}\ndefine double @f() {{\n  %x = call double @g()\n ret double %x }}"
    with pytest.raises(RuntimeError, match="symbol multiply defined"):
        objects.build(text, [twice])


GROWTH = """
import accnp.numpy as jnp
from accnp import counters, jit
from tests.memory import in_use

def compiled(k):
    steps = [jnp.add, jnp.subtract, jnp.multiply]

    def f(x):  # loops that LLVM makes vectors of, another text for each k
        y = x
        for i in range(4):
            y = steps[k // 3**i % 3](y, x)
        return y.T + x

    jit(f)(x).block_until_ready()

x = jnp.ones((20, 20))
for k in range(20):
    compiled(k)
before, kernels = in_use(), counters()["compiles"]
for k in range(20, 50):
    compiled(k)
print(counters()["compiles"] - kernels, in_use() - before)
"""


@memory.needs_glibc
def test_compiled_kernels_retain_little_memory():
    """They left 0.3 MB each: llvmlite gives no pass manager back."""
    done = subprocess.run(
        [sys.executable, "-c", GROWTH],
        env=os.environ | {"ACCNP_CACHE_DIR": "", "PYTHONMALLOC": "malloc"},
        capture_output=True,
        text=True,
        check=True,
    )
    kernels, growth = map(int, done.stdout.split())
    assert kernels == 30
    assert growth < 30 * 100_000


def test_kernels_of_the_library_come_first_and_those_that_wait_for_them_last(monkeypatch):
    seen = []

    def run_in_order(tasks):
        for task in tasks:
            is_library = task.func is kernel_cache.library_kernel
            source = task.args[0] if is_library else task.func.__self__.text.source
            seen.append(
                source if source == "gemm_f4" else sorted(library.find_library_calls(source))
            )
            task()

    monkeypatch.setattr(execute, "in_parallel", run_in_order)
    x = jnp.asarray(np.ones((5, 5), np.float32))
    jit(lambda x: jnp.tanh(x @ x).sum(0, keepdims=True) * jnp.sort(x))(x).block_until_ready()
    assert seen[0] == "gemm_f4"
    assert seen[1:] == [*[[]] * (len(seen) - 2), ["gemm_f4"]]


def test_a_compiled_kernel_leaves_little_for_the_collector():
    """Its module, thousands of objects, was a cycle: every tenth program brought a collection of
    all generations on, 60 ms beside jax."""

    def left(k):
        f = jit(lambda x: jnp.tanh(x * k) @ x + (x - x.sum(0)) * jnp.exp(x) - k)
        gc.collect()
        before = counters()["compiles"]
        f(x).block_until_ready()
        compiles = counters()["compiles"] - before
        return gc.collect() / compiles if compiles else 0

    x = jnp.asarray(np.ones((32, 32), np.float32))
    with cache_dir(""):
        left(1)  # what comes with the first
        background_compile.finish()  # its thread holds kernels
        for key in [key for key in kernel_cache._kernels if key[1] == "kernel"]:
            del kernel_cache._kernels[key]
        gc.disable()
        try:
            garbage = left(2)
        finally:
            gc.enable()
    assert 0 < garbage < 500
