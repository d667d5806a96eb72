"""Shapes and order of axes: reshaping, transposing, broadcasting. Most results are views."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, SupportsIndex, overload

import numpy as np

from accnp.api.arguments.convert import as_node, as_nodes, to_shape
from accnp.api.arguments.convert import broadcast_shapes as broadcast_shapes_of
from accnp.api.arguments.non_numeric import accepts_keys, moves_elements, moves_float0
from accnp.api.arguments.shapes import (
    AxesLike,
    as_axes,
    as_axis,
    as_shape,
    as_sizes,
    as_static,
)
from accnp.array_type import Array, ArrayLike, Shape, ShardingLike, wrap
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.sharding.device_placement import record_sharded

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "expand_dims", "matrix_transpose", "moveaxis",
    "permute_dims", "ravel", "reshape", "rollaxis", "squeeze", "swapaxes",
    "transpose",
]  # fmt: skip


@moves_elements()
@api_boundary
def reshape(
    a: ArrayLike,
    shape: Shape,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Change the shape of an array without changing its elements.

    Parameters
    ----------
    {a}
    shape : int or sequence of int
        New shape, static. One length may be -1; it follows from the number of elements.
    {order_cf}
    copy : bool, optional
        If True, a NumPy array is copied. It has no effect on arrays of this package, which are
        immutable.
    {out_sharding}

    Returns
    -------
    Array
        Array of the new shape, with the dtype of `a`. A NumPy array stays a NumPy array, so that
        its values are known while a function is traced.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, the lengths do not fit the number of elements (also
        a ValueError), or a length is traced or not an integer.
    ValueError
        If `order` is neither 'C' nor 'F'.
    NotImplementedError
        If `order` is 'A'.

    See Also
    --------
    ravel : Flatten an array.
    expand_dims, squeeze : Add and remove axes of length 1.
    transpose : Permute the axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.reshape(jnp.arange(4), (2, -1))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    if out_sharding is not None:

        def record(x: Node) -> Node:
            return reshape_node(x, shape, order, "jnp.reshape")

        return wrap(record_sharded("jnp.reshape", out_sharding, record, as_node(a, "jnp.reshape")))
    if (type(a) is np.ndarray or isinstance(a, np.generic)) and order in ("C", "F"):
        sizes = fill_size(as_sizes(shape, "jnp.reshape"), a.shape, "jnp.reshape")
        out = np.reshape(a, sizes, order)  # pyright: ignore
        return out.copy() if copy else out  # pyright: ignore
    return wrap(reshape_node(as_node(a, "jnp.reshape"), shape, order, "jnp.reshape"))


def reshape_node(x: Node, shape: Any, order: str, function: str) -> Node:
    """Reshape a node by a user's shape argument."""
    old = x.aval.shape
    new = fill_size(as_sizes(shape, function), old, function)
    if order == "F":
        x = reshape_plain(transpose_node(x, tuple(range(len(old)))[::-1]), new[::-1])
        return transpose_node(x, tuple(range(len(new)))[::-1])
    if order == "A":
        raise NotImplementedError(
            f"{function}: order 'A' is not supported; got 'A' (order); pass 'C' or 'F'"
        )
    if order != "C":
        raise ValueError(
            f"{function}: order must be 'C' or 'F'; got {order!r}; pass one of the two"
        )
    return reshape_plain(x, new)


