"""Pass that processes several steps of an interchangeable outer loop together.

In a reduction of columns, the rows are added to partial sums in memory one after the other. After
this pass, the sums are loaded and stored once for several rows.

for r in rb..re interchangeable {       for r in rb..rest step 4 {
  for j in 0..m independent {             for j in 0..m independent {
    sums[j] = add(sums[j], a[r, j])         let x: f4 = add(sums[j], a[r, j])
  }                                         let y: f4 = add(x, a[r + 1, j]) ...
}                                           sums[j] = ...

Each element of memory is still updated in the order of the steps, so that results do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import (
    Const,
    Expr,
    For,
    Index,
    Kernel,
    Let,
    Load,
    Memory,
    Reduce,
    Stmt,
    Store,
    Var,
)
from accnp.compiler.loops.types import I8
from accnp.compiler.loops.visiting import (
    assigned,
    every_part,
    map_expr,
    map_statement,
    replace_loops,
    subexpressions,
)
from accnp.compiler.passes.copies import Copies

__all__ = ["join_rows"]

GROUP = 4  # steps that are processed together
SHORT = 12  # the maximum number of assignments in these steps, to limit code size


def join_rows(kernel: Kernel) -> Kernel:
    """Return a kernel whose interchangeable loops process several steps together."""
    copies: Copies | None = None  # few kernels have such a loop

    def change(s: For | Reduce) -> Sequence[Stmt] | None:
        nonlocal copies
        if not isinstance(s, For) or not _is_joinable(s):
            return None
        copies = copies or Copies(kernel)
        return _join_steps(s, copies.fresh)

    return kernel._replace(body=replace_loops(kernel.body, change))


def _is_joinable(s: For) -> bool:
    """Return whether a loop with short steps may be interchanged with the inner one."""
    if not s.interchangeable or s.step != 1:
        return False
    *before, inner = s.body
    if not isinstance(inner, For) or inner.step != 1 or not _are_plain(before, inner.body):
        return False
    lets = [x for x in inner.body if isinstance(x, Let)]
    loads = [x for x in before if any(isinstance(p, Load) for p in every_part(x))]
    if GROUP * (len(lets) + len(loads)) > SHORT:
        return False
    limits = [p for x in (inner.start, inner.stop) for p in subexpressions(x)]
    return not _step_variables(s).intersection(limits)


def _are_plain(before: Sequence[Stmt], body: Sequence[Stmt]) -> bool:
    return all(isinstance(x, Let) for x in before) and all(isinstance(x, Let | Store) for x in body)


def _step_variables(s: For) -> set[Expr]:
    """Return the variables that differ between the steps of the outer loop."""
    return {s.index, *[v for x in s.body[:-1] for v in assigned(x)]}


def _join_steps(s: For, fresh: Callable[[Var], Var]) -> list[Stmt]:
    """Return a loop over groups of steps, and a loop over the remaining steps."""
    *before, inner = s.body
    assert isinstance(inner, For)
    moving = _step_variables(s) | {v for x in inner.body for v in assigned(x)}
    rest, r, j = (fresh(v) for v in (Var("rest"), s.index, inner.index))
    steps = call("sub", s.stop, s.start)
    whole = call("mul", call("floordiv", steps, Const(GROUP, I8)), Const(GROUP, I8))
    heads: list[Stmt] = []
    body: list[Stmt] = []
    last: dict[tuple[Memory, Expr], Var] = {}  # current values of elements of memory
    for k in range(GROUP):
        known = {s.index: r if k == 0 else fresh(s.index), inner.index: j}
        if k:
            heads.append(Let(known[s.index], affine((r, 1), constant=k)))
        for to, those in ((heads, before), (body, inner.body)):
            for x in those:
                new = map_statement(x, lambda e, known=known: _rename_variables(e, known, last))
                if isinstance(x, Store) and moving.intersection(subexpressions(x.index)):
                    to.append(new)
                elif isinstance(new, Store):
                    var = fresh(Var(new.buffer.name, new.buffer.dtype))
                    to.append(Let(var, new.value))
                    last[new.buffer, new.index] = var
                elif isinstance(new, Let):
                    known[new.var] = fresh(new.var)
                    to.append(new._replace(var=known[new.var]))
    body += [Store(buffer, index, var) for (buffer, index), var in last.items()]
    loop = inner._replace(index=j, body=tuple(body))
    return [
        Let(rest, call("add", s.start, whole)),
        For(r, s.start, rest, GROUP, (*heads, loop)),
        s._replace(start=rest, interchangeable=False),
    ]


def _rename_variables(
    x: Expr, known: Mapping[Var, Var], last: Mapping[tuple[Memory, Expr], Var]
) -> Expr:
    """Return an expression with renamed variables, and with current values in place of loads."""

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Var):
            return known.get(part)
        if isinstance(part, Index):
            terms = [
                (known.get(v, v), known.get(k, k) if isinstance(k, Var) else k)
                for v, k in part.terms
            ]
            return Index(tuple(terms), part.constant)
        if isinstance(part, Load):
            at = part.buffer, map_expr(part.index, change)
            return last.get(at, Load(*at))
        return None

    return map_expr(x, change)
