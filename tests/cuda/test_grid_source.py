"""GPU kernels written in restricted Python: parsing to loop IR, and results of their PTX."""

import numpy as np
import pytest
from cuda.support import interpret

from accnp.compiler.frontend.program import read_source
from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.kernel_cache import CompileError, get_kernel
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.ptx import ptx_of

PAIRS = """
def kernel(x, y, n):
    if thread() == 0:
        v = load2(x, 0)
        for i in range(1, n):
            w = load2(x, 2 * i)
            y[i - 1] = part(v, 1) - part(w, 0)
            v = load2(x, 2 * i)
        y[n - 1] = part(v, 1)
"""
BOOLS = """
def kernel(x, y, z, n):
    for u in range(thread(), n, threads()):
        v = load4(x, u * 4)
        total = part(v, 0) + part(v, 1) + part(v, 2) + part(v, 3)
        store2(z, u * 2, b1(part(v, 0)), total > 2)
        y[u] = i4(total)
"""
WITH_CALLEE = """
def total(lo, hi, x, y):
    room = shared_f4(2)
    v = f4(0)
    for i in range(lo + thread_of_block(), hi, threads_of_block()):
        v = v + x[i]
    step = 16
    while step > 0:
        v = v + shuffle_xor(v, step)
        step = step >> 1
    if lane() == 0:
        room[warp()] = v
    barrier()
    y[0] = room[0] + room[1]
    barrier()

def kernel(x, y, n):
    for row in range(block_of_grid(), n, blocks()):
        total(row * 100, row * 100 + 100, x, at(y, row))
"""


def read(text, *signature, **options):
    """Parse a kernel and its callees; check that they are valid and survive printing."""
    kernel, callees = read_source(text, "kernel", signature, **{"threads": 64} | options)
    for k in (kernel, *callees):
        verify(k)
        assert parse_kernel(print_kernel(k)) == k
    return kernel, callees


def test_loops_carry_vectors():
    x = np.arange(12, dtype=np.float32) ** 2
    read(PAIRS, "f4*", "f4*", "i8")
    (_, y), _ = interpret(ptx_of(PAIRS, ("f4*", "f4*", "i8")), [x, np.zeros(6, np.float32)], [6])
    np.testing.assert_array_equal(y, [*(x[1:-1:2] - x[2::2]), x[-1]])


def test_bools_are_loaded_as_bytes():
    x = np.random.default_rng(0).random(80) < 0.5
    arrays = [x, np.zeros(20, np.int32), np.zeros(40, bool)]
    kernel = ptx_of(BOOLS, ("b1*", "i4*", "b1*", "i8"))
    for blocks, threads in ((1, 8), (2, 32)):
        (_, y, z), _ = interpret(kernel, arrays, [20], blocks, threads)
        total = x.reshape(20, 4).sum(1)
        np.testing.assert_array_equal(y, total)
        np.testing.assert_array_equal(z, np.stack([x[::4], total > 2], 1).ravel())


def test_called_kernels_may_use_shared_memory():
    x = np.arange(300, dtype=np.float32)
    callees = (("total", ("f4*", "f4*")),)
    _, (total,) = read(WITH_CALLEE, "f4*", "f4*", "i8", callees=callees)
    assert [b.length for b in total.shared] == [2]
    kernel = ptx_of(WITH_CALLEE, ("f4*", "f4*", "i8"), callees=callees, threads=64)
    (_, y), _ = interpret(kernel, [x, np.zeros(3, np.float32)], [3], 2, 64)
    np.testing.assert_array_equal(y, x.reshape(3, 100).sum(1))


def test_steps_are_distributed_to_threads():
    text = "def kernel(lo, hi, x, n):\n    for i in range(lo, hi):\n        x[i] = x[i] + n\n"
    kernel, _ = read(text, "i8*", "i8", distribute=True)
    (loop,) = kernel.body
    assert loop.spread == "grid"
    assert kernel.parameters == (*kernel.buffers, kernel.last, *kernel.integers)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("v = x[load2(x, 0)]", "name 'load2' is not defined"),
        ("v = load2(x, 0) + 1", "name 'load2' is not defined"),
        ("v = load2(x, 0); x[0] = v", "the vector v as a number"),
        ("v = load2(x, 0); x[0] = part(v, 2)", "a part of something else than a vector"),
        ("x[0] = part(x, 0)", "name 'part' is not defined"),
        ("v = shared_f4(n)", "shared memory whose length is not known"),
        ("v = nowhere(n)", "name 'nowhere' is not defined"),
        ("x[0] = shuffle_xor(x, 1)", "no function shuffle_xor"),
    ],
)
def test_unsupported_syntax_is_an_error(line, message):
    with pytest.raises(CompileError, match=message):
        ptx_of(f"def kernel(x, n):\n    {line}\n", ("f4*", "i8"))


@pytest.mark.parametrize("line", ["x[0] = thread()", "barrier()", "x[0] = shared_f4(2)[0]"])
def test_thread_indices_are_refused_on_cpus(line):
    with pytest.raises(CompileError, match=r"is not defined"):
        get_kernel(f"def kernel(lo, hi, x):\n    {line}\n", "kernel", ("f4*",))
