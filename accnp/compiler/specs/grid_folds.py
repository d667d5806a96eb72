"""Loops of reductions for GPUs, which passes then distribute over blocks and threads.

Input: `Statements` of a kernel. Output: loops in its builder. The order of summation is the same as
in kernels for the CPU, so that results have the same bits.
"""

from __future__ import annotations

from contextlib import ExitStack

from accnp.compiler.formulas import converted, expression
from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import Const, Expr
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.accumulators import accumulator, condition
from accnp.compiler.specs.folds import joined, start_of
from accnp.compiler.specs.nests import axis_loops
from accnp.compiler.specs.statements import Place, Statements, covered
from accnp.ir.kernel import ROWS, Phase

__all__ = ["add_column_nest"]

_ZERO = Const(0, I8)


def add_column_nest(made: Statements) -> None:
    """Add a loop for each axis of the columns, and inside of these loops over the parts of a column
    and over the rows of a part."""
    spec, b = made.spec, made.b
    (phase,) = spec.phases
    types = [(f.combine, covered(f.dtype), covered(accumulator(f.dtype, f.combine)))
             for f in phase.folds]  # fmt: skip
    with ExitStack() as loops:
        index = axis_loops(made, loops, [*range(made.outer), made.along])
        before = dict(made.values)
        with b.loop("c", _ZERO, made.total(), ROWS) as parts:
            accs = [parts.carry("acc", start_of(combine, acc)) for combine, _, acc in types]
            stop = call("fmin", affine((parts.index, 1), constant=ROWS), made.total())
            stop = stop_of(made, phase, index, parts.index, stop)
            end = b.let("end", stop)
            with b.loop("r", parts.index, end) as rows:
                sums = [rows.carry("sum", start_of(combine, of)) for combine, of, _ in types]
                made.body(phase, {**index, **made.reduced_indices(rows.index)})
                found = [
                    rows.follow(x, converted(joined(f.combine, x, made.values[f.source]), of))
                    for f, x, (_, of, _) in zip(phase.folds, sums, types, strict=True)
                ]
            whole = [
                parts.follow(acc, joined(combine, acc, converted(x, of)))
                for acc, x, (combine, _, of) in zip(accs, found, types, strict=True)
            ]
        made.values = before
        for s in spec.row_head:
            made.statement(s, index)
        for f, x in zip(phase.folds, whole, strict=True):
            made.values[f.name] = b.let(f.name, converted(x, covered(f.dtype)))
        for s in phase.row:
            made.statement(s, index)
        made.stores(phase.row_stores, index)


def stop_of(
    made: Statements, phase: Phase, index: dict[int, Place], start: Expr, stop: Expr
) -> Expr:
    """Return the end of a pass, which is its start if all addends are 0."""
    found = condition(phase, made.of_reduced)
    if found is None:
        return stop
    text, args, loads = found
    for s in loads:
        made.statement(s, index)
    holds = expression(text, [made.values.get(a, _ZERO) for a in args])
    return call("select", holds, stop, start)
