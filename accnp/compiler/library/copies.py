"""Kernels that only move memory: into another layout or dtype, and into the cache.

The engine launches them beside the kernels and library calls of a program: before a call of cuBLAS
that needs another layout, after one that computes in another dtype, and before a kernel that
gathers from a large array.
"""

from __future__ import annotations

from collections.abc import Sequence

from accnp.compiler.library.writing.loop_nests import Axis, Text, merged, place, total
from accnp.ir.kernel import OwnKernel

__all__ = ["copy_in_order", "empty_kernel", "touch_lines"]

LINES = 1 << 10  # cache lines per task


def copy_in_order(
    axes: Sequence[Axis], count: int, to: str = "", conjugate: bool = False
) -> OwnKernel:
    """Return the kernel that copies `count` elements along strided axes to contiguous memory; as
    elements of the dtype `to`, or conjugated."""
    text = Text(2)
    with text.block("for t in range(lo, hi):"):
        (terms,) = place(text, merged(axes), "t", 1)
        value = f"a0[{total(terms)}]"
        if to:
            text.add(f"a1[t] = {to}({value})")
        else:
            text.add(f"v = {value}")
            text.add(f"a1[t] = {'make_complex(v.real, -v.imag)' if conjugate else 'v'}")
    return text.own(count, 2 * count)


def touch_lines(lines: int, step: int) -> OwnKernel:
    """Return the kernel that reads one byte of each cache line of an array; `step` is the number of
    elements of a line."""
    text = Text(1)
    count, width = text.integer(lines), text.integer(step)
    with text.block("for t in range(lo, hi):"):
        text.add(f"stop = fmin((t + 1) * {LINES}, {count})")
        with text.block(f"for i in range(t * {LINES}, stop):"):
            text.add(f"touch(at(a0, i * {width}))")
    return text.own(-(-lines // LINES), 16 * lines)


def empty_kernel() -> OwnKernel:
    """Return a kernel for results without elements."""
    text = Text(0)
    text.add("pass")
    return text.own(0)
