"""Execution of two dependent maps in bands of rows.

The second map reads the output of the first at nearby rows, for example in a stencil of a stencil,
or in a blur along one axis and then along the other. The kernel computes a band of rows of the
first map and then the corresponding band of the second, while the rows are in the second-level
cache. The intermediate value is never stored as a whole array. If an index space is cut into cells,
each part of its rows has its own kernels, which are called for the rows of a band that they cover.

Input: the descriptions of both maps by parts of rows. Output: a `GeneratedKernel`, or None if bands
do not pay.

    for t in lo..hi {
      b = t * task, end = fmin(b + task, rows)    # the rows of a task
      run kA(b + low .., (b + low + again) .., x, room)     # rows that the next band also needs
      for b in b..end step band {
        e = fmin(b + band, end)
        run kA((b + low + again) .., (e + low + again) .., x, room)
        run kB(b .., e .., result, room)
        move(room, room after the rows of this band, again)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from math import prod
from typing import TYPE_CHECKING

from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import Address, Const, Do, Expr, Var
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.calls import CallerBuilder, Memory
from accnp.compiler.specs.launches import build_generated
from accnp.ir.generated import GeneratedKernel, ScratchBuffer
from accnp.ir.kernel import Access, KernelSpec

if TYPE_CHECKING:
    from accnp.compiler.fusion.program import Value

__all__ = ["fuse_chain"]

BAND = 1 << 17  # bytes of a band: a part of the second-level cache
MAX_BAND = 4 * BAND  # the maximum bytes of a band, for long rows
TASKS = 16  # the number of tasks; each recomputes the rows before its first one
# The minimum ratio of all rows to repeated rows. A roll repeats many, because its last row needs
# the first.
MIN_ROWS_RATIO = 4
# The minimum ratio of the rows of a task to the rows that it recomputes, and of the rows of a band
# to those that it moves.
OVERLAP_RATIO = 8


# The descriptions of the kernels for a range of rows of an index space, one for each cell: the
# first row, the number of rows, the descriptions.
Part = tuple[int, int, Sequence[KernelSpec]]


class _Maps:
    """The kernels of a part, which can run for the rows of any band."""

    def __init__(self, part: Part, every: int) -> None:
        self.first, self.rows, self.specs = part
        self.whole = self.rows == every
        self.texts = [build_generated(spec, nontemporal_argument=True) for spec in self.specs]

    def steps(self) -> list[int] | None:
        """Return the number of steps per row for each kernel; None if the steps are not in the
        order of rows."""
        row_steps: list[int] = []
        for spec, text in zip(self.specs, self.texts):
            extent = prod(spec.outer) if spec.outer else prod(spec.inner)
            if spec.form != "map" or text.tiles or text.extent != extent or extent % self.rows:
                return None
            row_steps.append(extent // self.rows)
        return row_steps

    def places(self, value: Value, width: int) -> list[int] | None:
        """Return for each load of a value the offset in rows from the current row.

        The rows of the value have `width` elements. Returns None if a load is not within one row.
        """
        rows: list[int] = []
        for spec in self.specs:
            for a in spec.accesses:
                if a.value is not value:
                    continue
                way = self.row(spec, a)
                start = a.offset % width
                if a.store or way is None or (self.rows > 1 and way[0] != width):
                    return None
                if start + way[1] < 0 or start + way[2] >= width:
                    return None
                rows.append(a.offset // width - self.first)
        return rows

    def row(self, spec: KernelSpec, a: Access) -> tuple[int, int, int] | None:
        """Return the distance between rows for an access, and its smallest and largest offset
        within a row; None if a row is not a part of the first loop."""
        sizes = (*spec.outer, *spec.inner)
        if a.terms:
            return None
        if not sizes:  # one element
            return (0, 0, 0) if not self.whole else None
        if sizes[0] % self.rows:
            return None
        inside = (sizes[0] // self.rows, *sizes[1:])
        reach = [(n - 1) * s for n, s in zip(inside, a.strides, strict=True)]
        return (
            inside[0] * a.strides[0],
            sum([min(0, r) for r in reach]),
            sum([max(0, r) for r in reach]),
        )


def fuse_chain(
    producer: Sequence[Part], reader: Sequence[Part], between: Value, rows: int
) -> GeneratedKernel | None:
    """Return a kernel that computes the value `between` in bands and reads it.

    `rows` is the number of rows of the reader. Returns None if this is not possible, or if too many
    rows would be recomputed.
    """
    shape, size = between.aval.shape, between.aval.dtype.itemsize
    width = prod(shape[1:])
    producers = [_Maps(part, shape[0]) for part in producer]
    readers = [_Maps(part, rows) for part in reader]
    seen = [maps.places(between, width) for maps in readers]
    if None in seen or any(maps.steps() is None for maps in (*producers, *readers)):
        return None
    starts = [place for places in seen for place in places or ()]
    if not starts:
        return None
    low, again = min(starts), max(starts) - min(starts)
    most = MAX_BAND // (width * size) - again
    band = max(BAND // (width * size) - again, min(OVERLAP_RATIO * again, most), again, 1)
    far = not all([maps.whole for maps in readers]) and MIN_ROWS_RATIO * again > rows
    if far or band > most:
        return None
    task = min(rows, max(-(-rows // TASKS), OVERLAP_RATIO * again, band))
    return _build(producers, readers, between, rows, (low, again, band, task))


def _build(
    producers: Sequence[_Maps], readers: Sequence[_Maps], between: Value, rows: int,
    plan: tuple[int, int, int, int],
) -> GeneratedKernel:  # fmt: skip
    low, again, band, task = plan
    builder = CallerBuilder()
    loop_ir, integer = builder.loop_ir, builder.integer
    width = prod(between.aval.shape[1:])
    tasks = -(-rows // task)
    room = ScratchBuffer("room", between.aval.dtype, tasks * (band + again) * width)
    buffer, row, share = builder.room(room), integer(width), integer((band + again) * width)
    begin, more = integer(low), integer(again)
    # Cells at an edge of the reader read fewer rows than others. Rows that do not exist are not
    # computed.
    cut = not all([part.whole for part in readers])

    def do(parts: Sequence[_Maps], start: Expr, stop: Expr, memory: Memory) -> None:
        """Run the kernels for the rows start..stop that exist."""
        memories = {id(between): memory}
        for part in parts:
            first, last, test = start, stop, nullcontext()
            if not part.whole or cut:
                one, beyond = integer(part.first), integer(part.first + part.rows)
                first = loop_ir.let("s", call("sub", call("fmax", start, one), one))
                last = loop_ir.let("f", call("sub", call("fmin", stop, beyond), one))
                test = loop_ir.when(call("lt", first, last))
            with test:
                for text, n in zip(part.texts, part.steps() or ()):
                    ends = [x if n == 1 else call("mul", x, integer(n)) for x in (first, last)]
                    builder.call(text, (ends[0], ends[1]), memories, parts is readers)

    def memory_from(first: Var) -> Memory:
        """Return the memory of a task, which begins with this row of the intermediate value."""
        start = call("sub", call("mul", t, share), call("mul", first, row))
        return Memory(buffer, loop_ir.let("start", start))

    with loop_ir.loop("t", loop_ir.first, loop_ir.last) as loop:
        t = loop.index
        size, every, length = integer(task), integer(rows), integer(band)
        start = loop_ir.let("b", call("mul", t, size))
        end = loop_ir.let("end", call("fmin", call("add", start, size), every))
        if again:
            first = loop_ir.let("first", affine((start, 1), (begin, 1)))
            do(producers, first, affine((first, 1), (more, 1)), memory_from(first))
        whole = affine((end, 1), (start, -1), (length, 1), constant=-1)
        with loop_ir.loop(
            "k", Const(0, I8), call("floordiv", loop_ir.let("n", whole), length)
        ) as bands:
            here = loop_ir.let("b", call("add", start, call("mul", bands.index, length)))
            stop = loop_ir.let("e", call("fmin", call("add", here, length), end))
            first = loop_ir.let("first", affine((here, 1), (begin, 1)))
            memory = memory_from(first)
            last = affine((stop, 1), (begin, 1), (more, 1))
            do(producers, affine((first, 1), (more, 1)), last, memory)
            do(readers, here, stop, memory)
            if again:
                to = loop_ir.let("to", call("mul", t, share))
                rest = call("mul", call("sub", stop, here), row)
                behind = loop_ir.let("behind", call("add", to, rest))
                moved = call("mul", more, row)
                loop_ir.add(Do("move", (Address(buffer, to), Address(buffer, behind), moved)))
    work = sum([x.extent * x.weight for part in (*producers, *readers) for x in part.texts])
    return builder.finish(tasks, work)
