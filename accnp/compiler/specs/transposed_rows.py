"""Reductions of rows with operands that are contiguous along an outer axis.

A step reduces a tile of rows at a time, as if they were columns, but in the order of reductions of
rows. Operands that are reduced unchanged are read from their own memory. Other values are computed
into memory on the stack, which has a row for each lane of the reduction; each computed row is
added to its lane.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from math import prod

from accnp.compiler.formulas import converted
from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import (
    Address,
    Buffer,
    Call,
    Const,
    Expr,
    Index,
    Load,
    Prefetch,
    ReduceColumns,
    Var,
)
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.accumulators import accumulator, is_product
from accnp.compiler.specs.blocked_reductions import combine_partials, initial_value
from accnp.compiler.specs.kernel_builder import KernelBuilder, Place, loop_type
from accnp.compiler.specs.layouts import (
    LINE,
    TILE_DEPTH,
    TILE_WIDTH,
    reduces_operand_directly,
    transposed_rows_shape,
)
from accnp.compiler.specs.loop_nests import loop_over_range
from accnp.ir.kernel import BLOCK, Access, RowReduction
from accnp.ir.op import COMBINES

__all__ = ["add_transposed_rows"]

GROUP = 4  # rows that are combined at a time
PREFETCH_ROWS = 8  # prefetch distance in rows, for short reductions
# The number of rows that are reduced again at a time, and the distance between their elements,
# which avoids cache set conflicts.
REDONE_ROWS, PITCH = 15, 1088

_ZERO = Const(0, I8)


def add_transposed_rows(builder: KernelBuilder, d: int) -> None:
    """Add a loop whose steps reduce a tile of rows that are adjacent in memory along axis d."""
    spec, loop_ir, out = builder.spec, builder.loop_ir, builder.out
    chain, size, width = transposed_rows_shape(spec, d)
    others = [k for k in range(builder.outer) if k not in chain]
    tiles = -(-size // width)
    flat = builder.size(d) if len(chain) == 1 else builder.integer("flat", "flat", size)
    count = builder.integer("tiles", "tiles", tiles)
    broad = builder.integer("width", "width", width)
    out.extent = prod(spec.outer) // size * tiles
    out.weight = spec.cost * prod(spec.reduced) * min(size, width)
    reducer = _TransposedRows(builder, d)
    with loop_ir.loop("u", loop_ir.first, loop_ir.last) as loop:
        o = loop_ir.let("o", call("floordiv", loop.index, count))
        j0 = loop_ir.let("j0", call("mul", call("sub", loop.index, call("mul", o, count)), broad))
        m = loop_ir.let("m", call("fmin", affine((flat, 1), (j0, -1)), broad))
        index: dict[int, Place] = {**builder.indices(o, others, "o")} if others else {}
        for s in spec.row_head:
            builder.statement(s, index)
        reducer.begin_tile(index, j0, m)
        with loop_ir.loop("b", _ZERO, builder.total(), BLOCK) as blocks:
            more = call("fmin", affine((blocks.index, 1), constant=BLOCK), builder.total())
            reducer.add_block(blocks.index, loop_ir.let("stop", more))
        if len(chain) == 1:
            with loop_ir.loop("j", _ZERO, m, independent=reducer.has_adjacent_results()) as steps:
                reducer.store_results(steps.index, {d: Index(((j0, 1), (steps.index, 1)))})
        else:
            end = loop_ir.let("end", affine((j0, 1), (m, 1)))
            with loop_over_range(builder, j0, end, chain[::-1], reducer.has_adjacent_results()) as (
                here,
                at,
            ):
                reducer.store_results(at, here)


class _TransposedRows:
    """The memory and the loops of a kernel that reduces along axis d."""

    def __init__(self, builder: KernelBuilder, d: int) -> None:
        self.builder, self.d = builder, d
        (self.phase,) = builder.spec.phases
        loop_ir, reductions = builder.loop_ir, self.phase.reductions
        self.lane_count = COMBINES[reductions[0].combine].lanes
        self.direct = all(reduces_operand_directly(f, d) for f in reductions)
        accs = [loop_type(accumulator(f.dtype, f.combine)) for f in reductions]
        self.totals = [loop_ir.stack("total", acc, BLOCK) for acc in accs]
        length = BLOCK if self.direct else self.lane_count * TILE_WIDTH
        self.sums = [loop_ir.stack("sums", loop_type(f.dtype), length) for f in reductions]
        self.tables: dict[tuple[int, ...], Buffer] = {}
        self.index: Mapping[int, Place] = {}
        self.j0 = self.m = loop_ir.first

    def begin_tile(self, index: Mapping[int, Place], j0: Var, m: Var) -> None:
        """Start a tile of m rows from j0 on."""
        self.index, self.j0, self.m = index, j0, m
        self.fill(self.totals, _ZERO)

    def fill(self, buffers: list[Buffer], at: Const | Var) -> None:
        """Assign the initial values of the reductions."""
        loop_ir = self.builder.loop_ir
        with loop_ir.loop("j", _ZERO, self.m, independent=True) as steps:
            for buffer, f in zip(buffers, self.phase.reductions, strict=True):
                value = initial_value(f.combine, buffer.dtype)
                loop_ir.store(buffer, _add_index(at, steps.index), value)

    def add_block(self, begin: Var, stop: Var) -> None:
        """Add begin..stop of the reduced indices to the totals."""
        loop_ir = self.builder.loop_ir
        if len(self.builder.spec.reduced) > 1:
            self.prefetch_block(begin, stop)
        if self.direct:
            self.reduce_stored_rows(begin, stop)
        else:
            self.reduce_computed_rows(begin, stop)
        for part, f in zip(self.sums, self.phase.reductions, strict=True):
            if is_product(f):
                self.redo_products(part, f, begin, stop)
        with loop_ir.loop("j", _ZERO, self.m, independent=True) as steps:
            j = steps.index
            for total, part, f in zip(self.totals, self.sums, self.phase.reductions, strict=True):
                more = converted(Load(part, j), total.dtype)
                loop_ir.store(total, j, combine_partials(f.combine, Load(total, j), more))

    def redo_products(self, part: Buffer, f: RowReduction, begin: Var, stop: Var) -> None:
        """Reduce again the rows whose product is not a normal number, unless it is 0 because an
        element is: groups of them are copied along memory and reduced as contiguous rows."""
        loop_ir, m = self.builder.loop_ir, self.m
        left = loop_ir.stack("left", part.dtype, BLOCK)
        slab = loop_ir.stack("slab", part.dtype, TILE_DEPTH * BLOCK)
        zero, one = Const(0.0, part.dtype), Const(1.0, part.dtype)
        with loop_ir.when(_has_not_normal(part, _ZERO, m)):
            with loop_ir.loop("j", _ZERO, m, independent=True) as steps:
                loop_ir.store(left, steps.index, one)
            with self.elements(begin, stop, (_ZERO, m)) as (_, j):
                is_zero = call("eq", self.builder.values[f.source], zero)
                loop_ir.store(left, j, call("select", is_zero, zero, Load(left, j)))
            with loop_ir.loop("j", _ZERO, m, independent=True) as steps:
                j = steps.index
                zeros = [call("eq", Load(x, j), zero) for x in (part, left)]
                loop_ir.store(left, j, call("select", call("and", *zeros), one, Load(part, j)))
            with loop_ir.loop("k", _ZERO, m, REDONE_ROWS) as loop:
                k = loop.index
                last = loop_ir.let("last", call("fmin", affine((k, 1), constant=REDONE_ROWS), m))
                with loop_ir.when(_has_not_normal(left, k, affine((last, 1), (k, -1)))):
                    with self.elements(begin, stop, (k, last)) as (r, j):
                        at = affine((j, PITCH), (k, -PITCH), (r, 1), (begin, -1))
                        loop_ir.store(slab, at, self.builder.values[f.source])
                    with loop_ir.loop("j", k, last) as steps:
                        at = loop_ir.let("p", affine((steps.index, PITCH), (k, -PITCH)))
                        rows = affine((stop, 1), (begin, -1))
                        loop_ir.store(
                            part,
                            steps.index,
                            loop_ir.reduce_elements("again", f.combine, slab, at, rows),
                        )

    @contextmanager
    def elements(
        self, begin: Var, stop: Var, columns: tuple[Var | Const, Var]
    ) -> Generator[tuple[Var, Var]]:
        """Do the statements inside for the elements of some columns of a block of rows, whose
        values are known there; gives the index of the row and the column."""
        builder, loop_ir = self.builder, self.builder.loop_ir
        before = dict(builder.values)
        with loop_ir.loop("r", begin, stop) as rows:
            index: dict[int, Place] = {**self.index, **builder.reduced_indices(rows.index)}
            with loop_ir.loop("j", *columns) as steps:
                at = Index(((self.j0, 1), (steps.index, 1)))
                for s in self.phase.full:
                    builder.statement(s, {**index, self.d: at})
                yield rows.index, steps.index
        builder.values = before

    def store_results(self, j: Place, index: Mapping[int, Place]) -> None:
        """Store the results of a row, given its index in the tile and its outer indices."""
        builder, here = self.builder, {**self.index, **index}
        for total, f in zip(self.totals, self.phase.reductions, strict=True):
            value = converted(Load(total, j), loop_type(f.dtype))
            builder.values[f.name] = builder.loop_ir.let(f.name, value)
        for s in self.phase.row:
            builder.statement(s, here)
        builder.stores(self.phase.row_stores, here)

    def has_adjacent_results(self) -> bool:
        """Return whether the results are adjacent in memory."""
        return all(a.strides[self.d] == 1 for a, _ in self.phase.row_stores)

    def loads(self) -> list[Access]:
        return [s.access for s in self.phase.full if s.access is not None]

    def prefetch_block(self, begin: Var, stop: Var) -> None:
        """Prefetch a block of rows in the order of memory, since the loop over several reduced axes
        goes in another order."""
        builder, loop_ir = self.builder, self.builder.loop_ir
        first = builder.reduced_axes[0]
        size = builder.integer("inner_size", "inner_size", prod(builder.spec.reduced[1:]))
        low = loop_ir.let("low", call("floordiv", begin, size))
        last = loop_ir.let("last", call("floordiv", affine((stop, 1), constant=-1), size))
        for a in self.loads():
            index = {**self.index, self.d: self.j0}
            with ExitStack() as loops:
                for k in sorted(builder.reduced_axes, key=lambda k: -a.strides[k]):
                    outermost = low, affine((last, 1), constant=1)
                    limits = outermost if k == first else (_ZERO, builder.size(k))
                    index[k] = loops.enter_context(loop_ir.loop(f"x{k}", *limits)).index
                self.prefetch(a, index)

    def prefetch(self, a: Access, index: Mapping[int, Place]) -> None:
        """Prefetch a part of a row of an operand, from an index on."""
        builder, loop_ir = self.builder, self.builder.loop_ir
        with loop_ir.loop("j", _ZERO, self.m, LINE // a.dtype.itemsize) as steps:
            at = _shift_place(index[self.d], steps.index)
            loop_ir.add(Prefetch(builder.buffers[id(a)], builder.place(a, {**index, self.d: at})))

    # --- rows in memory ---

    def reduce_stored_rows(self, begin: Var, stop: Var) -> None:
        """Reduce a block of rows from their own memory, with the lanes in registers."""
        builder, loop_ir = self.builder, self.builder.loop_ir
        tables: dict[tuple[int, ...], Buffer] = {}
        rows = loop_ir.let("rows", affine((stop, 1), (begin, -1)))
        for part, f in zip(self.sums, self.phase.reductions, strict=True):
            a = f.direct
            assert a is not None
            steps = tuple([a.strides[k] for k in builder.reduced_axes])
            if steps not in tables:
                if steps not in self.tables:
                    self.tables[steps] = loop_ir.stack("places", I8, BLOCK)
                tables[steps] = self.tables[steps]
                with loop_over_range(builder, begin, stop, builder.reduced_axes) as (index, at):
                    loop_ir.store(tables[steps], at, builder.place(a, index))
            start = builder.place(a, {**self.index, self.d: self.j0})
            memory = builder.buffers[id(a)], start, tables[steps]
            loop_ir.add(ReduceColumns(part, f.combine, *memory, rows, self.m))

    # --- computed rows ---

    def reduce_computed_rows(self, begin: Var, stop: Var) -> None:
        """Reduce a block of computed rows; each lane is a row of the memory on the stack."""
        loop_ir, many = self.builder.loop_ir, self.lane_count
        with loop_ir.loop("l", _ZERO, Const(many, I8)) as lane:
            self.fill(self.sums, loop_ir.let("p", affine((lane.index, TILE_WIDTH))))
        rest = self.add_row_groups(begin, stop, GROUP, 0)
        # The rest of a block, two rows at a time, then one. Short reductions consist only of this,
        # and prefetch their rows, because the hardware prefetcher does not recognize the pattern.
        last = self.add_row_groups(rest, stop, 2, PREFETCH_ROWS)
        with loop_ir.loop("r", last, stop) as rows:
            k = loop_ir.let("k", affine((rows.index, 1), (last, -1)))
            turns = call("mul", call("floordiv", k, Const(many, I8)), Const(many, I8))
            lane = loop_ir.let("l", call("sub", k, turns))
            self.add_rows(
                rows.index, loop_ir.let("p", affine((lane, TILE_WIDTH))), 1, PREFETCH_ROWS
            )
        with loop_ir.loop("level", _ZERO, Const(many.bit_length() - 1, I8)) as levels:
            half = levels.carry("half", Const(many // 2, I8))
            self.halve_lanes(half)
            levels.follow(half, call("floordiv", half, Const(2, I8)))

    def add_row_groups(self, begin: Var, stop: Var, n: int, ahead: int) -> Var:
        """Add n rows at a time to each lane while there are enough; return the next row."""
        loop_ir, many = self.builder.loop_ir, self.lane_count
        size = Const(n * many, I8)
        whole = call("floordiv", affine((stop, 1), (begin, -1)), size)
        rest = loop_ir.let("rest", call("add", begin, call("mul", whole, size)))
        with loop_ir.loop("g", begin, rest, n * many) as group:
            end = affine((group.index, 1), constant=many)
            with loop_ir.loop("r", group.index, end) as rows:
                p = loop_ir.let("p", affine((rows.index, TILE_WIDTH), (group.index, -TILE_WIDTH)))
                self.add_rows(rows.index, p, n, ahead)
        return rest

    def add_rows(self, r: Var, p: Var, n: int, ahead: int) -> None:
        """Add n rows, at distances of the number of lanes, to the lane that begins at p."""
        builder, loop_ir = self.builder, self.builder.loop_ir
        before, full = builder.values, self.phase.full
        still = [s for s in full if s.access and not s.args and not s.access.strides[self.d]]
        values: list[dict[str, Expr]] = []
        indices: list[dict[int, Place]] = []
        for k in range(n):
            row = loop_ir.let("row", affine((r, 1), constant=k * self.lane_count)) if k else r
            index: dict[int, Place] = {**self.index, **builder.reduced_indices(row)}
            for a in self.loads() if ahead and len(builder.spec.reduced) == 1 else ():
                if a.strides[self.d]:
                    soon = Index(((row, 1),), ahead)
                    self.prefetch(a, {**index, builder.reduced_axes[0]: soon, self.d: self.j0})
            builder.values = dict(before)
            for s in still:
                builder.statement(s, index)
            values.append(builder.values)
            indices.append(index)
        with loop_ir.loop("j", _ZERO, self.m, independent=True) as steps:
            at = Index(((self.j0, 1), (steps.index, 1)))
            for builder.values, index in zip(values, indices, strict=True):
                for s in full:
                    if s not in still:
                        builder.statement(s, {**index, self.d: at})
            for part, f in zip(self.sums, self.phase.reductions, strict=True):
                place = affine((p, 1), (steps.index, 1))
                value: Expr = Load(part, place)
                for row_values in values:
                    value = _combine_in_lane(f, value, row_values[f.source])
                loop_ir.store(part, place, value)
        builder.values = before

    def halve_lanes(self, half: Var) -> None:
        """Add the second half of the lanes to the first half."""
        loop_ir = self.builder.loop_ir
        with loop_ir.loop("l", _ZERO, half) as lane, loop_ir.loop("j", _ZERO, self.m) as steps:
            to = affine((lane.index, TILE_WIDTH), (steps.index, 1))
            other = affine((lane.index, TILE_WIDTH), (half, TILE_WIDTH), (steps.index, 1))
            for part, f in zip(self.sums, self.phase.reductions, strict=True):
                loop_ir.store(part, to, _combine_in_lane(f, Load(part, to), Load(part, other)))


def _has_not_normal(buffer: Buffer, start: Const | Var, count: Expr) -> Expr:
    """Return whether any of some numbers is not a normal number, such as 0."""
    place = Call("block_find_not_normal", (Address(buffer, start), count), I8)
    return call("lt", place, count)


def _combine_in_lane(f: RowReduction, x: Expr, y: Expr) -> Expr:
    """Combine a lane and an element; of equal values, the first remains."""
    combine = COMBINES[f.combine]
    if combine.order and f.dtype.kind != "b":
        return call(combine.lane_function, x, y)
    return combine_partials(f.combine, x, y)


def _add_index(x: Const | Var, y: Var) -> Expr:
    return affine((x, 1), (y, 1)) if isinstance(x, Var) else y


def _shift_place(x: Place, y: Var) -> Index:
    terms = x.terms if isinstance(x, Index) else ((x, 1),)
    return Index((*terms, (y, 1)), x.constant if isinstance(x, Index) else 0)
