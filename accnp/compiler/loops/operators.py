"""The types of operators in restricted Python, which are those of Numba.

Integers are widened to 64 bits, floats that meet integers of 32 bits or more to float64, and
numbers of half precision to float32.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from accnp.compiler.loops.builder import call
from accnp.compiler.loops.ir import Call, Cast, Const, Expr, dtype
from accnp.compiler.loops.types import B1, DTYPES, F4, F8, I8, U8, DType, Type, part_of
from accnp.compiler.unsupported import Unsupported

__all__ = [
    "BINARY", "COMPARE", "cast_to", "common_type", "compare_numbers", "computed", "constant",
    "negate", "number_of", "stored_as", "symbol_of", "zero",
]  # fmt: skip

_SYMBOLS: dict[type[ast.operator | ast.cmpop], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in",
    ast.NotIn: "not in",
}  # fmt: skip
# The functions of the loop IR for the operators of Python.
BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div",
    ast.FloorDiv: "floor_quotient", ast.Mod: "floor_remainder",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "shr",
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
_WHOLE = ("int", "uint")
_BITS = ("and", "or", "xor")
_SHIFTS = ("shl", "shr")
_DIVISIONS = ("floor_quotient", "floor_remainder")


def symbol_of(op: ast.operator | ast.cmpop) -> str:
    """Return how an operator or a comparison is written."""
    return _SYMBOLS[type(op)]


_WRITTEN = {name: symbol_of(op()) for op, name in BINARY.items()}  # in Python


def number_of(x: Expr) -> DType:
    """Return the type of an expression, which must be a number.

    Raises
    ------
    Unsupported
        If it is an address.
    """
    value_type = dtype(x)
    if not isinstance(value_type, DType):
        raise Unsupported("an array or address as a number; write a[i] for an element")
    return value_type


def constant(value: object) -> Const:
    """Return a literal: an int is an integer of 64 bits, a float is float64."""
    if type(value) is bool:
        return Const(value, B1)
    if type(value) is int and -(2**63) <= value < 2**64:
        return Const(value, I8 if value < 2**63 else U8)
    if type(value) is float:
        return Const(value, F8)
    raise Unsupported(f"the constant {value!r}")


def cast_to(x: Expr, to: DType) -> Expr:
    """Return an expression as another type; constants where that is exact."""
    of = number_of(x)
    if of == to:
        return x
    if isinstance(x, Const) and of.kind in _WHOLE:
        if to.kind == "float" and abs(x.value) <= 1 << 24:
            return Const(float(x.value), to)
        if to.kind in _WHOLE and 0 <= x.value < 128:
            return Const(x.value, to)
    if isinstance(x, Const) and of == F8 and to == F4 and float(x.value).is_integer():
        return Const(x.value, to) if abs(x.value) <= 1 << 24 and x.value else Cast(x, to)
    return Cast(x, to)


def stored_as(x: Expr, to: DType) -> Expr:
    """Return what is stored of an expression in memory of another type."""
    of = number_of(x)
    loses = of.kind in ("float", "half") and to.kind not in ("float", "half", "complex")
    if of != to and (loses or (of.kind == "complex" and to.kind != "complex")):
        raise Unsupported(f"{of.token} stored as {to.token}; convert it")
    return cast_to(x, to)


def _widen_half(of: DType) -> DType:
    """Return the type in which operators compute with numbers of half precision."""
    return F4 if of.kind == "half" else of


def _common_dtype(of: Sequence[DType]) -> DType:
    """Return the type in which two numbers of different types are computed."""
    kinds = {d.kind for d in of}
    if "complex" in kinds:
        raise Unsupported("a complex number with another type; convert one of them")
    if "float" in kinds:
        whole = [d for d in of if d.kind != "float"]
        if any(d.kind == "bool" or d.size < 4 for d in whole):
            raise Unsupported(
                "a float with a bool or an integer of 8 or 16 bits; convert one of them"
            )
        return F8
    if kinds == {"uint"}:
        return U8
    if any(d == U8 for d in of):
        raise Unsupported("a uint64 with a signed integer; convert one of them")
    return I8


def common_type(of: Sequence[Type]) -> Type:
    """Return the type of a name that holds numbers of some types, which is that of Numba."""
    result = of[0]
    for other in of[1:]:
        if other != result:
            result = _unify_types(result, other)
    return result


def _unify_types(x: Type, y: Type) -> DType:
    """Return the type of a name that holds numbers of two types."""
    kinds = {x.kind, y.kind}
    if not isinstance(x, DType) or not isinstance(y, DType):
        raise Unsupported("an array or address in one case and a number in another")
    if not kinds <= {"bool", "int", "uint", "float"}:
        raise Unsupported("numbers of two types where one is needed; convert one of them")
    if "bool" in kinds:
        return y if x.kind == "bool" else x
    if len(kinds) == 1:
        return x if x.size > y.size else y
    if "float" in kinds:
        real, whole = (x, y) if x.kind == "float" else (y, x)
        return real if whole.size < 4 else F8
    signed, unsigned = (x, y) if x.signed else (y, x)
    if signed.size > unsigned.size:
        return signed
    return DTYPES[f"i{2 * unsigned.size}"] if unsigned.size < 8 else F8


def computed(name: str, x: Expr, y: Expr) -> Expr:
    """Return an operator of two numbers."""
    of = [_widen_half(number_of(a)) for a in (x, y)]
    alike = of[0] == of[1]
    if alike and of[0].kind == "complex":
        if name == "mul":
            return Call("cmul", (x, y), of[0])
        if name in ("add", "sub"):
            return call(name, x, y)
    if name in _SHIFTS:
        if any(d.kind not in _WHOLE for d in of):
            raise Unsupported(f"{_WRITTEN[name]} of numbers that are not integers")
        to = I8 if of[0].signed else U8
    elif alike and (of[0].kind == "float" or (of[0] == B1 and name in _BITS)):
        to = of[0]
    else:
        to = _common_dtype(of)
        to = F8 if name == "div" else to
    if to.kind == "float" and name in (*_BITS, *_DIVISIONS):
        raise Unsupported(f"{_WRITTEN[name]} of floats")
    return call(name, cast_to(x, to), cast_to(y, to))


def compare_numbers(name: str, x: Expr, y: Expr) -> Expr:
    """Return a comparison of two numbers."""
    of = [_widen_half(number_of(a)) for a in (x, y)]
    complex_ones = [d for d in of if d.kind == "complex"]
    if complex_ones and name not in ("eq", "ne"):
        raise Unsupported("an order comparison of complex numbers")
    if complex_ones:
        to = max(complex_ones, key=lambda d: d.size)
    elif of[0] == of[1]:
        to = of[0]
    elif U8 in of and any(isinstance(a, Const) and a.value >= 0 for a in (x, y)):
        to = U8
    else:
        to = _common_dtype(of)
    return call(name, cast_to(x, to), cast_to(y, to))


def negate(name: str, x: Expr) -> Expr:
    """Return -x ("neg") or ~x ("not") of a number."""
    of = number_of(x)
    if of.kind == "half" and name == "neg":
        return Call(name, (x,), of)
    if of == B1 or (name == "not" and of.kind not in _WHOLE):
        raise Unsupported(f"{'-' if name == 'neg' else '~'} of {of.token}")
    if of.kind in _WHOLE:
        x = cast_to(x, I8 if of.signed else U8)
    return call(name, x)


def zero(of: Type) -> Expr:
    """Return the number 0 of a type, or the address of nothing."""
    if not isinstance(of, DType):
        return Const(0, of)
    if of.kind == "complex":
        return Cast(Const(0.0, part_of(of)), of)
    if of.kind == "half":
        return Cast(Const(0.0, F4), of)
    return Const({"bool": False, "float": 0.0}.get(of.kind, 0), of)
