"""Pass that distributes reductions of columns over the threads of a GPU.

A lane has a column, and a warp has some of its rows. The rows of a column are reduced in parts:
first the rows of each part in order, and then the results of the parts in order. The warps of a
block compute parts concurrently and write their results to shared memory, from which they combine
them in order. If there are too few columns to fill the device, the results of all parts are written
to global memory, and a second kernel combines them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from accnp.compiler.loops.builder import affine, call, plus
from accnp.compiler.loops.ir import (
    Buffer,
    Carried,
    Const,
    Do,
    Expr,
    For,
    If,
    Index,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    number_type,
)
from accnp.compiler.loops.types import B1, I8
from accnp.compiler.passes.copies import Body, Copies, interleave_copies
from accnp.compiler.passes.replace_variables import replaced
from accnp.compiler.passes.spread import collapse, nest_of
from accnp.compiler.unsupported import Unsupported

__all__ = ["TwoKernels", "reduce_columns", "reduce_columns_in_two_kernels"]

LANES = 32
# The number of parts of a column that the second kernel loads together, before it uses the first.
PARTS = (32, 8, 1)
_ZERO = Const(0, I8)


class TwoKernels(NamedTuple):
    """Two kernels that run one after the other, with their additional arguments.

    The range of the first kernel is all parts of all tiles of 32 columns, and that of the second is
    the columns. `columns` and `tiles` are arguments of the first kernel, and `parts` is one of the
    second. `partials` are buffers of both with an element for each part and column.
    """

    first: Kernel
    second: Kernel
    columns: Var
    tiles: Var
    parts: Var
    partials: tuple[Buffer, ...]


class _Columns:
    """The components of a kernel: the loops over columns, over the parts of a column, and over the
    rows of a part, and the statements for the results."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.before, self.nest = nest_of(kernel)
        parts, *after = self.nest[-1].body
        if not isinstance(parts, For) or not parts.body or not isinstance(parts.body[-1], For):
            raise Unsupported("a kernel that does not reduce columns by parts")
        self.parts, self.rows = parts, parts.body[-1]
        self.limits = [s for s in parts.body[:-1] if isinstance(s, Let)]
        self.after = [s for s in after if isinstance(s, Let | Store)]
        self.steps = [s for s in self.rows.body if isinstance(s, Let | Store)]
        whole = len(self.limits) + 1 == len(parts.body) and len(self.after) == len(after)
        if not whole or len(self.steps) < len(self.rows.body):
            raise Unsupported("reductions of columns with other statements")
        self.names = Copies(kernel)
        self.new = self.names.new

    def column(self, i: Var) -> tuple[list[Let], dict[Var, Expr]]:
        return collapse(self.kernel, self.names, self.nest, i)

    def down(self, known: dict[Var, Expr], start: Expr, side: int) -> tuple[list[Stmt], list[Var]]:
        """Reduce the rows of the part that begins at a row, `side` rows at a time and the rest in
        smaller groups; return the results."""
        here = {**known, self.parts.index: start}
        body: list[Stmt] = [*self.names.copy(self.limits, here)]
        end = replaced(self.rows.stop, here)
        results: list[Expr] = [replaced(c.start, here) for c in self.rows.carried]
        for step in dict.fromkeys((side, max(1, side // 4), 1)):
            stop = end
            if step > 1:
                stop = self.new("whole")
                count = call("and", call("sub", end, start), Const(-step, I8))
                body.append(Let(stop, call("add", start, count)))
            loop = self.reduce_part(here, start, stop, step, results)
            body.append(loop)
            results = [c.result for c in loop.carried]
            start = stop
        return body, [x for x in results if isinstance(x, Var)]

    def reduce_part(
        self, known: dict[Var, Expr], start: Expr, stop: Expr, side: int, values: Sequence[Expr]
    ) -> For:
        r = self.new("r")
        starts = [self.names.fresh(c.var) for c in self.rows.carried]
        now: list[Expr] = list(starts)
        copies: list[Body] = []
        joins: list[Let] = []
        for k in range(side):
            here = {**known, self.rows.index: plus(r, Const(k, I8))}
            copies.append(self.names.copy(self.steps, here))
            here |= {c.var: x for c, x in zip(self.rows.carried, now, strict=True)}
            for j, c in enumerate(self.rows.carried):
                joined = self.names.fresh(c.var)
                joins.append(Let(joined, replaced(c.following, here)))
                now[j] = joined
        carried = [
            Carried(v, value, x, self.names.fresh(v))
            for v, value, x in zip(starts, values, now, strict=True)
        ]
        body = (*interleave_copies(copies), *joins)
        return For(r, start, stop, side, body, carried=tuple(carried))

    def joined(
        self, known: dict[Var, Expr], accs: Sequence[Expr], parts: Sequence[Expr]
    ) -> list[Let]:
        """Combine the results of a part with those of the parts before."""
        here = dict(known)
        for c, r, acc, part in zip(self.parts.carried, self.rows.carried, accs, parts, strict=True):
            here |= {c.var: acc, r.result: part}
        return [
            Let(self.names.fresh(c.var), replaced(c.following, here)) for c in self.parts.carried
        ]

    def results(self, known: dict[Var, Expr], accs: Sequence[Expr]) -> Body:
        """Return the statements that follow when a column has been reduced."""
        here = {**known, **{c.result: x for c, x in zip(self.parts.carried, accs, strict=True)}}
        return self.names.copy(self.after, here)


def reduce_columns(kernel: Kernel, threads: int, side: int) -> Kernel:
    """Return the kernel for a GPU, whose range is the columns.

    Parameters
    ----------
    kernel : Kernel
        Assignments, and a nest of loops over the columns, whose sizes are arguments. It contains a
        loop over the parts of a column, which ends with the loop over the rows of a part, and then
        assignments and stores of the results.
    threads : int
        Number of threads of a block.
    side : int
        Number of rows that a thread loads before it uses the first, a power of two.

    Raises
    ------
    Unsupported
        If the kernel has other statements.
    """
    loops = _Columns(kernel)
    new, step = loops.new, loops.parts.step
    warps = threads // LANES
    shared = [Buffer(new("parts").name, number_type(c.var), threads) for c in loops.rows.carried]
    b, t, lane, warp, i, column = (new(n) for n in ("b", "t", "x", "y", "i", "i"))
    live = new("live", B1)
    last = affine((kernel.last, 1), constant=-1)
    lets = [
        Let(lane, call("and", t, Const(LANES - 1, I8))),
        Let(warp, call("shr", t, Const(5, I8))),
        Let(i, affine((b, 1), (lane, 1))),
        Let(live, call("lt", i, kernel.last)),
        Let(column, call("select", live, i, last)),
    ]
    indices, known = loops.column(column)
    c, begin = new("c"), new("begin")
    accs = [loops.names.fresh(x.var) for x in loops.parts.carried]
    down, results = loops.down(known, begin, side)
    leave = [Store(s, t, x) for s, x in zip(shared, results, strict=True)]
    mine = call("and", live, call("lt", begin, loops.parts.stop))
    k = new("k")
    rest = call("add", call("sub", loops.parts.stop, c), Const(step - 1, I8))
    left = call("shr", rest, _shift(step))
    inner = [loops.names.fresh(x.var) for x in loops.parts.carried]
    elements = [Load(s, Index(((k, LANES), (lane, 1)))) for s in shared]
    joins = loops.joined(known, inner, elements)
    join = For(
        k, _ZERO, call("fmin", left, Const(warps, I8)), 1, tuple(joins),
        carried=tuple([
            Carried(v, acc, s.var, loops.names.fresh(v))
            for v, acc, s in zip(inner, accs, joins, strict=True)
        ]),
    )  # fmt: skip
    wait = Do("barrier", ())
    rounds = For(
        c, loops.parts.start, loops.parts.stop, warps * step,
        (
            Let(begin, affine((c, 1), (warp, step))),
            If(mine, (*down, *leave)), wait, join, wait,
        ),
        carried=tuple([
            Carried(v, x.start, y.result, loops.names.fresh(v))
            for v, x, y in zip(accs, loops.parts.carried, join.carried, strict=True)
        ]),
    )  # fmt: skip
    first = call("and", live, call("lt", t, Const(LANES, I8)))
    end = If(first, tuple(loops.results(known, [x.result for x in rounds.carried])))
    each = For(
        t, _ZERO, Const(threads, I8), 1, (*lets, *indices, rounds, end),
        independent=True, spread="threads",
    )  # fmt: skip
    whole = For(b, _ZERO, kernel.last, LANES, (each,), independent=True, spread="blocks")
    return kernel._replace(
        body=(*loops.before, whole), threads=threads, shared=(*kernel.shared, *shared)
    )


def _shift(step: int) -> Const:
    """Return the shift that divides by the number of rows of a part."""
    if step & (step - 1):
        raise Unsupported("parts whose number of rows is not a power of two")
    return Const(step.bit_length() - 1, I8)


def reduce_columns_in_two_kernels(kernel: Kernel, threads: int, side: int) -> TwoKernels:
    """Return two kernels: one writes the results of all parts to memory, the other combines them.

    Parameters
    ----------
    kernel, threads, side
        As for `reduce_columns`.

    Raises
    ------
    Unsupported
        If the kernel has other statements.
    """
    loops = _Columns(kernel)
    new = loops.new
    columns, tiles = new("count"), new("tiles")
    partials = [Buffer(new("room").name, number_type(c.var)) for c in loops.rows.carried]
    warps = threads // LANES
    b, t, u, part, i, begin = (new(n) for n in ("b", "t", "u", "piece", "i", "begin"))
    indices, known = loops.column(i)
    down, results = loops.down(known, begin, side)
    place = call("add", call("mul", part, columns), i)
    body: list[Stmt] = [
        Let(u, call("add", b, call("shr", t, Const(5, I8)))),
        Let(part, call("floordiv", u, tiles)),
    ]
    tile = call("mul", call("sub", u, call("mul", part, tiles)), Const(LANES, I8))
    lane = call("and", t, Const(LANES - 1, I8))
    body.append(Let(i, call("add", tile, lane)))
    first = Let(begin, affine((part, loops.parts.step)))
    leave = [Store(room, place, x) for room, x in zip(partials, results, strict=True)]
    inside = call("and", call("lt", u, kernel.last), call("lt", i, columns))
    body.append(If(inside, (*indices, first, *down, *leave)))
    each = For(t, _ZERO, Const(threads, I8), 1, tuple(body), independent=True, spread="threads")
    whole = For(b, _ZERO, kernel.last, warps, (each,), independent=True, spread="blocks")
    buffers = (*kernel.buffers, *partials)
    one = kernel._replace(
        body=(*loops.before, whole), buffers=buffers, threads=threads,
        integers=(*kernel.integers, columns, tiles),
    )  # fmt: skip
    parts, two = _make_second_kernel(_Columns(kernel), partials)
    return TwoKernels(one, two, columns, tiles, parts, tuple(partials))


def _make_second_kernel(loops: _Columns, partials: Sequence[Buffer]) -> tuple[Var, Kernel]:
    """Return the kernel that combines the results of the parts of each column."""
    kernel = loops.kernel._replace(buffers=(*loops.kernel.buffers, *partials))
    loops.names = Copies(kernel)
    loops.new = loops.names.new
    i, parts = loops.new("i"), loops.new("parts")
    indices, known = loops.column(i)
    accs: list[Expr] = [c.start for c in loops.parts.carried]
    body: list[Stmt] = [*indices]
    start: Expr = _ZERO
    for side in PARTS:
        stop = loops.new("whole")
        count = call("and", call("sub", parts, start), Const(-side, I8))
        body.append(Let(stop, call("add", start, count)))
        loop = _combine_parts(loops, (known, i), partials, (start, stop, side), accs)
        body.append(loop)
        accs = [c.result for c in loop.carried]
        start = stop
    body += loops.results(known, accs)
    whole = For(i, _ZERO, kernel.last, 1, tuple(body), independent=True, spread="grid")
    integers = (*kernel.integers, parts)
    return parts, kernel._replace(
        body=(*loops.before, whole), integers=integers, threads=LANES, buffers=kernel.buffers
    )


def _combine_parts(
    loops: _Columns,
    column: tuple[dict[Var, Expr], Var],
    partials: Sequence[Buffer],
    steps: tuple[Expr, Expr, int],
    values: Sequence[Expr],
) -> For:
    """Combine several parts at a time, with their loads first."""
    start, stop, side = steps
    (known, i), columns, k = column, loops.kernel.last, loops.new("k")
    starts = [loops.names.fresh(c.var) for c in loops.parts.carried]
    loads: list[Let] = []
    joins: list[Let] = []
    now: list[Expr] = list(starts)
    for x in range(side):
        here: list[Expr] = []
        for room in partials:
            part = loops.new("piece", room.dtype)
            at = call("add", call("mul", plus(k, Const(x, I8)), columns), i)
            loads.append(Let(part, Load(room, at)))
            here.append(part)
        lets = loops.joined(known, now, here)
        joins += lets
        now = [s.var for s in lets]
    carried = [
        Carried(v, value, x, loops.names.fresh(v))
        for v, value, x in zip(starts, values, now, strict=True)
    ]
    return For(k, start, stop, side, (*loads, *joins), carried=tuple(carried))
