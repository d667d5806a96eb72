"""Functions of numbers written into the kernels that call them, as values without branches.

In: the syntax tree of a function and its arguments as LLVM values with Numba's types. Out: the
value it returns. Both sides of an `if` are computed and one is selected, so that a loop around the
call can be vectors and the same text serves every target; `math.exp` and its like are the functions
that kernels have themselves. What has loops
is written with its branches (`stepwise.py`).
"""

from __future__ import annotations

import ast
import builtins
import cmath
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.np.numpy_support import from_dtype

from accnp.compiler.frontend.expressions import LARGEST, RENAMED, SAME, SQUARINGS
from accnp.compiler.frontend.syntax import walk
from accnp.compiler.numba.namespace import NAMESPACE

__all__ = ["BINARY", "COMPARE", "Body", "NoForm", "Typed", "inlined"]

BINARY: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
COMPARE: dict[type, Any] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
Typed = tuple[Any, Any]


class NoForm(Exception):
    """A function that cannot be a value without branches."""


def inlined(f: Any, tree: ast.FunctionDef, arguments: Sequence[Typed], builder: Any) -> Typed:
    """Write the body of a function where the builder stands; `f` is the kernel's writer.

    Raises:
        NoForm: it has none without branches.
    """
    names = [a.arg for a in tree.args.args]
    if len(names) != len(arguments):
        raise NoForm(f"{tree.name} takes {len(names)} arguments")
    found = Body(f, builder).block(tree.body, dict(zip(names, arguments, strict=True)))
    if found is None:
        raise NoForm(f"{tree.name} returns nothing")
    return found


