"""Reduction of a part of a row, block by block and in lanes, for rows (`rows.py`) and chunks
(`chunks.py`)."""

from __future__ import annotations

from collections.abc import Mapping

from accnp.compiler.formulas import converted, expression
from accnp.compiler.loops.builder import Loop, affine, call
from accnp.compiler.loops.functions import identity
from accnp.compiler.loops.ir import Cast, Const, Expr, Index, Var, dtype, number_type
from accnp.compiler.loops.operators import computed
from accnp.compiler.loops.types import B1, I8, DType, part_of
from accnp.compiler.specs.accumulators import accumulator, condition
from accnp.compiler.specs.kernel_builder import KernelBuilder, Place, are_adjacent, loop_type
from accnp.compiler.specs.loop_nests import loop_over_range
from accnp.ir.kernel import BLOCK, Phase
from accnp.ir.op import COMBINES

__all__ = ["combine_partials", "initial_value", "reduce_block", "reduce_range"]


def reduce_range(
    builder: KernelBuilder, phase: Phase, index: Mapping[int, Place], start: Expr, stop: Var
) -> list[Expr]:
    """Add the reductions over start..stop, block by block, and return their results."""
    loop_ir = builder.loop_ir
    before = dict(builder.values)
    guard = condition(phase, range(builder.outer, builder.outer + len(builder.spec.reduced)))
    if guard is not None:  # if it is false, all addends are 0
        text, args, loads = guard
        for s in loads:
            builder.statement(s, index)
        holds = expression(text, [builder.values.get(a, Const(0, I8)) for a in args])
        stop = loop_ir.let("stop", call("select", holds, stop, start))
    with loop_ir.loop("b", start, stop, BLOCK) as loop:
        accs = [
            loop.carry(
                f"{f.name}_acc",
                initial_value(f.combine, loop_type(accumulator(f.dtype, f.combine))),
            )
            for f in phase.reductions
        ]
        builder.break_if_stopped(loop)
        extent = loop_ir.let(
            "m", call("fmin", affine((stop, 1), (loop.index, -1)), Const(BLOCK, I8))
        )
        one = len(builder.spec.reduced) == 1 and are_adjacent(phase.stores, builder.outer)
        reduce = reduce_block if one else _reduce_block_of_axes
        parts = reduce(builder, phase, index, loop, extent)
        results = [
            loop.follow(acc, combine_partials(f.combine, acc, part))
            for f, acc, part in zip(phase.reductions, accs, parts, strict=True)
        ]
    builder.values = before
    return list(results)


def reduce_block(
    builder: KernelBuilder, phase: Phase, index: Mapping[int, Place], loop: Loop, extent: Var
) -> list[Expr]:
    """Add the reductions of one block along a single reduced axis; return their results."""
    loop_ir = builder.loop_ir
    here = {s.name: s for s in phase.full}
    partials: list[Expr] = []
    with loop_ir.reduce(extent) as steps:
        at = Index(((loop.index, 1), (steps.index, 1)))
        builder.body(phase, {**index, builder.outer: at})
        for f in phase.reductions:
            # Elements of memory that are only converted are reduced without a buffer.
            wide = f.direct is not None and f.direct.dtype != f.dtype
            source = here[f.source].args[0] if wide else f.source
            part = steps.reduce_value("part", f.combine, builder.values[source], wide)
            partials.append(converted(part, loop_type(accumulator(f.dtype, f.combine))))
    return partials


def _reduce_block_of_axes(
    builder: KernelBuilder, phase: Phase, index: Mapping[int, Place], loop: Loop, extent: Var
) -> list[Expr]:
    """Add the reductions of a block over several axes, and return their results.

    Loops along the last axis fill the block.
    """
    loop_ir = builder.loop_ir
    values = {f.source: f.dtype for f in phase.reductions}
    buffers = {x: loop_ir.stack("part_values", loop_type(of), BLOCK) for x, of in values.items()}
    end = loop_ir.let("end", affine((loop.index, 1), (extent, 1)))
    adjacent = are_adjacent(phase.stores, builder.reduced_axes[-1])
    with loop_over_range(builder, loop.index, end, builder.reduced_axes, adjacent) as (inner, at):
        builder.body(phase, {**index, **inner})
        for x, buffer in buffers.items():
            loop_ir.store(buffer, at, builder.values[x])
    partials: list[Expr] = []
    for f in phase.reductions:
        part = loop_ir.reduce_elements("part", f.combine, buffers[f.source], Const(0, I8), extent)
        partials.append(converted(part, loop_type(accumulator(f.dtype, f.combine))))
    return partials


def initial_value(name: str, to: DType) -> Expr:
    """Return the initial value of a reduction."""
    if to.kind == "complex":
        return Cast(initial_value(name, part_of(to)), to)
    return Const(identity(name, to), to)


def combine_partials(name: str, x: Expr, y: Expr) -> Expr:
    """Return the combination of two partial results of a reduction."""
    combine = COMBINES[name]
    if number_type(x).kind == "complex":
        return computed(combine.function, x, y)
    of_bools = combine.of_bools if dtype(x) == B1 else ""
    return call(of_bools or combine.function, x, y)