def fill_size(new: tuple[int, ...], old: tuple[int, ...], function: str) -> tuple[int, ...]:
    """Replace the -1 of a new shape by the remaining size, and check the total size."""
    size = prod(old)
    unknown = [i for i, n in enumerate(new) if n == -1]
    if len(unknown) > 1:
        raise IncompatibleShapesError(
            f"{function}: can only specify one unknown axis size with a `-1` value, got {new}; "
            "write the others out"
        )
    if any(n < -1 for n in new):
        raise TypeError(
            f"{function}: sizes cannot be negative; got {new}; "
            "pass 0 or more, or -1 for one size to be inferred"
        )
    if unknown:
        known = prod(n for n in new if n != -1)
        if known == 0 or size % known:
            raise IncompatibleShapesError(
                f"{function}: cannot reshape array of shape {old} (size {size}) into shape {new}, "
                f"since {known} does not evenly divide {size}; change the sizes"
            )
        i = unknown[0]
        new = (*new[:i], size // known, *new[i + 1 :])
    elif prod(new) != size:
        raise IncompatibleShapesError(
            f"{function}: cannot reshape array of shape {old} (size {size}) into shape {new} "
            f"(size {prod(new)}); pass sizes of that product, or -1 for one"
        )
    return new


def reshape_plain(x: Node, shape: tuple[int, ...]) -> Node:
    """Reshape a node; record nothing if the shape is the same."""
    if x.aval.shape == shape:
        return x
    return o.reshape(x, new_sizes=shape, dimensions=None)


@moves_elements()
@api_boundary
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: ShardingLike = None) -> Array:
    """Flatten an array into a vector.

    Parameters
    ----------
    {a}
    {order_cf}
    {out_sharding}

    Returns
    -------
    Array
        Vector of all elements, with the dtype of `a`.

    Raises
    ------
    {raises_not_array}
    ValueError
        If `order` is neither 'C' nor 'F'.
    NotImplementedError
        If `order` is 'A'.

    See Also
    --------
    reshape : Change the shape.
    Array.flatten : The method of arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ravel(jnp.ones((2, 1)))
    Array([1., 1.], dtype=float32)
    """

    def record(x: Node) -> Node:
        return reshape_node(x, -1 if x.aval.size else 0, order, "jnp.ravel")

    return wrap(record_sharded("jnp.ravel", out_sharding, record, as_node(a, "jnp.ravel")))


def transpose_node(x: Node, permutation: tuple[int, ...]) -> Node:
    """Permute the axes of a node; record nothing for the identity."""
    if permutation == tuple(range(len(permutation))):
        return x
    return o.transpose(x, permutation=permutation)


@moves_elements()
@api_boundary
def transpose(a: ArrayLike, axes: Sequence[SupportsIndex] | None = None) -> Array:
    """Permute the axes of an array, by default in reverse order.

    Parameters
    ----------
    {a}
    axes : sequence of int, optional
        Permutation: the i-th axis of the result is axis `axes[i]` of `a`. The default, None,
        reverses the order.

    Returns
    -------
    Array
        Array with permuted axes, with the dtype of `a`.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or `axes` does not name each axis once.
    ValueError
        If an axis is out of bounds (also an IndexError).

    See Also
    --------
    matrix_transpose : Swap the last two axes.
    swapaxes, moveaxis : Swap two axes, move some axes.
    permute_dims : The name in the array API standard.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.transpose(jnp.ones((1, 2))).shape
    (2, 1)
    """
    x = as_node(a, "jnp.transpose")
    rank = x.aval.ndim
    if axes is None:
        return wrap(transpose_node(x, tuple(range(rank))[::-1]))
    permutation = axes if isinstance(axes, Sequence | np.ndarray | Array) else (axes,)
    order = tuple(
        [as_axis(d, rank, "jnp.transpose") for d in as_static(permutation, "jnp.transpose")]
    )
    if sorted(order) != [*range(rank)]:
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{tuple(permutation)} for operand shape {x.aval.shape}; name each of the {rank} axes "
            "once, or leave axes out to reverse them"
        )
    return wrap(transpose_node(x, order))


@moves_elements()
@api_boundary
def permute_dims(a: ArrayLike, /, axes: Sequence[SupportsIndex]) -> Array:
    """Permute the axes of an array, as the array API standard defines it.

    Parameters
    ----------
    {a}
    axes : sequence of int
        Permutation: the i-th axis of the result is axis `axes[i]` of `a`.

    Returns
    -------
    Array
        Array with permuted axes, with the dtype of `a`.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or `axes` does not name each axis once.
    ValueError
        If an axis is out of bounds (also an IndexError).

    See Also
    --------
    transpose : The same, with a default.
    moveaxis : Move some axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.permute_dims(jnp.ones((1, 2)), (1, 0)).shape
    (2, 1)
    """
    if axes is None:
        raise TypeError(
            "jnp.permute_dims: axes must name each axis; got None; pass a tuple, or use x.T"
        )
    return transpose(a, axes)


