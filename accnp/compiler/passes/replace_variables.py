"""Replace variables in expressions by others, or by constants."""

from __future__ import annotations

from collections.abc import Mapping

from accnp.compiler.loops.builder import affine
from accnp.compiler.loops.ir import Const, Expr, Index, Var
from accnp.compiler.loops.visiting import map_expr

__all__ = ["replaced"]


def replaced(x: Expr, known: Mapping[Var, Expr]) -> Expr:
    """Return an expression with other variables, or constants in their place."""

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Var):
            return known.get(part)
        return _sum(part, known) if isinstance(part, Index) else None

    return map_expr(x, change)


def _sum(x: Index, known: Mapping[Var, Expr]) -> Expr:
    terms: list[tuple[Var, int | Var]] = []
    constant = x.constant
    for v, k in x.terms:
        to = known.get(v, v)
        factor = known.get(k, k) if isinstance(k, Var) else k
        if isinstance(factor, Const):
            factor = int(factor.value)
        if isinstance(to, Const) and isinstance(factor, int):
            constant += int(to.value) * factor
        elif isinstance(to, Const):
            assert isinstance(factor, Var)
            terms.append((factor, int(to.value)))
        else:
            assert isinstance(to, Var)
            assert isinstance(factor, int | Var)
            terms.append((to, factor))
    return affine(*terms, constant=constant)
