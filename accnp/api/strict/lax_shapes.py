"""The strict functions that move, cut and join.

In: arrays, static ints. Out: lazy Arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, to_shape, wrap
from accnp.api.arguments.shapes import as_axes, as_axis, as_int, as_shape, as_sizes
from accnp.api.arguments.values import needs_dtype
from accnp.api.arrays.creation import full as jnp_full
from accnp.api.arrays.creation import full_like as jnp_full_like
from accnp.api.arrays.creation import iota as jnp_iota
from accnp.array import Array, ArrayLike
from accnp.dtypes.names import DTypeLike
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.kinds import broadcast_to


def _ints(values: Any, name: str) -> tuple[int, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise IncompatibleShapesError(
            f"{name}: a sequence of integers is needed; got {values!r}; pass a tuple"
        )
    return tuple([as_int(v, name, "each entry", "shape") for v in values])


@api_boundary
def full(
    shape: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, sharding: Any = None
) -> Array:
    """An array of a static shape, filled with one value.

    The dtype is the value's by default, weak for a Python number.

    Raises:
        TypeError: a size is no integer, or negative; the value is an array of axes; or there is no
            such dtype.
        ValueError: the value is None.

    >>> import accnp as jnp
    >>> jnp.lax.full((2,), 1.5)
    Array([1.5, 1.5], dtype=float32, weak_type=True)
    """
    return jnp_full(shape, _one_number(fill_value, "lax.full"), dtype)


def _one_number(x: Any, name: str) -> Any:
    of = getattr(x, "shape", ())
    if of != ():
        raise TypeError(
            f"{name}: fill_value must be one number; got shape {of}; jnp.full broadcasts"
        )
    if x is None:
        raise ValueError(f"{name}: fill_value must be one number; got None; pass 0, say")
    return x


@api_boundary
def full_like(
    x: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    sharding: Any = None,
) -> Array:
    """An array of one value with the shape and dtype of another one.

    Raises:
        TypeError: x has neither a shape nor is an array, the value is an array of axes, or there is
            no such dtype.
        ValueError: the value is None.

    >>> import accnp as jnp
    >>> jnp.lax.full_like(jnp.ones(2), 3)
    Array([3., 3.], dtype=float32)
    """
    value = _one_number(fill_value, "lax.full_like")
    return jnp_full_like(x, value, dtype, shape)


@api_boundary
def iota(dtype: DTypeLike, size: int) -> Array:
    """Return the vector of the numbers 0, 1, ... size - 1, of the given dtype.

    Raises:
        TypeError: size is no integer, or negative; the dtype is bool, or there is no such dtype.
        ValueError: the dtype is None.

    >>> import accnp as jnp
    >>> jnp.lax.iota(int, 3)
    Array([0, 1, 2], dtype=int32)
    """
    needs_dtype("lax.iota", dtype)
    return jnp_iota(dtype, as_int(size, "lax.iota", "size", "shape"))


@api_boundary
def broadcasted_iota(
    dtype: DTypeLike, shape: Any, dimension: int, *, out_sharding: Any = None
) -> Array:
    """An array of a shape and dtype whose elements are their index along one axis.

    Raises:
        TypeError: a size is no integer, or the dtype is bool.
        ValueError: there is no such axis.

    >>> import accnp as jnp
    >>> jnp.lax.broadcasted_iota(int, (2, 2), 1)
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    sizes = as_shape(shape, "lax.broadcasted_iota")
    at = as_axis(dimension, len(sizes), "lax.broadcasted_iota")
    if dimension < 0:
        raise ValueError(
            f"lax.broadcasted_iota: dimension counts from the front; got {dimension}; pass {at}"
        )
    needs_dtype("lax.broadcasted_iota", dtype)
    new = dtypes.requested_dtype(dtype, "lax.broadcasted_iota")
    if new == np.bool_:
        raise TypeError("lax.broadcasted_iota: dtype cannot be bool; pass a type of numbers")
    return wrap(o.iota(dtype=new, shape=sizes, dimension=at))


