"""Loops of maps for GPUs: a nest with one loop for each axis, which passes distribute over blocks
and threads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod

from accnp.compiler.loops.builder import Loop
from accnp.compiler.loops.ir import Const
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.kernel_builder import KernelBuilder, Place, are_adjacent
from accnp.ir.kernel import Phase

__all__ = ["add_grid_map", "start_axis_loops"]


def add_grid_map(builder: KernelBuilder) -> None:
    """Add a loop for each axis of a map; the innermost one computes an element."""
    spec, loop_ir = builder.spec, builder.loop_ir
    for s in spec.row_head:
        builder.statement(s, {})
    phase = spec.phases[0] if spec.phases else Phase()
    if not spec.inner:  # a single element, which a loop of one step computes
        with loop_ir.loop("i", loop_ir.first, loop_ir.last, independent=True) as loop:
            for s in (*phase.full, *phase.row):
                builder.statement(s, {})
            for a, name in (*phase.stores, *phase.row_stores):
                loop_ir.store(builder.buffers[id(a)], loop.index, builder.values[name])
        return
    sizes = (*spec.outer, *spec.inner)
    builder.out.extent, builder.out.weight = prod(sizes), spec.cost
    along = len(sizes) - 1
    adjacent = are_adjacent(phase.stores, along)
    if not spec.outer:
        builder.hoist(phase, along, {})
        with loop_ir.loop("i", loop_ir.first, loop_ir.last, independent=adjacent) as loop:
            builder.body(phase, {along: loop.index})
        return
    with ExitStack() as loops:
        builder.body(phase, start_axis_loops(builder, loops, range(along + 1), adjacent))


def start_axis_loops(
    builder: KernelBuilder, loops: ExitStack, axes: Sequence[int], independent: bool = False
) -> dict[int, Place]:
    """Start a loop for each of some axes, and return the indices.

    All steps are independent in kernels that fusion makes. `independent` says that the verifier can
    check this.
    """
    index: dict[int, Place] = {}
    for d in axes:
        checked = independent and d == axes[-1]
        loop: Loop = loops.enter_context(
            builder.loop_ir.loop(f"k{d}", Const(0, I8), builder.size(d), independent=checked)
        )
        index[d] = loop.index
    return index
