# isort: skip_file
"""The elementwise functions of the namespace, one declaration each.

In: arrays and numbers. Out: lazy Arrays.

`unary`: name, op or rule, how the operand is prepared, what it computes. `binary`: the same for
two operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from accnp.api.arguments.convert import (
    as_node, broadcast_nodes, broadcast_shapes, cast, promote, to_shape, wrap,
)  # fmt: skip
from accnp.api.compiled.named import shown
from accnp.api.elements import ruled_functions as ruled
from accnp.api.elements import ufunc_rules as rules
from accnp.api.elements.elementwise import (
    Binary, inexact, make_binary, make_unary, numeric, wrap_all,
)  # fmt: skip
from accnp.api.elements.ufunc_rules import like
from accnp.array import Array
from accnp.errors import UnsupportedDtypeError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.kinds import full

UNARY: dict[str, Any] = {}
BINARY: dict[str, Binary] = {}


def unary(
    name: str, rule: Any, prepare: Any, what: str, shown: str = "", parameters: str = "x, /"
) -> Callable[[Any], Any]:
    """Declare a function of one operand; jaxprs have it as a call of the name `shown`."""
    doc = f"{what}, elementwise."
    UNARY[name] = function = make_unary(name, rule, prepare, doc, shown, parameters)
    return function


def binary(
    name: str, rule: Any, prepare: Any, what: str, shown: str = "", parameters: str = "x1, x2, /"
) -> Callable[[Any, Any], Any]:
    """Declare a function of two operands, which are promoted and broadcast against each other."""
    doc = f"{what}, elementwise."
    BINARY[name] = made = make_binary(name, rule, prepare, doc, shown, parameters)
    return made.function


def _real_inexact(name: str, *xs: Any) -> list[Node]:
    nodes = inexact(name, *xs)
    if rules.kind(nodes[0]) == "c":
        raise UnsupportedDtypeError(
            f"{name}: complex operands are not supported; got complex; take jnp.real first"
        )
    return nodes


def _real_strong(name: str, *xs: Any) -> list[Node]:
    nodes = _real_inexact(name, *xs)
    weak = not [x for x in xs if not as_node(x, name).aval.weak_type]
    return nodes if weak else [cast(n, n.aval.dtype) for n in nodes]


def _integers(name: str, *xs: Any) -> list[Node]:
    nodes = promote(name, *xs)
    if rules.kind(nodes[0]) not in "iu":
        dtype = nodes[0].aval.dtype.name
        raise ValueError(
            f"{name}: arguments must be integers; got {dtype}; convert with astype first"
        )
    return nodes


# --- arithmetic -----------------------------------------------------------------------------------

add = binary("add", rules.add, promote, "x + y")
subtract = binary("subtract", "sub", promote, "x - y")
multiply = binary("multiply", rules.multiply, promote, "x * y")
divide = binary("divide", "div", inexact, "x / y, always in floating or complex numbers")
true_divide = divide
floor_divide = binary(
    "floor_divide", rules.floor_divide, numeric, "x / y rounded down", "floor_divide"
)
remainder = binary(
    "remainder", rules.remainder, numeric, "The remainder of x / y with the sign of y", "remainder"
)
mod = remainder
fmod = binary("fmod", rules.fmod, numeric, "The remainder of x / y with the sign of x", "fmod")
divmod = binary("divmod", rules.divmod_, numeric, "Quotient rounded down, and remainder", "divmod")
float_power = binary(
    "float_power", "pow", inexact, "x to the power y, in floating numbers", parameters="x, y, /"
)
negative = unary("negative", "neg", promote, "-x")
positive = unary("positive", lambda x: x, promote, "+x")
abs = unary("abs", lambda x: x if rules.kind(x) == "b" else o.abs(x), promote, "The absolute value")
absolute = abs
fabs = unary("fabs", "abs", _real_inexact, "The absolute value, in floating numbers")
sign = unary("sign", "sign", promote, "-1, 0 or 1 by the sign; x/abs(x) for complex numbers")
square = unary("square", "square", numeric, "x * x")
reciprocal = unary("reciprocal", lambda x: o.integer_pow(x, y=-1), inexact, "1 / x")
sqrt = unary("sqrt", "sqrt", inexact, "The square root")
cbrt = unary("cbrt", "cbrt", inexact, "The cube root")
hypot = binary("hypot", rules.hypot, _real_strong, "sqrt(x*x + y*y) without overflow", "hypot")
gcd = binary("gcd", "gcd", _integers, "The greatest common divisor", parameters="x1, x2")
lcm = binary("lcm", rules.lcm, _integers, "The least common multiple", parameters="x1, x2")

# --- exponentials, logarithms ---------------------------------------------------------------------

exp = unary("exp", "exp", inexact, "e to the power x")
exp2 = unary("exp2", "exp2", inexact, "2 to the power x")
expm1 = unary("expm1", "expm1", inexact, "exp(x) - 1, accurate near 0")
log = unary("log", "log", inexact, "The natural logarithm")
log2 = unary("log2", rules.log2, inexact, "The logarithm to base 2")
log10 = unary("log10", rules.log10, inexact, "The logarithm to base 10")
log1p = unary("log1p", "log1p", inexact, "log(1 + x), accurate near 0")
logaddexp = binary("logaddexp", ruled.logaddexp, inexact, "log(exp(x) + exp(y)) without overflow")
logaddexp2 = binary("logaddexp2", ruled.logaddexp2, inexact, "log2(2**x + 2**y) without overflow")
i0 = unary(
    "i0",
    ruled.i0,
    _real_inexact,
    "The modified Bessel function of the first kind, order 0",
    "i0",
    parameters="x",
)

# --- trigonometry ---------------------------------------------------------------------------------

sin = unary("sin", "sin", inexact, "The sine of x in radians")
cos = unary("cos", "cos", inexact, "The cosine of x in radians")
tan = unary("tan", "tan", inexact, "The tangent of x in radians")
asin = unary("asin", "asin", inexact, "The inverse sine")
acos = unary("acos", "acos", inexact, "The inverse cosine")
atan = unary("atan", "atan", inexact, "The inverse tangent")
arcsin = unary("arcsin", "asin", inexact, "The inverse sine")
arccos = unary("arccos", "acos", inexact, "The inverse cosine")
arctan = unary("arctan", "atan", inexact, "The inverse tangent")
atan2 = binary("atan2", rules.atan2, inexact, "The angle of the point (y, x)")
arctan2 = binary("arctan2", rules.atan2, inexact, "The angle of the point (y, x)")
sinh = unary("sinh", "sinh", inexact, "The hyperbolic sine")
cosh = unary("cosh", "cosh", inexact, "The hyperbolic cosine")
tanh = unary("tanh", "tanh", inexact, "The hyperbolic tangent")
asinh = unary("asinh", "asinh", inexact, "The inverse hyperbolic sine")
acosh = unary("acosh", "acosh", inexact, "The inverse hyperbolic cosine", "arccosh")
atanh = unary("atanh", "atanh", inexact, "The inverse hyperbolic tangent")
arcsinh = unary("arcsinh", "asinh", inexact, "The inverse hyperbolic sine")
arccosh = unary("arccosh", "acosh", inexact, "The inverse hyperbolic cosine", "arccosh")
arctanh = unary("arctanh", "atanh", inexact, "The inverse hyperbolic tangent")
deg2rad = unary(
    "deg2rad", lambda x: o.mul(x, like(x, math.pi / 180)), inexact, "Degrees to radians"
)
rad2deg = unary(
    "rad2deg", lambda x: o.mul(x, like(x, 180 / math.pi)), inexact, "Radians to degrees"
)
radians = deg2rad
degrees = rad2deg
sinc = unary("sinc", ruled.sinc, inexact, "sin(pi*x) / (pi*x)", "sinc")

# --- rounding, parts, signs -----------------------------------------------------------------------

floor = unary("floor", rules.rounded(o.floor), promote, "The largest integer not above x")
ceil = unary("ceil", rules.rounded(o.ceil), promote, "The smallest integer not below x")
trunc = unary("trunc", rules.trunc, promote, "x without its fraction", "trunc", parameters="x")
fix = trunc
rint = unary("rint", rules.rint, promote, "The nearest integer, halves to the even one", "rint")
signbit = unary("signbit", rules.signbit, promote, "Whether the sign bit is set", "signbit")
copysign = binary(
    "copysign", rules.copysign, _real_inexact, "abs(x) with the sign of y", "copysign"
)
nextafter = binary(
    "nextafter",
    "nextafter",
    _real_inexact,
    "The next number after x towards y",
    parameters="x, y, /",
)
heaviside = binary(
    "heaviside", rules.heaviside, _real_strong, "0 below 0, 1 above 0, y at 0", "heaviside"
)
frexp = unary("frexp", rules.frexp, _real_inexact, "Mantissa and exponent", "frexp")
_modf = unary("modf", rules.modf, _real_inexact, "", "modf")
real = unary("real", rules.real, promote, "The real part", parameters="val, /")
imag = unary("imag", rules.imag, promote, "The imaginary part", parameters="val, /")
conj = unary("conj", rules.conj, promote, "The complex conjugate")
conjugate = conj

# --- comparison, logic, bits ----------------------------------------------------------------------

equal = binary("equal", "eq", promote, "x == y", parameters="x, y, /")
not_equal = binary("not_equal", "ne", promote, "x != y", parameters="x, y, /")
less = binary("less", rules.compare("lt"), promote, "x < y", parameters="x, y, /")
less_equal = binary("less_equal", rules.compare("le"), promote, "x <= y", parameters="x, y, /")
greater = binary("greater", rules.compare("gt"), promote, "x > y", parameters="x, y, /")
greater_equal = binary(
    "greater_equal", rules.compare("ge"), promote, "x >= y", parameters="x, y, /"
)
maximum = binary("maximum", rules.maximum, promote, "The larger of x and y; nan if one of them is")
minimum = binary("minimum", rules.minimum, promote, "The smaller of x and y; nan if one of them is")
fmax = binary(
    "fmax",
    rules.fmax,
    promote,
    "The larger of x and y; the other one if one is nan",
    "fmax",
    parameters="x1, x2",
)
fmin = binary(
    "fmin",
    rules.fmin,
    promote,
    "The smaller of x and y; the other one if one is nan",
    "fmin",
    parameters="x1, x2",
)
logical_and = binary("logical_and", rules.logical("and_"), promote, "x and y as truth values")
logical_or = binary("logical_or", rules.logical("or_"), promote, "x or y as truth values")
logical_xor = binary(
    "logical_xor", rules.logical("xor"), promote, "Whether just one of x and y is true"
)
logical_not = unary("logical_not", rules.logical("not_"), promote, "not x as a truth value")
bitwise_and = binary("bitwise_and", "and", promote, "x & y")
bitwise_or = binary("bitwise_or", "or", promote, "x | y")
bitwise_xor = binary("bitwise_xor", "xor", promote, "x ^ y")
bitwise_not = unary("bitwise_not", "not", promote, "~x")
bitwise_invert = bitwise_not
invert = bitwise_not
left_shift = binary("left_shift", "shift_left", numeric, "x << y", parameters="x, y, /")
right_shift = binary("right_shift", rules.shift_right, numeric, "x >> y")
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift
bitwise_count = unary(
    "bitwise_count", rules.bitwise_count, promote, "The number of ones in abs(x)", "bitwise_count"
)
isnan = unary("isnan", rules.isnan, promote, "Whether x is nan")
isinf = unary("isinf", rules.isinf, promote, "Whether x is infinite", "isinf")
isfinite = unary("isfinite", rules.is_finite, promote, "Whether x is neither infinite nor nan")
_isneginf = unary("isneginf", rules.is_infinite_with(-1.0, "isneginf"), promote, "")
_isposinf = unary("isposinf", rules.is_infinite_with(1.0, "isposinf"), promote, "")
iscomplex = unary(
    "iscomplex",
    lambda x: o.ne(rules.imag(x), like(rules.real(x), 0)),
    promote,
    "Whether the imaginary part is not 0",
    parameters="x",
)
isreal = unary(
    "isreal",
    lambda x: o.eq(rules.imag(x), like(rules.real(x), 0)),
    promote,
    "Whether the imaginary part is 0",
    parameters="x",
)


def isneginf(x: Any, /, out: None = None) -> Array:
    """Whether x is -inf, elementwise."""
    _no_out(out, "isneginf")
    return _isneginf(x)


def isposinf(x: Any, /, out: None = None) -> Array:
    """Whether x is inf, elementwise."""
    _no_out(out, "isposinf")
    return _isposinf(x)


def modf(x: Any, /, out: None = None) -> tuple[Array, Array]:
    """Fraction and whole part, elementwise."""
    _no_out(out, "modf")
    return _modf(x)


UNARY |= {"isneginf": isneginf, "isposinf": isposinf, "modf": modf}

# --- powers ---------------------------------------------------------------------------------------


def _power(x: Any, y: Any) -> Any:
    """x to the power y; a static int y becomes one op of repeated squaring."""
    if isinstance(y, int | np.integer) and not isinstance(x, int | float | complex):
        (node,) = numeric("power", x)
        y = int(y)
        if y < 0 and rules.kind(node) in "iu":
            raise TypeError(
                "power: Integers cannot be raised to negative powers; "
                f"got {node.aval.dtype.name}{list(node.aval.shape)} ** {y}; convert to float first"
            )
        return wrap_all(o.integer_pow(node, y=y))
    base, exponent = as_node(x, "power"), as_node(y, "power")
    keeps = (
        rules.kind(base) in "fc" and rules.kind(exponent) in "iu" and exponent.op.name != "literal"
    )
    a, b = [base, exponent] if keeps else numeric("power", x, y)
    a, b = broadcast_nodes("power", [a, b])
    return wrap_all(rules.integer_power(a, b) if rules.kind(a) in "iu" else o.pow(a, b))


@api_boundary
def power(x1: Any, x2: Any, /) -> Array:
    """x1 to the power x2, elementwise; integers to negative static powers are refused."""
    return _power(x1, x2)


pow = power


# --- functions with keywords ----------------------------------------------------------------------


@api_boundary
@shown()
def round(a: Any, decimals: int = 0, out: None = None) -> Array:
    """Round to a number of decimals, halves to the even neighbour."""
    _no_out(out, "round")
    x = as_node(a, "round")
    if rules.kind(x) in "iu":
        if decimals < 0:
            raise NotImplementedError(
                f"round: integers are not rounded to tens; got decimals={decimals}; convert first"
            )
        return wrap(x)
    if rules.kind(x) == "b":
        raise ValueError(
            "round: bool values cannot be rounded; got a bool array; convert with astype first"
        )

    def part(y: Node) -> Node:
        if decimals == 0:
            return o.round(y, rounding_method=1)
        wide = y if y.aval.dtype.itemsize > 2 else cast(y, np.dtype(np.float32))
        factor = like(wide, 10.0**decimals)
        out = o.div(o.round(o.mul(wide, factor), rounding_method=1), factor)
        return cast(out, y.aval.dtype, y.aval.weak_type)

    return wrap(cast(rules.by_parts(x, part), x.aval.dtype, x.aval.weak_type))


around = round


def _no_out(out: Any, name: str) -> None:
    if out is not None:
        raise NotImplementedError(
            f"{name}: the 'out' argument is not supported, since arrays are immutable; "
            f"got {type(out).__name__}; use the result"
        )


@api_boundary
def ldexp(x1: Any, x2: Any, /) -> Array:
    """x1 * 2**x2, elementwise; x2 must be integer."""
    a, n = as_node(x1, "ldexp"), as_node(x2, "ldexp")
    if rules.kind(n) not in "biu" or rules.kind(a) == "c":
        names = f"{a.aval.dtype.name}, {n.aval.dtype.name}"
        raise ValueError(
            f"ldexp: needs a real number and an integer exponent; got {names}; convert x2 to int"
        )
    (a,) = inexact("ldexp", x1)
    shape = broadcast_shapes("ldexp", [a.aval.shape, n.aval.shape])
    n = cast(n, np.dtype(np.int32))
    return wrap(rules.scale_by_power(to_shape(a, shape), to_shape(n, shape)))


@api_boundary
@shown()
def angle(z: Any, deg: bool = False) -> Array:
    """The angle of complex numbers, in radians or degrees."""
    (x,) = inexact("angle", z)
    re, im = rules.real(x), rules.imag(x)
    y = o.atan2(im, re)
    y = o.mul(y, like(y, 180 / math.pi)) if deg else y
    return wrap(cast(y, y.aval.dtype, rules.kind(x) == "c" and x.aval.weak_type))


@api_boundary
@shown(arrays=3)
def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Array:
    """Limit values to [min, max]; either bound may be None."""
    if arr is None:
        raise ValueError("clip: an array is needed; got none; pass it as the first argument")
    if any(
        np.iscomplexobj(v) or getattr(v, "dtype", np.dtype("f")).kind == "c"
        for v in (arr, min, max)
    ):
        raise ValueError(
            "clip: complex values have no order; got a complex argument; clip real and imag"
        )
    out = wrap(as_node(arr, "clip"))
    if min is not None:
        out = maximum(min, out)
    if max is not None:
        out = minimum(max, out)
    return out


@api_boundary
@shown("_where", arrays=3)
def where(condition: Any, x: Any, y: Any) -> Array:
    """x where the condition holds, y elsewhere."""
    return wrap(rules.choose(*[as_node(v, "where") for v in (condition, x, y)]))


@api_boundary
@shown()
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Array:
    """Replace nan and infinities, by default by 0 and the largest finite numbers."""
    del copy
    node = as_node(x, "nan_to_num")
    dtype = dtypes_real(node)

    def value(v: Any) -> Any:
        return v if v is None else cast(as_node(v, "nan_to_num"), dtype)

    return wrap(rules.nan_to_num(node, value(nan), value(posinf), value(neginf)))


def dtypes_real(node: Node) -> np.dtype:
    """The dtype of the real part."""
    a = node.aval.dtype
    return np.dtype(f"f{a.itemsize // 2}") if a.kind == "c" else a


@api_boundary
@shown(arrays=4)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    """Whether abs(a - b) <= atol + rtol * abs(b), elementwise."""
    x, y = broadcast_nodes("isclose", inexact("isclose", a, b))
    dtype = dtypes_real(x)
    r, t = (cast(as_node(v, "isclose"), dtype) for v in (rtol, atol))
    return wrap(rules.isclose(x, y, r, t, bool(equal_nan)))


def all_of(node: Node) -> Node:
    """Whether all elements hold."""
    return o.reduce_and(node, axes=tuple(range(node.aval.ndim)))


@shown(arrays=4)
def allclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether all elements of a and b are close."""
    return wrap(all_of(isclose(a, b, rtol, atol, equal_nan)._node))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and elements."""
    a, b = as_node(a1, "array_equal"), as_node(a2, "array_equal")
    if a.aval.shape != b.aval.shape:
        return wrap(full((), False, np.dtype(bool)))
    a, b = promote("array_equal", a1, a2)
    same = o.eq(a, b)
    if equal_nan:
        same = o.or_(same, o.and_(o.ne(a, a), o.ne(b, b)))
    return wrap(all_of(same))


def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether two arrays have the same elements once broadcast."""
    a, b = as_node(a1, "array_equiv"), as_node(a2, "array_equiv")
    try:
        broadcast_shapes("array_equiv", [a.aval.shape, b.aval.shape])
    except ValueError:
        return wrap(full((), False, np.dtype(bool)))
    return wrap(all_of(equal(a1, a2)._node))


def isscalar(element: Any) -> bool:
    """Whether an object is a number or an array of rank 0."""
    return np.isscalar(element) or (hasattr(element, "ndim") and element.ndim == 0)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return as_node(x, "iscomplexobj").aval.dtype.kind == "c" if x is not None else False


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


def spacing(x: Any, /) -> Array:
    """The distance to the next number away from 0, elementwise."""
    (node,) = _real_inexact("spacing", x)
    outward = rules.copysign(like(node, math.inf), node)
    gap = o.sub(o.nextafter(node, to_shape(outward, node.aval.shape)), node)
    return wrap(cast(gap, gap.aval.dtype))