@api_boundary
def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Put new axes of these sizes in front.

    The result has shape (*sizes, *operand.shape) and the operand's dtype.

    Raises:
        TypeError: a size is no integer, or negative.

    >>> import accnp as jnp
    >>> jnp.lax.broadcast(jnp.ones(2), (1,)).shape
    (1, 2)
    """
    x = as_node(operand, "lax.broadcast")
    front = as_shape(_ints(sizes, "lax.broadcast"), "lax.broadcast")
    return wrap(to_shape(x, (*front, *x.aval.shape)))


@api_boundary
def broadcast_in_dim(
    operand: ArrayLike, shape: Any, broadcast_dimensions: Any, *, out_sharding: Any = None
) -> Array:
    """Put the operand's axes at the given places of a larger shape and repeat along the others.

    Its axis i becomes axis broadcast_dimensions[i], in any order; the dtype stays.

    Raises:
        TypeError: an axis has neither length 1 nor the length of its place, or two have one place,
            or one outside the shape.

    >>> import accnp as jnp
    >>> jnp.lax.broadcast_in_dim(jnp.ones(2), (2, 3), (0,)).shape
    (2, 3)
    """
    x = as_node(operand, "lax.broadcast_in_dim")
    sizes = as_shape(_ints(shape, "lax.broadcast_in_dim"), "lax.broadcast_in_dim")
    dims = _ints(broadcast_dimensions, "lax.broadcast_in_dim")
    order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
    if len(dims) == x.aval.ndim and order != tuple(range(len(dims))):  # the axes change places
        x, dims = o.transpose(x, permutation=order), tuple(sorted(dims))
    if sizes == x.aval.shape and dims == tuple(range(len(sizes))):
        return wrap(x)
    return wrap(o.broadcast_in_dim(x, shape=sizes, broadcast_dimensions=dims))


@api_boundary
def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Put axes of length 1 in front up to a rank.

    The dtype stays.

    Raises:
        TypeError: x is no array or number, or `rank` no integer.

    >>> import accnp as jnp
    >>> jnp.lax.broadcast_to_rank(jnp.ones(2), 3).shape
    (1, 1, 2)
    """
    name = "lax.broadcast_to_rank"
    node, rank = as_node(x, name), as_int(rank, name, "rank")
    return wrap(to_shape(node, (*(1,) * (rank - node.aval.ndim), *node.aval.shape)))


