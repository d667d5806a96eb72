"""Loops of reductions for GPUs, which passes then distribute over blocks and threads.

Input: the `KernelBuilder` of a kernel. Output: loops in its builder. The order of summation is the
same as in kernels for the CPU, so that results have the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod

from accnp.compiler.formulas import converted, expression
from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import Buffer, Const, Expr, Index, Var
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.accumulators import accumulator, condition, is_product
from accnp.compiler.specs.blocked_reductions import combine_partials, initial_value
from accnp.compiler.specs.grid_maps import start_axis_loops
from accnp.compiler.specs.kernel_builder import KernelBuilder, Place, loop_type
from accnp.ir.kernel import BLOCK, CHUNK, ROWS, Phase

__all__ = [
    "add_grid_chunks", "add_grid_columns", "add_grid_rows", "multiplies_stored_values",
    "separate_stores",
]  # fmt: skip

_ZERO = Const(0, I8)


def add_grid_columns(builder: KernelBuilder) -> None:
    """Add a loop for each axis of the columns, and inside of these loops over the parts of a column
    and over the rows of a part."""
    spec, loop_ir = builder.spec, builder.loop_ir
    (phase,) = spec.phases
    types = [(f.combine, loop_type(f.dtype), loop_type(accumulator(f.dtype, f.combine)))
             for f in phase.reductions]  # fmt: skip
    with ExitStack() as loops:
        index = start_axis_loops(builder, loops, [*range(builder.outer), builder.along])
        before = dict(builder.values)
        with loop_ir.loop("c", _ZERO, builder.total(), ROWS) as parts:
            accs = [parts.carry("acc", initial_value(combine, acc)) for combine, _, acc in types]
            stop = call("fmin", affine((parts.index, 1), constant=ROWS), builder.total())
            stop = end_of_pass(builder, phase, index, parts.index, stop)
            end = loop_ir.let("end", stop)
            with loop_ir.loop("r", parts.index, end) as rows:
                sums = [rows.carry("sum", initial_value(combine, of)) for combine, of, _ in types]
                builder.body(phase, {**index, **builder.reduced_indices(rows.index)})
                values = [
                    rows.follow(
                        x, converted(combine_partials(f.combine, x, builder.values[f.source]), of)
                    )
                    for f, x, (_, of, _) in zip(phase.reductions, sums, types, strict=True)
                ]
            whole = [
                parts.follow(acc, combine_partials(combine, acc, converted(x, of)))
                for acc, x, (combine, _, of) in zip(accs, values, types, strict=True)
            ]
        builder.values = before
        for s in spec.row_head:
            builder.statement(s, index)
        for f, x in zip(phase.reductions, whole, strict=True):
            builder.values[f.name] = loop_ir.let(f.name, converted(x, loop_type(f.dtype)))
        for s in phase.row:
            builder.statement(s, index)
        builder.stores(phase.row_stores, index)


def end_of_pass(
    builder: KernelBuilder, phase: Phase, index: dict[int, Place], start: Expr, stop: Expr
) -> Expr:
    """Return the end of a pass, which is its start if all addends are 0."""
    guard = condition(phase, builder.reduced_axes)
    if guard is None:
        return stop
    text, args, loads = guard
    for s in loads:
        builder.statement(s, index)
    holds = expression(text, [builder.values.get(a, _ZERO) for a in args])
    return call("select", holds, stop, start)


def separate_stores(phases: Sequence[Phase]) -> list[Phase]:
    """Return passes of which none has both products and stores, because a block whose product
    overflows is read again."""
    new_phases: list[Phase] = []
    for phase in phases:
        if phase.stores and any(map(is_product, phase.reductions)):
            first, rest = Phase(), Phase()
            first.full, first.reductions = phase.full, phase.reductions
            rest.full, rest.stores = phase.full, phase.stores
            rest.row, rest.row_stores = phase.row, phase.row_stores
            new_phases += [first, rest]
        else:
            new_phases.append(phase)
    return new_phases


def multiplies_stored_values(phases: Sequence[Phase]) -> bool:
    """Return whether a pass multiplies values that an earlier pass has stored."""
    loads = [s.access for p in phases if any(map(is_product, p.reductions)) for s in p.full]
    return any(a is not None and a.store for a in loads)


def add_grid_rows(builder: KernelBuilder, phases: Sequence[Phase]) -> None:
    """Add a loop for each axis of the rows, and in it loops over the elements of a row."""
    loop_ir = builder.loop_ir
    with ExitStack() as loops:
        if builder.outer:
            index = start_axis_loops(builder, loops, range(builder.outer))
        else:
            index = {}
            loops.enter_context(loop_ir.loop("o", loop_ir.first, loop_ir.last))
        for s in builder.spec.row_head:
            builder.statement(s, index)
        for phase in phases:
            _add_pass(builder, phase, index, _ZERO, None)
            for s in phase.row:
                builder.statement(s, index)
            builder.stores(phase.row_stores, index)


def _add_pass(
    builder: KernelBuilder, phase: Phase, index: dict[int, Place], start: Expr, stop: Expr | None
) -> list[Expr]:
    """Add one pass over the elements from start to stop, by default all of a row. Return the
    reduced values, before the conversion to the types of the results."""
    loop_ir = builder.loop_ir
    before = dict(builder.values)
    values: list[Expr] = []
    if not builder.spec.reduced:
        builder.body(phase, index)
        values = [builder.values[f.source] for f in phase.reductions]
    elif phase.reductions:
        end = builder.total() if stop is None else stop
        types = [(f.combine, loop_type(accumulator(f.dtype, f.combine))) for f in phase.reductions]
        with loop_ir.loop(
            "b", start, end_of_pass(builder, phase, index, start, end), BLOCK
        ) as blocks:
            accs = [blocks.carry("acc", initial_value(combine, acc)) for combine, acc in types]
            m = loop_ir.let("m", call("fmin", call("sub", end, blocks.index), Const(BLOCK, I8)))
            with loop_ir.reduce(m) as steps:
                at = Index(((blocks.index, 1), (steps.index, 1)))
                builder.body(phase, {**index, **_reduced_indices(builder, at)})
                parts = [steps.reduce_value("piece", f.combine, builder.values[f.source])
                         for f in phase.reductions]  # fmt: skip
            values = [
                blocks.follow(acc, combine_partials(combine, acc, converted(part, of)))
                for acc, part, (combine, of) in zip(accs, parts, types, strict=True)
            ]
        builder.values = before
    elif phase.stores:
        with loop_ir.loop("q", start, builder.total() if stop is None else stop) as elements:
            builder.body(phase, {**index, **_reduced_indices(builder, elements.index)})
        builder.values = before
    if stop is None:
        for f, x in zip(phase.reductions, values, strict=True):
            builder.values[f.name] = loop_ir.let(f.name, converted(x, loop_type(f.dtype)))
    return values


def _reduced_indices(builder: KernelBuilder, flat: Place) -> dict[int, Place]:
    """Return the indices along the reduced axes."""
    if len(builder.spec.reduced) == 1:
        return {builder.outer: flat}
    q = flat if isinstance(flat, Var) else builder.loop_ir.let("q", flat)
    return dict(builder.reduced_indices(q))


def add_grid_chunks(builder: KernelBuilder, phases: Sequence[Phase]) -> None:
    """Add a loop over chunks of rows. If a row has one chunk, its reduction is the result;
    otherwise another kernel reduces those of all chunks."""
    spec, loop_ir, out = builder.spec, builder.loop_ir, builder.out
    total = prod(spec.reduced)
    chunks = max(1, -(-total // CHUNK))
    out.extent = prod(spec.outer) * chunks
    out.weight = spec.cost * min(total, CHUNK)
    phase, last = phases[0], phases[-1]
    results = {name: a for a, name in last.row_stores}
    parts: list[Buffer] = []
    for k, f in enumerate(phase.reductions):
        acc = accumulator(f.dtype, f.combine)
        parts.append(loop_ir.buffer(f"part{k}", loop_type(acc)))
        out.pointers.append((f"part{k}", k, acc))
        out.partials.append((f, results[f.name], chunks))
    count = builder.integer("chunks", "chunks", chunks)
    with loop_ir.loop("u", loop_ir.first, loop_ir.last) as loop:
        u = loop.index
        o = loop_ir.let("o", call("floordiv", u, count))
        chunk = call("sub", u, call("mul", o, count))
        start = loop_ir.let("start", call("mul", chunk, Const(CHUNK, I8)))
        stop = loop_ir.let(
            "stop", call("fmin", affine((start, 1), constant=CHUNK), builder.total())
        )
        index: dict[int, Place] = dict(builder.outer_indices(o)) if spec.outer else {}
        for s in spec.row_head:
            builder.statement(s, index)
        accumulators: list[Expr] = []
        for p in phases:
            accumulators += _add_pass(builder, p, index, start, stop)
        with loop_ir.when(call("eq", count, Const(1, I8))):
            for f, acc in zip(phase.reductions, accumulators, strict=True):
                a = results[f.name]
                loop_ir.store(
                    builder.buffers[id(a)],
                    builder.place(a, index),
                    converted(acc, loop_type(f.dtype)),
                )
        with loop_ir.otherwise():
            for part, acc in zip(parts, accumulators, strict=True):
                loop_ir.store(part, u, acc)
