"""Parts of numbers: fraction and exponent, angle, and replacement of nonfinite values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import (
    as_node,
    broadcast_shapes,
    cast,
    check_ranks,
    promote,
    to_shape,
    wrap,
)
from accnp.api.arguments.values import no_out
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.ir.op import o
from accnp.numpy import ufunc_rules as rules
from accnp.numpy.ufunc_factories import inexact
from accnp.numpy.ufunc_rules import like
from accnp.numpy.ufuncs import UNARY, dtypes_real, real_inexact, unary

__all__ = ["angle", "isneginf", "isposinf", "ldexp", "modf", "nan_to_num", "power_of_two"]

_modf = unary("modf", rules.modf, real_inexact, "", "modf")
_isneginf = unary("isneginf", rules.is_infinite_with(-1.0, "isneginf"), promote)
_isposinf = unary("isposinf", rules.is_infinite_with(1.0, "isposinf"), promote)


@api_boundary
@compiled_if_small("x")
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Split numbers into fraction and whole part, elementwise.

    Parameters
    ----------
    x : array_like
        Real numbers to split. Lists and tuples are not accepted.
    {out}

    Returns
    -------
    fraction, whole : Array
        Parts with the sign and the shape of `x`. Integers give the default float dtype;
        floating dtypes are unchanged.

    Raises
    ------
    TypeError
        If `x` is complex, or neither an array nor a number.
    {raises_out}

    See Also
    --------
    trunc : Whole part alone.
    divmod : Quotient and remainder of a division.
    frexp : Mantissa and binary exponent.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.modf(jnp.array([1.5, -2.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    no_out(out, "modf")
    return _modf(x)


@api_boundary
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Test for negative infinity, elementwise.

    Parameters
    ----------
    x : array_like
        Real numbers to test. Lists and tuples are not accepted.
    {out}

    Returns
    -------
    Array
        Bools with the shape of `x`.

    Raises
    ------
    TypeError
        If `x` is neither an array nor a number.
    ValueError
        If `x` is complex.
    {raises_out}

    See Also
    --------
    isposinf : Test for positive infinity.
    isinf : Test for infinities of either sign.
    isfinite : Test for finite numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.isneginf(jnp.array([-jnp.inf, jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    no_out(out, "isneginf")
    return _isneginf(x)


@api_boundary
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Test for positive infinity, elementwise.

    Parameters
    ----------
    x : array_like
        Real numbers to test. Lists and tuples are not accepted.
    {out}

    Returns
    -------
    Array
        Bools with the shape of `x`.

    Raises
    ------
    TypeError
        If `x` is neither an array nor a number.
    ValueError
        If `x` is complex.
    {raises_out}

    See Also
    --------
    isneginf : Test for negative infinity.
    isinf : Test for infinities of either sign.
    isfinite : Test for finite numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.isposinf(jnp.array([-jnp.inf, jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    no_out(out, "isposinf")
    return _isposinf(x)


@api_boundary
@compiled_if_small("x1", "x2")
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply by a power of two, elementwise.

    Parameters
    ----------
    x1 : array_like
        Real factors, for example the mantissas of `frexp`.
    x2 : array_like of int
        Exponents of two.

    Returns
    -------
    Array
        `x1 * 2**x2`, with the broadcast shape of the operands. The dtype is that of `x1`, or the
        default float dtype if `x1` holds integers.

    Raises
    ------
    ValueError
        If `x1` is complex, or `x2` does not hold integers.
    {raises_broadcast}

    See Also
    --------
    frexp : Split numbers into mantissa and binary exponent.
    exp2 : Power of two.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ldexp(jnp.array([1.0, 3.0]), jnp.array([4, -1]))
    Array([16. ,  1.5], dtype=float32)
    """
    a, n = as_node(x1, "ldexp"), as_node(x2, "ldexp")
    if rules.kind(n) not in "biu" or rules.kind(a) == "c":
        names = f"{a.aval.dtype.name}, {n.aval.dtype.name}"
        raise ValueError(
            f"ldexp: expected a real number and an integer exponent; got {names}; convert x2 to int"
        )
    (a,) = inexact("ldexp", x1)
    check_ranks("ldexp", [x.aval.shape for x in (a, n) if x.aval.shape])
    shape = broadcast_shapes("ldexp", [a.aval.shape, n.aval.shape])
    if rules.kind(n) in "iu" and (n.aval.dtype.itemsize == 8 or n.aval.dtype == np.uint32):
        far = 1 << 20  # over- or underflows all floats, fits int32
        n = o.min(n, rules.like(n, far))
        n = o.max(n, rules.like(n, -far)) if rules.kind(n) == "i" else n
    n = cast(n, np.dtype(np.int32))
    return wrap(rules.scale_by_power(to_shape(a, shape), to_shape(n, shape)))


