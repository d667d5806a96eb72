"""Differences of neighbors, gradients of samples, and linear interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np

from accnp.api.arguments.convert import as_node, promote_inexact, wrap
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.api.arguments.shapes import AxesLike, as_axis, as_int
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small, run_small
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.ir.trace import state
from accnp.numpy import ufuncs
from accnp.numpy.joining import concatenate
from accnp.numpy.manipulation import broadcast_to, ravel, reshape
from accnp.numpy.selection import where
from accnp.numpy.sorting import argsort
from accnp.numpy.taking import searchsorted

__all__ = ["diff", "ediff1d", "gradient", "interp"]


def _slice_axis(x: Array, axis: int, start: int | None, stop: int | None) -> Array:
    return x[(*[slice(None)] * axis, slice(start, stop))]


@api_boundary
@shown()
@compiled_if_small("a", "prepend", "append")
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Compute the n-th differences of neighbors along an axis.

    Parameters
    ----------
    a : array_like
        Array with at least one axis. Lists and tuples are not accepted.
    n : int, optional
        Number of times that differences are taken, static. The default is 1.
    {axis_last}
    prepend, append : array_like, optional
        Values to join to the beginning and the end of the axis before. A number counts as one
        element.

    Returns
    -------
    Array
        Differences, with the dtype of `a`. The axis is shorter by `n` elements. For bools, the
        result tells whether neighbors differ.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number.
    ValueError
        If `n` is negative, `a` is a scalar, or the axis is out of bounds.

    See Also
    --------
    gradient : Derivative by central differences.
    ediff1d : Differences in the flattened array.
    cumsum : The inverse.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.diff(jnp.array([1, 2, 4, 7]))
    Array([1, 2, 3], dtype=int32)
    """
    name = "jnp.diff"
    x = wrap(as_node(a, name))
    n = as_int(n, name, "n")
    if n == 0:
        return x
    if n < 0:
        raise ValueError(f"{name}: the order cannot be negative; got n={n}; pass 0 or more")
    if x.ndim == 0:
        raise ValueError(
            f"{name}: requires input that is at least one dimensional; got {a}; "
            "pass an array with axes"
        )
    at = as_axis(axis, x.ndim, name)

    def extra(value: Any) -> list[Array]:
        if value is None:
            return []
        v = wrap(as_node(value, name))
        one = (*x.shape[:at], 1, *x.shape[at + 1 :])
        return [v if v.ndim else broadcast_to(v, one)]

    parts = [*extra(prepend), x, *extra(append)]
    if len(parts) > 1:
        x = concatenate(parts, at)
    take = ufuncs.not_equal if x.dtype == np.bool_ else ufuncs.subtract
    for _ in range(n):
        x = take(_slice_axis(x, at, 1, None), _slice_axis(x, at, None, -1))
    return x


