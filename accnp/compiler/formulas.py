"""Translation of the scalar formulas of operations, which are Python expressions, to the loop IR.

A formula such as `{0} * {1}` or `select({0}, {2}, {1})` is part of the declaration of an operation.
`{k}` is operand k, names are scalar functions or types, and operators have the types that Numba
gives them: integers are widened to 64 bits, and a float and an int64 give float64.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence

import numpy as np

from accnp.compiler.frontend.calls import resolve_call
from accnp.compiler.loops.builder import call
from accnp.compiler.loops.functions import FUNCTIONS, KEEPS
from accnp.compiler.loops.ir import Call, Cast, Const, Expr, dtype, number_type
from accnp.compiler.loops.operators import BINARY, COMPARE, compare_numbers, computed, negate
from accnp.compiler.loops.types import B1, DTYPES, F4, F8, I8, U8, DType, part_of
from accnp.compiler.unsupported import Unsupported
from accnp.compiler.user_definitions import is_defined

__all__ = ["converted", "expression"]

_OPERATORS: dict[type[ast.AST], str] = {
    **BINARY, **COMPARE, ast.USub: "neg", ast.Invert: "not",
}  # fmt: skip
_TESTS = frozenset(COMPARE.values())
_BITWISE = ("and", "or", "xor", "not")
# The low bits of these results depend only on the low bits of the operands.
_MODULAR = ("add", "sub", "mul", "neg", "and", "or", "xor", "not", "sq")
# For these, rounding to float64 and then to float32 gives the bits of one rounding.
_ROUNDED = ("add", "sub", "mul", "div")


def expression(formula: str, operands: Sequence[Expr]) -> Expr:
    """Return a formula of operands as an expression.

    Parameters
    ----------
    formula : str
        A Python expression in which `{k}` is operand k.
    operands : sequence of Expr
        The operands.

    Raises
    ------
    Unsupported
        If the formula has a function or a type that the loop IR does not have.
    """
    return _convert_formula(_tree(formula, len(operands)), operands)


@functools.cache
def _tree(formula: str, count: int) -> ast.expr:
    return ast.parse(formula.format(*[f"_{k}" for k in range(count)]), mode="eval").body


def _convert_formula(x: ast.expr, operands: Sequence[Expr]) -> Expr:
    if isinstance(x, ast.Name) and x.id.startswith("_"):
        return operands[int(x.id[1:])]
    if isinstance(x, ast.Constant):
        return _constant(x.value)
    if isinstance(x, ast.BinOp) and type(x.op) in _OPERATORS:
        sides = [_convert_formula(side, operands) for side in (x.left, x.right)]
        return _operator(_OPERATORS[type(x.op)], sides)
    if isinstance(x, ast.UnaryOp):
        value = _convert_formula(x.operand, operands)
        if isinstance(x.op, ast.Not):
            return call("not", converted(value, B1))
        if isinstance(value, Const) and isinstance(x.op, ast.USub):
            return _constant(-value.value)
        return _operator(_OPERATORS[type(x.op)], [value])
    if isinstance(x, ast.Compare) and len(x.ops) == 1:
        sides = [_convert_formula(side, operands) for side in (x.left, x.comparators[0])]
        return _operator(_OPERATORS[type(x.ops[0])], sides)
    if isinstance(x, ast.BoolOp):
        first, *rest = [_convert_formula(v, operands) for v in x.values]
        for other in rest:
            first = _call("and" if isinstance(x.op, ast.And) else "or", first, other)
        return first
    if isinstance(x, ast.Attribute) and x.attr in ("real", "imag"):
        return _call(x.attr, _convert_formula(x.value, operands))
    if isinstance(x, ast.Call) and isinstance(x.func, ast.Attribute) and x.func.attr == "conjugate":
        z = _convert_formula(x.func.value, operands)
        return _call("conj", z) if number_type(z).kind == "complex" else z
    if isinstance(x, ast.Call) and isinstance(x.func, ast.Name):
        match x:  # a function of a user, whose result the formula says the type of
            case ast.Call(ast.Name(to), [ast.Call(ast.Name(name), args)]) if is_defined(name):
                return Call(name, tuple([_convert_formula(a, operands) for a in args]), DTYPES[to])
            case _:
                pass
        return _function(x.func.id, [_convert_formula(a, operands) for a in x.args])
    raise Unsupported(type(x).__name__)


def _constant(value: object) -> Const:
    if type(value) is bool:
        return Const(value, B1)
    if type(value) is int:
        return Const(value, I8)
    if type(value) is float:
        return Const(value, F8)
    raise Unsupported(f"the constant {value!r}")


def _call(name: str, *args: Expr) -> Call:
    try:
        return call(name, *args)
    except TypeError as error:
        raise Unsupported(str(error)) from None


def _operator(name: str, args: Sequence[Expr]) -> Expr:
    if name == "neg" and number_type(args[0]).kind == "half":
        return _call(name, *args)
    if any(number_type(a).kind == "complex" for a in args):
        return _complex_operator(name, args)
    args = [_widen_half(a) for a in args]
    if name in _TESTS and number_type(args[0]) != number_type(args[1]) and _has_unsigned(args):
        return compare_numbers(name, *args)
    of = _common_dtype(name, [number_type(a) for a in args])
    return _call(name, *[converted(a, of) for a in args])


def _complex_operator(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) == 1:
        return negate(name, args[0])
    return compare_numbers(name, *args) if name in _TESTS else computed(name, *args)


def _has_unsigned(args: Sequence[Expr]) -> bool:
    return any(number_type(a).kind == "uint" for a in args)


def _widen_half(x: Expr) -> Expr:
    """Convert a number of half precision to float32, as operators take it."""
    return Cast(x, F4) if number_type(x).kind == "half" else x


def _common_dtype(name: str, of: Sequence[DType]) -> DType:
    """Return the type in which Numba computes an operator."""
    alike = all(d == of[0] for d in of)
    if alike and (of[0].kind == "float" or name in _TESTS or (of[0] == B1 and name in _BITWISE)):
        return of[0]
    if any(d.kind == "float" for d in of):
        if any(d.kind != "float" and d != I8 for d in of):
            raise Unsupported("floats with integers that are not literals")
        return F8
    if name == "div":
        return F8
    return U8 if all(d.kind == "uint" for d in of) else I8


def _function(name: str, args: Sequence[Expr]) -> Expr:
    if name in DTYPES and len(args) == 1:
        return converted(args[0], DTYPES[name])
    if name == "one":
        return _one_of_dtype(number_type(args[0]))
    halves = any(number_type(a).kind == "half" for a in args)
    if any(number_type(a).kind == "complex" for a in args) or name not in FUNCTIONS:
        return _call_intrinsic(name, args)
    if halves and not (name in KEEPS and len({dtype(a) for a in args}) == 1):
        args = [_widen_half(a) for a in args] if name != "select" else args
    if name != "select" and len({dtype(a) for a in args}) > 1:
        args = _convert_to_common_type(args)
    elif name == "select":
        args = [args[0], *_convert_to_common_type(args[1:])]
    return _call(name, *args)


def _one_of_dtype(of: DType) -> Expr:
    """Return the number 1 of a type."""
    if of.kind == "complex":
        return Cast(Const(1.0, part_of(of)), of)
    if of.kind == "half":
        return Cast(Const(1.0, F4), of)
    return Const({"bool": True, "float": 1.0}.get(of.kind, 1), of)


def _call_intrinsic(name: str, args: Sequence[Expr]) -> Call:
    """Return a call of a function of complex numbers, or of one that only the table of intrinsics
    has."""
    if name == "select" and dtype(args[1]) == dtype(args[2]):  # without loading the table
        return Call(name, tuple(args), dtype(args[1]))
    result, passed = resolve_call(name, args) or (None, ())
    return _call(name, *args) if result is None else Call(name, passed, result)


def _convert_to_common_type(args: Sequence[Expr]) -> list[Expr]:
    """Convert operands of different types (one is a literal) to the widest of the highest kind."""
    kinds = ("bool", "uint", "int", "half", "float")
    best = max(kinds.index(dtype(a).kind) for a in args)
    same = [number_type(a) for a in args if kinds.index(dtype(a).kind) == best]
    to = max(same, key=lambda d: d.size)
    return [converted(a, to) for a in args]


def converted(x: Expr, to: DType) -> Expr:
    """Return an expression as another type, computed in it where that has the same bits."""
    of = dtype(x)
    if of == to:
        return x
    if isinstance(x, Const):
        const = _constant_as(x, to)
        if const is not None:
            return const
    if isinstance(x, Call):
        whole = of.kind in ("int", "uint") and to.kind in ("int", "uint") and to.size <= of.size
        rounded = (of, to) == (F8, F4) and x.function in _ROUNDED
        if (whole and x.function in _MODULAR) or rounded:
            args = [_narrow_exactly(a, to) for a in x.args]
            if None not in args:
                return _call(x.function, *[a for a in args if a is not None])
    return Cast(x, to)


def _constant_as(x: Const, to: DType) -> Const | None:
    """Return a constant as another type if its value is the same, else None."""
    if to.kind == "float" and dtype(x).kind != "bool":
        value = float(x.value)
        same = to == F8 or float(np.float32(value)) == value or value != value
        return Const(value, to) if same and value == x.value else None
    if to.kind in ("int", "uint") and dtype(x).kind in ("int", "uint"):
        info = np.iinfo(to.numpy)
        return Const(x.value, to) if info.min <= x.value <= info.max else None
    return None


def _narrow_exactly(x: Expr, to: DType) -> Expr | None:
    """Return an expression in a narrower type if the conversion is exact, else None."""
    if isinstance(x, Cast) and dtype(x.value) == to:
        return x.value
    if isinstance(x, Const):
        return _constant_as(x, to)
    if isinstance(x, Call) and dtype(x).kind in ("int", "uint"):
        narrow = converted(x, to)
        return None if isinstance(narrow, Cast) else narrow
    return None