def power_of_two(size: Array) -> Array:
    """Return the power of two nearest to each size, by which division is exact.

    It is 1 for 0 and nonfinite sizes, and a constant for derivatives.
    """
    x = o.stop_gradient(size._node)
    info, (_, n) = dtypes.finfo(x.aval.dtype), rules.frexp(x)
    n = o.min(o.max(n, like(n, int(info.minexp) + 1)), like(n, int(info.maxexp) - 2))
    good = o.and_(o.gt(x, like(x, 0)), o.is_finite(x))
    return wrap(rules.select(good, rules.scale_by_power(like(x, 1), n), like(x, 1)))


@api_boundary
@shown()
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Compute the angle of complex numbers, elementwise.

    Parameters
    ----------
    z : array_like
        Complex or real numbers. Lists and tuples are not accepted.
    deg : bool, optional
        If True, the angles are in degrees. The default, False, means radians.

    Returns
    -------
    Array
        Angles from the positive real axis, in [-pi, pi], with the shape of `z`. The dtype is the
        real one of the same precision, or the default float dtype for integers and for a real
        scalar.

    Raises
    ------
    TypeError
        If `z` is neither an array nor a number.

    See Also
    --------
    arctan2 : Angle of points in the plane.
    abs : Absolute value of complex numbers.
    unwrap : Remove jumps of a full turn.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.angle(jnp.array([1j, -1.0]), deg=True)
    Array([ 90., 180.], dtype=float32)
    """
    (x,) = inexact("angle", z)
    z_kind = rules.kind(as_node(z, "angle")) if isinstance(z, Array | np.ndarray) else ""
    if z_kind in ("b", "i", "u") or (not x.aval.ndim and rules.kind(x) == "f"):
        x = cast(x, dtypes.default_float())
    re, im = rules.real(x), rules.imag(x)
    y = o.atan2(im, re)
    y = o.mul(y, like(y, 180 / math.pi)) if deg else y
    keeps_weak = rules.kind(x) == "c" or (z_kind == "f" and not deg)  # as in JAX
    weak = x.aval.weak_type and keeps_weak
    return wrap(cast(y, y.aval.dtype, weak))


@api_boundary
@shown()
@compiled_if_small("x", "nan", "posinf", "neginf")
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replace nan and infinities by finite numbers.

    Parameters
    ----------
    x : array_like
        Array or number to replace elements of. Lists and tuples are not accepted.
    copy : bool, optional
        Not used; the result is always a new array. Present for compatibility with NumPy.
    nan : array_like, optional
        Replacement for nan. The default is 0.
    posinf, neginf : array_like, optional
        Replacements for positive and negative infinity. The default, None, means the largest and
        the smallest finite number of the dtype.

    Returns
    -------
    Array
        Array with the shape and dtype of `x`. The parts of complex numbers are replaced separately.

    Raises
    ------
    TypeError
        If `x` is neither an array nor a number.

    See Also
    --------
    isnan, isinf, isfinite : Tests for nan and infinities.
    where : Choose elements by a condition.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), posinf=9.0)
    Array([1., 0., 9.], dtype=float32)
    """
    del copy
    node = as_node(x, "nan_to_num")
    if node.aval.dtype == dtypes.float0:
        return np.zeros(node.aval.shape, dtypes.float0)  # type: ignore[return-value]
    dtype = dtypes_real(node)

    def value(v: Any) -> Any:
        return v if v is None else cast(as_node(v, "nan_to_num"), dtype)

    return wrap(rules.nan_to_num(node, value(nan), value(posinf), value(neginf)))


UNARY |= {"isneginf": isneginf, "isposinf": isposinf, "modf": modf}
