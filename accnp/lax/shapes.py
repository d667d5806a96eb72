"""Functions of `lax` that create, reshape, slice and join arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, to_shape, wrap
from accnp.api.arguments.non_numeric import accepts_keys, moves_elements
from accnp.api.arguments.shapes import as_axes, as_axis, as_int, as_shape, as_sizes
from accnp.api.arguments.values import needs_dtype
from accnp.array_type import (
    Array,
    ArrayLike,
    ArraySequence,
    Shape,
    ShardingLike,
    SupportsShapeDtype,
)
from accnp.dtypes.names import DTypeLike
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.creation import full as jnp_full
from accnp.numpy.creation import full_like as jnp_full_like
from accnp.numpy.creation import iota as jnp_iota
from accnp.primitives.kinds import broadcast_to
from accnp.sharding.device_placement import new_array, record_sharded


def _ints(values: Any, name: str) -> tuple[int, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise IncompatibleShapesError(
            f"{name}: expected a sequence of integers; got {values!r}; pass a tuple"
        )
    return tuple([as_int(v, name, "each entry", "shape") for v in values])


@accepts_keys("fill_keys")
@api_boundary
def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: ShardingLike = None,
) -> Array:
    """Make an array filled with one value.

    Parameters
    ----------
    shape : int or sequence of int
        Static shape of the array to make.
    fill_value : array_like
        Scalar with which to fill it.
    {dtype_filled}
    sharding : Sharding, optional
        Where the array is placed.

    Returns
    -------
    Array
        Array of the given shape and dtype.

    Raises
    ------
    TypeError
        If a size is negative or not an integer, `fill_value` is not a scalar, or the
        dtype is unknown.
    ValueError
        If `fill_value` is None.

    See Also
    --------
    full_like : The same with the shape of another array.
    numpy.full : The same with broadcasting of the value.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.full((2,), 1.5)
    Array([1.5, 1.5], dtype=float32, weak_type=True)
    """
    return jnp_full(shape, _one_number(fill_value, "lax.full"), dtype, out_sharding=sharding)


def _one_number(x: Any, name: str) -> Any:
    of = getattr(x, "shape", ())
    if of != ():
        raise TypeError(
            f"{name}: fill_value must be one number; got shape {of}; jnp.full broadcasts"
        )
    if x is None:
        raise ValueError(f"{name}: fill_value must be one number; got None; pass one")
    return x


@accepts_keys("fill_keys")
@api_boundary
def full_like(
    x: ArrayLike | SupportsShapeDtype,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    sharding: ShardingLike = None,
) -> Array:
    """Make an array filled with one value, with the shape and dtype of another one.

    Parameters
    ----------
    x : array_like
        Array whose shape and dtype are the default.
    fill_value : array_like
        Scalar with which to fill the new array.
    dtype : dtype_like, optional
        Dtype of the new array instead of that of `x`.
    shape : int or sequence of int, optional
        Dimensions of the new array instead of those of `x`.
    sharding : Sharding, optional
        Where the array is placed.

    Returns
    -------
    Array
        Filled array of the given shape and dtype.

    Raises
    ------
    TypeError
        If `x` has no shape, `fill_value` is not a scalar, or the dtype is unknown.
    ValueError
        If `fill_value` is None.

    See Also
    --------
    full : The same with a given shape.
    numpy.full_like : The same with broadcasting of the value.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.full_like(jnp.ones(2), 3)
    Array([3., 3.], dtype=float32)
    """
    value = _one_number(fill_value, "lax.full_like")
    return jnp_full_like(x, value, dtype, shape, out_sharding=sharding)


@api_boundary
def iota(dtype: DTypeLike, size: int) -> Array:
    """Make the vector of the numbers 0, 1, ..., size - 1.

    Parameters
    ----------
    dtype : dtype_like
        Integer, floating or complex dtype of the vector.
    size : int
        Static number of elements.

    Returns
    -------
    Array
        Vector of shape (size,).

    Raises
    ------
    TypeError
        If `size` is negative or not an integer, or `dtype` is bool or unknown.
    ValueError
        If `dtype` is None.

    See Also
    --------
    broadcasted_iota : The same along one axis of a larger array.
    numpy.arange : Evenly spaced numbers in an interval.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.iota(int, 3)
    Array([0, 1, 2], dtype=int32)
    """
    needs_dtype("lax.iota", dtype)
    return jnp_iota(dtype, as_int(size, "lax.iota", "size", "shape"))


@api_boundary
def broadcasted_iota(
    dtype: DTypeLike, shape: Shape, dimension: int, *, out_sharding: ShardingLike = None
) -> Array:
    """Make an array whose elements are their index along one axis.

    Parameters
    ----------
    dtype : dtype_like
        Integer, floating or complex dtype of the array.
    shape : int or sequence of int
        Static shape of the array to make.
    dimension : int
        Axis along which to count, from 0.
    {out_sharding}

    Returns
    -------
    Array
        Array of the given shape and dtype.

    Raises
    ------
    TypeError
        If a size is not an integer, or `dtype` is bool.
    ValueError
        If `dimension` is out of bounds.

    See Also
    --------
    iota : The same with one axis.
    numpy.indices : Indices along all axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.broadcasted_iota(int, (2, 2), 1)
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    sizes = as_shape(shape, "lax.broadcasted_iota")
    at = as_axis(dimension, len(sizes), "lax.broadcasted_iota")
    if dimension < 0:
        raise ValueError(
            f"lax.broadcasted_iota: dimension cannot be negative; got {dimension}; pass {at}"
        )
    needs_dtype("lax.broadcasted_iota", dtype)
    new = dtypes.requested_dtype(dtype, "lax.broadcasted_iota")
    if new == np.bool_:
        raise TypeError(
            "lax.broadcasted_iota: dtype cannot be bool; got bool; pass a numeric dtype"
        )
    return new_array(o.iota(dtype=new, shape=sizes, dimension=at), out_sharding)


