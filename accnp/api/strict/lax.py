"""The strict elementwise functions of `lax`, which do not promote dtypes.

The inputs are arrays and numbers of one dtype and of equal shapes or rank 0; the outputs are lazy
Arrays. A TypeError names both dtypes if they differ.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import (
    as_node,
    cast,
    is_host_value,
    numpy_node,
    without_float0,
    wrap,
)
from accnp.api.arguments.host_values import as_evaluated
from accnp.api.arguments.shapes import as_int
from accnp.api.arguments.values import check_complex, needs_dtype
from accnp.api.arrays.bits import bits_of, width_of
from accnp.api.arrays.placement import made
from accnp.api.elements.elementwise import documented, with_parameters
from accnp.api.strict.lax_kinds import atan2_any
from accnp.api.strict.lax_texts import op_text
from accnp.api.strict.lax_types import RoundingMethod, check_accuracy
from accnp.array import Array, ArrayLike
from accnp.dtypes.names import DTypeLike, float0
from accnp.errors import UnsupportedDtypeError, api_boundary, warn
from accnp.ir.node import items
from accnp.ir.op import OPS, o
from accnp.ir.trace import state
from accnp.primitives.kinds import dtype_kind
from accnp.primitives.precision import reduce_precision as rounded_bits
from accnp.pytree import PyTree, flatten_arrays, map_arrays, tree_unflatten

ACCURATE = ", *, accuracy=None"  # a wish that a CPU needs no help with
_KEYWORD = {"and": "and_", "or": "or_", "not": "not_"}


if TYPE_CHECKING:
    from accnp.api.strict.lax_types import Accuracy

    class OfOne(Protocol):
        """A function of one operand."""

        def __call__(self, x: ArrayLike) -> Array: ...

    class OfOneAccurate(Protocol):
        """A function of one operand that accepts a wish for its accuracy."""

        def __call__(self, x: ArrayLike, *, accuracy: Accuracy = None) -> Array: ...

    class OfTwo(Protocol):
        """A function of two operands."""

        def __call__(self, x: ArrayLike, y: ArrayLike) -> Array: ...

    class OfGamma(Protocol):
        """An incomplete gamma function."""

        def __call__(self, a: ArrayLike, x: ArrayLike) -> Array: ...

    class OfNamed(Protocol):
        """A function of operands with other names."""

        def __call__(self, *operands: ArrayLike, **named: ArrayLike) -> Array: ...


@overload
def strict(
    name: str, op: str, parameters: Literal["x"], example: str,
    recorder: Callable[..., Any] | None = None,
) -> OfOne: ...  # fmt: skip
@overload
def strict(
    name: str, op: str, parameters: Literal["x, y"], example: str,
    recorder: Callable[..., Any] | None = None,
) -> OfTwo: ...  # fmt: skip
@overload
def strict(
    name: str, op: str, parameters: Literal["a, x"], example: str,
    recorder: Callable[..., Any] | None = None,
) -> OfGamma: ...  # fmt: skip
@overload
def strict(
    name: str, op: str, parameters: Literal["x1, x2", "m, x", "a, b, x"], example: str,
    recorder: Callable[..., Any] | None = None,
) -> OfNamed: ...  # fmt: skip
@overload
def strict(
    name: str, op: str, parameters: str, example: str, recorder: Callable[..., Any] | None = None
) -> OfOneAccurate: ...
def strict(
    name: str, op: str, parameters: str, example: str, recorder: Callable[..., Any] | None = None
) -> Any:
    """Make the public form of an op; its last parameter may be a keyword that changes nothing.
    `recorder` is what records it, where the op takes more or fewer dtypes."""
    record: Callable[..., Any] = recorder or getattr(o, _KEYWORD.get(op, op))

    label = f"lax.{name}"

    def one(x: ArrayLike) -> Array:
        return wrap(record(as_node(x, label)))

    def one_accurate(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
        if accuracy is not None:
            check_accuracy(label, accuracy)
        return wrap(record(as_node(x, label)))

    def two(x: ArrayLike, y: ArrayLike) -> Array:
        return wrap(record(as_node(x, label), as_node(y, label)))

    def three(x: ArrayLike, y: Any, z: Any) -> Array:
        return wrap(record(as_node(x, label), as_node(y, label), as_node(z, label)))

    accurate = parameters.endswith(ACCURATE)
    names = parameters.removesuffix(ACCURATE)
    forms: list[Any] = [one_accurate if accurate else one, two, three]
    call = api_boundary(with_parameters(forms[names.count(",")], names))
    call.__name__ = call.__qualname__ = name
    call.__module__ = "accnp.lax"
    call.__doc__ = documented(op_text(name, OPS[op], names.split(", "), accurate), label, example)
    return call


abs = strict("abs", "abs", "x", "[-2.0, 3.0] -> [2., 3.]")
acos = strict("acos", "acos", "x", "[0.0, 0.5] -> [1.5707964, 1.0471976]")
acosh = strict("acosh", "acosh", "x", "[1.0, 2.0] -> [0.      , 1.316958]")
asin = strict("asin", "asin", "x", "[0.0, 0.5] -> [0.       , 0.5235988]")
asinh = strict("asinh", "asinh", "x", "[0.0, 1.0] -> [0.       , 0.8813736]")
atan = strict("atan", "atan", "x", "[0.0, 0.5] -> [0.       , 0.4636476]")
atanh = strict("atanh", "atanh", "x", "[0.0, 0.5] -> [0.        , 0.54930615]")
bessel_i0e = strict("bessel_i0e", "bessel_i0e", "x", "[0.0, 1.0] -> [1.       , 0.4657596]")
bessel_i1e = strict("bessel_i1e", "bessel_i1e", "x", "[0.0, 1.0] -> [0.        , 0.20791042]")
bitwise_not = strict("bitwise_not", "not", "x", "[0, 5] -> [-1, -6]")
cbrt = strict("cbrt", "cbrt", "x" + ACCURATE, "[8.0, -27.0] -> [ 2., -3.]")
ceil = strict("ceil", "ceil", "x", "[1.5, -1.5] -> [ 2., -1.]")
clz = strict("clz", "clz", "x", "[1, 7] -> [31, 29]")
cos = strict("cos", "cos", "x" + ACCURATE, "[0.0, 1.0] -> [1.       , 0.5403023]")
cosh = strict("cosh", "cosh", "x", "[0.0, 1.0] -> [1.       , 1.5430806]")
digamma = strict("digamma", "digamma", "x", "[1.0, 5.0] -> [-0.5772157,  1.5061177]")
erf = strict("erf", "erf", "x", "[0.0, 1.0] -> [0.       , 0.8427008]")
erf_inv = strict("erf_inv", "erf_inv", "x", "[0.0, 0.5] -> [0.        , 0.47693628]")
erfc = strict("erfc", "erfc", "x", "[0.0, 1.0] -> [1.       , 0.1572992]")
exp = strict("exp", "exp", "x" + ACCURATE, "[0.0, 1.0] -> [1.       , 2.7182817]")
exp2 = strict("exp2", "exp2", "x" + ACCURATE, "[3.0, -1.0] -> [8. , 0.5]")
expm1 = strict("expm1", "expm1", "x" + ACCURATE, "[0.0, 1.0] -> [0.       , 1.7182819]")
floor = strict("floor", "floor", "x", "[1.5, -1.5] -> [ 1., -2.]")
imag = strict("imag", "imag", "x", "[1+2j, 3-1j] -> [ 2., -1.]")
is_finite = strict("is_finite", "is_finite", "x", "[1.0, jnp.inf] -> [ True, False]")
lgamma = strict("lgamma", "lgamma", "x", "[1.0, 5.0] -> [0.       , 3.1780539]")
log = strict("log", "log", "x" + ACCURATE, "[1.0, 10.0] -> [0.       , 2.3025851]")
log1p = strict("log1p", "log1p", "x" + ACCURATE, "[0.0, 1e-5] -> [0.00000e+00, 9.99995e-06]")
logistic = strict("logistic", "logistic", "x" + ACCURATE, "[0.0, 1.0] -> [0.5      , 0.7310586]")
neg = strict("neg", "neg", "x", "[1.0, -2.0] -> [-1.,  2.]")
population_count = strict("population_count", "population_count", "x", "[1, 7] -> [1, 3]")
real = strict("real", "real", "x", "[1+2j, 3-1j] -> [1., 3.]")
rsqrt = strict("rsqrt", "rsqrt", "x" + ACCURATE, "[1.0, 16.0] -> [1.  , 0.25]")
sign = strict("sign", "sign", "x", "[-2.0, 3.0] -> [-1.,  1.]")
sin = strict("sin", "sin", "x" + ACCURATE, "[0.0, 1.0] -> [0.      , 0.841471]")
sinh = strict("sinh", "sinh", "x", "[0.0, 1.0] -> [0.       , 1.1752012]")
sqrt = strict("sqrt", "sqrt", "x" + ACCURATE, "[1.0, 16.0] -> [1., 4.]")
square = strict("square", "square", "x", "[1.0, -2.0] -> [1., 4.]")
tan = strict("tan", "tan", "x" + ACCURATE, "[0.0, 1.0] -> [0.       , 1.5574079]")
tanh = strict("tanh", "tanh", "x" + ACCURATE, "[0.0, 1.0] -> [0.       , 0.7615941]")
add = strict("add", "add", "x, y", "[1, 2], [3, 5] -> [4, 7]")
atan2 = strict(
    "atan2", "atan2", "x, y", "[1.0, -1.0], [1.0, -1.0] -> [ 0.7853982, -2.3561945]", atan2_any
)
bitwise_and = strict("bitwise_and", "and", "x, y", "[12, 7], [10, 2] -> [8, 2]")
bitwise_or = strict("bitwise_or", "or", "x, y", "[12, 7], [10, 2] -> [14,  7]")
bitwise_xor = strict("bitwise_xor", "xor", "x, y", "[12, 7], [10, 2] -> [6, 5]")
complex = strict("complex", "complex", "x, y", "[1.0, 3.0], [2.0, -1.0] -> [1.+2.j, 3.-1.j]")
div = strict("div", "div", "x, y", "[7, -7], [2, 2] -> [ 3, -3]")
eq = strict("eq", "eq", "x, y", "[1, 2, 3], [2, 2, 2] -> [False,  True, False]")
ge = strict("ge", "ge", "x, y", "[1, 2, 3], [2, 2, 2] -> [False,  True,  True]")
gt = strict("gt", "gt", "x, y", "[1, 2, 3], [2, 2, 2] -> [False, False,  True]")
igamma = strict("igamma", "igamma", "a, x", "[1.0, 2.0], [1.0, 2.0] -> [0.63212055, 0.59399414]")
igamma_grad_a = strict(
    "igamma_grad_a", "igamma_grad_a", "a, x", "[1.0, 2.0], [1.0, 2.0] -> [-0.4317297 , -0.29400468]"
)
igammac = strict("igammac", "igammac", "a, x", "[1.0, 2.0], [1.0, 2.0] -> [0.36787945, 0.40600586]")
le = strict("le", "le", "x, y", "[1, 2, 3], [2, 2, 2] -> [ True,  True, False]")
lt = strict("lt", "lt", "x, y", "[1, 2, 3], [2, 2, 2] -> [ True, False, False]")
max = strict("max", "max", "x, y", "[1, 5], [3, 2] -> [3, 5]")
min = strict("min", "min", "x, y", "[1, 5], [3, 2] -> [1, 2]")


@api_boundary
def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """Multiply two arrays of one dtype and shape, elementwise.

    Parameters
    ----------
    x : array_like
        Array or number of integer, floating or complex dtype.
    y : array_like
        Array or number of the same dtype and shape as `x`. Rank 0 and axes of length 1 are
        repeated.
    out_dtype : dtype_like, optional
        Dtype to which both operands are converted first. With it, their dtypes may differ. The
        default is their common dtype.

    Returns
    -------
    Array
        Products, of dtype `out_dtype` or that of the operands. Integers wrap around.

    Raises
    ------
    TypeError
        If an operand is not an array or a number, or is bool, or if shapes or, without `out_dtype`,
        dtypes differ.

    See Also
    --------
    numpy.multiply : The same with promotion of dtypes.
    div, add

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.mul(jnp.int8(100), jnp.int8(3), out_dtype="int16")
    Array(300, dtype=int16)
    """
    if out_dtype is not None:
        new = dtypes.requested_dtype(out_dtype, "lax.mul")
        a, b = (as_node(v, "lax.mul") for v in (x, y))
        if "b" in (a.aval.dtype.kind, b.aval.dtype.kind):
            raise UnsupportedDtypeError(
                f"lax.mul: bool has no product; got {a.aval} and {b.aval}; use lax.bitwise_and"
            )
        x, y = (wrap(cast(v, new, v.aval.weak_type)) for v in (a, b))
    return _mul(x, y)


_mul = strict("mul", "mul", "x, y", "[1, 2], [3, 5] -> [ 3, 10]")
ne = strict("ne", "ne", "x, y", "[1, 2, 3], [2, 2, 2] -> [ True, False,  True]")
nextafter = strict("nextafter", "nextafter", "x1, x2", "[1.0], [2.0] -> [1.0000001]")
polygamma = strict(
    "polygamma", "polygamma", "m, x", "[1.0, 2.0], [1.0, 1.0] -> [ 1.644934 , -2.4041138]"
)
_random_gamma_grad = strict(
    "random_gamma_grad",
    "random_gamma_grad",
    "x, y",
    "[1.0, 2.0], [1.0, 2.0] -> [1.173563 , 1.0862086]",
)


@api_boundary
def random_gamma_grad(*args: ArrayLike) -> Array:
    """Compute the derivative of gamma samples with respect to their parameter.

    Parameters
    ----------
    *args : array_like
        Two operands of one floating dtype and shape: the parameter `a` of the gamma distribution,
        and samples of it.

    Returns
    -------
    Array
        Derivatives of the samples with respect to `a`, of the shape and dtype of the operands.

    Raises
    ------
    TypeError
        If there are not two floating operands of one dtype and shape.

    See Also
    --------
    random.gamma : Sample from the gamma distribution.
    igamma_grad_a : Derivative of its distribution function.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.random_gamma_grad(jnp.array([1.0]), jnp.array([1.0]))
    Array([1.173563], dtype=float32)
    """
    return _random_gamma_grad(*args)


rem = strict("rem", "rem", "x, y", "[7, -7], [3, 3] -> [ 1, -1]")
shift_left = strict("shift_left", "shift_left", "x, y", "[1, 3], [4, 1] -> [16,  6]")
shift_right_arithmetic = strict(
    "shift_right_arithmetic", "shift_right_arithmetic", "x, y", "[16, -4], [2, 1] -> [ 4, -2]"
)
shift_right_logical = strict(
    "shift_right_logical",
    "shift_right_logical",
    "x, y",
    "[16, -4], [2, 1] -> [         4, 2147483646]",
)
sub = strict("sub", "sub", "x, y", "[1, 2], [3, 5] -> [-2, -3]")
zeta = strict("zeta", "zeta", "x, q", "[2.0, 4.0], [1.0, 1.0] -> [1.644934 , 1.0823232]")
betainc = strict(
    "betainc", "regularized_incomplete_beta", "a, b, x", "[2.0], [3.0], [0.5] -> [0.6875]"
)


@api_boundary
def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Select elements from several arrays by index.

    Parameters
    ----------
    which : array_like of bool or int
        Number of the case for each element, from 0; False is 0 and True is 1. A scalar, or an array
        of the shape of the cases. An index that is out of bounds selects the first or the last
        case.
    *cases : array_like
        Arrays of one shape and dtype. There are at most two for a bool `which`.

    Returns
    -------
    Array
        Selected elements, with the shape and dtype of the cases.

    Raises
    ------
    TypeError
        If shapes or dtypes differ, or `which` is neither bool nor an integer.
    ValueError
        If no case is given.

    See Also
    --------
    select : Select from two arrays.
    numpy.where, numpy.choose : The same with broadcasting and promotion.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.select_n(jnp.array([0, 2]), jnp.zeros(2), jnp.ones(2), jnp.full(2, 5.0))
    Array([0., 5.], dtype=float32)
    """
    return _select("lax.select_n", which, cases)


