"""Pass that distributes reductions of rows with strided elements over the threads of a GPU.

The memory of operands is contiguous along an axis of the rows, so the threads of a warp process 32
adjacent rows, and the warps of a block share the lanes of a `Reduction`. Every sum has the same
order as in other kernels. `specs/grid.py` applies the pass.
"""

from __future__ import annotations

from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import (
    Buffer,
    Call,
    Carried,
    Const,
    Expr,
    For,
    If,
    Index,
    Kernel,
    Let,
    Load,
    Reduction,
    Stmt,
    Store,
    Var,
    number_type,
)
from accnp.compiler.loops.types import B1, I8
from accnp.compiler.passes.reduce_rows import RowPlan, RowWriter
from accnp.compiler.passes.reduction_lanes import combine_lanes, initial_value
from accnp.compiler.passes.row_passes import BLOCK, Pass, passes_of
from accnp.compiler.passes.spread import collapse, nest_of
from accnp.compiler.unsupported import Unsupported
from accnp.ir.op import COMBINES

__all__ = ["SIDE", "THREADS", "reduce_rows_across"]

SIDE = 32  # rows of a block of threads
WARPS = 8
THREADS = SIDE * WARPS
_ZERO = Const(0, I8)


def reduce_rows_across(kernel: Kernel, axis: int) -> tuple[Kernel, Var]:
    """Return the kernel for a GPU, and its argument for the number of groups of 32 rows along the
    axis. Its range is the groups of all rows.

    Parameters
    ----------
    kernel : Kernel
        As for `reduce_rows`, with one pass, which stores nothing.
    axis : int
        The number of the loop along which the memory of operands is contiguous.

    Raises
    ------
    Unsupported
        If the kernel has other statements.
    """
    before, nest = nest_of(kernel)
    row = passes_of(nest[-1].body)
    numbers = [k for k, s in enumerate(row) if isinstance(s, Pass)]
    if len(numbers) != 1:
        raise Unsupported("rows that lie across, with several passes")
    (number,) = numbers
    p, heads = row[number], [s for s in row[:number] if isinstance(s, Let)]
    assert isinstance(p, Pass)
    after = [s for s in row[number + 1 :] if isinstance(s, Let | Store)]
    down, others = nest[axis], [loop for k, loop in enumerate(nest) if k != axis]
    writer = RowWriter(kernel, RowPlan(THREADS, False), [p])
    count, u, t = writer.new("down"), writer.new("u"), writer.new("t")
    writer.thread = t
    shared = [Buffer(writer.new("lanes").name, number_type(f.value), THREADS) for f in p.reductions]
    body: list[Stmt] = []
    with writer.into(body):
        writer.lane = writer.let("x", call("and", t, Const(SIDE - 1, I8)))
        writer.warp = writer.let("y", call("shr", t, Const(5, I8)))
        o = writer.let("o", call("floordiv", u, count))
        first = writer.let(
            "first", call("mul", call("sub", u, call("mul", o, count)), Const(SIDE, I8))
        )
        if others:
            indices, known = collapse(kernel, writer.names, others, o)
            writer.out += [*indices, *[Let(v, x) for v, x in known.items()]]
        c = writer.let("c", affine((first, 1), (writer.lane, 1)))
        live = writer.let("live", call("lt", c, down.stop))
        last = call("sub", down.stop, Const(1, I8))
        writer.out.append(Let(down.index, call("select", live, c, last)))
        writer.out += heads
        across = _Across(writer, p, shared, (down.index, heads, first, last))
        results = across.blocks()
        writer.out += [Let(x.result, y) for x, y in zip(p.carried, results, strict=True)]
        mine = call("and", live, call("lt", t, Const(SIDE, I8)))
        writer.out.append(If(mine, tuple(after)))
    each = For(t, _ZERO, Const(THREADS, I8), 1, tuple(body), independent=True, spread="threads")
    whole = For(u, _ZERO, kernel.last, 1, (each,), independent=True, spread="blocks")
    result = kernel._replace(
        body=(*before, whole), threads=THREADS, shared=tuple(shared),
        integers=(*kernel.integers, count),
    )  # fmt: skip
    return result, count


