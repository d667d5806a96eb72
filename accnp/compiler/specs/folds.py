"""Folds of a part of a row, which rows and chunks share: block by block, in lanes."""

from __future__ import annotations

from accnp.codegen.folds import accumulator
from accnp.codegen.tiles import across
from accnp.compiler.formulas import converted
from accnp.compiler.loops.builder import Loop, affine, call
from accnp.compiler.loops.functions import identity
from accnp.compiler.loops.ir import Const, Expr, Var
from accnp.compiler.loops.types import B1, F8, I8
from accnp.compiler.specs.statements import Statements, covered
from accnp.ir.kernel import BLOCK, Fold, KernelSpec, Phase
from accnp.primitives.conversion import EXP_BELOW

__all__ = ["is_plain", "one_pass"]


def is_plain(spec: KernelSpec) -> bool:
    """Whether one axis is folded, whose elements lie side by side, without stores of them."""
    outer = len(spec.outer)
    (phase,) = spec.phases
    if len(spec.reduced) != 1 or spec.inner or len(spec.outer) > 1 or phase.stores:
        return False
    if len(phase.folds) != 1:
        return False
    if any(a.dtype.kind in "iu" and a.dtype.itemsize < 4 for a in spec.accesses):
        return False  # rows of int16 take 1.2 of the time of the text
    if any(s.text in EXP_BELOW.values() for s in phase.full):
        return False  # the pass is left out where a condition fails
    if spec.form == "row" and across(spec, outer, range(outer)) is not None:
        return False  # operands lie across the rows: in tiles
    loads = [s.access for s in (*spec.row_head, *phase.full) if s.access is not None]
    return all(a.strides[outer] in (0, 1) for a in loads)


def one_pass(
    made: Statements, phase: Phase, index: dict[int, Var], start: Expr, stop: Var
) -> list[Expr]:
    """The folds over start..stop, block by block."""
    b = made.b
    before = dict(made.values)
    with b.loop("b", start, stop, BLOCK) as loop:
        accs = [loop.carry(f"{f.name}_acc", _identity(f)) for f in phase.folds]
        extent = b.let("m", call("fmin", affine((stop, 1), (loop.index, -1)), Const(BLOCK, I8)))
        results = []
        for f, acc in zip(phase.folds, accs, strict=True):
            part = _block(made, phase, f, index, loop, extent)
            joined = _joined(f.combine, acc, part)
            results.append(loop.follow(acc, joined))
            made.values = dict(before)
    return list(results)


def _block(
    made: Statements, phase: Phase, f: Fold, index: dict[int, Var], loop: Loop, extent: Var
) -> Expr:
    """The fold of one block."""
    b = made.b
    to = covered(accumulator(f.dtype, f.combine))
    wide = f.direct is not None and f.direct.dtype != f.dtype
    with b.reduce("part", f.combine, extent) as fold:
        at = b.let("q", affine((loop.index, 1), (fold.index, 1)))
        _needed(made, phase, f.source, {**index, made.outer: at}, skip_cast=wide)
        fold.value = made.values[f.source]
        if wide:
            fold.dtype = F8
    return converted(fold.result, to)


def _needed(
    made: Statements, phase: Phase, source: str, index: dict[int, Var], skip_cast: bool
) -> None:
    """Assign what a fold is of. With `skip_cast`, its source is a load that is converted."""
    here = {s.name: s for s in phase.full}
    wanted: set[str] = set()
    stack = [source]
    while stack:
        s = here.get(stack.pop())
        if s is not None and s.name not in wanted and s.name not in made.values:
            wanted.add(s.name)
            stack += s.args
    for s in phase.full:
        if s.name in wanted and not (skip_cast and s.name == source):
            made.statement(s, index)
    if skip_cast:
        made.values[source] = made.values[here[source].args[0]]


def _identity(f: Fold) -> Const:
    """What a fold starts from."""
    to = covered(accumulator(f.dtype, f.combine))
    return Const(identity(f.combine, to), to)


def _joined(combine: str, x: Expr, y: Expr) -> Expr:
    """Two results of a fold as one."""
    functions = {"sum": "add", "prod": "mul", "max": "fmax", "min": "fmin"}
    if isinstance(x, Var) and x.dtype == B1:
        functions = {"max": "or", "min": "and", "sum": "or", "prod": "and"}
    return call(functions.get(combine, combine), x, y)
