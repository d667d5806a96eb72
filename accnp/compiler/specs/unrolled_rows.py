"""Maps and reductions along short axes: each step computes one whole row.

A row is a loop of known length, which `passes.unroll` unrolls, so that the enclosing loop becomes
vector code. Only here, sizes are constants of a kernel. In a loop of three steps, loop control
takes longer than the work, and reducing three numbers in lanes takes thirty times as long as adding
them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod

from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import Const, Expr, Var
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.blocked_reductions import combine_partials, initial_value
from accnp.compiler.specs.kernel_builder import KernelBuilder, loop_type
from accnp.compiler.specs.loop_nests import loop_over_axes
from accnp.compiler.specs.short_axes import LANES
from accnp.ir.kernel import Phase

__all__ = ["add_unrolled_rows"]

_ZERO = Const(0, I8)


def add_unrolled_rows(builder: KernelBuilder) -> None:
    """Add a loop whose steps are rows."""
    spec = builder.spec
    builder.max_constant_stride = LANES
    builder.out.extent = prod(spec.outer)
    builder.out.weight = spec.cost * prod(spec.reduced) * prod(spec.inner)
    short = range(builder.outer, builder.outer + len(spec.reduced) + len(spec.inner))
    stores = [a.strides[builder.outer - 1] for a in spec.accesses if a.store]
    # With other strides, rows might overlap.
    with _loop_over_rows(builder, all(0 <= step <= LANES for step in stores)) as index:
        for s in spec.row_head:
            builder.statement(s, index)
        for phase in spec.phases:
            starts = [initial_value(f.combine, loop_type(f.dtype)) for f in phase.reductions]
            before = dict(builder.values)
            results = _add_pass(builder, phase, index, short, starts)
            builder.values = before
            for f, value in zip(phase.reductions, results, strict=True):
                builder.values[f.name] = value
            for s in phase.row:
                builder.statement(s, index)
            builder.stores(phase.row_stores, index)


@contextmanager
def _loop_over_rows(builder: KernelBuilder, independent: bool) -> Generator[dict[int, Var]]:
    """Loop over the rows; yields the indices of the outer axes.

    Several outer axes are looped over in runs along the last one: with a division for each row, the
    loop could not become vector code.
    """
    loop_ir = builder.loop_ir
    *others, along = range(builder.outer)
    if not others:
        with loop_ir.loop("o", loop_ir.first, loop_ir.last, independent=independent) as loop:
            yield {along: loop.index}
        return
    if builder.tiny:
        with loop_over_axes(builder, [*others, along], independent) as index:
            yield index
        return
    size = builder.size(along)
    last = loop_ir.let("last", call("floordiv", affine((loop_ir.last, 1), constant=-1), size))
    with loop_ir.loop(
        "run", call("floordiv", loop_ir.first, size), affine((last, 1), constant=1)
    ) as runs:
        run = loop_ir.let("run", call("mul", runs.index, size))
        begin = loop_ir.let("begin", call("fmax", run, loop_ir.first))
        end = loop_ir.let("end", call("fmin", affine((run, 1), (size, 1)), loop_ir.last))
        index = builder.indices(runs.index, others, "o")
        first, stop = (affine((x, 1), (run, -1)) for x in (begin, end))
        with loop_ir.loop("o", first, stop, independent=independent) as loop:
            yield {**index, along: loop.index}


def _add_pass(
    builder: KernelBuilder,
    phase: Phase,
    index: dict[int, Var],
    axes: Sequence[int],
    starts: Sequence[Expr],
) -> list[Expr]:
    """Add the statements of a pass for each index of the short axes; return the results of its
    reductions."""
    if not axes:
        builder.body(phase, index)
        pairs = zip(phase.reductions, starts, strict=True)
        return [combine_partials(f.combine, x, builder.values[f.source]) for f, x in pairs]
    loop_ir, spec, (axis, *others) = builder.loop_ir, builder.spec, axes
    sizes = (*spec.outer, *spec.reduced, *spec.inner)
    before = dict(builder.values)
    with loop_ir.loop("k", _ZERO, Const(sizes[axis], I8)) as loop:
        accs = [loop.carry(f.name, x) for f, x in zip(phase.reductions, starts, strict=True)]
        values = _add_pass(builder, phase, {**index, axis: loop.index}, others, accs)
        results = [loop.follow(acc, x) for acc, x in zip(accs, values, strict=True)]
    builder.values = before
    return list(results)
