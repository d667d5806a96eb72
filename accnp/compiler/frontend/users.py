"""Inlining of user-defined functions into a kernel of the loop IR that calls them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence

from accnp.compiler.frontend.functions import UserFunctions
from accnp.compiler.frontend.number_functions import MODULES, NUMBERS
from accnp.compiler.frontend.statements import StatementWriter
from accnp.compiler.frontend.syntax import describe_statement, functions_of
from accnp.compiler.loops.ir import Call, Const, Expr, For, If, Kernel, Stmt, While, number_type
from accnp.compiler.loops.operators import cast_to, constant
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
from accnp.compiler.user_definitions import is_defined, with_definitions

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
# Modules that sources can import, and under which names: the text of a function imports these.
_IMPORTED = {(name, None) for name in ("builtins", "cmath", "math", "numpy")} | {("numpy", "np")}


def constants_of(module: ast.Module) -> dict[str, Const]:
    """Return the names that a source gives a number, which may be computed from others.

    Raises
    ------
    Unsupported
        If the source has anything but functions, such names, and imports of modules that functions
        of numbers call.
    """
    values: dict[str, float] = {}
    constants: dict[str, Const] = {}
    for s in module.body:
        try:
            for name, value in _definitions(s, values).items():
                values[name], constants[name] = value, constant(value)
        except Unsupported as error:
            error.locate(s)
            raise
    return constants


def _definitions(s: ast.stmt, values: Mapping[str, float]) -> dict[str, float]:
    """Return the numbers that a statement outside of functions defines, by name."""
    if isinstance(s, ast.FunctionDef):
        if s.decorator_list:
            raise Unsupported(f"a decorator of {s.name}", s.decorator_list[0])
        return {}
    if isinstance(s, ast.Import):
        unknown = [a.name for a in s.names if (a.name, a.asname) not in _IMPORTED]
        if unknown:
            raise Unsupported(f"{ast.unparse(s)}; kernels can import math, numpy, and numpy as np")
        return {}
    if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant):
        return {}  # a docstring
    targets = s.targets if isinstance(s, ast.Assign) else []
    names = [t.id for t in targets if isinstance(t, ast.Name)]
    if not names or len(names) != len(targets):
        raise Unsupported(f"{describe_statement(s)} outside of functions")
    assert isinstance(s, ast.Assign)
    try:
        return dict.fromkeys(names, _evaluate_constant(s.value, values))
    except (ValueError, ArithmeticError, TypeError) as error:
        why = f" ({error})" if isinstance(error, ArithmeticError) else ""
        raise Unsupported(f"{ast.unparse(s.value)}, which is not a number{why}") from None


def _evaluate_constant(x: ast.expr, values: Mapping[str, float]) -> float:
    """Return the value of an expression of numbers, as Python computes it."""
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
    out = StatementWriter(names_of(kernel))
    users = UserFunctions(functions_of(with_definitions("\n".join(names))), out)
    body = _block(kernel.body, users, out)
    return kernel._replace(body=body, stack=(*kernel.stack, *out.stack))


def users_functions(kernel: Kernel) -> list[str]:
    """Return the names of the functions of users that a kernel calls."""
    return sorted({x.function for s in statements(kernel.body) for x in _calls(s)})


def _calls(s: Stmt) -> list[Call]:
    """Return the calls of functions of users in a statement."""
    return [p for p in every_part(s) if isinstance(p, Call) and is_defined(p.function)]


def _block(body: Sequence[Stmt], users: UserFunctions, out: StatementWriter) -> tuple[Stmt, ...]:
    def written(x: Expr) -> Expr:
        return map_expr(x, change)

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Call) or not is_defined(part.function):
            return None
        value = users.call(part.function, [written(a) for a in part.args])
        return cast_to(value, number_type(part))

    new_body: list[Stmt] = []
    for s in body:
        if isinstance(s, For | While):
            new_body.append(s._replace(body=_block(s.body, users, out)))
        elif isinstance(s, If):
            then, orelse = (_block(b, users, out) for b in (s.then, s.orelse))
            new_body.append(s._replace(then=then, orelse=orelse))
        elif _calls(s):
            out.blocks.append([])
            new = map_statement(s, written)
            new_body += [*out.blocks.pop(), new]
        else:
            new_body.append(s)
    return tuple(new_body)
