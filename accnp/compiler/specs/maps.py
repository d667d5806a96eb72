"""Maps: kernels that compute each element of a result from one element of each operand."""

from __future__ import annotations

from math import prod

from accnp.compiler.loops.ir import Const
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.layouts import MIN_TILED_LENGTH, transposed_axis
from accnp.compiler.specs.statements import Statements, are_adjacent
from accnp.compiler.specs.tiles import add_tiles
from accnp.ir.kernel import Phase

__all__ = ["add_map"]


def add_map(made: Statements) -> None:
    """Add a loop whose steps compute one element, or one row of elements."""
    spec, b = made.spec, made.b
    for s in spec.row_head:
        made.statement(s, {})
    phase = spec.phases[0] if spec.phases else Phase()
    if not spec.inner:
        with b.loop("i", b.first, b.last):
            made.body(phase, {})
            for s in phase.row:
                made.statement(s, {})
            for a, name in phase.row_stores:
                made.store(a, name, {})
        return
    (along,) = range(made.outer, made.outer + len(spec.inner))
    adjacent = are_adjacent(phase.stores, along)
    if not spec.outer:
        made.out.extent, made.out.weight = spec.inner[0], spec.cost
        made.hoist(phase, along, {})
        with b.loop("i", b.first, b.last, independent=adjacent) as loop:
            made.body(phase, {along: loop.index})
        return
    transposed = transposed_axis(
        spec, along, range(made.outer), 2 if made.edge else MIN_TILED_LENGTH
    )
    if transposed is not None:
        add_tiles(made, transposed)
        return
    made.out.extent = prod(spec.outer)
    made.out.weight = spec.cost * spec.inner[0]
    with b.loop("o", b.first, b.last) as rows:
        index = made.outer_indices(rows.index)
        made.hoist(phase, along, index)
        with b.loop("j", Const(0, I8), made.size(along), independent=adjacent) as loop:
            made.body(phase, {**index, along: loop.index})
