# isort: skip_file
"""The elementwise functions of the namespace, one declaration each.

`unary` and `binary` declare a function by its name, its op or rule, its promotion function and an
example. `ufunc_docstrings.TEXTS` holds the rest of its documentation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, overload

import numpy as np

from accnp._native import Ufunc
from accnp.api.arguments.non_numeric import moves_elements
from accnp.config import config
from accnp import dtypes
from accnp.api.arguments.shapes import AxesLike, as_int
from accnp.api.arguments.values import no_out
from accnp.api.arguments.convert import (
    as_node, broadcast_nodes, cast, promote, wrap,
)  # fmt: skip
from accnp.api.jit.named_calls import shown
from accnp.numpy import derivative_rules as ruled
from accnp.numpy import ufunc_rules as rules
from accnp.numpy.ufunc_docstrings import ufunc_doc
from accnp.numpy.ufunc_factories import (
    BinaryOperation, inexact, make_binary, make_unary, numeric, wrap_all,
)  # fmt: skip
from accnp.numpy.ufunc_rules import constant, like
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike
from accnp.dtypes.names import DTypeLike
from accnp.errors import UnsupportedDtypeError, alias, api_boundary
from accnp.ir.node import LITERAL, Node
from accnp.ir.op import o

UNARY: dict[str, Any] = {}
BINARY: dict[str, BinaryOperation] = {}
UfuncName = Literal[
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "logaddexp", "logaddexp2",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "subtract",
]  # fmt: skip


if TYPE_CHECKING:

    class UnaryFunction(Protocol):
        """A function of one operand that can be passed by keyword."""

        def __call__(self, x: ArrayLike) -> Array: ...

    class BinaryFunction(Protocol):
        """A function of two operands that can be passed by keyword."""

        def __call__(self, x1: ArrayLike, x2: ArrayLike) -> Array: ...

    class AnyUfunc(Protocol):
        """The attributes that `ufunc_objects` adds to the functions that are ufuncs in JAX."""

        @property
        def nin(self) -> int: ...
        @property
        def nout(self) -> int: ...
        @property
        def nargs(self) -> int: ...
        @property
        def identity(self) -> int | float | bool | None: ...

        def at(
            self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *,
            inplace: bool = True,
        ) -> Array: ...  # fmt: skip

    class UnaryUfunc(AnyUfunc, Protocol):
        """A ufunc of one operand."""

        def __call__(self, x: ArrayLike, /) -> Array: ...

    class BinaryUfunc(AnyUfunc, Protocol):
        """A ufunc of two operands."""

        def __call__(self, x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
        def reduce(
            self, a: ArrayLike, axis: AxesLike | None = 0, dtype: DTypeLike | None = None,
            out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
        ) -> Array: ...  # fmt: skip
        def accumulate(
            self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None,
        ) -> Array: ...  # fmt: skip
        def reduceat(
            self, a: ArrayLike, indices: ArrayLike, axis: int = 0,
            dtype: DTypeLike | None = None, out: None = None,
        ) -> Array: ...  # fmt: skip
        def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array: ...


@overload
def unary(
    name: Literal["negative"], rule: Any, prepare: Any, example: str = "", shown: str = "",
) -> UnaryUfunc: ...  # fmt: skip
@overload
def unary(
    name: Literal["frexp", "modf"], rule: Any, prepare: Any, example: str = "",
    shown: str = "", *, many: bool = False,
) -> Callable[[ArrayLike], tuple[Array, Array]]: ...  # fmt: skip
@overload
def unary(
    name: str, rule: Any, prepare: Any, example: str = "", shown: str = "", *,
    parameters: Literal["x"], many: bool = False,
) -> UnaryFunction: ...  # fmt: skip
@overload
def unary(
    name: str, rule: Any, prepare: Any, example: str = "", shown: str = "",
    parameters: str = "x, /", many: bool = False,
) -> Callable[[ArrayLike], Array]: ...  # fmt: skip
def unary(
    name: str,
    rule: Any,
    prepare: Any,
    example: str = "",
    shown: str = "",
    parameters: str = "x, /",
    many: bool = False,
) -> Any:
    """Declare a function of one operand; jaxprs contain it as a call of the name `shown`."""
    doc = ufunc_doc(name, prepare.__name__, parameters, example) if example else ""
    function = make_unary(name, rule, prepare, doc, shown, parameters, many)
    UNARY[name] = function = Ufunc(function) if name == "negative" else function
    return function


@overload
def binary(
    name: UfuncName, rule: Any, prepare: Any, example: str = "", shown: str = "",
) -> BinaryUfunc: ...  # fmt: skip
@overload
def binary(
    name: Literal["divmod"], rule: Any, prepare: Any, example: str = "",
    shown: str = "", *, many: bool = False,
) -> Callable[[ArrayLike, ArrayLike], tuple[Array, Array]]: ...  # fmt: skip
@overload
def binary(
    name: str, rule: Any, prepare: Any, example: str = "", shown: str = "", *,
    parameters: Literal["x1, x2"], many: bool = False,
) -> BinaryFunction: ...  # fmt: skip
@overload
def binary(
    name: str, rule: Any, prepare: Any, example: str = "", shown: str = "",
    parameters: str = "x1, x2, /", many: bool = False, on_keys: str = "",
) -> Callable[[ArrayLike, ArrayLike], Array]: ...  # fmt: skip
def binary(
    name: str,
    rule: Any,
    prepare: Any,
    example: str = "",
    shown: str = "",
    parameters: str = "x1, x2, /",
    many: bool = False,
    on_keys: str = "",
) -> Any:
    """Declare a function of two operands, which are promoted and broadcast against each other.

    `on_keys` is the name of a function for random keys, as in `make_binary`.
    """
    doc = ufunc_doc(name, prepare.__name__, parameters, example) if example else ""
    BINARY[name] = operation = make_binary(
        name, rule, prepare, doc, shown, parameters, many, on_keys
    )
    if name in get_args(UfuncName):
        operation.function = Ufunc(operation.function)
    return operation.function


def real_inexact(name: str, *xs: Any) -> list[Node]:
    nodes = inexact(name, *xs)
    if rules.kind(nodes[0]) == "c":
        raise UnsupportedDtypeError(
            f"{name}: complex operands are not supported; got complex; take jnp.real first"
        )
    return nodes


def _make_strong(name: str, xs: Sequence[Any], nodes: list[Node]) -> list[Node]:
    """Make promoted operands strong if the promoted type is; literals would stay weak."""
    avals = [as_node(x, name).aval for x in xs]
    weak = dtypes.promote(tuple([(a.dtype, a.weak_type) for a in avals]))[1]
    return nodes if weak else [cast(n, n.aval.dtype) for n in nodes]


def _real_strong(name: str, *xs: Any) -> list[Node]:
    return _make_strong(name, xs, real_inexact(name, *xs))


def _logs(name: str, *xs: Any) -> list[Node]:
    nodes = inexact(name, *xs)
    return _make_strong(name, xs, nodes) if rules.kind(nodes[0]) == "c" else nodes


def _integers(name: str, *xs: Any) -> list[Node]:
    nodes = promote(name, *xs)
    if rules.kind(nodes[0]) not in "iu":
        dtype = nodes[0].aval.dtype.name
        raise ValueError(
            f"{name}: arguments must be integers; got {dtype}; convert with astype first"
        )
    return nodes


# A declaration with its example takes one to three lines.
# fmt: off
# --- arithmetic -----------------------------------------------------------------------------------

add = binary("add", rules.add, promote, "[1, 2], [3, 5] -> [4, 7]")
subtract = binary("subtract", "sub", promote, "[1, 2], [3, 5] -> [-2, -3]")
multiply = binary("multiply", rules.multiply, rules.factors, "[1, 2], [3, 5] -> [ 3, 10]")
divide = binary("divide", "div", inexact, "[1, 2], [4, 4] -> [0.25, 0.5 ]")
true_divide = alias(divide, "true_divide", "accnp.numpy")
floor_divide = binary(
    "floor_divide", rules.floor_divide, numeric, "[7, -7], [3, 3] -> [ 2, -3]", "floor_divide",
    many=True)
remainder = binary("remainder", rules.remainder, numeric, "[7, -7], [3, 3] -> [1, 2]", "remainder",
    many=True)
mod = alias(remainder, "mod", "accnp.numpy")
fmod = binary("fmod", rules.fmod, numeric, "[7, -7], [3, 3] -> [ 1, -1]", "fmod")
divmod = binary(
    "divmod", rules.divmod_, numeric,
    "[7, -7], [3, 3] -> (Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))", "divmod",
    many=True)
float_power = binary(
    "float_power", "pow", inexact, "[2, 9], [3.0, 0.5] -> [8., 3.]", parameters="x, y, /")
negative = unary("negative", "neg", promote, "[1, -2] -> [-1,  2]")
positive = unary("positive", rules.positive, promote, "[1, -2] -> [ 1, -2]")
abs = unary(
    "abs", lambda x: x if rules.kind(x) in "bu" else o.abs(x), promote, "[-2, 0, 3] -> [2, 0, 3]")
absolute = alias(abs, "absolute", "accnp.numpy")
fabs = unary("fabs", "abs", real_inexact, "[-2, 3] -> [2., 3.]")
sign = unary("sign", "sign", promote, "[-2, 0, 3] -> [-1,  0,  1]")
square = unary("square", "square", numeric, "[2, -3] -> [4, 9]")
reciprocal = unary(
    "reciprocal", lambda x: o.integer_pow(x, y=-1), inexact, "[2.0, 4.0] -> [0.5 , 0.25]")
sqrt = unary("sqrt", "sqrt", inexact, "[1.0, 9.0] -> [1., 3.]")
cbrt = unary("cbrt", "cbrt", inexact, "[8.0, -27.0] -> [ 2., -3.]")
hypot = binary("hypot", rules.hypot, _real_strong, "[3.0, 5.0], [4.0, 12.0] -> [ 5., 13.]", "hypot",
    many=True)
def _broadcast_integers(name: str, x: Any, y: Any) -> list[Node]:
    """Like `_integers`, but broadcast operands of different ranks, which JAX does not count as rank
    promotion here."""
    nodes = _integers(name, x, y)
    if config.numpy_rank_promotion == "allow":
        return nodes
    return broadcast_nodes(name, nodes, any_ranks=True)


gcd = binary(
    "gcd", rules.gcd, _broadcast_integers, "[12, 15], [18, 10] -> [6, 5]", parameters="x1, x2",
    many=True)
lcm = binary("lcm", rules.lcm, _integers, "[12, 15], [18, 10] -> [36, 30]", parameters="x1, x2",
    many=True)

# --- exponentials, logarithms ---------------------------------------------------------------------

exp = unary("exp", "exp", inexact, "[0.0, 1.0] -> [1.       , 2.7182817]")
exp2 = unary("exp2", "exp2", inexact, "[3.0, -1.0] -> [8. , 0.5]")
expm1 = unary("expm1", "expm1", inexact, "[0.0, 1.0] -> [0.       , 1.7182819]")
log = unary("log", "log", inexact, "[1.0, 10.0] -> [0.       , 2.3025851]")
log2 = unary("log2", rules.log2, inexact, "[1.0, 8.0] -> [0., 3.]")
log10 = unary("log10", rules.log10, inexact, "[1.0, 1000.0] -> [0., 3.]")
log1p = unary("log1p", "log1p", inexact, "[0.0, 1e-5] -> [0.00000e+00, 9.99995e-06]")
logaddexp = binary(
    "logaddexp", ruled.logaddexp, _logs,
    "[0.0, 1000.0], [0.0, 1000.0] -> [6.9314718e-01, 1.0006932e+03]", many=True)
logaddexp2 = binary("logaddexp2", ruled.logaddexp2, _logs, "[3.0, 0.0], [3.0, 0.0] -> [4., 1.]",
    many=True)
i0 = unary(
    "i0", ruled.i0, real_inexact, "[0.0, 1.0] -> [1.       , 1.2660658]", "i0", parameters="x",
    many=True)

# --- trigonometry ---------------------------------------------------------------------------------

sin = unary("sin", "sin", inexact, "[0.0, 1.0] -> [0.      , 0.841471]")
cos = unary("cos", "cos", inexact, "[0.0, 1.0] -> [1.       , 0.5403023]")
tan = unary("tan", "tan", inexact, "[0.0, 1.0] -> [0.       , 1.5574079]")
asin = unary("asin", "asin", inexact, "[0.0, 1.0] -> [0.       , 1.5707964]")
acos = unary("acos", "acos", inexact, "[0.0, 1.0] -> [1.5707964, 0.       ]")
atan = unary("atan", "atan", inexact, "[0.0, 1.0] -> [0.       , 0.7853982]")
arcsin = unary("arcsin", "asin", inexact, "[0.0, 1.0] -> [0.       , 1.5707964]")
arccos = unary("arccos", "acos", inexact, "[0.0, 1.0] -> [1.5707964, 0.       ]")
arctan = unary("arctan", "atan", inexact, "[0.0, 1.0] -> [0.       , 0.7853982]")
atan2 = binary(
    "atan2", rules.atan2, inexact, "[1.0, -1.0], [1.0, -1.0] -> [ 0.7853982, -2.3561945]")
arctan2 = binary(
    "arctan2", rules.atan2, inexact, "[1.0, -1.0], [1.0, -1.0] -> [ 0.7853982, -2.3561945]")
sinh = unary("sinh", "sinh", inexact, "[0.0, 1.0] -> [0.       , 1.1752012]")
cosh = unary("cosh", "cosh", inexact, "[0.0, 1.0] -> [1.       , 1.5430806]")
tanh = unary("tanh", "tanh", inexact, "[0.0, 1.0] -> [0.       , 0.7615941]")
asinh = unary("asinh", "asinh", inexact, "[0.0, 1.0] -> [0.       , 0.8813736]")
acosh = unary("acosh", "acosh", inexact, "[1.0, 2.0] -> [0.      , 1.316958]", "arccosh")
atanh = unary("atanh", "atanh", inexact, "[0.0, 0.5] -> [0.        , 0.54930615]")
arcsinh = unary("arcsinh", "asinh", inexact, "[0.0, 1.0] -> [0.       , 0.8813736]")
arccosh = unary("arccosh", "acosh", inexact, "[1.0, 2.0] -> [0.      , 1.316958]", "arccosh")
arctanh = unary("arctanh", "atanh", inexact, "[0.0, 0.5] -> [0.        , 0.54930615]")
deg2rad = unary(
    "deg2rad", lambda x: o.mul(x, constant(x, math.pi / 180)), inexact,
    "[90.0, 180.0] -> [1.5707964, 3.1415927]")
rad2deg = unary(
    "rad2deg", lambda x: o.mul(x, constant(x, 180 / math.pi)), inexact,
    "[0.0, 3.1415927] -> [  0., 180.]")
radians = alias(deg2rad, "radians", "accnp.numpy")
degrees = alias(rad2deg, "degrees", "accnp.numpy")
sinc = unary("sinc", ruled.sinc, inexact, "[0.0, 0.5] -> [1.        , 0.63661975]", "sinc",
    many=True)

# --- rounding, parts, signs -----------------------------------------------------------------------

floor = unary("floor", rules.rounded(o.floor), promote, "[1.5, -1.5] -> [ 1., -2.]")
ceil = unary("ceil", rules.rounded(o.ceil), promote, "[1.5, -1.5] -> [ 2., -1.]")
trunc = unary("trunc", rules.trunc, promote, "[1.5, -1.5] -> [ 1., -1.]", "trunc", parameters="x",
    many=True)
fix = trunc
rint = unary("rint", rules.rint, promote, "[0.5, 1.5, 2.5] -> [0., 2., 2.]", "rint")
signbit = unary("signbit", rules.signbit, promote, "[-0.0, 1.0] -> [ True, False]", "signbit",
    many=True)
copysign = binary(
    "copysign", rules.copysign, real_inexact, "[1.0, 2.0], [-1.0, 3.0] -> [-1.,  2.]", "copysign",
    many=True)
nextafter = binary(
    "nextafter", "nextafter", real_inexact, "[1.0], [2.0] -> [1.0000001]", parameters="x, y, /")
heaviside = binary(
    "heaviside", rules.heaviside, _real_strong,
    "[-1.0, 0.0, 2.0], [0.5, 0.5, 0.5] -> [0. , 0.5, 1. ]", "heaviside", many=True)
frexp = unary(
    "frexp", rules.frexp, real_inexact,
    "[8.0, 0.75] -> (Array([0.5 , 0.75], dtype=float32), Array([4, 0], dtype=int32))", "frexp",
    many=True)
real = unary("real", rules.real, promote, "[1+2j, 3-1j] -> [1., 3.]", parameters="val, /")
imag = unary("imag", rules.imag, promote, "[1+2j, 3-1j] -> [ 2., -1.]", parameters="val, /")
conj = unary("conj", rules.conj, promote, "[1+2j, 3-1j] -> [1.-2.j, 3.+1.j]")
conjugate = alias(conj, "conjugate", "accnp.numpy")

# --- comparison, logic, bits ----------------------------------------------------------------------

equal = binary(
    "equal", "eq", promote, "[1, 2, 3], [2, 2, 2] -> [False,  True, False]", parameters="x, y, /",
    on_keys="equal_keys")
not_equal = binary(
    "not_equal", "ne", promote, "[1, 2, 3], [2, 2, 2] -> [ True, False,  True]",
    parameters="x, y, /", on_keys="unequal_keys")
less = binary(
    "less", rules.compare("lt"), promote, "[1, 2, 3], [2, 2, 2] -> [ True, False, False]",
    parameters="x, y, /")
less_equal = binary(
    "less_equal", rules.compare("le"), promote,
    "[1, 2, 3], [2, 2, 2] -> [ True,  True, False]", parameters="x, y, /")
greater = binary(
    "greater", rules.compare("gt"), promote,
    "[1, 2, 3], [2, 2, 2] -> [False, False,  True]", parameters="x, y, /")
greater_equal = binary(
    "greater_equal", rules.compare("ge"), promote,
    "[1, 2, 3], [2, 2, 2] -> [False,  True,  True]", parameters="x, y, /")
maximum = binary("maximum", rules.maximum, promote, "[1.0, jnp.nan], [3.0, 2.0] -> [ 3., nan]")
minimum = binary("minimum", rules.minimum, promote, "[1.0, jnp.nan], [3.0, 2.0] -> [ 1., nan]")
fmax = binary(
    "fmax", rules.fmax, promote,
    "[1.0, jnp.nan], [3.0, 2.0] -> [3., 2.]", "fmax", parameters="x1, x2", many=True)
fmin = binary(
    "fmin", rules.fmin, promote,
    "[1.0, jnp.nan], [3.0, 2.0] -> [1., 2.]", "fmin", parameters="x1, x2", many=True)
logical_and = binary(
    "logical_and", rules.logical("and_"), promote, "[True, True], [True, False] -> [ True, False]")
logical_or = binary(
    "logical_or", rules.logical("or_"), promote, "[True, True], [True, False] -> [ True,  True]")
logical_xor = binary(
    "logical_xor", rules.logical("xor"), promote, "[True, True], [True, False] -> [False,  True]")
logical_not = unary(
    "logical_not", rules.logical("not_"), promote, "[True, False] -> [False,  True]")
bitwise_and = binary("bitwise_and", "and", promote, "[12, 7], [10, 2] -> [8, 2]")
bitwise_or = binary("bitwise_or", "or", promote, "[12, 7], [10, 2] -> [14,  7]")
bitwise_xor = binary("bitwise_xor", "xor", promote, "[12, 7], [10, 2] -> [6, 5]")
bitwise_not = unary("bitwise_not", "not", promote, "[0, 5] -> [-1, -6]")
bitwise_invert = alias(bitwise_not, "bitwise_invert", "accnp.numpy")
invert = alias(bitwise_not, "invert", "accnp.numpy")
left_shift = binary(
    "left_shift", "shift_left", numeric, "[1, 3], [4, 1] -> [16,  6]", parameters="x, y, /")
right_shift = binary("right_shift", rules.shift_right, numeric, "[16, -3], [2, 1] -> [ 4, -2]")
bitwise_left_shift = alias(left_shift, "bitwise_left_shift", "accnp.numpy")
bitwise_right_shift = alias(right_shift, "bitwise_right_shift", "accnp.numpy")
bitwise_count = unary(
    "bitwise_count", rules.bitwise_count, promote,
    "[7, -8] -> Array([3, 1], dtype=uint8)", "bitwise_count")
isnan = unary("isnan", rules.isnan, promote, "[1.0, jnp.nan] -> [False,  True]")
isinf = unary("isinf", rules.isinf, promote, "[1.0, -jnp.inf] -> [False,  True]", "isinf")
isfinite = unary("isfinite", rules.is_finite, promote, "[1.0, jnp.inf] -> [ True, False]")
iscomplex = unary(
    "iscomplex", lambda x: o.ne(rules.imag(x), constant(rules.real(x), 0)), promote,
    "[1+0j, 2j] -> [False,  True]", parameters="x")
isreal = unary(
    "isreal", lambda x: o.eq(rules.imag(x), constant(rules.real(x), 0)), promote,
    "[1+0j, 2j] -> [ True, False]", parameters="x")
# fmt: on


# --- powers ---------------------------------------------------------------------------------------


def _power(x: Any, y: Any) -> Any:
    """Compute x to the power y; a static int y becomes one `integer_pow` op."""
    if isinstance(y, np.ndarray) and not y.ndim and y.dtype.kind in "iu":
        y = y[()]  # static, like a NumPy scalar
    if isinstance(y, int | np.integer):
        (node,) = numeric("power", x)
        y = int(y)
        if y < 0 and rules.kind(node) in "iu":
            raise TypeError(
                "power: Integers cannot be raised to negative powers; "
                f"got {node.aval.dtype.name}{list(node.aval.shape)} ** {y}; convert to float first"
            )
        return wrap_all(o.integer_pow(node, y=y))
    base, exponent = as_node(x, "power"), as_node(y, "power")
    mixed = rules.kind(base) in "fc" and rules.kind(exponent) in "iu"
    keeps = mixed and exponent.op is not LITERAL
    a, b = [base, exponent] if keeps else numeric("power", x, y)
    a, b = broadcast_nodes("power", [a, b])
    if rules.kind(a) in "iu":  # the result is always strong
        a, b = [cast(x, x.aval.dtype) for x in (a, b)]
        return wrap_all(rules.integer_power(a, b))
    if mixed and not exponent.aval.weak_type:
        a = cast(a, a.aval.dtype)
    return wrap_all(o.pow(a, b))


@api_boundary
def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Raise the first operand to the power of the second, elementwise.

    Parameters
    ----------
    x1 : array_like
        Base of the power.
    x2 : array_like
        Exponent of the power. A Python or NumPy integer is static: it is computed by repeated
        multiplication.

    Returns
    -------
    Array
        Array with the broadcast shape of the operands. The dtype is the promoted dtype; bools give
        int32.

    Raises
    ------
    TypeError
        If integers are raised to a negative static power, or an operand is neither an array nor a
        number.
    {raises_broadcast}

    See Also
    --------
    float_power : Power in floating point, also of integers.
    square, sqrt : Second power and root.
    exp, exp2 : Powers of e and 2.

    Notes
    -----
    Negative real bases with fractional exponents give nan, without a warning. For complex bases
    with infinite parts, the result is `exp(x2 * log(x1))`, as the array API standard defines it,
    where JAX gives nan.

    {note_ufunc}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.power(jnp.array([2, 3]), 3)
    Array([ 8, 27], dtype=int32)
    """
    return _power(x1, x2)


