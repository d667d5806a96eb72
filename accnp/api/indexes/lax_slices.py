"""The strict functions that cut and replace boxes at computed places.

In: arrays and starts, which are integers, static or computed. Out: lazy Arrays.
"""

from __future__ import annotations

from typing import Any

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, wrap
from accnp.api.arguments.shapes import as_axis, as_int, as_shape
from accnp.array import Array
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import dtype_kind


def _starts(x: Node, indices: Any, name: str) -> list[Node]:
    """One rank-0 index for each axis; negative ones count from the end."""
    if hasattr(indices, "ndim"):
        whole = as_node(indices, name)
        nodes = [_entry(whole, i) for i in range(whole.aval.shape[0] if whole.aval.ndim else 0)]
    else:
        nodes = [as_node(i, name) for i in indices]
    if len(nodes) != x.aval.ndim:
        raise ValueError(
            f"{name}: one start index for each axis is needed; got {len(nodes)} for shape "
            f"{x.aval.shape}; add or drop indices"
        )
    kinds = {i.aval.dtype.name for i in nodes}
    if len(kinds) > 1:
        raise TypeError(f"{name}: start indices must be of one dtype; got {sorted(kinds)}; cast")
    return [_from_end(i, n, name) for i, n in zip(nodes, x.aval.shape, strict=True)]


def _entry(x: Node, i: int) -> Node:
    part = o.slice(x, start_indices=(i,), limit_indices=(i + 1,), strides=None)
    return o.reshape(part, new_sizes=(), dimensions=None)


def _from_end(index: Node, n: int, name: str) -> Node:
    kind = dtype_kind(index.aval.dtype)
    if kind not in "iu" or index.aval.ndim:
        raise TypeError(
            f"{name}: start indices must be integers of rank 0; got {index.aval.dtype.name}"
            f"{list(index.aval.shape)}; convert with astype(int)"
        )
    if index.op.name == "literal":
        value = index.params["value"]
        return cast(as_node(value + n if value < 0 else value), dtypes.default_int())
    if kind == "u":
        return index
    return o.select_n(o.lt(index, like(index, 0)), index, o.add(index, like(index, n)))


@api_boundary
def dynamic_slice(
    operand: Any, start_indices: Any, slice_sizes: Any, *, allow_negative_indices: Any = True
) -> Array:
    """Cut a box of static size at a computed place; the place is moved so that the box fits.

    The result has shape `slice_sizes` and the dtype of the operand.

    Raises:
        TypeError: a start is no integer scalar, or sizes do not fit into the shape.
        ValueError: there is not one start for each axis.

    >>> import accnp as jnp
    >>> jnp.lax.dynamic_slice(jnp.arange(4), (1,), (2,))
    Array([1, 2], dtype=int32)
    """
    x = as_node(operand, "lax.dynamic_slice")
    sizes = as_shape(slice_sizes, "lax.dynamic_slice")
    starts = _starts(x, start_indices, "lax.dynamic_slice")
    return wrap(o.dynamic_slice(x, *starts, slice_sizes=sizes))


@api_boundary
def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: Any = True
) -> Array:
    """Replace a box at a computed place; the place is moved so that the box fits.

    Shape and dtype are those of the operand, and the update has its dtype.

    Raises:
        TypeError: a start is no integer scalar, or the update is of another dtype or rank, or
            larger.
        ValueError: there is not one start for each axis.

    >>> import accnp as jnp
    >>> jnp.lax.dynamic_update_slice(jnp.zeros(3), jnp.ones(2), (1,))
    Array([0., 1., 1.], dtype=float32)
    """
    x, new = (
        as_node(operand, "lax.dynamic_update_slice"),
        as_node(update, "lax.dynamic_update_slice"),
    )
    starts = _starts(x, start_indices, "lax.dynamic_update_slice")
    return wrap(o.dynamic_update_slice(x, new, *starts))


def _one_start(x: Any, index: Any, axis: int) -> list[Any]:
    starts: list[Any] = [0] * x.ndim
    starts[axis] = index
    return starts


@api_boundary
def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: Any,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Cut a range of static size at a computed place of one axis.

    The other axes and the dtype stay.

    Raises:
        TypeError: the start is no integer scalar, or the size not static or beyond the axis.
        ValueError: there is no such axis.

    >>> import accnp as jnp
    >>> jnp.lax.dynamic_slice_in_dim(jnp.arange(4), 1, 2)
    Array([1, 2], dtype=int32)
    """
    name = "lax.dynamic_slice_in_dim"
    x = wrap(as_node(operand, name))
    at = as_axis(axis, x.ndim, name)
    sizes = list(x.shape)
    sizes[at] = as_int(slice_size, name, "slice_size", "shape")
    return dynamic_slice(x, _one_start(x, start_index, at), sizes)


@api_boundary
def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Take one computed place of an axis.

    The axis stays, of length 1, if keepdims; the dtype stays.

    Raises:
        TypeError: the index is no integer scalar.
        ValueError: there is no such axis.

    >>> import accnp as jnp
    >>> jnp.lax.dynamic_index_in_dim(jnp.arange(4), 1)
    Array([1], dtype=int32)
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis)
    if keepdims:
        return out
    return wrap(
        o.squeeze(out._node, dimensions=(as_axis(axis, out.ndim, "lax.dynamic_index_in_dim"),))
    )


@api_boundary
def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """Replace a range at a computed place of one axis.

    Shape and dtype are those of the operand, and the update has its dtype.

    Raises:
        TypeError: the start is no integer scalar, or the update is of another dtype or rank, or
            larger.
        ValueError: there is no such axis.

    >>> import accnp as jnp
    >>> jnp.lax.dynamic_update_slice_in_dim(jnp.zeros(3), jnp.ones(2), 1, 0)
    Array([0., 1., 1.], dtype=float32)
    """
    name = "lax.dynamic_update_slice_in_dim"
    x = wrap(as_node(operand, name))
    return dynamic_update_slice(x, update, _one_start(x, start_index, as_axis(axis, x.ndim, name)))


@api_boundary
def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """Replace one computed place of an axis.

    Shape and dtype are those of the operand; the update has its dtype, and may lack the axis.

    Raises:
        TypeError: the index is no integer scalar, or the update is of another dtype or shape.
        ValueError: there is no such axis.

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
    return dynamic_update_slice(x, wrap(new), _one_start(x, index, at))