@moves_elements()
@api_boundary
def matrix_transpose(x: ArrayLike, /) -> Array:
    """Transpose matrices: swap the last two axes.

    Parameters
    ----------
    x : array_like
        Array with at least two axes. Leading axes are a batch.

    Returns
    -------
    Array
        Array of shape (..., m, n) for a shape (..., n, m), with the dtype of `x`. Complex numbers
        are not conjugated.

    Raises
    ------
    TypeError
        If `x` is not an array.
    ValueError
        If there are fewer than two axes.

    See Also
    --------
    transpose : Permute all axes.
    swapaxes : Swap any two axes.
    conj : Complex conjugate.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.matrix_transpose(jnp.ones((3, 1, 2))).shape
    (3, 2, 1)
    """
    node = as_node(x, "jnp.matrix_transpose")
    if node.aval.ndim < 2:
        raise ValueError(
            f"jnp.matrix_transpose: expected at least two axes; got shape {node.aval.shape}; "
            "add axes with x[None]"
        )
    return swapaxes(x, -1, -2)


@moves_elements()
@api_boundary
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Swap two axes of an array.

    Parameters
    ----------
    {a}
    axis1 : int
        First of the axes to swap.
    axis2 : int
        Second of the axes to swap.

    Returns
    -------
    Array
        Array with the axes swapped, with the dtype of `a`.

    Raises
    ------
    {raises_not_array}
    ValueError
        If an axis is out of bounds (also an IndexError).

    See Also
    --------
    transpose : Permute all axes.
    moveaxis : Move axes and keep the order of the others.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.swapaxes(jnp.ones((1, 2)), 0, 1).shape
    (2, 1)
    """
    x = as_node(a, "jnp.swapaxes")
    i, j = (as_axis(d, x.aval.ndim, "jnp.swapaxes") for d in (axis1, axis2))
    order = list(range(x.aval.ndim))
    order[i], order[j] = j, i
    return wrap(transpose_node(x, tuple(order)))


@moves_elements()
@api_boundary
def moveaxis(a: ArrayLike, source: AxesLike, destination: AxesLike) -> Array:
    """Move axes to new positions and keep the order of the others.

    Parameters
    ----------
    {a}
    source : int or sequence of int
        Axes to move.
    destination : int or sequence of int
        New position of each of these axes.

    Returns
    -------
    Array
        Array with the axes moved, with the dtype of `a`.

    Raises
    ------
    {raises_not_array}
    ValueError
        If `source` and `destination` differ in length, or name an axis twice or out of bounds.

    See Also
    --------
    transpose : Permute all axes.
    swapaxes : Swap two axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.moveaxis(jnp.ones((1, 2, 3)), 0, -1).shape
    (2, 3, 1)
    """
    x = as_node(a, "jnp.moveaxis")
    rank = x.aval.ndim
    src, dst = (as_axes(d, rank, "jnp.moveaxis") for d in (source, destination))
    if len(src) != len(dst):
        raise ValueError(
            f"jnp.moveaxis: source and destination must have equally many axes; "
            f"got {source}, {destination}; pass a destination for each source axis"
        )
    order = [d for d in range(rank) if d not in src]
    for to, d in sorted(zip(dst, src, strict=True)):
        order.insert(to, d)
    return wrap(transpose_node(x, tuple(order)))


@moves_elements()
@api_boundary
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move one axis in front of another.

    Parameters
    ----------
    {a}
    axis : int
        Axis to move elsewhere.
    start : int, optional
        Axis in front of which it is moved. The default is 0, the first axis.

    Returns
    -------
    Array
        Array with the axis moved, with the dtype of `a`.

    Raises
    ------
    {raises_not_array}
    ValueError
        If `axis` or `start` is out of bounds (also an IndexError).

    See Also
    --------
    moveaxis : Move axes to given positions, which is easier to read.
    roll : Shift elements along an axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.rollaxis(jnp.ones((1, 2, 3)), 2).shape
    (3, 1, 2)
    """
    rank = np.ndim(a)
    axis = as_axis(axis, rank, "jnp.rollaxis")
    start = rank if start == rank else as_axis(start, rank, "jnp.rollaxis")
    return moveaxis(a, axis, start - 1 if start > axis else start)


@moves_elements()
@api_boundary
def expand_dims(a: ArrayLike, axis: AxesLike) -> Array:
    """Insert axes of length 1.

    Parameters
    ----------
    {a}
    axis : int or sequence of int
        Positions of the new axes in the result.

    Returns
    -------
    Array
        Array with the new axes, with the dtype of `a`.

    Raises
    ------
    {raises_not_array}
    {raises_axes}

    See Also
    --------
    squeeze : Remove axes of length 1.
    reshape : Change the shape.
    newaxis : Index that inserts an axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.expand_dims(jnp.arange(2), 0).shape
    (1, 2)
    """
    x = as_node(a, "jnp.expand_dims")
    count = len(axis) if isinstance(axis, Sequence) else 1
    at = as_axes(axis, x.aval.ndim + count, "jnp.expand_dims")
    return wrap(expand_node(x, at))