class _Across:
    """Writes the pass over 32 rows: each thread has the elements of one row that are 8 apart."""

    def __init__(
        self, writer: RowWriter, p: Pass, shared: list[Buffer],
        row: tuple[Var, list[Let], Var, Expr],
    ) -> None:  # fmt: skip
        self.writer = writer
        self.p = p
        self.shared = shared
        # The index of a row, the statements for it, and the first and the last of these rows.
        self.row = row
        self.many = [COMBINES[f.combine].lanes // WARPS for f in p.reductions]
        self.most = max(self.many) * WARPS

    def blocks(self) -> list[Expr]:
        """Write the loop over blocks of 1024 elements, and return the results."""
        writer, p = self.writer, self.p
        b = writer.new("b")
        accs = [writer.new("acc", c.var.dtype) for c in p.carried]  # type: ignore[arg-type]
        body: list[Stmt] = []
        with writer.into(body):
            end = writer.let("end", call("fmin", affine((b, 1), constant=BLOCK), p.stop))
            lanes = self.elements(b, end)
            values: list[Expr] = []
            for f, many, buffer in zip(p.reductions, self.many, self.shared, strict=True):
                mine, lanes = lanes[:many], lanes[many:]
                writer.out.append(Store(buffer, writer.thread, self.combine_by_halves(f, mine)))
            writer.wait()
            for f, buffer in zip(p.reductions, self.shared, strict=True):
                parts: list[Expr] = [
                    Load(buffer, Index(((writer.lane, 1),), SIDE * k)) for k in range(WARPS)
                ]
                values.append(self.recompute_product(f, self.combine_by_halves(f, parts), b, end))
            now = writer.gathered(p, accs, values)
            writer.wait()
        results = [writer.new("acc", v.dtype) for v in accs]  # type: ignore[arg-type]
        carried = [
            Carried(v, c.start, x, r)
            for v, c, x, r in zip(accs, p.carried, now, results, strict=True)
        ]
        writer.out.append(For(b, p.start, p.stop, BLOCK, tuple(body), carried=tuple(carried)))
        return [*results]

    def elements(self, b: Var, end: Var) -> list[Expr]:
        """Combine the elements of a block with the lanes of this thread."""
        writer, p, most = self.writer, self.p, self.most
        starts: list[Expr] = [
            initial_value(f.combine, number_type(f.value))
            for f, many in zip(p.reductions, self.many, strict=True) for _ in range(many)
        ]  # fmt: skip
        first = writer.let("g", affine((b, 1), (writer.warp, 1)))
        g, following = writer.new("g"), writer.new("g")
        vars_ = [writer.new("u", number_type(x)) for x in starts]
        body: list[Stmt] = []
        with writer.into(body):
            places: dict[int, tuple[Var, Var | None]] = {}
            for k in range(most // WARPS):
                places[k] = writer.let("q", affine((g, 1), constant=WARPS * k)), None
            now = writer.elements(p, places, [*places], [*vars_], WARPS)
        results = [writer.new("u", v.dtype) for v in vars_]  # type: ignore[arg-type]
        carried = [Carried(*x) for x in zip(vars_, starts, now, results, strict=True)]
        at = writer.new("g")
        carried.append(Carried(following, first, affine((g, 1), constant=most), at))
        stop = call("sub", end, Const(most - WARPS, I8))
        writer.out.append(For(g, first, stop, most, tuple(body), carried=tuple(carried)))
        lanes: list[Expr] = [*results]
        for k in range(most // WARPS):
            q = writer.let("q", affine((at, 1), constant=WARPS * k))
            inside: list[Stmt] = []
            with writer.into(inside):
                values = writer.elements(p, {k: (q, None)}, [k], lanes, WARPS)
            lanes = writer.choose(call("lt", q, end), inside, values, [], lanes)
        return lanes

    def combine_by_halves(self, f: Reduction, lanes: list[Expr]) -> Expr:
        """Combine lanes by halves."""
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [
                self.writer.let("u", combine_lanes(f.combine, x, y))
                for x, y in zip(lanes[:half], lanes[half:], strict=True)
            ]
        return lanes[0]

    def recompute_product(self, f: Reduction, x: Expr, b: Var, end: Var) -> Expr:
        """Compute the product of the block of a row again if it is not a normal number. Each thread
        of the first warp has the product of one row."""
        writer, of = self.writer, number_type(x)
        if f.combine != "prod" or of.kind not in ("float", "complex"):
            return x
        index, heads, first, last = self.row
        body: list[Stmt] = []
        with writer.into(body):
            not_normal = writer.let("not_normal", Call("not_normal", (x,), B1))
            some = writer.do("some", B1, "any_lane", not_normal)
            k, now = writer.new("k"), writer.new("u", of)
            steps: list[Stmt] = []
            with writer.into(steps):
                mine = writer.shuffle_lanes("shuffle_at", now, k)
                y = writer.let("y", call("fmin", affine((first, 1), (k, 1)), last))
                writer.others = {index: y}
                writer.out += writer.names.copy(heads, writer.others)
                count = writer.let("m", call("sub", end, b))
                product = writer.recompute_product(self.p, f, mine, (b, count))
                product = writer.shuffle_lanes("shuffle_at", product, _ZERO)
                writer.others = {}
                following = writer.let("u", _select(call("eq", writer.lane, k), product, now))
            result = writer.new("u", of)
            loop = For(
                k, _ZERO, Const(SIDE, I8), 1, tuple(steps),
                carried=(Carried(now, x, following, result),),
            )  # fmt: skip
            (whole,) = writer.choose(some, [loop], [result], [], [x])
        (product,) = writer.choose(call("eq", writer.warp, _ZERO), body, [whole], [], [x])
        return product


def _select(test: Expr, x: Expr, y: Expr) -> Expr:
    return Call("select", (test, x, y), number_type(x))
