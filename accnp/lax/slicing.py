"""Functions of `jax.lax` that read and replace slices whose starts may be traced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from accnp.api.arguments.convert import as_node, cast, scalar_node, wrap
from accnp.api.arguments.non_numeric import moves_elements
from accnp.api.arguments.shapes import as_axis, as_int, as_shape
from accnp.array_type import Array, ArrayLike, ArraySequence, Shape
from accnp.errors import api_boundary
from accnp.ir.node import LITERAL, Node
from accnp.ir.op import o
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import INDEX, dtype_kind, dtype_of_indices


def _start_indices(x: Node, indices: Any, name: str, negative: Any) -> list[Node]:
    """Return one rank-0 index for each axis; negative ones count from the end if allowed."""
    if hasattr(indices, "ndim"):
        whole = as_node(indices, name)
        starts = [wrap(_entry(whole, i)) for i in range(_length(whole))]
    else:
        if not isinstance(indices, Iterable):
            raise TypeError(
                f"{name}: expected one start index for each axis of shape {x.aval.shape}; got "
                f"{indices!r} (start_indices); pass them in a tuple"
            )
        starts = list(indices)
    if len(starts) != x.aval.ndim:
        raise ValueError(
            f"{name}: Length of slice indices must match number of operand dimensions "
            f"({len(starts)} vs {x.aval.shape}); add or remove indices"
        )
    may = [negative] * len(starts) if isinstance(negative, bool) else list(negative)
    for i, counted in zip(starts, may, strict=True):
        if not counted and isinstance(i, int | np.integer) and i < 0:
            raise ValueError(
                f"{name}: negative starts are out of bounds with allow_negative_indices=False; "
                f"got {i}; count from the first element"
            )
    widest = dtype_of_indices(max(x.aval.shape, default=0))
    nodes = [_start_node(i, widest, name) for i in starts]
    kinds = {i.aval.dtype.name for i in nodes}
    if len(kinds) > 1:
        raise TypeError(f"{name}: start indices must be of one dtype; got {sorted(kinds)}; cast")
    if widest != INDEX:
        nodes = [cast(i, widest) if dtype_kind(i.aval.dtype) in "iu" else i for i in nodes]
    return [
        _wrap_negative_start(i, n if c else 0, name) for i, n, c in zip(nodes, x.aval.shape, may)
    ]


def _start_node(index: Any, widest: np.dtype, name: str) -> Node:
    """Return the node of a start; Python ints get a dtype that holds the longest axis."""
    if type(index) is int and widest != INDEX:
        return scalar_node(index, widest)
    return as_node(index, name)


def _length(x: Node) -> int:
    return x.aval.shape[0] if x.aval.ndim else 0


def _entry(x: Node, i: int) -> Node:
    part = o.slice(x, start_indices=(i,), limit_indices=(i + 1,), strides=None)
    return o.reshape(part, new_sizes=(), dimensions=None)


def _wrap_negative_start(index: Node, n: int, name: str) -> Node:
    """Return an index, increased by n if it is negative."""
    kind = dtype_kind(index.aval.dtype)
    if kind not in "iu" or index.aval.ndim:
        raise TypeError(
            f"{name}: start indices must be integers of rank 0; got {index.aval.dtype.name}"
            f"{list(index.aval.shape)}; convert with astype(int)"
        )
    if kind == "u":
        return index
    if index.op is LITERAL:
        value = index.params["value"]
        return scalar_node(value + n if value < 0 else value, index.aval.dtype, False)
    if not n:
        return index
    return o.select_n(o.lt(index, like(index, 0)), index, o.add(index, like(index, n)))


@moves_elements()
@api_boundary
def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArraySequence,
    slice_sizes: Shape,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Take a slice of static size that starts at given, possibly traced, indices.

    Parameters
    ----------
    operand : array_like
        Array to slice, of any shape.
    start_indices : sequence of scalar int
        Start along each axis. A start is clipped so that the slice lies within the array.
    slice_sizes : sequence of int
        Static length along each axis.
    allow_negative_indices : bool or sequence of bool, optional
        Whether negative starts count from the end, for all axes or for each one. If False, traced
        negative starts are clipped to 0. The default is True.

    Returns
    -------
    Array
        Slice of shape `slice_sizes` and of the dtype of `operand`.

    Raises
    ------
    TypeError
        If a start is not an integer scalar, or the sizes do not fit into the shape.
    ValueError
        If the number of starts is not the number of axes, or a static start is negative although
        `allow_negative_indices` is False.

    See Also
    --------
    slice : Slice with static bounds.
    dynamic_slice_in_dim : Slice along one axis.
    dynamic_update_slice : Replace a slice.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.dynamic_slice(jnp.arange(4), (1,), (2,))
    Array([1, 2], dtype=int32)
    """
    x = as_node(operand, "lax.dynamic_slice")
    sizes = as_shape(slice_sizes, "lax.dynamic_slice")
    starts = _start_indices(x, start_indices, "lax.dynamic_slice", allow_negative_indices)
    return wrap(o.dynamic_slice(x, *starts, slice_sizes=sizes))


