"""Reordering along axes: `flip`, `rot90` and `roll`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from accnp.api.arguments.convert import as_node, scalar_node
from accnp.api.arguments.non_numeric import moves_elements
from accnp.api.arguments.shapes import AxesLike, as_axes, as_axis, as_int
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.manipulation import cut, reshape_plain, swapaxes
from accnp.primitives.kinds import dtype_kind, dtype_of_indices

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90"]


@moves_elements()
@api_boundary
@shown("_flip")
def flip(m: ArrayLike, axis: AxesLike | None = None) -> Array:
    """Reverse the order of elements along axes.

    Parameters
    ----------
    m : array_like
        Array to reverse. Lists and tuples are not accepted.
    axis : int or sequence of int, optional
        Axes to reverse. The default, None, means all axes.

    Returns
    -------
    Array
        Reversed array, with the shape and dtype of `m`.

    Raises
    ------
    TypeError
        If `m` is neither an array nor a number.
    {raises_axes}

    See Also
    --------
    flipud, fliplr : Reverse the first and the second axis.
    rot90 : Rotate by quarter turns.
    roll : Shift elements.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.flip(jnp.arange(3))
    Array([2, 1, 0], dtype=int32)
    """
    x = as_node(m, "jnp.flip")
    at = range(x.aval.ndim) if axis is None else as_axes(axis, x.aval.ndim, "jnp.flip")
    return wrap(o.rev(x, dimensions=tuple(at)) if len(at) else x)


@moves_elements()
@api_boundary
def fliplr(m: ArrayLike) -> Array:
    """Reverse the order of elements along axis 1 (left to right).

    Parameters
    ----------
    m : array_like
        Array with at least two axes.

    Returns
    -------
    Array
        Reversed array, with the shape and dtype of `m`.

    Raises
    ------
    TypeError
        If `m` is neither an array nor a number.
    ValueError
        If there are fewer than two axes.

    See Also
    --------
    flip : Reverse any axes.
    flipud : Reverse axis 0.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.fliplr(jnp.arange(4).reshape(2, 2))
    Array([[1, 0],
           [3, 2]], dtype=int32)
    """
    return flip(m, 1)


@moves_elements()
@api_boundary
def flipud(m: ArrayLike) -> Array:
    """Reverse the order of elements along axis 0 (up to down).

    Parameters
    ----------
    m : array_like
        Array with at least one axis.

    Returns
    -------
    Array
        Reversed array, with the shape and dtype of `m`.

    Raises
    ------
    TypeError
        If `m` is neither an array nor a number.
    ValueError
        If no axis is given.

    See Also
    --------
    flip : Reverse any axes.
    fliplr : Reverse axis 1.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.flipud(jnp.arange(2))
    Array([1, 0], dtype=int32)
    """
    return flip(m, 0)


@moves_elements()
@api_boundary
@compiled_if_small("m")
@shown()
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate an array by quarter turns in the plane of two axes.

    Parameters
    ----------
    m : array_like
        Array with at least two axes.
    k : int, optional
        Number of quarter turns, static. The default is 1.
    axes : pair of int, optional
        Axes of the plane. The rotation is from the first to the second. The default is (0, 1).

    Returns
    -------
    Array
        Rotated array, with the dtype of `m`. For odd `k` the two axes swap their lengths.

    Raises
    ------
    TypeError
        If `m` is neither an array nor a number, or `k` is not a static integer.
    ValueError
        If the axes are equal or out of bounds.

    See Also
    --------
    flip : Reverse axes.
    transpose : Permute axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.rot90(jnp.arange(4).reshape(2, 2))
    Array([[1, 3],
           [0, 2]], dtype=int32)
    """
    rank = np.ndim(m)
    i, j = (as_axis(a, rank, "jnp.rot90") for a in axes)
    if i == j:
        raise ValueError(f"jnp.rot90: axes must be different; got {axes}; name two axes")
    k = as_int(k, "jnp.rot90", "k") % 4
    if k == 0:
        return wrap(as_node(m, "jnp.rot90"))
    if k == 2:
        return flip(flip(m, i), j)
    if k == 1:
        return swapaxes(flip(m, j), i, j)
    return flip(swapaxes(m, i, j), j)