@api_boundary
@shown()
@compiled_if_small("ary", "to_end", "to_begin")
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Compute the differences of neighbors in the flattened array.

    Parameters
    ----------
    ary : array_like
        Array of any shape, which is flattened.
    to_end : array_like, optional
        Numbers to append to the differences.
    to_begin : array_like, optional
        Numbers to put in front of the differences.

    Returns
    -------
    Array
        Vector of the differences, with the dtype of `ary`.

    Raises
    ------
    TypeError
        If `ary` is neither an array nor a number.

    See Also
    --------
    diff : Differences along an axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ediff1d(jnp.array([1, 2, 4]), to_begin=0)
    Array([0, 1, 2], dtype=int32)
    """
    name = "jnp.ediff1d"
    x = ravel(wrap(as_node(ary, name)))
    parts = [x[1:] - x[:-1]]
    if to_begin is not None:
        parts.insert(0, ravel(wrap(as_node(to_begin, name)).astype(x.dtype)))
    if to_end is not None:
        parts.append(ravel(wrap(as_node(to_end, name)).astype(x.dtype)))
    return parts[0] if len(parts) == 1 else concatenate(parts)


def _derivative(x: Array, h: Array, axis: int) -> Array:
    """Return the derivative along one axis: second order inside, one-sided at the ends."""

    def part(start: int | None, stop: int | None, y: Array = x) -> Array:
        return _slice_axis(y, axis, start, stop)

    first, last = part(1, 2) - part(0, 1), part(-1, None) - part(-2, -1)
    if h.ndim == 0:
        middle = (part(2, None) - part(None, -2)) * 0.5 / h
        return concatenate([first / h, middle, last / h], axis)
    if h.ndim > 1:
        raise ValueError(
            f"jnp.gradient: spacings must be scalars or vectors; got shape {h.shape}; "
            "pass one for each axis"
        )
    if h.shape[0] != x.shape[axis]:
        raise ValueError(
            f"jnp.gradient: coordinates must match the length of the axis, {x.shape[axis]}; "
            f"got {h.shape[0]}; pass one coordinate for each element"
        )
    steps = reshape(h[1:] - h[:-1], (-1, *(1,) * (x.ndim - 1 - axis)))
    before, after = steps[:-1], steps[1:]
    left = -after / (before * (before + after))
    here = (after - before) / (before * after)
    right = before / (after * (before + after))
    middle = left * part(0, -2) + here * part(1, -1) + right * part(2, None)
    return concatenate([first / steps[0], middle, last / steps[-1]], axis)


@overload
def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: SupportsIndex, edge_order: int | None = None
) -> Array: ...
@overload
def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: AxesLike | None = None, edge_order: int | None = None
) -> Any: ...
@api_boundary
@shown()
@broadcasts_inside
def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: AxesLike | None = None, edge_order: int | None = None
) -> Any:
    """Compute derivatives of sampled values by central differences.

    Parameters
    ----------
    f : array_like
        Values on a grid. Lists and tuples are not accepted.
    *varargs : array_like
        Spacing of the grid: nothing (1), one entry for all axes, or one for each. An entry is the
        distance of neighbors, or the vector of the coordinates along the axis.
    axis : int or sequence of int, optional
        Axes along which to differentiate. None, the default, means all axes.
    edge_order : int, optional
        Not supported, as in JAX.

    Returns
    -------
    Array or list of Array
        Derivative with the shape of `f`, or a list with one for each of several axes. Integers give
        the default float dtype; other dtypes are unchanged.

    Raises
    ------
    TypeError
        If the number of spacings does not fit the number of axes.
    ValueError
        If an axis is shorter than 2, or coordinates do not fit it.
    NotImplementedError
        If `edge_order` is given.

    See Also
    --------
    diff : Differences of neighbors.
    grad : Derivative of a function, without differences.

    Notes
    -----
    Inside, differences are central and of second order, also for uneven spacing. At the ends they
    are one-sided and of first order.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.gradient(jnp.array([1.0, 2.0, 4.0, 7.0]))
    Array([1. , 1.5, 2.5, 3. ], dtype=float32)
    """
    return run_small(_gradient, (f, *varargs), (axis, edge_order))


def _gradient(f: ArrayLike, *arguments: Any) -> Array | list[Array]:
    *varargs, axis, edge_order = arguments
    name = "jnp.gradient"
    if edge_order is not None:
        raise NotImplementedError(
            f"{name}: the 'edge_order' argument is not supported; got {edge_order}; leave it out"
        )
    x, *spacing = [wrap(v) for v in promote_inexact(name, f, *varargs)]
    if axis is None:
        axes = tuple(range(x.ndim))
    else:
        several = axis if isinstance(axis, Sequence) else (axis,)
        axes = tuple([as_axis(a, x.ndim, name) for a in several])
    if not axes:
        return []
    if min(x.shape[a] for a in axes) < 2:
        raise ValueError(
            f"{name}: Shape of array too small to calculate a numerical gradient, at least 2 "
            f"elements are required; got shape {x.shape}; pass more elements along each axis"
        )
    if not spacing:
        (one,) = promote_inexact(name, 1.0)
        spacing = [wrap(one)]
    if len(spacing) == 1:
        spacing = spacing * len(axes)
    if len(spacing) != len(axes):
        raise TypeError(
            f"{name}: Invalid number of spacing arguments {len(spacing)} for axis={axis}"
        )
    derivatives = [_derivative(x, h, a) for a, h in zip(axes, spacing, strict=True)]
    return derivatives[0] if len(axes) == 1 else derivatives


def _is_extrapolated(value: Any, side: str) -> bool:
    """Return whether values beyond an end are extrapolated; raise for other strings."""
    if isinstance(value, str) and value != "extrapolate":
        raise ValueError(
            f"jnp.interp: the only valid string value of `{side}` is 'extrapolate', "
            f"but got: {value!r}; pass a number or 'extrapolate'"
        )
    return isinstance(value, str)


@api_boundary
@shown(arrays=3)
@compiled_if_small("x", "xp", "fp", "left", "right", "period")
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | Literal["extrapolate"] | None = None,
    right: ArrayLike | Literal["extrapolate"] | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Interpolate linearly between points in one dimension.

    Parameters
    ----------
    x : array_like
        Positions at which to interpolate, of any shape.
    xp : array_like
        Vector of the coordinates of the points, in rising order unless a period is given.
    fp : array_like
        Vector of the values at the points.
    left, right : scalar or 'extrapolate', optional
        Values before the first and after the last point. The default, None, means the values of
        these points, and 'extrapolate' continues the lines.
    period : scalar, optional
        Period of `x` and `xp`. With it, `left` and `right` have no effect.

    Returns
    -------
    Array
        Values with the shape of `x`, in the promoted floating or complex dtype.

    Raises
    ------
    ValueError
        If `xp` and `fp` are not vectors of one length, `x` is complex, `period` is not a scalar, or
        `left` or `right` is another string.

    See Also
    --------
    searchsorted : Positions in a sorted vector.
    scipy.interpolate.RegularGridInterpolator : Interpolation in several dimensions.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.interp(jnp.array([0.5, 3.0]), jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 10.0, 20.0]))
    Array([ 5., 20.], dtype=float32)
    """
    name = "jnp.interp"
    u, p = [wrap(v) for v in promote_inexact(name, x, xp)]
    (values,) = promote_inexact(name, fp)
    f = wrap(values)
    if p.shape != f.shape or p.ndim != 1:
        raise ValueError(
            "xp and fp must be one-dimensional arrays of equal size; interp got shapes "
            f"{p.shape} and {f.shape}; ravel them, or slice the longer one"
        )
    free_left, free_right = _is_extrapolated(left, "left"), _is_extrapolated(right, "right")
    if u.dtype.kind == "c":
        raise ValueError(
            f"{name}: complex x values not supported; got {u.dtype}; interpolate real x"
        )
    if period is not None:
        t = wrap(as_node(period, name))
        if t.ndim:
            raise ValueError(
                f"{name}: period must be a scalar; got shape {t.shape}; pass one number"
            )
        t = ufuncs.abs(t)
        u, p = u % t, p % t
        order = argsort(p)
        p, f = p[order], f[order]
        p = concatenate([p[-1:] - t, p, p[:1] + t])
        f = concatenate([f[-1:], f, f[:1]])
    last = p.shape[0] - 1
    i = ufuncs.minimum(ufuncs.maximum(searchsorted(p, u, side="right"), 1), last)
    y = _interpolate_line(u, p[i - 1], p[i], f[i - 1], f[i])
    if period is None and not free_left:
        y = where(u < p[0], f[0] if left is None else left, y)  # type: ignore[call-overload]
    if period is None and not free_right:
        y = where(u > p[-1], f[-1] if right is None else right, y)  # type: ignore[call-overload]
    return y