pow = alias(power, "pow", "accnp.numpy")


# --- functions with keywords ----------------------------------------------------------------------


@api_boundary
@shown()
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round to a number of decimals, with halves to the even neighbor.

    Parameters
    ----------
    {a}
    decimals : int, optional
        Number of decimal places, static. A negative number rounds to tens, hundreds and so on. The
        default is 0.
    {out}

    Returns
    -------
    Array
        Rounded numbers, with the shape and dtype of `a`. Complex numbers are rounded by parts.

    Raises
    ------
    {raises_not_array}
    ValueError
        If `a` is bool.
    NotImplementedError
        If `out` is given, or `decimals` is negative and `a` holds integers.

    See Also
    --------
    rint : Round to the nearest integer, without decimals.
    floor, ceil, trunc : Round down, up and toward zero.

    Notes
    -----
    Numbers are scaled by a power of ten, rounded and scaled back, so that results are the nearest
    decimals only up to the rounding errors of these steps, as in NumPy.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.round(jnp.array([1.25, 2.567]), 1)
    Array([1.2, 2.6], dtype=float32)
    """
    no_out(out, "round")
    x = as_node(a, "round")
    decimals = as_int(decimals, "round", "decimals")
    if rules.kind(x) in "iu":
        if decimals < 0:
            raise NotImplementedError(
                f"round: integers cannot be rounded to tens; got decimals={decimals}; convert first"
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
        high = float(np.finfo(wide.aval.dtype).max)
        if decimals > math.log10(high):  # no float has that many decimals
            return y
        factor = like(wide, 10.0**decimals)
        out = o.div(o.round(o.mul(wide, factor), rounding_method=1), factor)
        return cast(out, y.aval.dtype, y.aval.weak_type)

    weak = x.aval.weak_type and (x.aval.ndim == 0 or not decimals)
    return wrap(cast(rules.apply_to_parts(x, part), x.aval.dtype, weak))


around = alias(round, "around", "accnp.numpy")


@api_boundary
@compiled_if_small("arr", "min", "max")
@shown(arrays=3)
def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """Limit the elements of an array to an interval.

    Parameters
    ----------
    arr : array_like
        Array or number to limit. Lists and tuples are not accepted.
    min : array_like, optional
        Lower bound of the interval. The default, None, means no lower bound.
    max : array_like, optional
        Upper bound of the interval. The default, None, means no upper bound.

    Returns
    -------
    Array
        Array with the broadcast shape and the promoted dtype of all arguments. Where `min` exceeds
        `max`, the result is `max`.

    Raises
    ------
    TypeError
        If an argument is neither an array nor a number.
    ValueError
        If an argument is complex, or `arr` is missing.
    {raises_broadcast}

    See Also
    --------
    maximum, minimum : Limit from one side.
    nan_to_num : Replace nan and infinities.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.clip(jnp.array([-2, 1, 5]), 0, 3)
    Array([0, 1, 3], dtype=int32)
    """
    if arr is None:
        raise ValueError("clip: the array is missing; got None; pass it as the first argument")
    operands: tuple[Any, ...] = (arr, min, max)
    if any(np.iscomplexobj(v) or getattr(v, "dtype", np.dtype("f")).kind == "c" for v in operands):
        raise ValueError(
            "clip: complex values have no order; got a complex argument; clip real and imag"
        )
    out = wrap(as_node(arr, "clip"))
    if min is not None:
        out = maximum(min, out)
    if max is not None:
        out = minimum(max, out)
    return out


@moves_elements("x", "y")
@api_boundary
@shown("_where", arrays=3)
def where(condition: Any, x: Any, y: Any) -> Array:
    """Return x where the condition holds, y elsewhere."""
    return wrap(rules.choose(*[as_node(v, "where") for v in (condition, x, y)]))


def dtypes_real(node: Node) -> np.dtype:
    """Return the dtype of the real part."""
    a = node.aval.dtype
    return np.dtype(f"f{a.itemsize // 2}") if a.kind == "c" else a
