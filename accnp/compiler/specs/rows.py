"""Folds of rows: a kernel of which each step folds one row."""

from __future__ import annotations

from math import prod

from accnp.compiler.formulas import Unsupported, converted
from accnp.compiler.loops.ir import Const
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.folds import is_plain, one_pass
from accnp.compiler.specs.statements import Statements, covered

__all__ = ["add_rows"]


def add_rows(made: Statements) -> None:
    """Each step folds one row."""
    spec, b = made.spec, made.b
    if len(spec.phases) != 1 or not is_plain(spec):
        raise Unsupported("folds of rows in several passes")
    (phase,) = spec.phases
    made.out.extent = prod(spec.outer)
    made.out.weight = spec.cost * prod(spec.reduced)
    total = made.integer(("n", made.outer), f"n{made.outer}", spec.reduced[0])
    with b.loop("o", b.first, b.last) as loop:
        index = {0: loop.index} if spec.outer else {}
        for s in spec.row_head:
            made.statement(s, index)
        found = one_pass(made, phase, index, Const(0, I8), total)
        for f, acc in zip(phase.folds, found, strict=True):
            made.values[f.name] = b.let(f.name, converted(acc, covered(f.dtype)))
        for s in phase.row:
            made.statement(s, index)
        made.stores(phase.row_stores, index)
