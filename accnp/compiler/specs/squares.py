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
from accnp.compiler.specs.layouts import DEEP, LINE, WIDE, crossing, is_plain
from accnp.compiler.specs.statements import Place, Statements, covered
from accnp.ir.kernel import Access

__all__ = ["begin_tile", "join_squares", "tiles_of_rows"]

_ZERO = Const(0, I8)
SOON = 2 * LINE  # prefetch distance in bytes


def join_squares(
    made: Statements, sums: Sequence[Buffer], index: Mapping[int, Place], rows: tuple[Var, Var],
    columns: tuple[Var | Const, Expr],
) -> None:  # fmt: skip
    """Add rows to the partial results of some columns, `DEEP` columns at a time."""
    b, inner, along = made.b, made.along, made.outer
    (phase,) = made.spec.phases
    begin, m = columns
    plain = {f.source: f.direct for f in phase.folds if is_plain(f, along)}
    computed = {f.source: covered(f.dtype) for f in phase.folds if f.source not in plain}
    tiles = {x: b.stack("tile", of, DEEP * WIDE) for x, of in computed.items()}
    with b.loop("c", _ZERO, m, DEEP) as wide:
        c = wide.index
        count = b.let("cs", _least(m, c, DEEP))
        with b.loop("rt", *rows, WIDE) as long:
            rt = long.index
            length = b.let("rows", _least(rows[1], rt, WIDE))
            if tiles:
                _compute(made, tiles, index, (rt, length), (plus(begin, c), count))
            for to, f in zip(sums, phase.folds, strict=True):
                a = plain.get(f.source)
                if a is None:
                    source, step = Address(tiles[f.source], _ZERO), Const(WIDE, I8)
                else:
                    at = made.place(a, {**index, along: rt, inner: _index(plus(begin, c))})
                    source, step = Address(made.buffers[id(a)], at), _step(made, a)
                args = Address(to, c), source, step, length, count
                b.add(Do(f"columns_{f.combine}", args))


def _compute(
    made: Statements, tiles: Mapping[str, Buffer], index: Mapping[int, Place],
    rows: tuple[Var, Var], columns: tuple[Expr, Var],
) -> None:  # fmt: skip
    """Compute the reduced values of a number of rows and columns, from a row and a column on."""
    b, inner, along = made.b, made.along, made.outer
    (phase,) = made.spec.phases
    before = dict(made.values)
    with b.loop("i", _ZERO, columns[1]) as down:
        column = _index(plus(columns[0], down.index))
        with b.loop("j", _ZERO, rows[1], independent=True) as steps:
            row = Index(((rows[0], 1), (steps.index, 1)))
            made.body(phase, {**index, inner: column, along: row})
            for x, tile in tiles.items():
                b.store(tile, affine((down.index, WIDE), (steps.index, 1)), made.values[x])
    made.values = before


@contextmanager
def tiles_of_rows(
    made: Statements, index: Mapping[int, Place], rows: tuple[Var, Var],
    columns: tuple[Var | Const, Expr],
) -> Generator[tuple[Var, Var]]:  # fmt: skip
    """Loop over parts of some rows, with the operands transposed on the stack in each part."""
    b, inner, along = made.b, made.along, made.outer
    begin, m = columns
    those = crossing(made.spec, inner, along)
    tiles = [b.stack("tile", covered(a.dtype), DEEP * WIDE) for a in those]
    with b.loop("rt", *rows, DEEP) as loop:
        rt = loop.index
        count = b.let("rows", _least(rows[1], rt, DEEP))
        for a, to in zip(those, tiles, strict=True):
            buffer, step = made.buffers[id(a)], _step(made, a)
            # The hardware prefetcher cannot track this many columns: prefetch the tiles after next.
            with b.loop("c", _ZERO, m) as steps:
                later = {**index, along: rt, inner: _index(plus(begin, steps.index))}
                soon = affine((b.let("line", made.place(a, later)), 1),
                              constant=SOON // a.dtype.itemsize)  # fmt: skip
                b.add(Prefetch(buffer, soon))
            start = made.place(a, {**index, along: rt, inner: _index(begin)})
            b.add(Transpose(to, WIDE, buffer, start, step, count, m))
            made.turned[id(a)] = to, rt
        yield rt, b.let("stop", affine((rt, 1), (count, 1)))


def begin_tile(made: Statements, first: Var, row: Var, column: Var | Const) -> None:
    """Begin a row of the transposed tiles, with the index of their first row and column."""
    turn = affine((row, WIDE), (first, -WIDE))
    if isinstance(column, Var):
        turn = plus(turn, affine((column, -1)))
    at = made.b.let("turn", turn)
    made.turned = {k: (to, at) for k, (to, _) in made.turned.items()}


def _least(stop: Expr, start: Var, most: int) -> Expr:
    return call("fmin", call("sub", stop, start), Const(most, I8))


def _step(made: Statements, a: Access) -> Expr:
    step = made.stride(a, made.along)
    return step if isinstance(step, Var) else Const(step, I8)


def _index(x: Expr) -> Place:
    assert isinstance(x, Var | Index)
    return x
