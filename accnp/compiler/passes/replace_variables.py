"""Substitution of variables in expressions by other variables, affine indices, or constants. Passes
that copy or specialize statements use it."""

from __future__ import annotations

from collections.abc import Mapping

from accnp.compiler.loops.builder import affine
from accnp.compiler.loops.ir import Const, Expr, Index, Var
from accnp.compiler.loops.visiting import map_expr

__all__ = ["replaced"]


def replaced(x: Expr, known: Mapping[Var, Expr]) -> Expr:
    """Return an expression in which the variables in `known` are replaced."""

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Var):
            return known.get(part)
        return _sum(part, known) if isinstance(part, Index) else None

    return map_expr(x, change)


def _sum(x: Index, known: Mapping[Var, Expr]) -> Expr:
    terms: list[tuple[Var, int | Var]] = []
    constant = x.constant
    for v, k in x.terms:
        factor = known.get(k, k) if isinstance(k, Var) else k
        if isinstance(factor, Const):
            factor = int(factor.value)
        assert isinstance(factor, int | Var)
        moved = _index(known.get(v, v))
        for w, m in moved.terms:
            if isinstance(factor, int) and isinstance(m, int):
                terms.append((w, m * factor))
            else:
                assert factor == 1 or m == 1
                terms.append((w, m if factor == 1 else factor))
        if isinstance(factor, int):
            constant += factor * moved.constant
        elif moved.constant:
            terms.append((factor, moved.constant))
    return affine(*terms, constant=constant)


def _index(x: Expr) -> Index:
    if isinstance(x, Const):
        return Index((), int(x.value))
    assert isinstance(x, Var | Index)
    return x if isinstance(x, Index) else Index(((x, 1),))