def _interpolate_line(u: Array, p0: Array, p1: Array, f0: Array, f1: Array) -> Array:
    """Interpolate at u between two points.

    Intervals of length 0 and infinite points, whose differences are nan, are selected out before
    the arithmetic, so that they do not make derivatives elsewhere nan.
    """
    if state.named:  # jaxprs show the formula that JAX uses
        tiny = np.spacing(np.finfo(p0.dtype).eps)
        flat = ufuncs.abs(p1 - p0) <= tiny
        return where(flat, f0, f0 + ((u - p0) / where(flat, 1, p1 - p0)) * (f1 - f0))
    far = ufuncs.isinf(p0) | ufuncs.isinf(p1)
    flat = far | (p0 == p1)
    run = where(flat, 1, p1) - where(flat, 0, p0)
    share = where(flat, 0, u - where(flat, 0, p0)) / run
    # If one of the two points is infinite, the finite one is nearest to any finite u.
    beside = where(ufuncs.isinf(p1), where(ufuncs.isinf(p0), np.nan, 0), 1)
    share = where(far, where(u == p0, 0, where(u == p1, 1, beside)), share)
    steep = ufuncs.isinf(f0) | ufuncs.isinf(f1)
    low, high = where(steep, 0, f0), where(steep, 0, f1)
    y = low + share * (high - low)
    ends = where(share == 0, f0, where(share == 1, f1, f0 + f1 + 0 * share))
    level = (f0 == f1) & (steep | far) & (u == u)
    return where((p0 == p1) | level, f0, where(steep, ends, y))
