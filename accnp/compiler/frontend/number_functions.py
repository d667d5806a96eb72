"""Functions of `math`, NumPy, and Python of numbers, as loop IR.

The input is the name of a function and its arguments; the output is an expression with the types
and the bits of Numba. What Numba defines in other ways, or for other types, is not here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from accnp.compiler.llvm.intrinsics.all import resolve
from accnp.compiler.loops.builder import call
from accnp.compiler.loops.functions import FUNCTIONS
from accnp.compiler.loops.ir import Call, Const, Expr, dtype, number_type
from accnp.compiler.loops.operators import cast_to, common_type, compare_numbers, computed
from accnp.compiler.loops.types import B1, DTYPES, F8, I8, DType

__all__ = ["MODULES", "NUMBERS", "RENAMED", "SAME", "number_function"]

MODULES = ("math", "np", "numpy", "builtins")
NUMBERS = {name: getattr(math, name) for name in ("pi", "e", "inf", "nan", "tau")}
# Functions of math and NumPy of floats that kernels have by another name.
RENAMED = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "absolute": "abs", "fabs": "abs", "power": "pow",
}  # fmt: skip
# Functions of floats of one type that kernels have by the same name: those of `math`, except that
# `number_function` itself writes some, and `gamma` and `abs`.
_OTHER = {"floor", "ceil", "trunc", "fma"}
SAME = frozenset({*dir(math)} & {*FUNCTIONS} - _OTHER | {"gamma", "abs"})
_BUILTINS = ("abs", "bool", "float", "int", "max", "min")
_CASTS = {"float": F8, "int": I8, "bool": B1, "bool_": B1} | {
    d.numpy.name: d for d in DTYPES.values() if d.kind in ("int", "uint", "float")
}
_Keep = Callable[[str, Expr], Expr]  # a value under a name, so that it is computed once


def number_function(module: str, name: str, arguments: Sequence[Expr], keep: _Keep) -> Expr | None:
    """Return a call of a function of numbers; None if it is not one of those here.

    Parameters
    ----------
    module : str
        One of `MODULES`.
    name : str
        The name of the function in the module.
    arguments : sequence of Expr
        Its arguments.
    keep : callable
        Gives a value a name, so that it is computed once.
    """
    if module == "builtins" and name not in _BUILTINS:
        return None
    of = [dtype(a) for a in arguments]
    if any(not isinstance(t, DType) for t in of):
        return None
    if len(of) == 2 and name in ("min", "max"):
        return _extremum(name, arguments, keep)
    if len(of) == 2 and name in ("minimum", "maximum"):
        return _ufunc_extremum(name, arguments, keep)
    if len(of) == 1 and name in _CASTS and module != "math":
        return cast_to(arguments[0], _CASTS[name])
    if len(set(of)) != 1 or number_type(arguments[0]).kind != "float":
        return None
    if len(of) == 1 and name in _OF_FLOATS:
        return _OF_FLOATS[name](module, keep(name, arguments[0]))
    own = RENAMED.get(name, name)
    intrinsic = resolve(own, tuple(of)) if own in SAME else None
    if intrinsic is None or intrinsic[1] != tuple(of) or intrinsic[0] is None:
        return None
    return Call(own, tuple(arguments), intrinsic[0])


def _extremum(name: str, arguments: Sequence[Expr], keep: _Keep) -> Expr | None:
    """`min` or `max`: the first number unless the second one is less or greater."""
    to = common_type([dtype(a) for a in arguments])
    if not isinstance(to, DType) or to.kind in ("bool", "complex", "half"):
        return None
    a, b = [keep("side", cast_to(v, to)) for v in arguments]
    return call("select", compare_numbers("lt" if name == "min" else "gt", b, a), b, a)


def _ufunc_extremum(name: str, arguments: Sequence[Expr], keep: _Keep) -> Expr | None:
    """`np.minimum` or `np.maximum`: NaN if a number is NaN, and the first one of equal numbers."""
    of = {number_type(a) for a in arguments}
    if len(of) != 1 and of != {F8, I8}:
        return None
    to = F8 if F8 in of else number_type(arguments[0])
    if to.kind in ("bool", "complex", "half"):
        return None
    a, b = [keep("side", cast_to(v, to)) for v in arguments]
    best = call("select", compare_numbers("le" if name == "minimum" else "ge", a, b), a, b)
    if to.kind != "float":
        return best
    best = call("select", compare_numbers("ne", b, b), b, best)
    return call("select", compare_numbers("ne", a, a), a, best)


def _make_rounding(name: str) -> Callable[[str, Expr], Expr]:
    """Return a function that returns an integer for `math`, and a float for NumPy."""

    def write(module: str, x: Expr) -> Expr:
        rounded = call(name, x)
        return cast_to(rounded, I8) if module == "math" else rounded

    return write


def _is_infinite(_: str, x: Expr) -> Expr:
    return compare_numbers("eq", call("abs", x), Const(math.inf, number_type(x)))


_OF_FLOATS: dict[str, Callable[[str, Expr], Expr]] = {
    "floor": _make_rounding("floor"),
    "ceil": _make_rounding("ceil"),
    "trunc": _make_rounding("trunc"),
    "square": lambda _, x: computed("mul", x, x),
    "isnan": lambda _, x: compare_numbers("ne", x, x),
    "isinf": _is_infinite,
    "isfinite": lambda _, x: call("is_finite", x),
}