@moves_elements()
@api_boundary
def broadcast(
    operand: ArrayLike, sizes: Sequence[int], *, out_sharding: ShardingLike = None
) -> Array:
    """Repeat an array along new leading axes.

    Parameters
    ----------
    operand : array_like
        Array or number to repeat, of any shape.
    sizes : sequence of int
        Lengths of the new axes.
    {out_sharding}

    Returns
    -------
    Array
        Repeated array, of shape (*sizes, *operand.shape) and of the same dtype.

    Raises
    ------
    TypeError
        If a size is negative or not an integer.

    See Also
    --------
    broadcast_in_dim : Put the axes at any places.
    numpy.broadcast_to : Broadcast to a shape.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.broadcast(jnp.ones(2), (1,)).shape
    (1, 2)
    """
    x = as_node(operand, "lax.broadcast")
    front = as_shape(_ints(sizes, "lax.broadcast"), "lax.broadcast")

    def record(x: Node) -> Node:
        return to_shape(x, (*front, *x.aval.shape))

    return wrap(record_sharded("lax.broadcast", out_sharding, record, x))


@moves_elements()
@api_boundary
def broadcast_in_dim(
    operand: ArrayLike,
    shape: Shape,
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Repeat an array to a larger shape, with its axes at given places.

    Parameters
    ----------
    operand : array_like
        Array or number to repeat, of any shape.
    shape : int or sequence of int
        Static shape of the result.
    broadcast_dimensions : sequence of int
        Axes of the result for those of `operand`, in any order: axis i becomes axis
        broadcast_dimensions[i].
    {out_sharding}

    Returns
    -------
    Array
        Repeated array of the given shape and of the same dtype.

    Raises
    ------
    TypeError
        If an axis has neither length 1 nor that of its place, or two axes have the same place, or
        one is out of bounds.

    See Also
    --------
    broadcast : Add leading axes only.
    numpy.broadcast_to : Broadcast to a shape.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.broadcast_in_dim(jnp.ones(2), (2, 3), (0,)).shape
    (2, 3)
    """
    x = as_node(operand, "lax.broadcast_in_dim")
    sizes = as_shape(_ints(shape, "lax.broadcast_in_dim"), "lax.broadcast_in_dim")
    dims = _ints(broadcast_dimensions, "lax.broadcast_in_dim")
    order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
    if len(dims) == x.aval.ndim and order != tuple(range(len(dims))):  # the axes are permuted
        x, dims = o.transpose(x, permutation=order), tuple(sorted(dims))

    def record(x: Node) -> Node:
        if sizes == x.aval.shape and dims == tuple(range(len(sizes))):
            return x
        return o.broadcast_in_dim(x, shape=sizes, broadcast_dimensions=dims)

    return wrap(record_sharded("lax.broadcast_in_dim", out_sharding, record, x))


@api_boundary
def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Add leading axes of length 1 up to a rank.

    Parameters
    ----------
    x : array_like
        Array or number of at most that rank.
    rank : int
        Number of axes of the result.

    Returns
    -------
    Array
        The elements of `x` with `rank` axes; the dtype is unchanged.

    Raises
    ------
    TypeError
        If `x` is not an array or a number, or `rank` is not an integer.

    See Also
    --------
    expand_dims : Add axes at given places.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.broadcast_to_rank(jnp.ones(2), 3).shape
    (1, 1, 2)
    """
    name = "lax.broadcast_to_rank"
    node, rank = as_node(x, name), as_int(rank, name, "rank")
    return wrap(to_shape(node, (*(1,) * (rank - node.aval.ndim), *node.aval.shape)))


@moves_elements()
@api_boundary
def reshape(
    operand: ArrayLike,
    new_sizes: Shape,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return the elements of an array in another shape.

    Parameters
    ----------
    operand : array_like
        Array or number to reshape, of any shape.
    new_sizes : sequence of int
        Shape of the result, with as many elements.
    dimensions : sequence of int, optional
        Permutation of the axes that is applied first.
    {out_sharding}

    Returns
    -------
    Array
        The same elements in row-major order; the dtype is unchanged.

    Raises
    ------
    TypeError
        If the number of elements changes, a size is negative, or `dimensions` is not a permutation.

    See Also
    --------
    numpy.reshape : The same, where one size may be -1.
    collapse : Merge adjacent axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.reshape(jnp.ones(4), (2, 2))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    x = as_node(operand, "lax.reshape")
    sizes = as_sizes(new_sizes, "lax.reshape")
    if any(n < 0 for n in sizes):
        raise TypeError(f"lax.reshape: sizes cannot be negative; got {sizes}; jnp.reshape takes -1")
    if dimensions is not None:
        x = o.transpose(x, permutation=_ints(dimensions, "lax.reshape"))

    def record(x: Node) -> Node:
        return x if sizes == x.aval.shape else o.reshape(x, new_sizes=sizes, dimensions=None)

    return wrap(record_sharded("lax.reshape", out_sharding, record, x))


@moves_elements()
@api_boundary
def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Permute the axes of an array.

    Parameters
    ----------
    operand : array_like
        Array whose axes change places.
    permutation : sequence of int
        Axis of `operand` for each axis of the result.

    Returns
    -------
    Array
        Array with the axes in another order; the dtype is unchanged.

    Raises
    ------
    TypeError
        If `permutation` is not a permutation of the axes.

    See Also
    --------
    numpy.transpose : The same with a default permutation.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.transpose(jnp.ones((1, 2)), (1, 0)).shape
    (2, 1)
    """
    x = as_node(operand, "lax.transpose")
    order = _ints(permutation, "lax.transpose")
    if order == tuple(range(x.aval.ndim)):
        return wrap(x)
    return wrap(o.transpose(x, permutation=order))


@moves_elements()
@api_boundary
def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse an array along axes.

    Parameters
    ----------
    operand : array_like
        Array to reverse, of any shape.
    dimensions : sequence of int
        Axes along which the order is reversed.

    Returns
    -------
    Array
        Reversed array of the same shape and dtype.

    Raises
    ------
    TypeError
        If an axis is out of bounds, negative or given twice.

    See Also
    --------
    numpy.flip : The same with all axes by default.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.rev(jnp.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    x = as_node(operand, "lax.rev")
    axes, rank = _ints(dimensions, "lax.rev"), x.aval.ndim
    if len(set(axes)) != len(axes) or not all(0 <= d < rank for d in axes):
        raise TypeError(
            f"lax.rev: dimensions must be distinct and below the rank {rank}; got {axes}; "
            "name each axis once"
        )
    return wrap(o.rev(x, dimensions=axes))


@moves_elements()
@api_boundary
def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Remove axes of length 1.

    Parameters
    ----------
    array : array_like
        Array whose axes are removed.
    dimensions : sequence of int
        Axes of length 1 to remove.

    Returns
    -------
    Array
        The elements without these axes; the dtype is unchanged.

    Raises
    ------
    ValueError
        If an axis has another length, is out of bounds, or is given twice.

    See Also
    --------
    expand_dims : The inverse.
    numpy.squeeze : The same with all such axes by default.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.squeeze(jnp.ones((1, 2)), (0,)).shape
    (2,)
    """
    x = as_node(array, "lax.squeeze")
    user_axes = _ints(dimensions, "lax.squeeze")
    axes = tuple(sorted(as_axes(user_axes, x.aval.ndim, "lax.squeeze")))
    return wrap(o.squeeze(x, dimensions=axes) if axes else x)


@moves_elements()
@api_boundary
def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Insert axes of length 1.

    Parameters
    ----------
    array : array_like
        Array to which axes are added.
    dimensions : sequence of int
        Positions of the new axes in the result.

    Returns
    -------
    Array
        The elements with the new axes; the dtype is unchanged.

    Raises
    ------
    ValueError
        If an axis is out of bounds, or is given twice.

    See Also
    --------
    squeeze : The inverse.
    numpy.expand_dims : The same for a single axis, too.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.expand_dims(jnp.ones(2), (0,)).shape
    (1, 2)
    """
    x = as_node(array, "lax.expand_dims")
    rank = x.aval.ndim + len(tuple(dimensions))
    new = as_axes(dimensions, rank, "lax.expand_dims")
    old_axes = tuple(d for d in range(rank) if d not in new)
    shape = [1] * rank
    for d, n in zip(old_axes, x.aval.shape, strict=True):
        shape[d] = n
    return wrap(broadcast_to(x, tuple(shape), old_axes))


@moves_elements()
@api_boundary
def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge adjacent axes into one.

    Parameters
    ----------
    operand : array_like
        Array whose axes are merged.
    start_dimension : int
        First of the axes to merge.
    stop_dimension : int, optional
        Axis after the last one to merge. The default merges all axes from the first.

    Returns
    -------
    Array
        The elements in row-major order with fewer axes; the dtype is unchanged.

    Raises
    ------
    IncompatibleShapesError
        If `stop_dimension` is before `start_dimension`.

    See Also
    --------
    reshape : Change the shape in any way.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.collapse(jnp.ones((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    x = as_node(operand, "lax.collapse")
    shape = x.aval.shape
    low, high, _ = slice_object(start_dimension, stop_dimension).indices(len(shape))
    if high < low:
        raise IncompatibleShapesError(
            f"lax.collapse: stop is before start; got {start_dimension} to {stop_dimension} for "
            f"shape {shape}; swap them"
        )
    joined = int(np.prod(shape[low:high], dtype=np.int64))
    return wrap(o.reshape(x, new_sizes=(*shape[:low], joined, *shape[high:]), dimensions=None))


slice_object = slice


@moves_elements()
@api_boundary
def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Slice an array along all axes with static bounds.

    Parameters
    ----------
    operand : array_like
        Array to slice, of any shape.
    start_indices : sequence of int
        First index for each axis.
    limit_indices : sequence of int
        Index after the last one for each axis.
    strides : sequence of int, optional
        Step for each axis. The default is 1.

    Returns
    -------
    Array
        Elements of the slice; the dtype is unchanged.

    Raises
    ------
    TypeError
        If there is not one integer for each axis, or a limit is out of bounds or before its start.

    See Also
    --------
    slice_in_dim : Slice along one axis.
    dynamic_slice : Slice at positions from an array.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.slice(jnp.arange(4), (1,), (3,))
    Array([1, 2], dtype=int32)
    """
    x = as_node(operand, "lax.slice")
    start, limit = _ints(start_indices, "lax.slice"), _ints(limit_indices, "lax.slice")
    steps = None if strides is None else _ints(strides, "lax.slice")
    return wrap(o.slice(x, start_indices=start, limit_indices=limit, strides=steps))


@moves_elements()
@api_boundary
def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Slice an array along one axis with static bounds.

    Parameters
    ----------
    operand : array_like
        Array to slice, of any shape.
    start_index : int or None
        First index; a negative one counts from the end, None is the start.
    limit_index : int or None
        Index after the last one; a negative one counts from the end, None is the end.
    stride : int, optional
        Step between indices. The default is 1.
    axis : int, optional
        Axis to slice along. The default is 0.

    Returns
    -------
    Array
        Elements of the slice; the dtype is unchanged.

    Raises
    ------
    TypeError
        If a bound is outside of the axis, or `stride` is less than 1.
    ValueError
        If `axis` is out of bounds.

    See Also
    --------
    slice : Slice along all axes.
    dynamic_slice_in_dim : Slice at a position from an array.
    index_in_dim : Take a single index.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.slice_in_dim(jnp.arange(4), 0, 4, 2)
    Array([0, 2], dtype=int32)
    """
    x = as_node(operand, "lax.slice_in_dim")
    at = as_axis(axis, x.aval.ndim, "lax.slice_in_dim")
    n = x.aval.shape[at]

    def place(index: Any, default: int) -> int:
        if index is None:
            return default
        position = as_int(index, "lax.slice_in_dim", "an index")
        return position + n if position < 0 else position

    start, limit, steps = [0] * x.aval.ndim, list(x.aval.shape), [1] * x.aval.ndim
    start[at], limit[at] = place(start_index, 0), place(limit_index, n)
    steps[at] = as_int(stride, "lax.slice_in_dim", "stride")
    return wrap(
        o.slice(
            x,
            start_indices=tuple(start),
            limit_indices=tuple(limit),
            strides=None if steps[at] == 1 else tuple(steps),
        )
    )


@moves_elements()
@api_boundary
def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Take one index along an axis.

    Parameters
    ----------
    operand : array_like
        Array to take from.
    index : int
        Static index; a negative one counts from the end.
    axis : int, optional
        Axis to take it from. The default is 0.
    keepdims : bool, optional
        If True, the default, the axis stays with length 1.

    Returns
    -------
    Array
        Elements at the index; the dtype is unchanged.

    Raises
    ------
    IndexError
        If `index` is out of bounds.
    ValueError
        If `axis` is out of bounds.
    TypeError
        If `index` is not a static integer.

    See Also
    --------
    dynamic_index_in_dim : The same with an index from an array.
    slice_in_dim : Take several indices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.index_in_dim(jnp.arange(3), 1)
    Array([1], dtype=int32)
    """
    x = as_node(operand, "lax.index_in_dim")
    at = as_axis(axis, x.aval.ndim, "lax.index_in_dim")
    n, place = x.aval.shape[at], as_int(index, "lax.index_in_dim", "index")
    if not -n <= place < n:
        raise IndexError(
            f"lax.index_in_dim: index {place} is out of bounds for axis {at} of size {n}; pass a "
            "smaller index"
        )
    place %= n
    out = slice_in_dim(x_array(x), place, place + 1, 1, at)
    return out if keepdims else squeeze(out, (at,))


def x_array(node: Node) -> Array:
    """Wrap a node."""
    return wrap(node)


@moves_elements()
@api_boundary
def concatenate(operands: ArraySequence, dimension: int) -> Array:
    """Join arrays of one dtype along an existing axis.

    Parameters
    ----------
    operands : sequence of array_like
        Arrays of one dtype whose shapes differ along that axis only.
    dimension : int
        Axis along which to join, counted from 0.

    Returns
    -------
    Array
        Joined array of the same dtype.

    Raises
    ------
    TypeError
        If dtypes or the other axes differ, or `dimension` is out of bounds for several operands.
    ValueError
        If no operand is given.

    See Also
    --------
    stack : Join along a new axis.
    numpy.concatenate : The same with promotion of dtypes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.concatenate([jnp.ones(1), jnp.zeros(1)], 0)
    Array([1., 0.], dtype=float32)
    """
    nodes = [as_node(x, "lax.concatenate") for x in operands]
    if not nodes:
        raise ValueError(
            f"lax.concatenate: operands must not be empty; got {operands!r}; pass some"
        )
    if len(nodes) == 1 and nodes[0].aval.ndim:
        return wrap(nodes[0])
    at = as_int(dimension, "lax.concatenate", "dimension")
    if not 0 <= at < nodes[0].aval.ndim:
        raise TypeError(
            f"lax.concatenate: dimension is out of bounds; got {at} for shapes "
            f"{[x.aval.shape for x in nodes]}; pass a nonnegative axis"
        )
    return wrap(o.concatenate(*nodes, dimension=at))


@moves_elements()
@api_boundary
def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """Pad an array with a value, around and between its elements.

    Parameters
    ----------
    operand : array_like
        Array to pad, of any shape.
    padding_value : array_like
        Scalar of the same dtype to pad with.
    padding_config : sequence of (int, int, int)
        For each axis: how many elements to add before, after, and between adjacent elements.
        Negative numbers before and after crop.

    Returns
    -------
    Array
        Padded array of the same dtype.

    Raises
    ------
    ValueError
        If there is not one triple for each axis, or the padding between elements is negative.
    TypeError
        If `padding_value` has another dtype.

    See Also
    --------
    numpy.pad : Pad by other rules.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.pad(jnp.ones(2), 0.0, ((1, 0, 0),))
    Array([0., 1., 1.], dtype=float32)
    """
    x, value = as_node(operand, "lax.pad"), as_node(padding_value, "lax.pad")
    config = tuple(_ints(entry, "lax.pad") for entry in padding_config)
    if len(config) != x.aval.ndim:
        raise ValueError(
            f"lax.pad: padding_config needs (low, high, interior) for each axis; got {config} for "
            f"shape {x.aval.shape}; pass three integers for each axis"
        )
    return wrap(o.pad(x, value, padding_config=config))
