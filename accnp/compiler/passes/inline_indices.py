"""Pass that inlines variables that are affine indices, so that each access shows its stride in each
loop. Later passes (`vectorize`, `join_rows`) rely on this."""

from __future__ import annotations

from collections.abc import Sequence, Set

from accnp.compiler.loops.builder import affine
from accnp.compiler.loops.ir import (
    Expr,
    For,
    If,
    Index,
    Kernel,
    Let,
    Reduce,
    Stmt,
    Store,
    Var,
    While,
)
from accnp.compiler.loops.types import I8
from accnp.compiler.loops.visiting import (
    expressions,
    map_expr,
    map_statement,
    statements,
    subexpressions,
)

__all__ = ["inline_indices"]

_Known = dict[Var, Expr]


def inline_indices(kernel: Kernel) -> Kernel:
    """Return a kernel without variables that are affine indices."""
    known: _Known = {}
    body = _inline_block(kernel.body, known)
    used = {
        part
        for s in statements(body)
        for x in expressions(s)
        for part in subexpressions(x)
        if isinstance(part, Var)
    }
    return kernel._replace(body=_remove_assignments(body, known.keys() - used))


def _remove_assignments(body: Sequence[Stmt], unused: Set[Var]) -> tuple[Stmt, ...]:
    """Return statements without the assignments of some variables."""
    remaining: list[Stmt] = []
    for s in body:
        if isinstance(s, For | While):
            s = s._replace(body=_remove_assignments(s.body, unused))
        elif isinstance(s, If):
            s = s._replace(
                then=_remove_assignments(s.then, unused),
                orelse=_remove_assignments(s.orelse, unused),
            )
        elif isinstance(s, Reduce):
            steps = [x for x in s.body if not (isinstance(x, Let) and x.var in unused)]
            s = s._replace(body=tuple(steps))
        if not (isinstance(s, Let) and s.var in unused):
            remaining.append(s)
    return tuple(remaining)


def _inline_block(body: Sequence[Stmt], known: _Known) -> tuple[Stmt, ...]:
    new_body: list[Stmt] = []
    for s in body:
        new = map_statement(s, lambda x: _inline(x, known))
        if isinstance(new, Let) and new.var.dtype == I8 and isinstance(new.value, Index | Var):
            known[new.var] = new.value
        elif isinstance(new, For | While):
            if isinstance(new, While):
                new = new._replace(test=_inline(new.test, known))
            new = new._replace(body=_inline_block(new.body, known))
            carried = [c._replace(following=_inline(c.following, known)) for c in new.carried]
            new = new._replace(carried=tuple(carried))
        elif isinstance(new, If):
            new = new._replace(
                then=_inline_block(new.then, known), orelse=_inline_block(new.orelse, known)
            )
            joined = [
                j._replace(then=_inline(j.then, known), orelse=_inline(j.orelse, known))
                for j in new.joined
            ]
            new = new._replace(joined=tuple(joined))
        elif isinstance(new, Reduce):
            steps = [s for s in _inline_block(new.body, known) if isinstance(s, Let | Store)]
            reductions = [f._replace(value=_inline(f.value, known)) for f in new.reductions]
            new = new._replace(body=tuple(steps), reductions=tuple(reductions))
        new_body.append(new)
    return tuple(new_body)


def _inline(x: Expr, known: _Known) -> Expr:
    def change(part: Expr) -> Expr | None:
        if isinstance(part, Var):
            return known.get(part)
        return _inline_affine(part, known) if isinstance(part, Index) else None

    return map_expr(x, change)


def _inline_affine(x: Index, known: _Known) -> Expr | None:
    """Replace the variables of an affine index; None if the result is not affine."""
    terms: list[tuple[Var, int | Var]] = []
    constant = x.constant
    for v, k in x.terms:
        value = known.get(v)
        if value is None:
            terms.append((v, k))
        elif isinstance(value, Var):
            terms.append((value, k))
        elif isinstance(value, Index) and k == 1:
            terms += value.terms
            constant += value.constant
        else:
            return None
    return affine(*terms, constant=constant)
