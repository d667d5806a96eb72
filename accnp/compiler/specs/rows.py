"""Reductions of rows: each step of the kernel makes some passes over one row.

A pass reduces values over the row, and later passes use the results. Values that one pass computes
for a later one are stored in a row buffer of the kernel, which stays in the caches. For longer
rows, they are stored in the result that the last pass overwrites.
"""

from __future__ import annotations

from contextlib import ExitStack
from math import prod

from accnp.compiler.formulas import converted
from accnp.compiler.loops.ir import Const, Index, Prefetch, Var
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.blocked_reductions import reduce_range
from accnp.compiler.specs.kernel_builder import KernelBuilder, are_adjacent, loop_type
from accnp.compiler.specs.layouts import LINE, supports_transposed_rows, transposed_axis
from accnp.compiler.specs.tiles import add_row_tiles
from accnp.compiler.specs.transposed_rows import add_transposed_rows
from accnp.ir.kernel import Phase

__all__ = ["add_rows"]

AHEAD = 8192  # elements of the next row that are prefetched
KEPT = 1 << 17  # elements of the longest row that gets a row buffer


def add_rows(builder: KernelBuilder) -> None:
    """Add a loop whose steps reduce one row each."""
    spec, loop_ir = builder.spec, builder.loop_ir
    if len(spec.phases) == 1 and spec.reduced and not spec.phases[0].stores:
        d = transposed_axis(spec, builder.along, range(builder.outer))
        if d is not None and supports_transposed_rows(spec, d):
            add_transposed_rows(builder, d)
            return
        if d is not None and len(spec.reduced) == 1:
            add_row_tiles(builder, d)
            return
    builder.out.extent = prod(spec.outer)
    builder.out.weight = spec.cost * prod(spec.reduced)
    several = len(spec.phases) > 1 == len(spec.reduced) and bool(spec.outer)
    if several:
        _keep_rows(builder)
    with loop_ir.loop("o", loop_ir.first, loop_ir.last) as loop:
        index = builder.outer_indices(loop.index) if spec.outer else {}
        for s in spec.row_head:
            builder.statement(s, index)
        for k, phase in enumerate(spec.phases):
            if several and k == 1:  # in the first pass, memory is the bottleneck anyway
                _prefetch_next_row(builder, index)
            builder.stores_to_row_buffers = k + 1 < len(spec.phases)
            _one_pass(builder, phase, index)
            for s in phase.row:
                builder.statement(s, index)
            builder.stores(phase.row_stores, index)


def _one_pass(builder: KernelBuilder, phase: Phase, outer: dict[int, Var]) -> None:
    """Add one pass over a row."""
    loop_ir, index = builder.loop_ir, dict(outer)
    if not builder.spec.reduced:
        builder.body(phase, index)
        values = [builder.values[f.source] for f in phase.reductions]
    elif phase.reductions:
        values = reduce_range(builder, phase, index, Const(0, I8), builder.total())
    elif phase.stores:
        values = []
        before = dict(builder.values)
        axes = range(builder.outer, builder.outer + len(builder.spec.reduced))
        with ExitStack() as loops:
            for d in axes:
                independent = d == axes[-1] and are_adjacent(phase.stores, d)
                loop = loop_ir.loop(f"q{d}", Const(0, I8), builder.size(d), independent=independent)
                index[d] = loops.enter_context(loop).index
            builder.body(phase, index)
        builder.values = before
    else:
        return
    for f, value in zip(phase.reductions, values, strict=True):
        builder.values[f.name] = loop_ir.let(f.name, converted(value, loop_type(f.dtype)))


def _keep_rows(builder: KernelBuilder) -> None:
    """Allocate a row buffer for each result that a pass before the last one writes."""
    spec = builder.spec
    *before, last = [{id(a) for a, _ in p.stores} for p in spec.phases]
    for a in spec.accesses if spec.reduced[0] <= KEPT else ():
        if id(a) in last and any(id(a) in stores for stores in before):
            length = builder.size(builder.outer)
            builder.row_buffers[id(a)] = builder.loop_ir.heap(
                f"row{len(builder.row_buffers)}", loop_type(a.dtype), length
            )


def _prefetch_next_row(builder: KernelBuilder, index: dict[int, Var]) -> None:
    """Prefetch the next row of each operand: memory would be idle during the later passes over a
    row, which is then in the cache."""
    spec, loop_ir, row = builder.spec, builder.loop_ir, builder.outer - 1
    for a in spec.accesses:
        if a.store or a.strides[builder.outer] != 1 or a.strides[row] == 0:
            continue
        near = builder.integer("near", "near", min(spec.reduced[0], AHEAD))
        with loop_ir.loop("j", Const(0, I8), near, LINE // a.dtype.itemsize) as loop:
            following = {**index, row: Index(((index[row], 1),), 1), builder.outer: loop.index}
            loop_ir.add(Prefetch(builder.buffers[id(a)], builder.place(a, following)))
