"""Pass that specializes a kernel to its sizes.

Integer arguments become constants, expressions of constants are folded, and loops of one step
become statements. The pipeline does not run this pass: `compiler/specs/launches.py` uses it for
kernels of a few elements that are called in loops. Other kernels serve all shapes of a layout.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from accnp.compiler.loops.ir import (
    Break,
    Call,
    Carried,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Reduce,
    Stmt,
    Store,
    Var,
    While,
)
from accnp.compiler.loops.types import B1, I8
from accnp.compiler.loops.visiting import map_expr, map_statement
from accnp.compiler.passes.replace_variables import replaced

__all__ = ["fix_sizes"]

_Known = dict[Var, Expr]
_WHOLE: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "fmin": min, "fmax": max,
    "floordiv": lambda x, y: x // max(y, 1),
}  # fmt: skip
_TESTS: dict[str, Callable[[int, int], bool]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


def fix_sizes(kernel: Kernel, sizes: Mapping[Var, int]) -> Kernel:
    """Return a kernel that is only valid for these sizes.

    Parameters
    ----------
    kernel : Kernel
        A kernel before the passes.
    sizes : mapping of Var to int
        The first and the last step, and the integer arguments. The result still has these
        arguments, but does not use them.
    """
    known: _Known = {v: Const(n, I8) for v, n in sizes.items()}
    return kernel._replace(body=tuple(_specialize_block(kernel.body, known)), sized=True)


def _specialize_block(body: Sequence[Stmt], known: _Known) -> list[Stmt]:
    new_body: list[Stmt] = []
    for s in body:
        new = map_statement(s, lambda x: _fold_constants(x, known))
        if isinstance(new, Let) and isinstance(new.value, Const):
            known[new.var] = new.value
        elif isinstance(new, For):
            new_body += _specialize_loop(new, known)
        elif isinstance(new, While):
            test, rest = _fold_constants(new.test, known), tuple(_specialize_block(new.body, known))
            new_body.append(
                new._replace(test=test, body=rest, carried=_specialize_carried(new, known))
            )
        elif isinstance(new, If):
            new_body += _specialize_if(new, known)
        elif isinstance(new, Reduce):
            steps = [x for x in _specialize_block(new.body, known) if isinstance(x, Let | Store)]
            reductions = [f._replace(value=_fold_constants(f.value, known)) for f in new.reductions]
            new_body.append(new._replace(body=tuple(steps), reductions=tuple(reductions)))
        else:
            new_body.append(new)
    return new_body


def _specialize_loop(s: For, known: _Known) -> list[Stmt]:
    """Specialize a loop whose limits and initial values have been replaced already."""
    leaves = any(isinstance(x, Break) for x in s.body)
    if isinstance(s.start, Const) and isinstance(s.stop, Const) and not leaves:
        count = len(range(int(s.start.value), int(s.stop.value), s.step))
        if count == 0:
            return _assign_values([(c.result, c.start) for c in s.carried], known)
        if count == 1:
            known[s.index] = s.start
            new_body = _assign_values([(c.var, c.start) for c in s.carried], known)
            new_body += _specialize_block(s.body, known)
            last = [(c.result, _fold_constants(c.following, known)) for c in s.carried]
            return [*new_body, *_assign_values(last, known)]
    body = tuple(_specialize_block(s.body, known))
    inner = body[-1] if body else None
    swaps = s.interchangeable and isinstance(inner, For) and inner.independent
    return [s._replace(body=body, carried=_specialize_carried(s, known), interchangeable=swaps)]


def _specialize_carried(s: For | While, known: _Known) -> tuple[Carried, ...]:
    return tuple([c._replace(following=_fold_constants(c.following, known)) for c in s.carried])


def _specialize_if(s: If, known: _Known) -> list[Stmt]:
    """Specialize an `If` whose condition has been replaced already."""
    if isinstance(s.test, Const):
        new_body = _specialize_block(s.then if s.test.value else s.orelse, known)
        ways = [(j.result, j.then if s.test.value else j.orelse) for j in s.joined]
        return [
            *new_body,
            *_assign_values([(v, _fold_constants(x, known)) for v, x in ways], known),
        ]
    then = tuple(_specialize_block(s.then, known))
    orelse = tuple(_specialize_block(s.orelse, known))
    joined = [
        j._replace(then=_fold_constants(j.then, known), orelse=_fold_constants(j.orelse, known))
        for j in s.joined
    ]
    return [s._replace(then=then, orelse=orelse, joined=tuple(joined))]


def _assign_values(values: Sequence[tuple[Var, Expr]], known: _Known) -> list[Stmt]:
    """Return assignments of values, and add constants to `known` instead."""
    known |= {v: x for v, x in values if isinstance(x, Const)}
    return [Let(v, x) for v, x in values if not isinstance(x, Const)]


def _fold_constants(x: Expr, known: _Known) -> Expr:
    """Return an expression after replacing known variables and folding constants."""

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Call):
            return None
        args = tuple([map_expr(a, change) for a in part.args])
        return _evaluate_call(part._replace(args=args))

    return map_expr(replaced(x, known), change)


def _evaluate_call(x: Call) -> Expr:
    if x.function == "select" and isinstance(x.args[0], Const):
        return x.args[1] if x.args[0].value else x.args[2]
    values = [int(a.value) for a in x.args if isinstance(a, Const) and a.dtype == I8]
    if len(values) < len(x.args):
        return x
    if x.function in _TESTS:
        return Const(_TESTS[x.function](*values), B1)
    return Const(_WHOLE[x.function](*values), I8) if x.function in _WHOLE else x
