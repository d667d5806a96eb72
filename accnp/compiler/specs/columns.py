"""Reductions of columns: each step of the kernel reduces a tile of adjacent columns.

The sums of a tile are memory on the stack, to which the rows are added one after the other, `ROWS`
rows to each partial result. The order is that of the loops; `passes.join_rows` processes several
rows in one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from accnp.compiler.formulas import converted, expression
from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import Buffer, Const, Expr, Index, Load, Var
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.accumulators import accumulator, condition
from accnp.compiler.specs.blocked_reductions import combine_partials, initial_value
from accnp.compiler.specs.kernel_builder import KernelBuilder, Place, are_adjacent, loop_type
from accnp.compiler.specs.layouts import (
    TILE_WIDTH,
    is_contiguous_reduction,
    tile_width,
    transposed_axis,
)
from accnp.compiler.specs.short_axes import CALL_COST, LANES, columns_fit_vector
from accnp.compiler.specs.transposed_columns import (
    reduce_transposed_columns,
    start_tile_row,
    transposed_tiles,
)
from accnp.ir.kernel import BLOCK, ROWS

__all__ = ["add_columns", "add_unrolled_columns"]

_ZERO = Const(0, I8)


def add_columns(builder: KernelBuilder) -> None:
    """Add a loop whose steps reduce over all reduced indices, each for one tile of columns."""
    spec, loop_ir, out = builder.spec, builder.loop_ir, builder.out
    inner = builder.along
    transposed = None
    if len(spec.reduced) == 1:
        transposed = transposed_axis(spec, inner, builder.reduced_axes)
    width, tiles = tile_width(spec, BLOCK if transposed is None else TILE_WIDTH)
    out.extent = prod(spec.outer) * tiles
    out.weight = spec.cost * prod(spec.reduced) * min(spec.inner[0], width)
    count = builder.integer("tiles", "tiles", tiles)
    wide = builder.integer("width", "width", width)
    with loop_ir.loop("u", loop_ir.first, loop_ir.last) as loop:
        o = loop_ir.let("o", call("floordiv", loop.index, count))
        tile = call("sub", loop.index, call("mul", o, count))
        begin = loop_ir.let("j0", call("mul", tile, wide))
        m = loop_ir.let("m", call("fmin", affine((builder.size(inner), 1), (begin, -1)), wide))
        index = builder.outer_indices(o) if spec.outer else {}
        rows = builder.total()
        if condition(spec.phases[0], builder.reduced_axes) is not None:
            rows = _rows_to_add(builder, index, begin, m, rows)
        _reduce_tile(builder, index, rows, (begin, m), True, transposed)


def add_unrolled_columns(builder: KernelBuilder) -> None:
    """Add a loop whose steps reduce a small constant number of columns.

    `passes.unroll` unrolls the loops over the columns, with the sums in registers. If the columns
    call functions, they are the lanes of one vector. Otherwise LLVM computed two of three columns
    in a vector, and one separately.
    """
    spec, loop_ir, out = builder.spec, builder.loop_ir, builder.out
    builder.max_constant_stride = LANES
    out.extent = prod(spec.outer)
    out.weight = spec.cost * prod(spec.reduced) * spec.inner[0]
    with loop_ir.loop("u", loop_ir.first, loop_ir.last) as loop:
        index = builder.outer_indices(loop.index) if spec.outer else {}
        vector = (builder.tiny or spec.cost >= CALL_COST) and columns_fit_vector(
            spec, builder.along
        )
        _reduce_tile(builder, index, builder.total(), (_ZERO, Const(spec.inner[0], I8)), vector)


def _reduce_tile(
    builder: KernelBuilder, index: dict[int, Var], rows: Var, columns: tuple[Var | Const, Expr],
    vectors: bool, transposed: int | None = None,
) -> None:  # fmt: skip
    """Reduce a number of columns from a first one on.

    `vectors` says that the columns are the lanes of vectors, and `transposed` is the axis along
    which operands are contiguous, if it is not the inner one.
    """
    spec, loop_ir, inner, (begin, m) = builder.spec, builder.loop_ir, builder.along, columns
    (phase,) = spec.phases
    totals = [
        loop_ir.stack("total", loop_type(accumulator(f.dtype, f.combine)), BLOCK)
        for f in phase.reductions
    ]
    sums = [loop_ir.stack("sums", loop_type(f.dtype), BLOCK) for f in phase.reductions]
    _fill(builder, totals, m, vectors)
    with loop_ir.loop("rb", _ZERO, rows, ROWS) as blocks:
        builder.break_if_stopped(blocks)
        _fill(builder, sums, m, vectors)
        end = loop_ir.let("re", call("fmin", affine((blocks.index, 1), constant=ROWS), rows))
        block = blocks.index, end
        if transposed is None:
            _add_rows(builder, sums, index, block, columns, vectors)
        elif is_contiguous_reduction(spec, transposed):
            reduce_transposed_columns(builder, sums, index, block, (begin, m))
        else:
            with transposed_tiles(builder, index, block, (begin, m)) as part:
                _add_rows(builder, sums, index, part, columns, vectors)
            builder.transposed.clear()
        with loop_ir.loop("j", _ZERO, m, independent=vectors) as steps:
            j = steps.index
            for total, part, f in zip(totals, sums, phase.reductions, strict=True):
                more = converted(Load(part, j), total.dtype)
                loop_ir.store(total, j, combine_partials(f.combine, Load(total, j), more))
    adjacent = vectors and are_adjacent(phase.row_stores, inner)
    with loop_ir.loop("j", _ZERO, m, independent=adjacent) as steps:
        here = {**index, inner: _column(begin, steps.index)}
        for total, f in zip(totals, phase.reductions, strict=True):
            value = converted(Load(total, steps.index), loop_type(f.dtype))
            builder.values[f.name] = loop_ir.let(f.name, value)
        for s in phase.row:
            builder.statement(s, here)
        builder.stores(phase.row_stores, here)


def _column(begin: Var | Const, j: Var) -> Place:
    """Return the index of a column of a tile."""
    return j if isinstance(begin, Const) else Index(((begin, 1), (j, 1)))


def _fill(builder: KernelBuilder, buffers: Sequence[Buffer], m: Expr, vectors: bool) -> None:
    """Assign the initial values of the reductions."""
    with builder.loop_ir.loop("j", _ZERO, m, independent=vectors) as steps:
        for buffer, f in zip(buffers, builder.spec.phases[0].reductions, strict=True):
            builder.loop_ir.store(buffer, steps.index, initial_value(f.combine, buffer.dtype))


def _add_rows(
    builder: KernelBuilder, sums: Sequence[Buffer], index: dict[int, Var], rows: tuple[Var, Var],
    columns: tuple[Var | Const, Expr], vectors: bool,
) -> None:  # fmt: skip
    """Add rows to the sums, one after the other."""
    loop_ir, inner, (begin, m) = builder.loop_ir, builder.along, columns
    (phase,) = builder.spec.phases
    vectors = vectors and are_adjacent(phase.stores, inner)
    long = vectors and not isinstance(m, Const)
    before = dict(builder.values)
    with loop_ir.loop("r", *rows, interchangeable=long) as loop:
        row = builder.reduced_indices(loop.index)
        if builder.transposed:
            start_tile_row(builder, rows[0], loop.index, begin)
        # Loads that are the same in all columns of a row come first.
        for s in phase.full:
            if s.access is not None and not s.args and not s.access.strides[inner]:
                builder.statement(s, {**index, **row})
        with loop_ir.loop("j", _ZERO, m, independent=vectors) as steps:
            j = steps.index
            # Addresses are summed in this order: terms that are the same in all rows come first. A
            # few columns share one address, because LLVM would gather from several addresses.
            here: dict[int, Place] = {**index, inner: _column(begin, j), **row}
            if isinstance(m, Const):
                here = {**index, **row, inner: j}
            builder.body(phase, here)
            for part, f in zip(sums, phase.reductions, strict=True):
                loop_ir.store(
                    part, j, combine_partials(f.combine, Load(part, j), builder.values[f.source])
                )
    builder.values = before


def _rows_to_add(
    builder: KernelBuilder, index: dict[int, Var], begin: Var, m: Var, rows: Var
) -> Var:
    """Return the rows, or none if only zeros are added in all columns of a tile."""
    loop_ir = builder.loop_ir
    guard = condition(builder.spec.phases[0], builder.reduced_axes)
    assert guard is not None
    text, args, loads = guard
    before = dict(builder.values)
    with loop_ir.loop("j", _ZERO, m) as steps:
        some = steps.carry("some", _ZERO)
        for s in loads:
            builder.statement(s, {**index, builder.along: Index(((begin, 1), (steps.index, 1)))})
        holds = expression(text, [builder.values.get(a, _ZERO) for a in args])
        after = steps.follow(some, call("or", some, converted(holds, I8)))
    builder.values = before
    return loop_ir.let("limit", call("select", call("ne", after, _ZERO), rows, _ZERO))
