"""Folds down columns on GPUs: a lane has a column, a warp 512 rows of 32 columns at a time.

In: the emitter of a kernel of the form column. Out: lines in its writer.

Rows are joined in the processor's order: 512 one after the other, then the results of these one
after the other. The warps of a block of threads take such parts of the rows side by side. Where
columns are too few to fill a device, the results of all parts go to memory (`Room`), and a second
kernel joins them.
"""

from __future__ import annotations

from math import prod
from typing import Any

from accnp.compiler.specs.accumulators import accumulator
from accnp.compiler.specs.grid import THREADS, beside
from accnp.compiler.text.folds import combined, guard, identity
from accnp.compiler.text.grid_writer import Copy, Grid
from accnp.ir.generated import Room
from accnp.ir.kernel import ROWS, dtype_code

__all__ = ["grid_column"]

WARPS = THREADS // 32  # of a block
FEW = 31 / 128  # of a wave of blocks; below, the parts of the rows have blocks of their own
PARTS = (32, 8, 1)  # of a column that the second kernel reads at a time


def grid_column(e: Any) -> None:
    """A block of threads for 32 columns, or for one part of their rows."""
    spec, w = e.spec, e.w
    rows, columns = prod(spec.reduced), prod(spec.outer) * spec.inner[0]
    parts, tiles = -(-rows // ROWS), -(-columns // 32)
    apart = parts > WARPS and tiles < FEW * e.wave
    phase = spec.phases[0]
    e.prologue()
    e.done = set()
    count = e.integer("columns", "columns", columns)
    e.out.extent, e.out.weight = columns, spec.cost * rows
    e.out.threads = 32 * min(WARPS, parts)
    e.out.blocks = tiles if not apart else -(-tiles * parts // WARPS)
    stop = e.total()
    if apart:
        rooms = _rooms(e, columns * parts)
        across, many = e.integer("tiles", "tiles", tiles), e.integer("parts", "parts", parts)
        w.add("u = thread() >> 5")
        with w.block(f"while u < {across} * {many}:"):
            w.add(f"part = u // {across}", f"i = (u - part * {across}) * 32 + lane()")
            with w.block(f"if i < {count}:"):
                base = _column(e)
                w.add(f"rb = part * {ROWS}")
                _down(e, base, stop)
                for f, room in zip(phase.folds, rooms, strict=True):
                    w.add(f"{room.name}[part * {count} + i] = {f.name}_p")
            w.add("u = u + (threads() >> 5)")
        e.out.then = (_Second(e, rooms, columns, parts).run(),)
        return
    for f in phase.folds:
        w.add(f"{f.name}_parts = shared_{dtype_code(f.dtype)}({32 * WARPS})")
    w.add("u = block_of_grid()")
    with w.block(f"while u * 32 < {count}:"):
        w.add("i = u * 32 + lane()", f"live = i < {count}", f"i = i if live else {count} - 1")
        base = _column(e)
        for f in phase.folds:
            acc = accumulator(f.dtype, f.combine)
            w.add(f"{f.name}_acc = {dtype_code(acc)}({identity(acc, f.combine)})")
        w.add("c = 0", "step = (threads_of_block() >> 5)")
        with w.block(f"while c < {stop}:"):
            w.add(f"rb = c + warp() * {ROWS}")
            with w.block(f"if live & (rb < {stop}):"):
                _down(e, base, stop)
                for f in phase.folds:
                    w.add(f"{f.name}_parts[thread_of_block()] = {f.name}_p")
            w.add("barrier()", "k = 0")
            with w.block(f"while (k < step) & (c + k * {ROWS} < {stop}):"):
                for f in phase.folds:
                    _gather(e, f, f"{f.name}_parts[k * 32 + lane()]")
                w.add("k = k + 1")
            w.add("barrier()", f"c = c + step * {ROWS}")
        with w.block("if live & (warp() == 0):"):
            _results(e, base)
        w.add("u = u + blocks()")


class _Second(Grid):
    """The kernel that joins the results of the parts of each column."""

    def __init__(self, first: Any, rooms: list[Room], columns: int, parts: int) -> None:
        super().__init__(first.spec, first.name, first.wave)
        self.rooms, self.columns, self.parts = rooms, columns, parts

    def form(self) -> None:
        w, phase = self.w, self.spec.phases[0]
        self.prologue()
        count = self.integer("columns", "columns", self.columns)
        many = self.integer("parts", "parts", self.parts)
        self.out.pointers += self.rooms
        self.arguments += [r.name for r in self.rooms]
        self.out.threads = 32  # the results of few columns: each has a multiprocessor
        self.out.blocks = -(-self.columns // self.out.threads)
        self.out.extent, self.out.weight = self.columns, self.parts
        w.add("i = thread()")
        with w.block(f"while i < {count}:"):
            base = _column(self)
            for f in phase.folds:
                acc = accumulator(f.dtype, f.combine)
                w.add(f"{f.name}_acc = {dtype_code(acc)}({identity(acc, f.combine)})")
            w.add("k = 0")
            for side in PARTS:
                with w.block(f"while k + {side - 1} < {many}:"):
                    self._parts(count, side)
                    w.add(f"k = k + {side}")
            _results(self, base)
            w.add("i = i + threads()")

    def _parts(self, count: str, side: int) -> None:
        """Join some parts from k on; their loads come first."""
        folds = list(zip(self.spec.phases[0].folds, self.rooms, strict=True))
        for k in range(side):
            self.w.add(*[f"{f.name}_{k} = {r.name}[(k + {k}) * {count} + i]" for f, r in folds])
        for k in range(side):
            for f, _ in folds:
                _gather(self, f, f"{f.name}_{k}")


def _rooms(e: Any, size: int) -> list[Room]:
    rooms = [Room(f"room{k}", f.dtype, size) for k, f in enumerate(e.spec.phases[0].folds)]
    e.out.pointers += rooms
    e.arguments += [r.name for r in rooms]
    return rooms


def _column(e: Any) -> dict[int, str]:
    """Where the operands of the column of number i begin."""
    dims = [*e.of_outer, *e.of_inner]
    index: dict[int, str] = {}
    e.decompose("i", dims, index, "o")
    return e.bases(index, e.all_accesses(), "p")


def _gather(e: Any, f: Any, part: str) -> None:
    acc = accumulator(f.dtype, f.combine)
    wide = f"{dtype_code(acc)}({part})" if acc != f.dtype else part
    e.w.add(f"{f.name}_acc = {combined(f.combine, acc, f'{f.name}_acc', wide)}")


def _results(e: Any, base: dict[int, str]) -> None:
    phase = e.spec.phases[0]
    for s in e.spec.row_head:
        e.statement(s, base, {})
    for f in phase.folds:
        e.w.add(f"{f.name} = {dtype_code(f.dtype)}({f.name}_acc)")
        e.dtypes[f.name] = f.dtype
    e.row_body(phase, base, {})


def _down(e: Any, base: dict[int, str], stop: str) -> None:
    """Fold the rows from rb on, 512 at most."""
    w, phase = e.w, e.spec.phases[0]
    for f in phase.folds:
        w.add(f"{f.name}_p = {dtype_code(f.dtype)}({identity(f.dtype, f.combine)})")
    side = beside("column", e.spec.cost)
    w.add(f"end = rb + {ROWS}", f"end = end if end < {stop} else {stop}", "r = rb")
    if (test := guard(e, phase, base)) is not None:
        w.add(f"end = end if {test} else rb")
    with w.block(f"while r + {side - 1} < end:"):
        _rows(e, base, side)
        w.add(f"r = r + {side}")
    with w.block("while r < end:"):
        _rows(e, base, 1)
        w.add("r = r + 1")


def _rows(e: Any, base: dict[int, str], side: int) -> None:
    """Join some rows from r on; their loads come first."""
    w, phase = e.w, e.spec.phases[0]
    names = {s.name for s in phase.full}
    dims = list(e.of_reduced)
    where: list[dict[int, str]] = []
    for k in range(side):
        index: dict[int, str] = {}
        row = f"(r + {k})" if k else "r"
        if len(dims) == 1:
            index[dims[0]] = row
        else:
            e.decompose(row, dims, index, f"d{k}_")
        where.append(index)
    early = [s for s in phase.full if s.access is not None and not s.args]
    copies = [Copy(e, k, names) for k in range(side)]
    for copy, index in zip(copies, where, strict=True):
        for s in early:
            copy.statement(s, base, index)
    for copy, index in zip(copies, where, strict=True):
        for s in phase.full:
            if s not in early:
                copy.statement(s, base, index)
        for a, name in phase.stores:
            w.add(f"a{a.number}[{e.place(a, base, index)}] = {copy.name(name)}")
        for f in phase.folds:
            x = f"{f.name}_p"
            w.add(f"{x} = {combined(f.combine, f.dtype, x, copy.name(f.source))}")