@api_boundary
def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Select elements from two arrays by a mask.

    Parameters
    ----------
    pred : array_like of bool
        Mask of the shape of the other operands, or a scalar.
    on_true : array_like
        Elements where `pred` is True.
    on_false : array_like
        Elements where `pred` is False, of the shape and dtype of `on_true`.

    Returns
    -------
    Array
        Selected elements, with the shape and dtype of `on_true`.

    Raises
    ------
    TypeError
        If shapes or dtypes differ, or `pred` is floating or complex.

    See Also
    --------
    select_n : Select from several arrays.
    numpy.where : The same with broadcasting and promotion.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.select(jnp.array([True, False]), jnp.ones(2), jnp.zeros(2))
    Array([1., 0.], dtype=float32)
    """
    return _select("lax.select", pred, (on_false, on_true))


def _select(name: str, which: Any, given: Sequence[Any]) -> Array:
    at = as_node(which, name)
    cases = [as_node(x, name) for x in given]
    if not cases:
        raise ValueError(f"{name}: needs at least one case; got none; pass an array for each")
    shapes = [x.aval.shape for x in cases]
    if len(set(shapes)) > 1:
        raise TypeError(
            f"{name}: select cases must have the same shapes, got {shapes}; jnp.where broadcasts"
        )
    if at.aval.shape not in ((), shapes[0]):
        raise TypeError(
            f"{name}: select `which` must be scalar or have the same shape as cases; got "
            f"{at.aval.shape} for cases of shape {shapes[0]}; broadcast it first"
        )
    if len(cases) == 1:
        return wrap(cases[0])
    if dtype_kind(at.aval.dtype) in "iu":
        at = cast(at, np.dtype(np.int32))
    return wrap(o.select_n(at, *cases))


@api_boundary
def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Limit the elements of an array to an interval.

    Parameters
    ----------
    min : array_like
        Lower bound, a scalar or an array of the shape of `x`.
    x : array_like
        Array or number to limit, of a real dtype.
    max : array_like
        Upper bound, a scalar or an array of the shape of `x`.

    Returns
    -------
    Array
        Limited elements, with the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If shapes or dtypes differ, or an operand is not an array or a number.

    See Also
    --------
    numpy.clip : The same with broadcasting and promotion.
    max, min

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.clamp(0.0, jnp.array([-1.0, 2.0]), 1.0)
    Array([0., 1.], dtype=float32)
    """
    low, node, high = (as_node(v, "lax.clamp") for v in (min, x, max))
    if not {low.aval.shape, high.aval.shape} <= {(), node.aval.shape}:
        raise TypeError(
            "lax.clamp: clamp requires min.shape == operand.shape or min.shape == (), and so for "
            f"max; got {low.aval.shape}, {high.aval.shape} for {node.aval.shape}; broadcast x first"
        )
    if node.aval.dtype.kind == "c":
        return wrap(o.min(o.max(node, low), high))
    return wrap(o.clamp(low, node, high))