@moves_elements("operand", "update")
@api_boundary
def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArraySequence,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Replace a slice that starts at given, possibly traced, indices.

    Parameters
    ----------
    operand : array_like
        Array to change a copy of.
    update : array_like
        New values of the slice, of the dtype and rank of `operand`.
    start_indices : sequence of scalar int
        Start along each axis. A start is clipped so that the slice lies within the array.
    allow_negative_indices : bool or sequence of bool, optional
        Whether negative starts count from the end, for all axes or for each one. The default is
        True.

    Returns
    -------
    Array
        Updated array, of the shape and dtype of `operand`.

    Raises
    ------
    TypeError
        If a start is not an integer scalar, or `update` has another dtype or rank, or is larger
        than `operand`.
    ValueError
        If there is not one start for each axis.

    See Also
    --------
    dynamic_slice : Read a slice.
    dynamic_update_slice_in_dim : Replace a slice along one axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.dynamic_update_slice(jnp.zeros(3), jnp.ones(2), (1,))
    Array([0., 1., 1.], dtype=float32)
    """
    x = as_node(operand, "lax.dynamic_update_slice")
    new = as_node(update, "lax.dynamic_update_slice")
    starts = _start_indices(x, start_indices, "lax.dynamic_update_slice", allow_negative_indices)
    return wrap(o.dynamic_update_slice(x, new, *starts))


def _one_start(x: Any, index: Any, axis: int, name: str) -> list[Any]:
    """Return starts in the dtype of the index: 0 on all other axes."""
    zero = 0 if isinstance(index, int) else wrap(like(as_node(index, name), 0))
    starts: list[Any] = [zero] * x.ndim
    starts[axis] = index
    return starts


@moves_elements()
@api_boundary
def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: SupportsIndex,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Take a slice along one axis that starts at a given, possibly traced, index.

    Parameters
    ----------
    operand : array_like
        Array to slice, of any shape.
    start_index : scalar int
        Start along the axis. It is clipped so that the slice lies within the array.
    slice_size : int
        Static length along the axis.
    axis : int, optional
        Axis to slice along. The default is 0.
    {allow_negative}

    Returns
    -------
    Array
        Slice of the dtype of `operand`.

    Raises
    ------
    TypeError
        If the start is not an integer scalar, or the size is not static or longer than the axis.
    ValueError
        If `axis` is out of bounds.

    See Also
    --------
    slice_in_dim : Slice with static bounds.
    dynamic_slice : Slice along all axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.dynamic_slice_in_dim(jnp.arange(4), 1, 2)
    Array([1, 2], dtype=int32)
    """
    name = "lax.dynamic_slice_in_dim"
    x = wrap(as_node(operand, name))
    at = as_axis(axis, x.ndim, name)
    sizes = list(x.shape)
    sizes[at] = as_int(slice_size, name, "slice_size", "size")
    starts = _one_start(x, start_index, at, name)
    return dynamic_slice(x, starts, sizes, allow_negative_indices=bool(allow_negative_indices))