def expand_node(x: Node, at: tuple[int, ...]) -> Node:
    """Insert axes of length 1 at the given axes of the result."""
    if not at:
        return x
    old = iter(x.aval.shape)
    rank = x.aval.ndim + len(at)
    shape = tuple([1 if d in at else next(old) for d in range(rank)])
    old_axes = tuple([d for d in range(rank) if d not in at])
    return o.broadcast_in_dim(x, shape=shape, broadcast_dimensions=old_axes)


@moves_elements()
@api_boundary
def squeeze(a: ArrayLike, axis: AxesLike | None = None) -> Array:
    """Remove axes of length 1.

    Parameters
    ----------
    {a}
    axis : int or sequence of int, optional
        Axes to remove. The default, None, removes all axes of length 1.

    Returns
    -------
    Array
        Array without these axes, with the dtype of `a`.

    Raises
    ------
    {raises_not_array}
    ValueError
        If an axis does not have length 1, is out of bounds or given twice.

    See Also
    --------
    expand_dims : Insert axes of length 1.
    reshape : Change the shape.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.squeeze(jnp.ones((1, 2))).shape
    (2,)
    """
    x = as_node(a, "jnp.squeeze")
    if axis is None:
        at = tuple([d for d, n in enumerate(x.aval.shape) if n == 1])
    else:
        at = as_axes(axis, x.aval.ndim, "jnp.squeeze")
        if any(x.aval.shape[d] != 1 for d in at):
            raise ValueError(
                "squeeze: cannot select an axis to squeeze out which has size not equal to "
                f"one; got shape {x.aval.shape} and axes {at}; index the other axes"
            )
    return wrap(o.squeeze(x, dimensions=tuple(sorted(at))) if at else x)


@moves_elements()
@api_boundary
def broadcast_to(array: ArrayLike, shape: Shape, *, out_sharding: ShardingLike = None) -> Array:
    """Broadcast an array to a shape, without copying it.

    Parameters
    ----------
    array : array_like
        Array to broadcast. Lists and tuples are not accepted.
    {shape}
    {out_sharding}

    Returns
    -------
    Array
        Array of the given shape, repeated along axes of length 1 and new leading axes, with the
        dtype of `array`.

    Raises
    ------
    TypeError
        If `array` is neither an array nor a number, or a size is negative, traced or not an
        integer.
    ValueError
        If the array does not broadcast to the shape.

    See Also
    --------
    broadcast_arrays : Broadcast arrays against each other.
    broadcast_shapes : The resulting shape.
    tile, repeat : Repeat an array or its elements.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.broadcast_to(jnp.arange(2), (2, 2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    name = "jnp.broadcast_to"
    new = as_shape(shape, name)

    def record(x: Node) -> Node:
        return to_shape(x, new, name)

    return wrap(record_sharded(name, out_sharding, record, as_node(array, name)))


@moves_float0
@accepts_keys("broadcast_keys")
@api_boundary
def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Broadcast arrays against each other.

    Parameters
    ----------
    *args : array_like
        Arrays and numbers to broadcast. Lists and tuples are not accepted.

    Returns
    -------
    list of Array
        The arrays with their common shape. Each keeps its dtype. NumPy returns a tuple.

    Raises
    ------
    {raises_operand}
    {raises_broadcast}

    See Also
    --------
    broadcast_to : Broadcast to a given shape.
    broadcast_shapes : The common shape.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.broadcast_arrays(jnp.arange(2), 1)[1]
    Array([1, 1], dtype=int32, weak_type=True)
    """
    nodes = as_nodes("jnp.broadcast_arrays", *args)
    shape = broadcast_shapes_of("jnp.broadcast_arrays", [x.aval.shape for x in nodes])
    return [wrap(to_shape(x, shape, "jnp.broadcast_arrays")) for x in nodes]


