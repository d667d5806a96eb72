"""Comparisons of arrays within tolerances or as a whole, and the spacing of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accnp.api.arguments.convert import (
    as_node,
    broadcast_nodes,
    broadcast_shapes,
    cast,
    promote,
    to_shape,
    wrap,
)
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.non_numeric import accepts_keys
from accnp.api.arguments.values import node_of
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.key_array import PRNGKeyArray
from accnp.numpy import ufunc_rules as rules
from accnp.numpy.ufunc_factories import inexact
from accnp.numpy.ufunc_rules import like
from accnp.numpy.ufuncs import dtypes_real, equal, real_inexact
from accnp.primitives.kinds import full

__all__ = ["allclose", "array_equal", "array_equiv", "isclose", "spacing"]


@api_boundary
@shown(arrays=4)
@compiled_if_small("a", "b", "rtol", "atol")
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Test whether two operands are equal within a tolerance, elementwise.

    Parameters
    ----------
    a : array_like
        Values to compare with `b`.
    b : array_like
        Reference values, whose magnitude scales the relative tolerance.
    {tolerances}

    Returns
    -------
    Array
        Bools with the broadcast shape of the operands: `abs(a - b) <= atol + rtol * abs(b)`.

    Raises
    ------
    {raises_operand}
    {raises_broadcast}

    See Also
    --------
    allclose : Whether all elements are close.
    equal : Exact comparison.
    testing.assert_allclose : Raise an error unless arrays are close.

    Notes
    -----
    The comparison is not symmetric in `a` and `b`. Infinities are close only if they are equal.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.1]))
    Array([ True, False], dtype=bool)
    """
    if isinstance(a, PRNGKeyArray) and isinstance(b, PRNGKeyArray):
        return equal(a, b)
    x, y = broadcast_nodes("isclose", inexact("isclose", a, b))
    dtype = dtypes_real(x)
    r, t = (cast(as_node(v, "isclose"), dtype) for v in (rtol, atol))
    return wrap(rules.isclose(x, y, r, t, bool(equal_nan)))


def all_of(node: Node) -> Node:
    """Return whether all elements are true."""
    return cast(o.reduce_and(node, axes=tuple(range(node.aval.ndim))), np.dtype(bool))


@api_boundary
@shown(arrays=4)
@compiled_if_small("a", "b", "rtol", "atol")
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Test whether all elements of two operands are equal within a tolerance.

    Parameters
    ----------
    a : array_like
        Values to compare with `b`.
    b : array_like
        Reference values, whose magnitude scales the relative tolerance.
    {tolerances}

    Returns
    -------
    Array
        Scalar of dtype bool. NumPy returns a Python bool, which would wait for the values.

    Raises
    ------
    {raises_operand}
    {raises_broadcast}

    See Also
    --------
    isclose : The comparison of each element.
    array_equal : Exact comparison of arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.0]))
    Array(True, dtype=bool)
    """
    return wrap(all_of(isclose(a, b, rtol, atol, equal_nan)._node))


@accepts_keys("all_keys_equal")
@api_boundary
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Test whether two arrays have the same shape and elements.

    Parameters
    ----------
    a1, a2 : array_like
        Arrays to compare; lists are accepted, as in NumPy. Their dtypes promote.
    equal_nan : bool, optional
        If True, two nan compare equal. The default is False.

    Returns
    -------
    Array
        Scalar of dtype bool. NumPy returns a Python bool, which would wait for the values.

    Raises
    ------
    TypeError
        If an operand is a string or another object without numbers, which NumPy accepts.

    See Also
    --------
    array_equiv : Comparison after broadcasting.
    allclose : Comparison within a tolerance.
    equal : Comparison of each element.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 2]))
    Array(True, dtype=bool)
    """
    a, b = _convert_list(a1, "array_equal"), _convert_list(a2, "array_equal")
    if a.aval.shape != b.aval.shape:
        return wrap(full((), False, np.dtype(bool)))
    a, b = promote("array_equal", wrap(a), wrap(b))
    same = o.eq(a, b)
    if equal_nan:
        same = o.or_(same, o.and_(o.ne(a, a), o.ne(b, b)))
    return wrap(all_of(same))


@api_boundary
@promotes_inside
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Test whether two arrays have the same elements after broadcasting.

    Parameters
    ----------
    a1, a2 : array_like
        Arrays to compare; lists are accepted, as in NumPy. Their dtypes promote.

    Returns
    -------
    Array
        Scalar of dtype bool: False as well if the shapes do not broadcast.

    Raises
    ------
    TypeError
        If an operand is a string or another object without numbers, which NumPy accepts.

    See Also
    --------
    array_equal : Comparison of shape and elements.
    broadcast_arrays : Broadcast arrays against each other.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.array_equiv(jnp.array([1, 1]), 1)
    Array(True, dtype=bool)
    """
    if isinstance(a1, PRNGKeyArray) and isinstance(a2, PRNGKeyArray):
        a1, a2 = a1._base, a2._base
    a, b = _convert_list(a1, "array_equiv"), _convert_list(a2, "array_equiv")
    try:
        broadcast_shapes("array_equiv", [a.aval.shape, b.aval.shape])
    except ValueError:
        return wrap(full((), False, np.dtype(bool)))
    return wrap(all_of(equal(wrap(a), wrap(b))._node))


def _convert_list(x: Any, name: str) -> Node:
    """Convert an operand that may be a list, which other elementwise functions refuse."""
    return (
        node_of(x, copy=False, function=name) if isinstance(x, list | tuple) else as_node(x, name)
    )


@api_boundary
@compiled_if_small("x")
def spacing(x: ArrayLike, /) -> Array:
    """Compute the distance to the next number away from zero, elementwise.

    Parameters
    ----------
    x : array_like
        Real numbers from which to measure.

    Returns
    -------
    Array
        Distances with the sign and the shape of `x`. Integers give the default float dtype;
        floating dtypes are unchanged.

    Raises
    ------
    TypeError
        If `x` is complex, or neither an array nor a number.

    See Also
    --------
    nextafter : Next number in a direction.
    finfo : Properties of a floating dtype, such as `eps`.

    Notes
    -----
    For float16 it is the distance to the next larger number, as in NumPy, which is always positive.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.spacing(jnp.array([1.0, 1024.0]))
    Array([1.1920929e-07, 1.2207031e-04], dtype=float32)
    """
    (node,) = real_inexact("spacing", x)
    half = node.aval.dtype == np.float16
    outward = like(node, math.inf) if half else rules.copysign(like(node, math.inf), node)
    gap = o.sub(o.nextafter(node, to_shape(outward, node.aval.shape)), node)
    return wrap(cast(gap, gap.aval.dtype))
