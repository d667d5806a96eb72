"""Functions of numbers that users bring, written into the kernels that call them without branches.

Both sides of an `if` are computed, and one of the values is selected, so that a loop around the
call can be vectors. `math.exp`, `numpy.exp` and their like are the functions that kernels have
themselves. A function with a loop, and one that Numba types in another way, is beyond this
(`Unsupported`).
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from accnp.codegen.definitions import with_definitions
from accnp.compiler.frontend.operators import (
    cast_to,
    compared,
    computed,
    constant,
    negated,
)
from accnp.compiler.frontend.syntax import functions_of, walk
from accnp.compiler.intrinsics.all import resolve
from accnp.compiler.loops.builder import call
from accnp.compiler.loops.ir import Call, Const, Expr, Var, dtype, number_type
from accnp.compiler.loops.types import B1, DTYPES, F8, I8, DType
from accnp.compiler.unsupported import Unsupported

__all__ = [
    "BINARY", "COMPARE", "LARGEST", "RENAMED", "SAME", "SQUARINGS", "result_type", "write_call",
]  # fmt: skip

LARGEST = 2000  # operations of a function, its copies after each `if` that returns among them
SQUARINGS = 8  # constant exponents up to this are products

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div",
    ast.FloorDiv: "floor_quotient", ast.Mod: "floor_remainder",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "shr",
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
# Functions of math and NumPy of one floating number that kernels have by another name.
RENAMED = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "absolute": "abs", "fabs": "abs", "power": "pow",
}  # fmt: skip
SAME = frozenset(
    """exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan asin acos atan atan2 sinh cosh tanh
    asinh acosh atanh erf erfc lgamma gamma copysign pow abs""".split()  # noqa: SIM905
)
_CASTS = {"float": F8, "int": I8, "bool": B1, "bool_": B1} | {
    d.numpy.name: d for d in DTYPES.values() if d.kind in ("int", "uint", "float")
}
_NUMBERS = {"pi": 3.141592653589793, "e": 2.718281828459045, "inf": float("inf"),
            "nan": float("nan"), "tau": 6.283185307179586}  # fmt: skip
_MODULES = ("math", "np", "builtins")

Env = dict[str, Expr]


def write_call(
    name: str,
    arguments: Sequence[Expr],
    functions: Mapping[str, ast.FunctionDef],
    let: Callable[[str, Expr], Var],
) -> Expr:
    """Return what a user's function of numbers gives.

    Parameters
    ----------
    name : str
        The name of the function.
    arguments : sequence of Expr
        Its arguments.
    functions : mapping of str to ast.FunctionDef
        The functions of the source.
    let : callable
        Assigns a variable.

    Raises
    ------
    Unsupported
        If the function has no form without branches, or Numba types it in another way.
    """
    return _Body(functions, let).function(name, arguments)


def result_type(name: str, of: Sequence[np.dtype]) -> np.dtype | None:
    """Return the dtype of what a user's function gives; None if Numba must say.

    Parameters
    ----------
    name : str
        The name under which `codegen.definitions` keeps its text.
    of : sequence of numpy.dtype
        The dtypes of its arguments.
    """
    kinds = {d.numpy: d for d in DTYPES.values()}
    count = itertools.count()
    functions = functions_of(with_definitions(name))
    try:
        given = [Var(f"x{next(count)}", kinds[k]) for k in of]
        made = write_call(name, given, functions, lambda n, x: Var(f"t{next(count)}", dtype(x)))
    except (Unsupported, KeyError):
        return None
    return number_type(made).numpy


class _Body:
    def __init__(
        self, functions: Mapping[str, ast.FunctionDef], let: Callable[[str, Expr], Var]
    ) -> None:
        self.functions, self.let = functions, let
        self.left = LARGEST

    def function(self, name: str, arguments: Sequence[Expr]) -> Expr:
        tree = self.functions[name]
        names = [a.arg for a in tree.args.args]
        if len(names) != len(arguments):
            raise Unsupported(f"{name} takes {len(names)} arguments")
        if any(not isinstance(dtype(a), DType) for a in arguments):
            raise Unsupported(f"{name} of memory")
        given = {n: self.kept(n, a) for n, a in zip(names, arguments, strict=True)}
        found = self.block(tree.body, given)
        if found is None:
            raise Unsupported(f"{name} returns nothing")
        return found

    def kept(self, name: str, x: Expr) -> Expr:
        """A value under a name, so that it is computed once."""
        return x if isinstance(x, Const | Var) else self.let(name, x)

    # --- statements ---

    def block(self, nodes: Sequence[ast.stmt], env: Env) -> Expr | None:
        """Do statements; returns what they return, or None where they come to their end."""
        for k, node in enumerate(nodes):
            self.count()
            if isinstance(node, ast.Return) and node.value is not None:
                return self.value(node.value, env)
            if isinstance(node, ast.If):
                found = self.branch(node, nodes[k + 1 :], env)
                if found is not None:
                    return found
            else:
                self.statement(node, env)
        return None

    def count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Unsupported("a function that is too long")

    def branch(self, node: ast.If, rest: Sequence[ast.stmt], env: Env) -> Expr | None:
        test = self.kept("test", self.truth(self.value(node.test, env)))
        mine, other = dict(env), dict(env)
        inside = [n for s in (*node.body, *node.orelse) for n in walk(s)]
        if any(isinstance(n, ast.Return) for n in inside):  # each side goes on to the end
            a = self.block([*node.body, *rest], mine)
            b = self.block([*node.orelse, *rest], other)
            if a is None or b is None:
                raise Unsupported("a way that returns nothing")
            return self.select(test, a, b)
        self.block(node.body, mine)
        self.block(node.orelse, other)
        for name in sorted({*mine, *other}):
            x, y = mine.get(name), other.get(name)
            if x is None or y is None:
                env.pop(name, None)  # has a value on one side only
            elif x is not y:
                env[name] = self.kept(name, self.select(test, x, y))
        return None

    def statement(self, node: ast.stmt, env: Env) -> None:
        if isinstance(node, ast.Assign):
            value = self.value(node.value, env)
            for target in node.targets:
                self.assign(target, value, env)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, self.value(node.value, env), env)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            old, new = self.name(node.target, env), self.value(node.value, env)
            env[node.target.id] = self.kept(node.target.id, self.binary(node.op, old, new))
        elif not isinstance(node, ast.Pass) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            raise Unsupported(type(node).__name__)

    def assign(self, target: ast.expr, value: Expr, env: Env) -> None:
        if not isinstance(target, ast.Name):
            raise Unsupported("an assignment to several names")
        known = env.get(target.id)
        if known is not None and dtype(known) != dtype(value):
            # Numba gives a name one type; where branches meet, that depends on all of them.
            raise Unsupported(f"{target.id} holds numbers of two types")
        env[target.id] = self.kept(target.id, value)

    # --- expressions ---

    def value(self, x: ast.expr, env: Env) -> Expr:
        self.count()
        if isinstance(x, ast.Name):
            return self.name(x, env)
        if isinstance(x, ast.Constant):
            return constant(x.value)
        if isinstance(x, ast.BinOp):
            if isinstance(x.op, ast.Pow):
                return self.power(x, env)
            return self.binary(x.op, self.value(x.left, env), self.value(x.right, env))
        if isinstance(x, ast.UnaryOp):
            return self.unary(x, env)
        if isinstance(x, ast.Compare):
            return self.compare(x, env)
        if isinstance(x, ast.BoolOp):
            first, *others = [self.value(v, env) for v in x.values]
            if any(dtype(v) != B1 for v in (first, *others)):
                raise Unsupported("and, or of values that are not bool")
            for other in others:
                first = call("or" if isinstance(x.op, ast.Or) else "and", first, other)
            return first
        if isinstance(x, ast.IfExp):
            test = self.truth(self.value(x.test, env))
            return self.select(test, self.value(x.body, env), self.value(x.orelse, env))
        if isinstance(x, ast.Call):
            return self.call(x, env)
        if isinstance(x, ast.Attribute) and self.member(x) in _NUMBERS:
            return constant(_NUMBERS[x.attr])
        raise Unsupported(type(x).__name__)

    def name(self, x: ast.Name, env: Env) -> Expr:
        if x.id not in env:
            raise Unsupported(f"{x.id} may have no value")
        return env[x.id]

    def member(self, x: ast.expr) -> str:
        """The name of a member of a module; empty for something else."""
        of_module = isinstance(x, ast.Attribute) and getattr(x.value, "id", "") in _MODULES
        return x.attr if of_module and isinstance(x, ast.Attribute) else ""

    def binary(self, op: ast.operator, x: Expr, y: Expr) -> Expr:
        known = BINARY.get(type(op))
        if known is None:
            raise Unsupported(type(op).__name__)
        return computed(known, x, y)

    def power(self, x: ast.BinOp, env: Env) -> Expr:
        base, exponent = self.kept("base", self.value(x.left, env)), x.right
        if not isinstance(exponent, ast.Constant) or type(exponent.value) is not int:
            other = self.value(exponent, env)
            if dtype(base) != dtype(other) or number_type(base).kind != "float":
                raise Unsupported("a power of two types")
            return call("pow", base, other)
        if not 1 <= exponent.value <= SQUARINGS:
            raise Unsupported("a power")
        found = base
        for bit in bin(exponent.value)[3:]:
            found = self.kept("power", computed("mul", found, found))
            if bit == "1":
                found = self.kept("power", computed("mul", found, base))
        return found

    def unary(self, x: ast.UnaryOp, env: Env) -> Expr:
        value = self.value(x.operand, env)
        if isinstance(x.op, ast.Not):
            return call("not", self.truth(value))
        if isinstance(x.op, ast.UAdd):
            return value
        if isinstance(x.op, ast.USub) and isinstance(value, Const) and value.dtype != B1:
            return constant(-value.value)
        return negated("neg" if isinstance(x.op, ast.USub) else "not", value)

    def compare(self, x: ast.Compare, env: Env) -> Expr:
        values = [self.kept("side", self.value(v, env)) for v in (x.left, *x.comparators)]
        found: Expr | None = None
        for op, a, b in zip(x.ops, values, values[1:], strict=False):
            known = COMPARE.get(type(op))
            if known is None:
                raise Unsupported(type(op).__name__)
            test = compared(known, a, b)
            found = test if found is None else call("and", found, test)
        assert found is not None
        return found

    def call(self, x: ast.Call, env: Env) -> Expr:
        if x.keywords:
            raise Unsupported("arguments by name")
        arguments = [self.value(a, env) for a in x.args]
        if isinstance(x.func, ast.Name) and x.func.id in self.functions:
            return self.function(x.func.id, arguments)
        name = self.member(x.func)
        alike = len({dtype(a) for a in arguments}) == 1
        if name in ("min", "max") and len(arguments) == 2 and alike:
            a, b = [self.kept("side", v) for v in arguments]
            return self.select(compared("lt" if name == "min" else "gt", b, a), b, a)
        if name in _CASTS and len(arguments) == 1:
            return cast_to(arguments[0], _CASTS[name])
        own = RENAMED.get(name, name)
        if own in SAME and alike and number_type(arguments[0]).kind == "float":
            of = tuple([dtype(a) for a in arguments])
            found = resolve(own, of)
            if found is not None and found[1] == of and found[0] is not None:
                return Call(own, tuple(arguments), found[0])
        raise Unsupported(f"a call of {ast.unparse(x.func)}")

    def truth(self, x: Expr) -> Expr:
        return cast_to(x, B1)

    def select(self, test: Expr, x: Expr, y: Expr) -> Expr:
        of = [number_type(v) for v in (x, y)]
        to = of[0]
        if of[0] != of[1]:
            kinds = {d.kind for d in of}
            if "float" not in kinds or not kinds <= {"float", "int"}:
                raise Unsupported("a choice between two types")
            to = F8
        elif to.kind in ("complex", "half"):
            raise Unsupported("a choice of such numbers")
        return call("select", cast_to(test, B1), cast_to(x, to), cast_to(y, to))