@api_boundary
def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Raise x to the power y, elementwise.

    Parameters
    ----------
    x : array_like
        Base, of floating or complex dtype.
    y : array_like
        Exponent, of the dtype of `x` or an integer dtype. Rank 0 and axes of length 1 are repeated.

    Returns
    -------
    Array
        Powers, with the dtype of `x` and the shape to which the operands are repeated.

    Raises
    ------
    TypeError
        If `x` has an integer dtype, `y` another floating dtype than `x`, or the shapes differ.

    See Also
    --------
    integer_pow : Power with a constant integer exponent.
    numpy.power : The same with promotion of dtypes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.pow(jnp.array([2.0]), 3.0)
    Array([8.], dtype=float32)
    """
    return wrap(o.pow(as_node(x, "lax.pow"), as_node(y, "lax.pow")))


@api_boundary
def integer_pow(x: ArrayLike, y: int) -> Array:
    """Raise x to a constant integer power, elementwise.

    Parameters
    ----------
    x : array_like
        Base, of integer, floating or complex dtype.
    y : int
        Exponent, a Python integer.

    Returns
    -------
    Array
        Powers, with the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `y` is not an integer, is negative for an integer `x`, or `x` is bool.

    See Also
    --------
    pow : Power with an exponent from an array.
    square : The second power.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.integer_pow(jnp.array([2.0]), 3)
    Array([8.], dtype=float32)
    """
    node, power = as_node(x, "lax.integer_pow"), as_int(y, "lax.integer_pow", "y")
    if power < 0 and dtype_kind(node.aval.dtype) in "iu":
        raise TypeError(
            "lax.integer_pow: Integers cannot be raised to negative powers; "
            f"got {node.aval.dtype.name} and {power}; convert to float first"
        )
    return wrap(o.integer_pow(node, y=power))


@api_boundary
def reciprocal(x: ArrayLike) -> Array:
    """Compute 1 / x, elementwise.

    Parameters
    ----------
    x : array_like
        Array or number of floating or complex dtype.

    Returns
    -------
    Array
        Reciprocals, with the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is an integer, bool, or not an array.

    See Also
    --------
    rsqrt : Reciprocal of the square root.
    numpy.reciprocal : The same for other dtypes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.reciprocal(jnp.array([2.0]))
    Array([0.5], dtype=float32)
    """
    return integer_pow(x, -1)


@api_boundary
def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Round x to the nearest whole number, elementwise.

    Parameters
    ----------
    x : array_like
        Array or number of floating dtype, of any shape.
    rounding_method : RoundingMethod, optional
        How halves are rounded: AWAY_FROM_ZERO, the default, or TO_NEAREST_EVEN.

    Returns
    -------
    Array
        Whole numbers, with the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is not floating.
    ValueError
        If the method is unknown.

    See Also
    --------
    numpy.round : Round to a number of decimals.
    floor, ceil

    Notes
    -----
    NumPy rounds halves to even numbers. Here this needs `RoundingMethod.TO_NEAREST_EVEN`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.round(jnp.array([0.5, 1.5]))
    Array([1., 2.], dtype=float32)
    """
    method = RoundingMethod(rounding_method)
    return wrap(o.round(as_node(x, "lax.round"), rounding_method=int(method)))


