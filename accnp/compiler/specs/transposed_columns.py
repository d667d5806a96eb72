"""Reductions of columns with operands that are contiguous along the reduced axis.

If all operands are, some columns at a time are read or computed along that axis and transposed in
registers (the procedures `columns_sum`, ...). Otherwise, tiles of these operands are transposed
onto the stack.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from accnp.compiler.loops.builder import affine, call, plus
from accnp.compiler.loops.ir import (
    Address,
    Buffer,
    Const,
    Do,
    Expr,
    Index,
    Prefetch,
    Transpose,
    Var,
)
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.kernel_builder import KernelBuilder, Place, loop_type
from accnp.compiler.specs.layouts import (
    LINE,
    TILE_DEPTH,
    TILE_WIDTH,
    reduces_operand_directly,
    transposed_loads,
)
from accnp.ir.kernel import Access

__all__ = ["reduce_transposed_columns", "start_tile_row", "transposed_tiles"]

_ZERO = Const(0, I8)
PREFETCH_BYTES = 2 * LINE  # prefetch distance in bytes


def reduce_transposed_columns(
    builder: KernelBuilder, sums: Sequence[Buffer], index: Mapping[int, Place],
    rows: tuple[Var, Var], columns: tuple[Var | Const, Expr],
) -> None:  # fmt: skip
    """Add rows to the partial results of some columns, `TILE_DEPTH` columns at a time."""
    loop_ir, inner, along = builder.loop_ir, builder.along, builder.outer
    (phase,) = builder.spec.phases
    begin, m = columns
    plain = {f.source: f.direct for f in phase.reductions if reduces_operand_directly(f, along)}
    computed = {f.source: loop_type(f.dtype) for f in phase.reductions if f.source not in plain}
    tiles = {x: loop_ir.stack("tile", of, TILE_DEPTH * TILE_WIDTH) for x, of in computed.items()}
    with loop_ir.loop("c", _ZERO, m, TILE_DEPTH) as wide:
        c = wide.index
        count = loop_ir.let("cs", _steps_within(m, c, TILE_DEPTH))
        with loop_ir.loop("rt", *rows, TILE_WIDTH) as long:
            rt = long.index
            length = loop_ir.let("rows", _steps_within(rows[1], rt, TILE_WIDTH))
            if tiles:
                _compute(builder, tiles, index, (rt, length), (plus(begin, c), count))
            for to, f in zip(sums, phase.reductions, strict=True):
                a = plain.get(f.source)
                if a is None:
                    source, step = Address(tiles[f.source], _ZERO), Const(TILE_WIDTH, I8)
                else:
                    at = builder.place(a, {**index, along: rt, inner: _index(plus(begin, c))})
                    source, step = Address(builder.buffers[id(a)], at), _step(builder, a)
                args = Address(to, c), source, step, length, count
                loop_ir.add(Do(f"columns_{f.combine}", args))


def _compute(
    builder: KernelBuilder, tiles: Mapping[str, Buffer], index: Mapping[int, Place],
    rows: tuple[Var, Var], columns: tuple[Expr, Var],
) -> None:  # fmt: skip
    """Compute the reduced values of a number of rows and columns, from a row and a column on."""
    loop_ir, inner, along = builder.loop_ir, builder.along, builder.outer
    (phase,) = builder.spec.phases
    before = dict(builder.values)
    with loop_ir.loop("i", _ZERO, columns[1]) as down:
        column = _index(plus(columns[0], down.index))
        with loop_ir.loop("j", _ZERO, rows[1], independent=True) as steps:
            row = Index(((rows[0], 1), (steps.index, 1)))
            builder.body(phase, {**index, inner: column, along: row})
            for x, tile in tiles.items():
                loop_ir.store(
                    tile, affine((down.index, TILE_WIDTH), (steps.index, 1)), builder.values[x]
                )
    builder.values = before


@contextmanager
def transposed_tiles(
    builder: KernelBuilder, index: Mapping[int, Place], rows: tuple[Var, Var],
    columns: tuple[Var | Const, Expr],
) -> Generator[tuple[Var, Var]]:  # fmt: skip
    """Loop over parts of some rows, with the operands transposed on the stack in each part."""
    loop_ir, inner, along = builder.loop_ir, builder.along, builder.outer
    begin, m = columns
    those = transposed_loads(builder.spec, inner, along)
    tiles = [loop_ir.stack("tile", loop_type(a.dtype), TILE_DEPTH * TILE_WIDTH) for a in those]
    with loop_ir.loop("rt", *rows, TILE_DEPTH) as loop:
        rt = loop.index
        count = loop_ir.let("rows", _steps_within(rows[1], rt, TILE_DEPTH))
        for a, to in zip(those, tiles, strict=True):
            buffer, step = builder.buffers[id(a)], _step(builder, a)
            # The hardware prefetcher cannot track this many columns: prefetch the tiles after next.
            with loop_ir.loop("c", _ZERO, m) as steps:
                later = {**index, along: rt, inner: _index(plus(begin, steps.index))}
                soon = affine((loop_ir.let("line", builder.place(a, later)), 1),
                              constant=PREFETCH_BYTES // a.dtype.itemsize)  # fmt: skip
                loop_ir.add(Prefetch(buffer, soon))
            start = builder.place(a, {**index, along: rt, inner: _index(begin)})
            loop_ir.add(Transpose(to, TILE_WIDTH, buffer, start, step, count, m))
            builder.transposed[id(a)] = to, rt
        yield rt, loop_ir.let("stop", affine((rt, 1), (count, 1)))


def start_tile_row(builder: KernelBuilder, first: Var, row: Var, column: Var | Const) -> None:
    """Begin a row of the transposed tiles, with the index of their first row and column."""
    turn = affine((row, TILE_WIDTH), (first, -TILE_WIDTH))
    if isinstance(column, Var):
        turn = plus(turn, affine((column, -1)))
    at = builder.loop_ir.let("turn", turn)
    builder.transposed = {k: (to, at) for k, (to, _) in builder.transposed.items()}


def _steps_within(stop: Expr, start: Var, most: int) -> Expr:
    return call("fmin", call("sub", stop, start), Const(most, I8))


def _step(builder: KernelBuilder, a: Access) -> Expr:
    step = builder.stride(a, builder.along)
    return step if isinstance(step, Var) else Const(step, I8)


def _index(x: Expr) -> Place:
    assert isinstance(x, Var | Index)
    return x
