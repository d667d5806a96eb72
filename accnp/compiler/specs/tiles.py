"""Maps and reductions with transposed operands: contiguous along an axis that is not the innermost.

The loops go over tiles of `TILE_DEPTH` indices of that axis and `TILE_WIDTH` of the innermost one
(`BLOCK` in reductions of rows), and each such operand is transposed tile by tile into memory on the
stack. Reading it element by element would load a cache line for each element.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from accnp.compiler.formulas import converted
from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import Buffer, Const, Expr, Index, Load, Prefetch, Transpose, Var
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.accumulators import accumulator
from accnp.compiler.specs.blocked_reductions import combine_partials, initial_value, reduce_block
from accnp.compiler.specs.kernel_builder import KernelBuilder, Place, loop_type
from accnp.compiler.specs.layouts import TILE_DEPTH, TILE_WIDTH, transposed_loads
from accnp.ir.kernel import BLOCK, Access

__all__ = ["add_row_tiles", "add_tiles"]

_ZERO = Const(0, I8)
TILE_GROUP = 8  # tiles of one column of tiles before the next column, to limit the pages in use


def _int64_constant(k: int) -> Const:
    return Const(k, I8)


def add_tiles(builder: KernelBuilder, d: int) -> None:
    """Add a loop whose steps are tiles of a map along axis d and the inner axis."""
    spec, loop_ir, out = builder.spec, builder.loop_ir, builder.out
    (phase,) = spec.phases
    inner = builder.along
    others = [k for k in range(builder.outer) if k != d]
    n_deep, n_wide = -(-spec.outer[d] // TILE_DEPTH), -(-spec.inner[0] // TILE_WIDTH)
    deep, wide = builder.integer("deep", "deep", n_deep), builder.integer("broad", "broad", n_wide)
    out.extent = prod([spec.outer[k] for k in others]) * n_deep * n_wide
    out.weight = spec.cost * min(spec.outer[d], TILE_DEPTH) * min(spec.inner[0], TILE_WIDTH)
    out.tiles = True
    those = transposed_loads(spec, inner, d)
    tiles = [loop_ir.stack("tile", loop_type(a.dtype), TILE_DEPTH * TILE_WIDTH) for a in those]
    every = loop_ir.let("every", call("mul", deep, wide))
    with loop_ir.loop("u", loop_ir.first, loop_ir.last) as loop:
        o = loop_ir.let("o", call("floordiv", loop.index, every))
        tile = loop_ir.let("v", call("sub", loop.index, call("mul", o, every)))
        (c, j), following = _tile_order(builder, tile, deep, wide)
        rows = loop_ir.let("rows", _tile_length(builder, d, c, TILE_DEPTH))
        m = loop_ir.let("m", _tile_length(builder, inner, j, TILE_WIDTH))
        index: dict[int, Place] = {**builder.indices(o, others, "o")} if others else {}
        for a in those:
            _prefetch_tile(builder, a, {**index, d: following[0], inner: following[1]}, m)
        for a, to in zip(those, tiles, strict=True):
            _transpose_tile(builder, a, to, {**index, d: c, inner: j}, (rows, m), TILE_WIDTH)
        end = loop_ir.let("end", affine((j, 1), (m, 1)))
        before = dict(builder.values)
        with loop_ir.loop("r", _ZERO, rows) as loop:
            turn = loop_ir.let("turn", affine((loop.index, TILE_WIDTH), (j, -1)))
            builder.transposed |= {id(a): (to, turn) for a, to in zip(those, tiles, strict=True)}
            row: dict[int, Place] = {**index, d: Index(((c, 1), (loop.index, 1)))}
            builder.hoist(phase, inner, row)
            with loop_ir.loop("q", j, end, independent=True) as steps:
                builder.body(phase, {**row, inner: steps.index})
        builder.values = before


def add_row_tiles(builder: KernelBuilder, d: int) -> None:
    """Add a loop whose steps reduce `TILE_DEPTH` rows along axis d.

    The order is that of row reductions.
    """
    spec, loop_ir, out = builder.spec, builder.loop_ir, builder.out
    (phase,) = spec.phases
    along = builder.along
    others = [k for k in range(builder.outer) if k != d]
    count = -(-spec.outer[d] // TILE_DEPTH)
    deep = builder.integer("deep", "deep", count)
    out.extent = prod([spec.outer[k] for k in others]) * count
    out.weight = spec.cost * min(spec.outer[d], TILE_DEPTH) * spec.reduced[0]
    accs = [loop_type(accumulator(f.dtype, f.combine)) for f in phase.reductions]
    totals = [loop_ir.stack("total", acc, BLOCK) for acc in accs]
    those = transposed_loads(spec, along, d)
    slabs = [loop_ir.stack("slab", loop_type(a.dtype), TILE_DEPTH * BLOCK) for a in those]
    with loop_ir.loop("u", loop_ir.first, loop_ir.last) as loop:
        o = loop_ir.let("o", call("floordiv", loop.index, deep))
        tile = loop_ir.let("v", call("sub", loop.index, call("mul", o, deep)))
        c = loop_ir.let("c0", affine((tile, TILE_DEPTH)))
        rows = loop_ir.let("rows", _tile_length(builder, d, c, TILE_DEPTH))
        index: dict[int, Place] = {**builder.indices(o, others, "o")} if others else {}
        with loop_ir.loop("r", _ZERO, rows) as steps:
            for total, f in zip(totals, phase.reductions, strict=True):
                loop_ir.store(total, steps.index, initial_value(f.combine, total.dtype))
        before = dict(builder.values)
        with loop_ir.loop("b", _ZERO, builder.total(), BLOCK) as blocks:
            m = loop_ir.let("m", _tile_length(builder, along, blocks.index, BLOCK))
            for a, slab in zip(those, slabs, strict=True):
                _transpose_tile(
                    builder, a, slab, {**index, d: c, along: blocks.index}, (rows, m), BLOCK
                )
            with loop_ir.loop("r", _ZERO, rows) as steps:
                turn = loop_ir.let("turn", affine((steps.index, BLOCK), (blocks.index, -1)))
                builder.transposed |= {
                    id(a): (to, turn) for a, to in zip(those, slabs, strict=True)
                }
                row = {**index, d: Index(((c, 1), (steps.index, 1)))}
                for s in spec.row_head:
                    builder.statement(s, row)
                parts = reduce_block(builder, phase, row, blocks, m)
                for total, f, part in zip(totals, phase.reductions, parts, strict=True):
                    value = combine_partials(f.combine, Load(total, steps.index), part)
                    loop_ir.store(total, steps.index, value)
        builder.transposed.clear()
        builder.values = before
        with loop_ir.loop("r", _ZERO, rows) as steps:
            row = {**index, d: Index(((c, 1), (steps.index, 1)))}
            for s in spec.row_head:
                builder.statement(s, row)
            for total, f in zip(totals, phase.reductions, strict=True):
                value = converted(Load(total, steps.index), loop_type(f.dtype))
                builder.values[f.name] = loop_ir.let(f.name, value)
            for s in phase.row:
                builder.statement(s, row)
            builder.stores(phase.row_stores, row)


def _tile_order(
    builder: KernelBuilder, tile: Var, deep: Var, wide: Var
) -> tuple[tuple[Var, Var], tuple[Var, Var]]:
    """Return the start of a tile along both axes, and the start of the next tile.

    Groups of `TILE_GROUP` tiles along the inner axis are visited for each tile along the other
    axis.
    """
    loop_ir, group = builder.loop_ir, _int64_constant(TILE_GROUP)
    full = loop_ir.let("full", call("mul", deep, group))
    g = loop_ir.let("g", call("floordiv", tile, full))
    rest = loop_ir.let("v", call("sub", tile, call("mul", g, full)))
    first = loop_ir.let("first", call("mul", g, group))
    near = loop_ir.let("near", call("fmin", affine((wide, 1), (first, -1)), group))
    x = loop_ir.let("x", call("floordiv", rest, near))
    y = loop_ir.let("y", call("sub", rest, call("mul", x, near)))
    here = (
        loop_ir.let("c0", affine((x, TILE_DEPTH))),
        loop_ir.let("j0", affine((first, TILE_WIDTH), (y, TILE_WIDTH))),
    )
    # The next tile: the next one of the group, or the first of the group at the next deep index.
    more = loop_ir.let("more", call("lt", affine((y, 1), constant=1), near))
    c = call("select", more, here[0], affine((here[0], 1), constant=TILE_DEPTH))
    j = call("select", more, affine((here[1], 1), constant=TILE_WIDTH), affine((first, TILE_WIDTH)))
    return here, (loop_ir.let("c1", c), loop_ir.let("j1", j))


def _tile_length(builder: KernelBuilder, d: int, start: Var, most: int) -> Expr:
    """Return the number of indices of an axis in a tile from an index on."""
    return call("fmin", affine((builder.size(d), 1), (start, -1)), _int64_constant(most))


def _prefetch_tile(builder: KernelBuilder, a: Access, index: Mapping[int, Place], m: Var) -> None:
    """Prefetch the tile of an operand at an index."""
    loop_ir, inner = builder.loop_ir, builder.along
    with loop_ir.loop("k", _ZERO, m) as loop:
        begin = index[inner]
        assert isinstance(begin, Var)
        line = builder.place(a, {**index, inner: Index(((begin, 1), (loop.index, 1)))})
        at = loop_ir.let("line", line)
        for k in (0, TILE_DEPTH - 1):
            loop_ir.add(Prefetch(builder.buffers[id(a)], affine((at, 1), constant=k)))


def _transpose_tile(
    builder: KernelBuilder, a: Access, to: Buffer, index: Mapping[int, Place],
    shape: tuple[Var, Var], width: int,
) -> None:  # fmt: skip
    """Transpose the tile of an operand at an index."""
    step = builder.stride(a, builder.along)
    factor = step if isinstance(step, Var) else _int64_constant(step)
    tile = Transpose(to, width, builder.buffers[id(a)], builder.place(a, index), factor, *shape)
    builder.loop_ir.add(tile)