@moves_elements()
@api_boundary
def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Take one index from an array along an axis.

    Parameters
    ----------
    operand : array_like
        Array to take from, of any shape.
    index : scalar int
        Index along the axis. It is moved into its bounds.
    axis : int, optional
        Axis to take it from. The default is 0.
    keepdims : bool, optional
        If True, the default, the axis stays with length 1.
    {allow_negative}

    Returns
    -------
    Array
        Elements at the index, of the dtype of `operand`.

    Raises
    ------
    TypeError
        If the index is not an integer scalar.
    ValueError
        If `axis` is out of bounds.

    See Also
    --------
    index_in_dim : The same with a static index.
    dynamic_slice_in_dim : Take several indices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.dynamic_index_in_dim(jnp.arange(4), 1)
    Array([1], dtype=int32)
    """
    name, way = "lax.dynamic_index_in_dim", bool(allow_negative_indices)
    widest = dtype_of_indices(max(as_node(operand, name).aval.shape, default=0))
    place = wrap(_start_node(index, widest, name))  # clamped, like a computed index
    out = dynamic_slice_in_dim(operand, place, 1, axis, allow_negative_indices=way)
    if keepdims:
        return out
    return wrap(o.squeeze(out._node, dimensions=(as_axis(axis, out.ndim, name),)))


@moves_elements("operand", "update")
@api_boundary
def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replace a slice of an array along one axis at a position from an array.

    Parameters
    ----------
    operand : array_like
        Array to change a copy of.
    update : array_like
        New values of the slice, of the dtype and rank of `operand`.
    start_index : scalar int
        Start along the axis. It is clipped so that the slice lies within the array.
    axis : int
        Axis along which the slice starts there.
    {allow_negative}

    Returns
    -------
    Array
        Updated array, of the shape and dtype of `operand`.

    Raises
    ------
    TypeError
        If the start is not an integer scalar, or `update` has another dtype or rank, or is larger
        than `operand`.
    ValueError
        If `axis` is out of bounds.

    See Also
    --------
    dynamic_slice_in_dim : Read a slice.
    dynamic_update_slice : Replace a slice along all axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.dynamic_update_slice_in_dim(jnp.zeros(3), jnp.ones(2), 1, 0)
    Array([0., 1., 1.], dtype=float32)
    """
    name = "lax.dynamic_update_slice_in_dim"
    x = wrap(as_node(operand, name))
    starts = _one_start(x, start_index, as_axis(axis, x.ndim, name), name)
    way = bool(allow_negative_indices)
    return dynamic_update_slice(x, update, starts, allow_negative_indices=way)


@moves_elements("operand", "update")
@api_boundary
def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replace the elements at one index of an axis.

    Parameters
    ----------
    operand : array_like
        Array to change a copy of.
    update : array_like
        New elements, of the dtype of `operand`, with or without the axis.
    index : scalar int
        Index along the axis. It is moved into its bounds.
    axis : int
        Axis along which the index counts.
    {allow_negative}

    Returns
    -------
    Array
        Updated array, of the shape and dtype of `operand`.

    Raises
    ------
    TypeError
        If the index is not an integer scalar, or `update` has another dtype or shape.
    ValueError
        If `axis` is out of bounds.

    See Also
    --------
    dynamic_index_in_dim : Read the elements.
    dynamic_update_slice_in_dim : Replace several indices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.dynamic_update_index_in_dim(jnp.zeros(3), 1.0, 1, 0)
    Array([0., 1., 0.], dtype=float32)
    """
    name = "lax.dynamic_update_index_in_dim"
    x, new = wrap(as_node(operand, name)), as_node(update, name)
    at = as_axis(axis, x.ndim, name)
    if new.aval.ndim != x.ndim:
        shape = (*new.aval.shape[:at], 1, *new.aval.shape[at:])
        new = o.reshape(new, new_sizes=shape, dimensions=None)
    starts = _one_start(x, wrap(as_node(index, name)), at, name)
    way = bool(allow_negative_indices)
    return dynamic_update_slice(x, wrap(new), starts, allow_negative_indices=way)