_CONJUGATED = tuple(map(np.dtype, ("float32", "float64", "complex64", "complex128")))


@api_boundary
def conj(x: ArrayLike) -> Array:
    """Compute the complex conjugate of x, elementwise.

    Parameters
    ----------
    x : array_like
        Array or number of complex dtype, or of dtype float32 or float64.

    Returns
    -------
    Array
        Conjugates, complex also for real `x`.

    Raises
    ------
    TypeError
        If `x` has another dtype, such as float16 or an integer one.

    See Also
    --------
    numpy.conj : The same for any dtype; real numbers stay real.
    real, imag

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.conj(jnp.array([1j]))
    Array([0.-1.j], dtype=complex64)
    """
    node = as_node(x, "lax.conj")
    if node.aval.dtype not in _CONJUGATED:
        raise TypeError(
            f"lax.conj: takes float32, float64 and complex numbers; got {node.aval.dtype.name}; "
            "jnp.conj takes all"
        )
    if node.aval.dtype.kind != "c":
        wide = np.dtype(np.complex128 if node.aval.dtype.itemsize == 8 else np.complex64)
        return wrap(cast(node, wide, node.aval.weak_type))
    return wrap(o.conj(node))


@api_boundary
def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Convert the elements of an array to another dtype.

    Parameters
    ----------
    operand : array_like
        Array or number to convert, of any shape.
    new_dtype : dtype_like
        Dtype to convert to. Without `jax_enable_x64`, a 64-bit dtype stands for the 32-bit one,
        with a warning.

    Returns
    -------
    Array
        Converted elements, of the same shape.

    Raises
    ------
    TypeError
        If the dtype is unknown, or a Python complex number is to become real.
    ValueError
        If `new_dtype` is None.
    OverflowError
        If a Python integer of more than 64 bits is to become an integer.

    See Also
    --------
    bitcast_convert_type : Keep the bits instead of the values.
    numpy.astype : The same with options.

    Notes
    -----
    Real numbers and bools are made of the real parts of complex numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.convert_element_type(jnp.array([1.5]), int)
    Array([1], dtype=int32)
    """
    if new_dtype is None:
        raise ValueError("lax.convert_element_type: a dtype is needed; got None; name one")
    new = dtypes.requested_dtype(new_dtype, "lax.convert_element_type")
    if type(operand) is int and not -(2**31) <= operand < 2**31:  # int32 does not hold it
        return wrap(numpy_node(_converted(operand, new), "lax.convert_element_type"))
    if type(operand) is builtins.complex and operand != operand and dtype_kind(new) in "iu":
        warn(
            "lax.convert_element_type: the complex number nan becomes the integer 0; pass an "
            "integer, or a complex dtype",
            np.exceptions.ComplexWarning,
        )
        operand = 0
    check_complex(operand, new, "lax.convert_element_type")
    node = as_node(operand, "lax.convert_element_type")
    if node.aval.dtype.kind == "c" and dtype_kind(new) != "c":
        warn(
            "lax.convert_element_type: Casting complex values to real discards the imaginary part; "
            f"got {node.aval.dtype.name} for {new.name}; pass lax.real(x)",
            np.exceptions.ComplexWarning,
        )
    if node.aval.dtype.kind == "c" and new.kind == "b":
        node = o.real(node)
    return made(cast(without_float0(node, new), new), None)


def _converted(value: int, dtype: np.dtype) -> np.ndarray:
    """A Python integer in a dtype: the low bits in integers, if 64 bits hold it, else rounded."""
    if dtype.kind == "b":
        wide = np.asarray(value != 0)
    elif -(2**63) <= value < 2**64:
        wide = np.asarray(value, np.int64 if value < 2**63 else np.uint64)
    elif dtype_kind(dtype) in "iu":
        raise OverflowError(
            f"lax.convert_element_type: {value} does not fit in 64 bits; pass a float dtype"
        )
    else:
        wide = np.asarray(float(value))
    with np.errstate(over="ignore"):
        return wide.astype(dtype)


@api_boundary
def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Reinterpret the bits of the elements as another dtype.

    Parameters
    ----------
    operand : array_like
        Array or number whose bits are read, of any shape.
    new_dtype : dtype_like
        Dtype to read the bits as.

    Returns
    -------
    Array
        Elements of `new_dtype`. If it is narrower, there is one more axis for the parts of each
        element; if it is wider, the last axis is used up.

    Raises
    ------
    TypeError
        If one of two dtypes of the same width is bool or complex.
    ValueError
        If the last axis does not hold exactly the parts of one element of a wider dtype.

    See Also
    --------
    convert_element_type : Convert the values.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.bitcast_convert_type(jnp.float32(1.0), jnp.int32)
    Array(1065353216, dtype=int32)
    """
    node = as_node(operand, "lax.bitcast_convert_type")
    needs_dtype("lax.bitcast_convert_type", new_dtype)
    new = dtypes.requested_dtype(new_dtype, "lax.bitcast_convert_type")
    old, shape = node.aval.dtype, node.aval.shape
    if new == old:
        return wrap(cast(node, old))
    ratio, parts = divmod(width_of(new), width_of(old))
    if ratio == 1 or {new.kind, old.kind} & {"b", "c"}:
        return wrap(o.bitcast_convert_type(node, new_dtype=new))
    if parts:
        return wrap(bits_of(o.reshape(node, new_sizes=(*shape, 1), dimensions=None), new))
    if not shape or shape[-1] != ratio:
        raise ValueError(
            f"lax.bitcast_convert_type: the last axis must have {ratio} elements of {old.name} for "
            f"one of {new.name}; got shape {shape}; reshape first"
        )
    return wrap(o.reshape(bits_of(node, new), new_sizes=shape[:-1], dimensions=None))