@api_boundary
def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """Compute the shape to which shapes broadcast.

    Parameters
    ----------
    *shapes : int or tuple of int
        Shapes of arrays; an int is a shape of one axis.

    Returns
    -------
    tuple of int
        The common shape, whatever the dtypes of the arrays.

    Raises
    ------
    IncompatibleShapesError
        If the shapes do not broadcast, or a size is negative. It is a TypeError and a ValueError.

    See Also
    --------
    broadcast_arrays : Broadcast arrays against each other.
    broadcast_to : Broadcast to a given shape.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    all_shapes = [as_shape(s, "jnp.broadcast_shapes") for s in shapes]
    return broadcast_shapes_of("jnp.broadcast_shapes", all_shapes)


@overload
def atleast_1d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(first: ArrayLike, second: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_1d(*arys: ArrayLike) -> Any: ...
@moves_elements()
@api_boundary
def atleast_1d(*arys: ArrayLike) -> Any:
    """Convert numbers to arrays with at least one axis.

    Parameters
    ----------
    *arys : array_like
        Arrays and numbers. Lists and tuples are not accepted.

    Returns
    -------
    Array or list of Array
        One array, or a list for several; NumPy returns a tuple. A number becomes a vector of one
        element. Dtypes are unchanged.

    Raises
    ------
    {raises_operand}

    See Also
    --------
    atleast_2d, atleast_3d : The same for two and three axes.
    expand_dims : Insert axes at given positions.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.atleast_1d(1)
    Array([1], dtype=int32, weak_type=True)
    """
    return _apply_to_each(arys, lambda x: reshape_plain(x, x.aval.shape or (1,)), "jnp.atleast_1d")


@overload
def atleast_2d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(first: ArrayLike, second: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_2d(*arys: ArrayLike) -> Any: ...
@moves_elements()
@api_boundary
def atleast_2d(*arys: ArrayLike) -> Any:
    """Add leading axes until arrays have at least two.

    Parameters
    ----------
    *arys : array_like
        Arrays and numbers. Lists and tuples are not accepted.

    Returns
    -------
    Array or list of Array
        One array, or a list for several; NumPy returns a tuple. A vector becomes a matrix of one
        row. Dtypes are unchanged.

    Raises
    ------
    {raises_operand}

    See Also
    --------
    atleast_1d, atleast_3d : The same for one and three axes.
    expand_dims : Insert axes at given positions.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.atleast_2d(1)
    Array([[1]], dtype=int32, weak_type=True)
    """
    return _apply_to_each(arys, row, "jnp.atleast_2d")


def row(x: Node) -> Node:
    """Give a node at least two axes."""
    shape = x.aval.shape
    return x if len(shape) >= 2 else reshape_plain(x, (1,) * (2 - len(shape)) + shape)


def cube(x: Node) -> Node:
    """Give a node at least three axes, as `numpy.atleast_3d` does."""
    s = x.aval.shape
    return {
        0: lambda: reshape_plain(x, (1, 1, 1)),
        1: lambda: reshape_plain(x, (1, s[0], 1)),
        2: lambda: reshape_plain(x, (*s, 1)),
    }.get(len(s), lambda: x)()


@overload
def atleast_3d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(first: ArrayLike, second: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_3d(*arys: ArrayLike) -> Any: ...
@moves_elements()
@api_boundary
def atleast_3d(*arys: ArrayLike) -> Any:
    """Add axes until arrays have at least three.

    Parameters
    ----------
    *arys : array_like
        Arrays and numbers. Lists and tuples are not accepted.

    Returns
    -------
    Array or list of Array
        One array, or a list for several; NumPy returns a tuple. A vector of n elements gets the
        shape (1, n, 1), and a matrix of shape (n, m) the shape (n, m, 1). Dtypes are unchanged.

    Raises
    ------
    {raises_operand}

    See Also
    --------
    atleast_1d, atleast_2d : The same for one and two axes.
    dstack : Join arrays along the third axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.atleast_3d(1).shape
    (1, 1, 1)
    """
    return _apply_to_each(arys, cube, "jnp.atleast_3d")


def _apply_to_each(arys: tuple[Any, ...], fn: Any, function: str) -> Any:
    out = [wrap(fn(as_node(a, function))) for a in arys]
    return out[0] if len(out) == 1 else out


# --- order along axes ----------------------------------------------------------------------------


def cut(x: Node, d: int, start: int, stop: int) -> Node:
    """Take [start, stop) along one axis."""
    low, high = [0] * x.aval.ndim, list(x.aval.shape)
    low[d], high[d] = start, stop
    return o.slice(x, start_indices=tuple(low), limit_indices=tuple(high), strides=None)