@api_boundary
def reshape(
    operand: ArrayLike, new_sizes: Any, dimensions: Any = None, *, out_sharding: Any = None
) -> Array:
    """The elements under another shape, after a permutation of the axes if one is given.

    The dtype stays.

    Raises:
        TypeError: the number of elements changes, a size is negative (NumPy takes -1), or
            `dimensions` is no permutation.

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
    if sizes == x.aval.shape:
        return wrap(x)
    return wrap(o.reshape(x, new_sizes=sizes, dimensions=None))


@api_boundary
def transpose(operand: ArrayLike, permutation: Any) -> Array:
    """Permute the axes.

    The dtype stays.

    Raises:
        TypeError: `permutation` is none of the axes.

    >>> import accnp as jnp
    >>> jnp.lax.transpose(jnp.ones((1, 2)), (1, 0)).shape
    (2, 1)
    """
    x = as_node(operand, "lax.transpose")
    order = _ints(permutation, "lax.transpose")
    if order == tuple(range(x.aval.ndim)):
        return wrap(x)
    return wrap(o.transpose(x, permutation=order))


@api_boundary
def rev(operand: ArrayLike, dimensions: Any) -> Array:
    """Reverse the order along axes.

    Shape and dtype stay.

    Raises:
        TypeError: there is no such axis (they count from the front), or one is given twice.

    >>> import accnp as jnp
    >>> jnp.lax.rev(jnp.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    x = as_node(operand, "lax.rev")
    dims, rank = _ints(dimensions, "lax.rev"), x.aval.ndim
    if len(set(dims)) != len(dims) or not all(0 <= d < rank for d in dims):
        raise TypeError(
            f"lax.rev: dimensions are different axes from 0 up to the rank {rank}; got {dims}; "
            "name each axis once"
        )
    return wrap(o.rev(x, dimensions=dims))


@api_boundary
def squeeze(array: ArrayLike, dimensions: Any) -> Array:
    """Drop axes of length 1.

    The dtype stays.

    Raises:
        ValueError: an axis has another length, is none of the array's, or is given twice.

    >>> import accnp as jnp
    >>> jnp.lax.squeeze(jnp.ones((1, 2)), (0,)).shape
    (2,)
    """
    x = as_node(array, "lax.squeeze")
    given = _ints(dimensions, "lax.squeeze")
    dims = tuple(sorted(as_axes(given, x.aval.ndim, "lax.squeeze")))
    return wrap(o.squeeze(x, dimensions=dims) if dims else x)


@api_boundary
def expand_dims(array: ArrayLike, dimensions: Any) -> Array:
    """Insert axes of length 1.

    `dimensions` are axes of the result; the dtype stays.

    Raises:
        ValueError: there is no such axis, or one is given twice.

    >>> import accnp as jnp
    >>> jnp.lax.expand_dims(jnp.ones(2), (0,)).shape
    (1, 2)
    """
    x = as_node(array, "lax.expand_dims")
    rank = x.aval.ndim + len(tuple(dimensions))
    new = as_axes(dimensions, rank, "lax.expand_dims")
    kept = tuple(d for d in range(rank) if d not in new)
    shape = [1] * rank
    for d, n in zip(kept, x.aval.shape, strict=True):
        shape[d] = n
    return wrap(broadcast_to(x, tuple(shape), kept))


@api_boundary
def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Join neighbouring axes into one.

    Axes from start up to stop (the last one by default); the dtype stays.

    Raises:
        IncompatibleShapesError: stop lies before start.

    >>> import accnp as jnp
    >>> jnp.lax.collapse(jnp.ones((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    x = as_node(operand, "lax.collapse")
    shape = x.aval.shape
    low, high, _ = slice_object(start_dimension, stop_dimension).indices(len(shape))
    if high < low:
        raise IncompatibleShapesError(
            f"lax.collapse: stop lies before start; got {start_dimension} to {stop_dimension} for "
            f"shape {shape}; exchange them"
        )
    joined = int(np.prod(shape[low:high], dtype=np.int64))
    return wrap(o.reshape(x, new_sizes=(*shape[:low], joined, *shape[high:]), dimensions=None))


slice_object = slice


@api_boundary
def slice(operand: ArrayLike, start_indices: Any, limit_indices: Any, strides: Any = None) -> Array:
    """Cut out a box, with steps if given.

    A start, a limit and a step for each axis, static integers; the dtype stays.

    Raises:
        TypeError: not one for each axis, or limits are out of bounds or before starts.

    >>> import accnp as jnp
    >>> jnp.lax.slice(jnp.arange(4), (1,), (3,))
    Array([1, 2], dtype=int32)
    """
    x = as_node(operand, "lax.slice")
    start, limit = _ints(start_indices, "lax.slice"), _ints(limit_indices, "lax.slice")
    steps = None if strides is None else _ints(strides, "lax.slice")
    return wrap(o.slice(x, start_indices=start, limit_indices=limit, strides=steps))


@api_boundary
def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """Cut along one axis; negative indices count from the end. The dtype stays.

    Raises:
        TypeError: bounds lie outside the axis, or the step is below 1.
        ValueError: there is no such axis.

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
        found = as_int(index, "lax.slice_in_dim", "an index")
        return found + n if found < 0 else found

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


@api_boundary
def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Take one place of an axis.

    The axis stays, of length 1, if keepdims.

    Raises:
        IndexError: the index is out of bounds.
        ValueError: there is no such axis.
        TypeError: the index is no static integer.

    >>> import accnp as jnp
    >>> jnp.lax.index_in_dim(jnp.arange(3), 1)
    Array([1], dtype=int32)
    """
    x = as_node(operand, "lax.index_in_dim")
    at = as_axis(axis, x.aval.ndim, "lax.index_in_dim")
    n, place = x.aval.shape[at], as_int(index, "lax.index_in_dim", "index")
    if not -n <= place < n:
        raise IndexError(
            f"lax.index_in_dim: index {place} is out of bounds for axis {at} of size {n}"
        )
    place %= n
    out = slice_in_dim(x_array(x), place, place + 1, 1, at)
    return out if keepdims else squeeze(out, (at,))


def x_array(node: Node) -> Array:
    """Wrap a node."""
    return wrap(node)


@api_boundary
def concatenate(operands: Any, dimension: int) -> Array:
    """Join arrays of one dtype along an axis.

    Raises:
        TypeError: dtypes differ, or shapes beside that axis; or there is no such axis, where there
            are several operands (they count from the front).
        ValueError: there are no operands.

    >>> import accnp as jnp
    >>> jnp.lax.concatenate([jnp.ones(1), jnp.zeros(1)], 0)
    Array([1., 0.], dtype=float32)
    """
    nodes = [as_node(x, "lax.concatenate") for x in operands]
    if not nodes:
        raise ValueError(f"lax.concatenate: operands are needed; got {operands!r}; pass some")
    if len(nodes) == 1 and nodes[0].aval.ndim:
        return wrap(nodes[0])
    at = as_int(dimension, "lax.concatenate", "dimension")
    if not 0 <= at < nodes[0].aval.ndim:
        raise TypeError(
            f"lax.concatenate: there is no such axis; got dimension {at} for shapes "
            f"{[x.aval.shape for x in nodes]}; pass one from 0"
        )
    return wrap(o.concatenate(*nodes, dimension=at))


@api_boundary
def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Any) -> Array:
    """Put (low, high, interior) padding of one value around and between; negative ones crop.

    Raises:
        ValueError: there is not one triple for each axis, or an interior one is negative.
        TypeError: the value is of another dtype.

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