@moves_elements()
@api_boundary
@shown("_roll_static")
def roll(
    a: ArrayLike, shift: ArrayLike | Sequence[SupportsIndex], axis: AxesLike | None = None
) -> Array:
    """Shift elements along axes, moving those beyond an end to the other end.

    Parameters
    ----------
    {a}
    shift : int or sequence of int
        Number of places by which to shift; it may be traced.
    axis : int or sequence of int, optional
        Axes along which to shift. The default, None, shifts the flattened array.

    Returns
    -------
    Array
        Shifted array, with the shape and dtype of `a`.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or `shift` is not an integer.
    ValueError
        If `shift` and `axis` differ in length, or an axis is out of bounds.

    See Also
    --------
    flip : Reverse axes.
    rollaxis : Move an axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.roll(jnp.arange(3), 1)
    Array([2, 0, 1], dtype=int32)
    """
    name = "jnp.roll"
    x = as_node(a, name)
    if axis is None:
        flat = reshape_plain(x, (x.aval.size,))
        return wrap(reshape_plain(roll(wrap(flat), shift, 0)._node, x.aval.shape))
    at = [axis] if not isinstance(axis, Sequence) else list(axis)
    at = [as_axis(d, x.aval.ndim, name) for d in at]
    shifts = _shifts(shift, len(at))
    if len(shifts) != len(at):
        if len(at) == 1:
            at = at * len(shifts)
        else:
            raise ValueError(
                f"{name}: shift and axis must have the same length; got {shift} and {axis}; "
                "pass one shift for each axis"
            )
    for by, d in zip(shifts, at, strict=True):
        x = _roll_one(x, by, d)
    return wrap(x)


def _shifts(shift: Any, count: int) -> list[Any]:
    if isinstance(shift, Sequence):
        out = list(shift)
    elif type(shift) is Array:
        n = shift._node
        if n.aval.ndim == 0:
            return [shift] * count
        parts = [
            o.slice(n, start_indices=(i,), limit_indices=(i + 1,), strides=None)
            for i in range(n.aval.shape[0])
        ]
        out = [wrap(reshape_plain(p, ())) for p in parts]
    else:
        out = np.atleast_1d(np.asarray(shift)).tolist()
    return out * count if len(out) == 1 else out


def _roll_one(x: Node, by: Any, d: int) -> Node:
    n = x.aval.shape[d]
    if n == 0:
        return x
    if type(by) is Array:  # possibly traced: a slice of two concatenated copies
        if dtype_kind(by.dtype) not in "iu":
            raise TypeError(
                f"jnp.roll: shift must be an integer; got an array of {by.dtype.name}; "
                "convert it with astype(int)"
            )
        kind = dtype_of_indices(2 * n)  # an 8-bit shift may not hold n
        shift = by._node if by.dtype.itemsize >= kind.itemsize else by.astype(kind)._node
        start = o.rem(shift, _scalar_like(shift, n))
        start = o.sub(_scalar_like(start, n), start)
        start = o.select_n(
            o.ge(start, _scalar_like(start, n)), start, o.sub(start, _scalar_like(start, n))
        )
        twice = o.concatenate(x, x, dimension=d)
        zero = _scalar_like(start, 0)
        starts = [start if i == d else zero for i in range(x.aval.ndim)]
        return o.dynamic_slice(twice, *starts, slice_sizes=x.aval.shape)
    k = -as_int(by, "jnp.roll", "shift") % n
    if k == 0:
        return x
    return o.concatenate(cut(x, d, k, n), cut(x, d, 0, k), dimension=d)


def _scalar_like(x: Node, value: int) -> Node:
    return scalar_node(value, x.aval.dtype, False)
