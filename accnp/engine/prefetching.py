"""Prefetching of arrays that a kernel gathers from.

A kernel that reads a million elements at random indices of a 4 MB array waits for memory most of
the time. If all cache lines of the array are first read in memory order, at full bandwidth, the
gather finds them in the cache. Input: the spec of a kernel. Output: the operands for which this
pays, and the text of a kernel that reads one byte of each of their cache lines. The planner
launches that kernel first.
"""

from __future__ import annotations

from math import prod

from accnp.compiler.library.copies import touch_lines
from accnp.ir.generated import GeneratedKernel
from accnp.ir.kernel import Access, KernelSpec, dtype_code

__all__ = ["PREFETCH", "find_prefetched", "make_prefetch"]

PREFETCH = "prefetches an operand into the cache, before a kernel gathers elements of it"

LINE = 64  # bytes of a cache line
# Bytes of an operand: more than a second-level cache holds, but less than the last level does.
LEAST, MOST = 1 << 21, 1 << 24
OFTEN = (
    4  # the minimum of gathered elements per cache line: so that few prefetched lines are unused
)
# Bytes of a row. Elements within rows of at most this length are read nearly in memory order, row
# after row, so that prefetching gains nothing.
ROW = 256


def find_prefetched(spec: KernelSpec) -> list[Access]:
    """Return the leaves of which a kernel reads most cache lines, at indices that vary in the
    innermost loop. Outputs of other kernels are omitted: they are in the cache already."""
    sizes = (*spec.outer, *spec.reduced, *spec.inner)
    accesses: dict[int, Access] = {}
    for a in spec.accesses:
        nbytes = a.value.aval.nbytes if a.terms and a.value.is_leaf else 0
        many = prod(sizes) * LINE >= OFTEN * nbytes
        rows = [abs(s) * a.dtype.itemsize for s, n in zip(a.strides, sizes, strict=True) if n > 1]
        often = many and not (a.strides and a.strides[-1])
        often = often and not any(0 < row <= ROW for row in rows)
        if often and LEAST <= nbytes <= MOST:
            accesses[id(a.value)] = a
    return list(accesses.values())


def make_prefetch(a: Access) -> GeneratedKernel:
    """Return the text of a kernel that reads one byte of each cache line of an array."""
    code, lines = dtype_code(a.dtype), a.value.aval.nbytes // LINE
    return GeneratedKernel.of(touch_lines(lines, LINE // a.dtype.itemsize), [code])