@api_boundary
def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round floating-point numbers to fewer bits of exponent and mantissa.

    Parameters
    ----------
    operand : array_like
        Array or number of floating dtype, of any shape.
    exponent_bits : int
        Number of bits of the exponent, at least 1.
    mantissa_bits : int
        Number of bits of the mantissa, at least 0.

    Returns
    -------
    Array
        Rounded numbers, with the shape and dtype of `operand`.

    Raises
    ------
    TypeError
        If `operand` is not floating, or a number of bits is not an integer.
    ValueError
        If a number of bits is too small.

    See Also
    --------
    convert_element_type : Convert to another dtype.

    Notes
    -----
    Ties are rounded to even. Numbers that are too large become infinite, those that are too small
    become 0, and nan stays nan.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.reduce_precision(jnp.array([1.1, 70000.0]), 5, 10)
    Array([1.0996094,       inf], dtype=float32)
    """
    x = as_node(operand, "lax.reduce_precision")
    exponent = as_int(exponent_bits, "lax.reduce_precision", "exponent_bits")
    mantissa = as_int(mantissa_bits, "lax.reduce_precision", "mantissa_bits")
    if exponent < 1 or mantissa < 0:
        raise ValueError(
            f"lax.reduce_precision: needs at least one bit of exponent and none of mantissa; got "
            f"exponent_bits={exponent}, mantissa_bits={mantissa}; pass exponent_bits of 1 or more"
        )
    return wrap(rounded_bits(x, exponent, mantissa))


@api_boundary
def stop_gradient(x: PyTree) -> Any:
    """Return values unchanged, but as constants for differentiation.

    Parameters
    ----------
    x : array, number or pytree of them
        Values, whose derivatives are taken to be 0.

    Returns
    -------
    pytree
        The same values, with their shapes and dtypes. Outside of traced functions, NumPy arrays and
        Python numbers stay what they are.

    Raises
    ------
    TypeError
        If a leaf is not an array or a number.

    See Also
    --------
    grad : Gradient of a function.
    optimization_barrier : Keep the compiler from merging computations.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.stop_gradient(jnp.float32(1))
    Array(1., dtype=float32)
    """

    def stop(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray) and leaf.dtype == float0:
            return leaf
        node = as_node(leaf, "lax.stop_gradient")
        if state.abstract is None and is_host_value(leaf):
            return as_evaluated(leaf)
        if node.aval.dtype.kind in "biu":
            return wrap(node)
        return wrap(o.stop_gradient(node))

    return map_arrays(stop, x)


@api_boundary
def optimization_barrier(operand: PyTree, /) -> Any:
    """Return values unchanged, once all of them are computed.

    Computations are neither merged nor fused across the barrier.

    Parameters
    ----------
    operand : array, number or pytree of them
        Values that are computed before those that use the result.

    Returns
    -------
    pytree
        The same values, with their shapes and dtypes.

    Raises
    ------
    TypeError
        If a leaf is not an array or a number.

    See Also
    --------
    stop_gradient : Make values constants for differentiation.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.optimization_barrier(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    leaves, tree = flatten_arrays(operand)
    nodes = [as_node(leaf, "lax.optimization_barrier") for leaf in leaves]
    return tree_unflatten(tree, [wrap(x) for x in items(o.optimization_barrier(*nodes))])
