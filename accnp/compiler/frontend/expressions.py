"""Expressions of numbers in restricted Python as loop IR.

Names, literals, operators, comparisons, `and`, `or`, `not`, choices, and functions of `math` and
NumPy (`number_functions`). The types are those of Numba. Raises `Unsupported` for anything else.
Functions of users have these expressions; `source` adds elements of memory for kernels.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Protocol

from accnp.compiler.frontend.number_functions import MODULES, NUMBERS, number_function
from accnp.compiler.loops.builder import call
from accnp.compiler.loops.ir import Buffer, Const, Expr, Var, dtype
from accnp.compiler.loops.operators import (
    BINARY,
    COMPARE,
    cast_to,
    common_type,
    compare_numbers,
    computed,
    constant,
    negate,
    number_of,
    symbol_of,
)
from accnp.compiler.loops.types import B1, DType
from accnp.compiler.unsupported import Unsupported

__all__ = ["LARGEST", "SQUARINGS", "Expressions", "Users"]

LARGEST = 2000  # operations of a function, its copies after each `if` that returns among them
SQUARINGS = 8  # constant exponents up to this are products
_POWERS = (
    f"a power whose exponent is neither a whole number from 1 to {SQUARINGS} nor a float of the "
    "type of the base"
)


class Users(Protocol):
    """The functions of users in a source."""

    functions: dict[str, ast.FunctionDef]

    def count(self) -> None:
        """Count an operation."""
        ...

    def call(self, name: str, arguments: Sequence[Expr], branches: bool = True) -> Expr:
        """Write a call; `branches` says whether it may have branches and loops."""
        ...


class Expressions:
    """The expressions of a function; subclasses have the statements."""

    users: Users
    values: dict[str, Expr | Buffer]
    branches: bool  # whether calls may have branches and loops

    def let(self, name: str, value: Expr) -> Var:
        """Assign a value to a new variable, and return the variable."""
        raise NotImplementedError

    def let_once(self, name: str, x: Expr) -> Expr:
        """Return a variable with this value, so that it is computed once."""
        return x if isinstance(x, Const | Var) else self.let(name, x)

    def count(self) -> None:
        """Count an operation of a function, whose length is limited."""
        self.users.count()

    def expr(self, x: ast.expr, name: str = "t") -> Expr:
        self.count()
        if isinstance(x, ast.Name):
            return self.name(x.id)
        if isinstance(x, ast.Constant):
            return constant(x.value)
        if isinstance(x, ast.BinOp):
            if isinstance(x.op, ast.Pow):
                return self.power(x)
            return self.binary(x.op, self.expr(x.left), self.expr(x.right))
        if isinstance(x, ast.UnaryOp):
            return self.unary(x)
        if isinstance(x, ast.Compare):
            return self.compare(x)
        if isinstance(x, ast.BoolOp):
            first, *others = [self.expr(v) for v in x.values]
            if any(dtype(v) != B1 for v in (first, *others)):
                raise Unsupported("and, or of values that are not bool")
            for other in others:
                first = call("or" if isinstance(x.op, ast.Or) else "and", first, other)
            return first
        if isinstance(x, ast.IfExp):
            test = self.test(x.test)
            if isinstance(test, Const):
                return self.expr(x.body if test.value else x.orelse)
            return self.select(test, self.expr(x.body), self.expr(x.orelse))
        if isinstance(x, ast.Call):
            return self.call(x)
        if isinstance(x, ast.Attribute) and self.module_of(x) and x.attr in NUMBERS:
            return constant(NUMBERS[x.attr])
        raise Unsupported(f"the expression {ast.unparse(x)}", x)

    def name(self, name: str) -> Expr:
        value = self.values.get(name)
        if not isinstance(value, Const | Var):
            raise Unsupported(f"{name} may have no value")
        return value

    def module_of(self, x: ast.expr) -> str:
        """Return the name of the module of which an expression is a member, or ""."""
        if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name):
            return x.value.id if x.value.id in MODULES and x.value.id not in self.values else ""
        return ""

    def binary(self, op: ast.operator, x: Expr, y: Expr) -> Expr:
        known = BINARY.get(type(op))
        if known is None:
            raise Unsupported(f"the operator {symbol_of(op)}")
        return computed(known, x, y)

    def power(self, x: ast.BinOp) -> Expr:
        base, exponent = self.let_once("base", self.expr(x.left)), x.right
        if not isinstance(exponent, ast.Constant) or type(exponent.value) is not int:
            other = self.expr(exponent)
            if dtype(base) != dtype(other) or number_of(base).kind != "float":
                raise Unsupported(_POWERS)
            return call("pow", base, other)
        if not 1 <= exponent.value <= SQUARINGS:
            raise Unsupported(_POWERS)
        product = base
        for bit in bin(exponent.value)[3:]:
            product = self.let_once("power", computed("mul", product, product))
            if bit == "1":
                product = self.let_once("power", computed("mul", product, base))
        return product

    def unary(self, x: ast.UnaryOp) -> Expr:
        value = self.expr(x.operand)
        if isinstance(x.op, ast.Not):
            return call("not", self.truth(value))
        if isinstance(x.op, ast.UAdd):
            return value
        if isinstance(x.op, ast.USub) and isinstance(value, Const) and value.dtype != B1:
            return constant(-value.value)
        return negate("neg" if isinstance(x.op, ast.USub) else "not", value)

    def compare(self, x: ast.Compare) -> Expr:
        values = [self.expr(v) for v in (x.left, *x.comparators)]
        if len(values) > 2:  # those in the middle are compared twice
            values = [self.let_once("side", v) for v in values]
        result: Expr | None = None
        for op, a, b in zip(x.ops, values, values[1:], strict=False):
            known = COMPARE.get(type(op))
            if known is None:
                raise Unsupported(f"the comparison {symbol_of(op)}")
            test = compare_numbers(known, a, b)
            result = test if result is None else call("and", result, test)
        assert result is not None
        return result

    def call(self, x: ast.Call) -> Expr:
        if x.keywords:
            raise Unsupported(f"arguments by name in a call of {ast.unparse(x.func)}", x)
        arguments = [self.expr(a) for a in x.args]
        if isinstance(x.func, ast.Name) and x.func.id in self.users.functions:
            return self.users.call(x.func.id, arguments, self.branches)
        module = self.module_of(x.func)
        name = x.func.attr if isinstance(x.func, ast.Attribute) else ""
        if isinstance(x.func, ast.Name) and x.func.id not in self.values:
            module, name = "builtins", x.func.id
        value = number_function(module, name, arguments, self.let_once) if module else None
        if value is None:
            of = ", ".join([dtype(a).token for a in arguments])
            raise Unsupported(f"no function {ast.unparse(x.func)} of ({of})", x)
        return value

    def truth(self, x: Expr) -> Expr:
        return cast_to(x, B1)

    def test(self, x: ast.expr) -> Expr:
        """Return an expression as a condition; operands of `and` and `or` need not be bool."""
        if isinstance(x, ast.BoolOp):
            first, *others = [self.test(v) for v in x.values]
            for other in others:
                first = call("or" if isinstance(x.op, ast.Or) else "and", first, other)
            return first
        if isinstance(x, ast.Constant):
            return Const(bool(constant(x.value).value), B1)
        if isinstance(x, ast.Compare) and len(x.ops) == 1 and type(x.ops[0]) in COMPARE:
            sides = (x.left, x.comparators[0])
            known = [constant(v.value) for v in sides if isinstance(v, ast.Constant)]
            if len(known) == 2:  # like Numba, which omits one side
                return Const(bool(eval(ast.unparse(x), {})), B1)
        return self.truth(self.expr(x))

    def select(self, test: Expr, x: Expr, y: Expr) -> Expr:
        to = common_type([dtype(x), dtype(y)])
        if not isinstance(to, DType) or to.kind in ("complex", "half"):
            raise Unsupported("a choice of such numbers")
        return call("select", cast_to(test, B1), cast_to(x, to), cast_to(y, to))
