"""Arrays brought into the caches in the order of memory, before elements of computed places are
taken from them.

In: the spec of a kernel. Out: the arrays this is for, the text of a kernel that reads a byte of
each of their lines. A million elements at random places of 4 MB wait for memory again and again; in
order lines come as fast as it gives them.
"""

from __future__ import annotations

from math import prod

from accnp.ir.generated import Generated
from accnp.ir.kernel import Access, KernelSpec, dtype_code
from accnp.primitives.nests import Text

__all__ = ["FETCH", "fetch_text", "fetched"]

FETCH = "reads a byte of each line, in order: the caches have them when elements are taken"

LINE = 64  # bytes that come at once
LEAST, MOST = 1 << 21, 1 << 24  # bytes: what second-level caches do not hold, but the last one does
OFTEN = 4  # elements that are taken for each line: few lines are fetched without use
LINES = 1 << 10  # lines of one task
ROW = 256  # bytes: elements taken from within rows of this length come in order, row after row


def fetched(spec: KernelSpec) -> list[Access]:
    """The leaves of which most lines are wanted, at places that differ in the innermost loop. What
    a kernel has just made is in the caches."""
    sizes = (*spec.outer, *spec.reduced, *spec.inner)
    found = {}
    for a in spec.accesses:
        nbytes = a.value.aval.nbytes if a.terms and a.value.is_leaf else 0
        many = prod(sizes) * LINE >= OFTEN * nbytes
        rows = [abs(s) * a.dtype.itemsize for s, n in zip(a.strides, sizes, strict=True) if n > 1]
        often = many and not (a.strides and a.strides[-1])
        often = often and not any(0 < row <= ROW for row in rows)
        if often and LEAST <= nbytes <= MOST:
            found[id(a.value)] = a
    return list(found.values())


def fetch_text(a: Access) -> Generated:
    """The kernel that reads a byte of each line of an array."""
    code, lines = dtype_code(a.dtype), a.value.aval.nbytes // LINE
    text = Text(1)
    count, step = text.integer(lines), text.integer(LINE // a.dtype.itemsize)
    with text.block("for t in range(lo, hi):"):
        text.add(f"stop = fmin((t + 1) * {LINES}, {count})")
        with text.block(f"for i in range(t * {LINES}, stop):"):
            text.add(f"touch(at(a0, i * {step}))")
    tasks = -(-lines // LINES)
    return Generated.of(text.own(tasks, 16 * lines), [code])
