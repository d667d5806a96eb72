"""Write functions of users into a kernel of the loop IR that calls them."""

from __future__ import annotations

import ast
import contextlib
import operator
from collections.abc import Callable, Mapping, Sequence

from accnp.compiler.frontend.definitions import is_defined, with_definitions
from accnp.compiler.frontend.functions import UserFunctions
from accnp.compiler.frontend.number_functions import MODULES, NUMBERS
from accnp.compiler.frontend.operators import cast_to, constant
from accnp.compiler.frontend.statements import Written
from accnp.compiler.frontend.syntax import parse_source
from accnp.compiler.loops.ir import Call, Const, Expr, For, If, Kernel, Stmt, While, number_type
from accnp.compiler.loops.visiting import (
    every_part,
    map_expr,
    map_statement,
    names_of,
    statements,
)
from accnp.compiler.passes.inline_indices import inline_indices
from accnp.compiler.passes.lower_reductions import lower_reductions
from accnp.compiler.unsupported import Unsupported

__all__ = ["constants_of", "users_functions", "write_users_functions"]


def _power(x: float, y: float) -> float:
    """x**y, in floating point if the exact result would fill the memory."""
    return x**y if abs(y) <= 64 else float(x) ** y


def _quotient(x: float, y: float) -> float:
    return x / y


def _floor_quotient(x: float, y: float) -> float:
    return x // y


_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: _quotient, ast.FloorDiv: _floor_quotient, ast.Mod: operator.mod,
    ast.Pow: _power,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[float], float]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Not: operator.not_,
}  # fmt: skip


def constants_of(module: ast.Module) -> dict[str, Const]:
    """Return the names that a source gives a number, which may be computed from others."""
    values: dict[str, float] = {}
    for s in module.body:
        if isinstance(s, ast.Assign) and all(isinstance(t, ast.Name) for t in s.targets):
            names = [t.id for t in s.targets if isinstance(t, ast.Name)]
            with contextlib.suppress(ValueError, ArithmeticError, TypeError):
                values |= dict.fromkeys(names, _evaluate_constant(s.value, values))
    found: dict[str, Const] = {}
    for name, value in values.items():
        with contextlib.suppress(Unsupported):
            found[name] = constant(value)
    return found


def _evaluate_constant(x: ast.expr, values: Mapping[str, float]) -> float:
    """The value of an expression of numbers, as Python computes it."""
    if isinstance(x, ast.Constant) and isinstance(x.value, bool | int | float):
        return x.value
    if isinstance(x, ast.Name) and x.id in values:
        return values[x.id]
    if isinstance(x, ast.UnaryOp) and type(x.op) in _UNARY:
        return _UNARY[type(x.op)](_evaluate_constant(x.operand, values))
    if isinstance(x, ast.BinOp) and type(x.op) in _BINARY:
        sides = [_evaluate_constant(side, values) for side in (x.left, x.right)]
        return _BINARY[type(x.op)](*sides)
    if isinstance(x, ast.Attribute) and ast.unparse(x.value) in MODULES and x.attr in NUMBERS:
        return NUMBERS[x.attr]
    raise ValueError(ast.unparse(x))


def write_users_functions(kernel: Kernel) -> Kernel:
    """Return a kernel that calls no functions of users: each is written where it is called.

    Raises
    ------
    Unsupported
        If a function is beyond the language.
    """
    names = users_functions(kernel)
    if not names:
        return kernel
    kernel = lower_reductions(inline_indices(kernel))  # whose steps may have no loops in them
    out = Written(names_of(kernel))
    module = parse_source(with_definitions("\n".join(names)))
    functions = {d.name: d for d in module.body if isinstance(d, ast.FunctionDef)}
    users = UserFunctions(functions, out, constants_of(module))
    body = _block(kernel.body, users, out)
    return kernel._replace(body=body, stack=(*kernel.stack, *out.stack))


def users_functions(kernel: Kernel) -> list[str]:
    """Return the names of the functions of users that a kernel calls."""
    return sorted({x.function for s in statements(kernel.body) for x in _calls(s)})


def _calls(s: Stmt) -> list[Call]:
    """The calls of functions of users in a statement."""
    return [p for p in every_part(s) if isinstance(p, Call) and is_defined(p.function)]


def _block(body: Sequence[Stmt], users: UserFunctions, out: Written) -> tuple[Stmt, ...]:
    def written(x: Expr) -> Expr:
        return map_expr(x, change)

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Call) or not is_defined(part.function):
            return None
        value = users.call(part.function, [written(a) for a in part.args])
        return cast_to(value, number_type(part))

    found: list[Stmt] = []
    for s in body:
        if isinstance(s, For | While):
            found.append(s._replace(body=_block(s.body, users, out)))
        elif isinstance(s, If):
            then, orelse = (_block(b, users, out) for b in (s.then, s.orelse))
            found.append(s._replace(then=then, orelse=orelse))
        elif _calls(s):
            out.blocks.append([])
            new = map_statement(s, written)
            found += [*out.blocks.pop(), new]
        else:
            found.append(s)
    return tuple(found)
