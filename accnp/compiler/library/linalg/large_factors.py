"""GPU kernels that prepare operands and postprocess results of cuSOLVER's factorizations.

cuSOLVER needs arrays of matrix addresses, and it returns factors with arbitrary upper triangles and
pivots counted from 1. Each function takes sizes and dtype codes and returns an `OwnKernel`; its
docstring lists the kernel's pointer arguments in order. `engine/device_factors.py` launches them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from accnp.compiler.library.linalg.small_matrices import Batch
from accnp.compiler.library.writing.loop_nests import Text
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    import numpy as np

__all__ = ["addresses", "determinant", "good", "order", "pivots", "triangle"]

THREADS = 256
SHARED = 6000  # numbers of 4 bytes in each of the two arrays in a block's shared memory
PARTS = {"c8": "f4", "c16": "f8"}


@contextmanager
def _matrices(text: Text, count: int) -> Generator[None]:
    """Write the loop of a block over matrices; `me` is the number of the thread in the block."""
    text.add("me = thread_of_block()", "task = block_of_grid()")
    with text.block(f"while task < {text.integer(count)}:"):
        yield
        text.add("task = task + blocks()")


def addresses(count: int, size: int) -> OwnKernel:
    """Kernel that computes addresses of matrices of `size` elements: addresses, first matrix."""
    text = Text(2)
    with text.block("for t in range(lo, hi):"):
        text.add(f"a0[t] = address(at(a1, t * {text.integer(size)}))")
    return text.own(count, count)


def good(code: str, count: int, n: int) -> OwnKernel:
    """Kernel that marks Cholesky factors with a diagonal element that is not positive: factors,
    marks. Each block checks one matrix."""
    text, part = Text(2), PARTS.get(code, code)
    with _matrices(text, count):
        rows = text.integer(n)
        with text.block(f"for i in range(me, {rows}, {THREADS}):"):
            text.add(f"d = a0[(task * {rows} + i) * {rows} + i]" + ".real" * (part != code))
            text.add(f"bad = i4(0) if d > {part}(0) else i4(1)")
            with text.block("if bad != 0:"):
                text.add("a1[task] = bad")
    return text.own(count, count * n, THREADS)


def triangle(code: str, count: int, n: int) -> OwnKernel:
    """Kernel that zeroes the upper triangles, and sets marked matrices to NaN: matrices, marks."""
    text, part = Text(2), PARTS.get(code, code)
    with text.block("for t in range(lo, hi):"):
        rows = text.integer(n)
        text.add(f"r = t // {rows}", f"j = t - r * {rows}")
        text.add(f"k = r // {rows}", f"i = r - k * {rows}")
        text.add(f"v = a0[t] if a1[k] == 0 else {code}(sqrt({part}(-1)))")
        text.add(f"a0[t] = v if j <= i else {code}(0)")
    return text.own(count * n * n, 2 * count * n * n)


def pivots(count: int) -> OwnKernel:
    """Kernel that converts pivots from counting from 1: pivots from 0, pivots from 1."""
    text = Text(2)
    with text.block("for t in range(lo, hi):"):
        text.add("a0[t] = a1[t] - i4(1)")
    return text.own(count, count)


def order(count: int, rows: int, least: int) -> OwnKernel:
    """Kernel that computes the row order after exchanges: order, exchanges counted from 1. One
    thread applies them in sequence, in shared memory if it is large enough."""
    text = Text(2)
    m, k = text.integer(rows), text.integer(least)
    small = rows <= SHARED
    if small:
        text.add(f"q = shared_i4({SHARED})", f"p = shared_i4({SHARED})")
    with _matrices(text, count):
        text.add(f"y = at(a0, task * {m})", f"x = at(a1, task * {k})")
        text.add(*[] if small else ["q = y", "p = x"])
        if small:
            with text.block(f"for i in range(me, {k}, {THREADS}):"):
                text.add("p[i] = x[i]")
        with text.block(f"for i in range(me, {m}, {THREADS}):"):
            text.add("q[i] = i4(i)")
        text.add("barrier()")
        with text.block("if me == 0:"), text.block(f"for i in range({k}):"):
            text.add("other = i8(p[i]) - 1")
            # If a column contains NaN, libraries find no largest element and return any pivot.
            with text.block(f"if (other >= 0) & (other < {m}):"):
                text.add("row = q[i]", "q[i] = q[other]", "q[other] = row")
        text.add("barrier()")
        if small:
            with text.block(f"for i in range(me, {m}, {THREADS}):"):
                text.add("y[i] = q[i]")
    return text.own(count, count * (rows + least), THREADS)


def determinant(
    shape: Sequence[int], dtype: np.dtype, exchanges: np.dtype, results: Sequence[Aval]
) -> OwnKernel:
    """Kernel of determinants, or of signs and logarithms: factors, exchanges from 1, results."""
    arrays = [(tuple(shape), dtype), ((*shape[:-2], shape[-1]), exchanges)]
    operands = [Operand(s, d, contiguous(s)) for s, d in arrays]
    batch = Batch(operands, results, "21" + "0" * len(results))
    with batch.each("fpyz"[: 2 + len(results)]):
        batch.determinant(batch.text.integer(shape[-1]), len(results) > 1, 1)
    return batch.own(8 * shape[-1])
