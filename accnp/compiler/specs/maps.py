"""Maps: kernels that compute each element of a result from one element of each operand."""

from __future__ import annotations

from math import prod

from accnp.compiler.loops.ir import Const
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.kernel_builder import KernelBuilder, are_adjacent
from accnp.compiler.specs.layouts import MIN_TILED_LENGTH, transposed_axis
from accnp.compiler.specs.tiles import add_tiles
from accnp.ir.kernel import Phase

__all__ = ["add_map"]


def add_map(builder: KernelBuilder) -> None:
    """Add a loop whose steps compute one element, or one row of elements."""
    spec, loop_ir = builder.spec, builder.loop_ir
    for s in spec.row_head:
        builder.statement(s, {})
    phase = spec.phases[0] if spec.phases else Phase()
    if not spec.inner:
        with loop_ir.loop("i", loop_ir.first, loop_ir.last):
            builder.body(phase, {})
            for s in phase.row:
                builder.statement(s, {})
            for a, name in phase.row_stores:
                builder.store(a, name, {})
        return
    (along,) = range(builder.outer, builder.outer + len(spec.inner))
    adjacent = are_adjacent(phase.stores, along)
    if not spec.outer:
        builder.out.extent, builder.out.weight = spec.inner[0], spec.cost
        builder.hoist(phase, along, {})
        with loop_ir.loop("i", loop_ir.first, loop_ir.last, independent=adjacent) as loop:
            builder.body(phase, {along: loop.index})
        return
    transposed = transposed_axis(
        spec, along, range(builder.outer), 2 if builder.edge else MIN_TILED_LENGTH
    )
    if transposed is not None:
        add_tiles(builder, transposed)
        return
    builder.out.extent = prod(spec.outer)
    builder.out.weight = spec.cost * spec.inner[0]
    with loop_ir.loop("o", loop_ir.first, loop_ir.last) as rows:
        index = builder.outer_indices(rows.index)
        builder.hoist(phase, along, index)
        with loop_ir.loop("j", Const(0, I8), builder.size(along), independent=adjacent) as loop:
            builder.body(phase, {**index, along: loop.index})