class Body:
    def __init__(self, f: Any, builder: Any) -> None:
        self.f, self.b = f, builder
        self.left = LARGEST

    def block(self, nodes: Sequence[ast.stmt], env: dict[str, Typed]) -> Typed | None:
        """Do statements; returns what they return, or None where they come to their end."""
        for k, node in enumerate(nodes):
            self.left -= 1
            if self.left < 0:
                raise NoForm("too long")
            if isinstance(node, ast.Return) and node.value is not None:
                return self.value(node.value, env)
            if isinstance(node, ast.If):
                found = self.branch(node, nodes[k + 1 :], env)
                if found is not None:
                    return found
            else:
                self.statement(node, env)
        return None

    def branch(self, node: ast.If, rest: Sequence[ast.stmt], env: dict[str, Typed]) -> Typed | None:
        test = self.truth(self.value(node.test, env))
        mine, other = dict(env), dict(env)
        returns = any(
            isinstance(n, ast.Return) for s in (*node.body, *node.orelse) for n in walk(s)
        )
        if returns:  # each side goes on to the end
            a = self.block([*node.body, *rest], mine)
            b = self.block([*node.orelse, *rest], other)
            if a is None or b is None:
                raise NoForm("a way that returns nothing")
            return self.select(test, a, b)
        self.block(node.body, mine)
        self.block(node.orelse, other)
        for name in {*mine, *other}:
            a, b = mine.get(name), other.get(name)
            if a is None or b is None:
                env.pop(name, None)  # has a value on one side only
            elif a is not b:
                env[name] = self.select(test, a, b)
        return None

    def statement(self, node: ast.stmt, env: dict[str, Typed]) -> None:
        if isinstance(node, ast.Assign):
            value = self.value(node.value, env)
            for target in node.targets:
                self.assign(target, value, env)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, self.value(node.value, env), env)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            old, new = self.name(node.target, env), self.value(node.value, env)
            env[node.target.id] = self.binary(node.op, old, new)
        elif not isinstance(node, ast.Pass) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            raise NoForm(type(node).__name__)

    def assign(self, target: ast.expr, value: Typed, env: dict[str, Typed]) -> None:
        if not isinstance(target, ast.Name):
            raise NoForm("an assignment to several names")
        known = env.get(target.id)
        if known is not None and known[0] != value[0]:
            # Numba gives a name one type; where branches meet, that depends on all of them.
            raise NoForm(f"{target.id} holds both {known[0]} and {value[0]}")
        env[target.id] = value

    # --- expressions ---

    def value(self, x: ast.expr, env: dict[str, Typed]) -> Typed:
        if isinstance(x, ast.Name):
            return self.name(x, env)
        if isinstance(x, ast.Constant):
            return self.constant(x.value)
        if isinstance(x, ast.BinOp):
            if isinstance(x.op, ast.Pow):
                return self.power(x, env)
            return self.binary(x.op, self.value(x.left, env), self.value(x.right, env))
        if isinstance(x, ast.UnaryOp):
            return self.unary(x, env)
        if isinstance(x, ast.Compare):
            return self.compare(x, env)
        if isinstance(x, ast.BoolOp):
            values = [self.value(v, env) for v in x.values]
            if any(kind is not types.boolean for kind, _ in values):
                raise NoForm("and, or of values that are not bool")
            op = operator.or_ if isinstance(x.op, ast.Or) else operator.and_
            return self.fold(op, values)
        if isinstance(x, ast.IfExp):
            test = self.truth(self.value(x.test, env))
            return self.select(test, self.value(x.body, env), self.value(x.orelse, env))
        if isinstance(x, ast.Call):
            return self.call(x, env)
        if isinstance(x, ast.Attribute):
            return self.constant(self.meant(x, env))
        raise NoForm(type(x).__name__)

    def name(self, x: ast.Name, env: Mapping[str, Typed]) -> Typed:
        if x.id not in env:
            raise NoForm(f"{x.id} may have no value")
        return env[x.id]

    def constant(self, value: Any) -> Typed:
        if type(value) not in (bool, int, float):
            raise NoForm(f"the constant {value!r}")
        return self.f.constant(value)

    def binary(self, op: ast.operator, a: Typed, b: Typed) -> Typed:
        known = BINARY.get(type(op))
        if known is None:
            raise NoForm(type(op).__name__)
        return self.apply(known, [a, b])

    def power(self, x: ast.BinOp, env: dict[str, Typed]) -> Typed:
        base, exponent = self.value(x.left, env), x.right
        if not isinstance(exponent, ast.Constant) or type(exponent.value) is not int:
            other = self.value(exponent, env)
            if base[0] != other[0] or not isinstance(base[0], types.Float):
                raise NoForm("a power of two types")
            return self.apply(NAMESPACE["pow"], [base, other])
        n = exponent.value
        if not 1 <= n <= SQUARINGS:
            raise NoForm("a power")
        found = base
        for bit in bin(n)[3:]:
            found = self.apply(operator.mul, [found, found])
            if bit == "1":
                found = self.apply(operator.mul, [found, base])
        return found

    def unary(self, x: ast.UnaryOp, env: dict[str, Typed]) -> Typed:
        if isinstance(x.op, ast.Not):
            test = self.truth(self.value(x.operand, env))
            return self.apply(operator.xor, [test, self.constant(True)])
        if isinstance(x.op, ast.USub) and isinstance(x.operand, ast.Constant):
            return self.constant(-x.operand.value)  # type: ignore[operator]
        value = self.value(x.operand, env)
        if isinstance(x.op, ast.UAdd):
            return value
        return self.apply(operator.neg if isinstance(x.op, ast.USub) else operator.invert, [value])

    def compare(self, x: ast.Compare, env: dict[str, Typed]) -> Typed:
        values = [self.value(v, env) for v in (x.left, *x.comparators)]
        found = []
        for op, a, b in zip(x.ops, values, values[1:], strict=False):
            known = COMPARE.get(type(op))
            if known is None:
                raise NoForm(type(op).__name__)
            found.append(self.apply(known, [a, b]))
        return self.fold(operator.and_, found)

    def call(self, x: ast.Call, env: dict[str, Typed]) -> Typed:
        if x.keywords:
            raise NoForm("arguments by name")
        callee = self.meant(x.func, env)
        arguments = [self.value(a, env) for a in x.args]
        if callee in (min, max) and len(arguments) == 2 and arguments[0][0] == arguments[1][0]:
            a, b = arguments
            op = operator.lt if callee is min else operator.gt
            return self.select(self.apply(op, [b, a]), b, a)
        if hasattr(callee, "accnp_tree"):
            return self.brought(callee, arguments)
        if callee in (float, int, bool) or (
            isinstance(callee, type) and issubclass(callee, np.generic)
        ):
            return self.cast(arguments, callee)
        own = RENAMED.get(getattr(callee, "__name__", ""), getattr(callee, "__name__", ""))
        known = own in SAME and any(
            getattr(m, n, None) is callee for m in (math, np, builtins) for n in (callee.__name__,)
        )
        floating = {kind for kind, _ in arguments} <= {types.float32, types.float64}
        if known and floating and len({kind for kind, _ in arguments}) == 1:
            return self.apply(NAMESPACE[own], arguments)
        return self.apply(callee, arguments)

    def brought(self, callee: Any, arguments: list[Typed]) -> Typed:
        """Call another user function; what has a loop must not be done on both sides of
        an `if`, where it may never end."""
        return inlined(self.f, callee.accnp_tree, arguments, self.b)

    def meant(self, x: ast.expr, env: Mapping[str, Typed]) -> Any:
        """The object that a name or an attribute of a module is."""
        if isinstance(x, ast.Name) and x.id not in env and x.id in self.f.scope:
            return self.f.scope[x.id]
        if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name):
            module = self.meant(x.value, env)
            if module in (math, cmath, np, builtins) and hasattr(module, x.attr):
                return getattr(module, x.attr)
        raise NoForm(ast.unparse(x))

    def cast(self, arguments: list[Typed], to: Any) -> Typed:
        kinds = {float: types.float64, int: types.int64, bool: types.boolean}
        kind = kinds.get(to) or from_dtype(np.dtype(to))
        if len(arguments) != 1:
            raise NoForm("a conversion of several values")
        return kind, self.converted(arguments[0], kind)

    # --- values ---

    def apply(self, callee: Any, arguments: list[Typed]) -> Typed:
        self.left -= 1
        return self.f.emit(callee, arguments, self.b)

    def fold(self, op: Any, values: list[Typed]) -> Typed:
        found = values[0]
        for v in values[1:]:
            found = self.apply(op, [found, v])
        return found

    def converted(self, value: Typed, to: Any) -> Any:
        kind, v = value
        return v if kind == to else self.f.context.cast(self.b, v, kind, to)

    def truth(self, value: Typed) -> Typed:
        return types.boolean, self.converted(value, types.boolean)

    def select(self, test: Typed, a: Typed, b: Typed) -> Typed:
        kind = a[0] if a[0] == b[0] else self.f.typing.unify_types(a[0], b[0])
        if kind is None or not isinstance(kind, types.Number | types.Boolean):
            raise NoForm(f"a choice between {a[0]} and {b[0]}")
        x, y = self.converted(a, kind), self.converted(b, kind)
        if not isinstance(x.type, ir.IntType | ir.FloatType | ir.DoubleType):
            raise NoForm(f"a choice of {kind}")
        return kind, self.b.select(test[1], x, y)
