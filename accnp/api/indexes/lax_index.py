"""The strict functions that read and write at computed places.

In: arrays and indices. Out: lazy Arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, wrap
from accnp.api.arguments.shapes import as_axis, as_int, as_shape, concrete
from accnp.api.elements.composed import composed
from accnp.api.elements.selecting import where
from accnp.api.flow.loops import fori_loop
from accnp.api.mapping.vmap import vmap
from accnp.array import Array
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.elementwise import like
from accnp.primitives.index import DROP, GatherDimensionNumbers, GatherScatterMode
from accnp.primitives.kinds import dtype_kind, full

INDEX = np.dtype(np.int32)
PROMISE = GatherScatterMode.PROMISE_IN_BOUNDS


@api_boundary
def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: Any,
    slice_sizes: Any,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Array:
    """Collect windows of an array that begin at computed places.

    >>> import accnp as jnp
    >>> numbers = jnp.lax.GatherDimensionNumbers((), (0,), (0,))
    >>> jnp.lax.gather(jnp.array([2, 3, 4]), jnp.array([[2], [0]]), numbers, (1,))
    Array([4, 2], dtype=int32)
    """
    x, starts = as_node(operand, "lax.gather"), as_node(start_indices, "lax.gather")
    how = PROMISE if mode is None else GatherScatterMode.from_any(mode)
    return wrap(
        o.gather(
            x,
            starts,
            dimension_numbers=dimension_numbers,
            slice_sizes=as_shape(slice_sizes, "lax.gather"),
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=how,
            fill_value=_fill(x, fill_value) if how is DROP else None,
        )
    )


def _fill(x: Node, value: Any) -> Any:
    """What out-of-bounds windows read: nan, the largest or smallest integer, True."""
    if value is not None:
        return value
    kind = dtype_kind(x.aval.dtype)
    if kind in "fc":
        return float("nan")
    if kind == "b":
        return True
    info = np.iinfo(x.aval.dtype)
    return int(info.min if kind == "i" else info.max)


def _make_scatter(name: str, what: str, gives: str) -> Callable[..., Array]:
    @api_boundary
    def scatter_(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Array:
        nodes = [as_node(v, f"lax.{name}") for v in (operand, scatter_indices, updates)]
        if name in ("scatter_add", "scatter_mul") and nodes[0].aval.dtype.kind == "b":
            raise TypeError(f"lax.{name}: bools are no numbers; use scatter_max or scatter_min")
        return wrap(
            getattr(o, name)(
                *nodes,
                dimension_numbers=dimension_numbers,
                indices_are_sorted=bool(indices_are_sorted),
                unique_indices=bool(unique_indices),
                mode=GatherScatterMode.from_any(mode),
            )
        )

    scatter_.__name__ = scatter_.__qualname__ = name
    scatter_.__doc__ = (
        f"{what} windows of an array at computed places; its shape and dtype stay.\n\n    Raises:\n"
        "        TypeError: indices are no integers, updates are of another dtype, or do not fit.\n"
        "        ValueError: there is no such mode.\n\n"
        "    >>> import accnp as jnp\n"
        "    >>> numbers = jnp.lax.ScatterDimensionNumbers((), (0,), (0,))\n"
        "    >>> places, updates = jnp.array([[1]]), jnp.array([5.0])\n"
        f"    >>> jnp.lax.{name}(jnp.array([2.0, 3.0, 4.0]), places, updates, numbers)\n"
        f"    Array({gives}, dtype=float32)\n    "
    )
    return scatter_


scatter = _make_scatter("scatter", "Replace", "[2., 5., 4.]")
scatter_add = _make_scatter("scatter_add", "Add to", "[2., 8., 4.]")
scatter_mul = _make_scatter("scatter_mul", "Multiply", "[ 2., 15.,  4.]")
scatter_min = _make_scatter("scatter_min", "Take the minimum with", "[2., 3., 4.]")
scatter_max = _make_scatter("scatter_max", "Take the maximum with", "[2., 5., 4.]")


def _subtract(x: Array, starts: Array, updates: Array, **p: Any) -> Array:
    return wrap(o.scatter_add(x._node, starts._node, o.neg(updates._node), **p))


scatter_sub_p = composed("scatter-sub", _subtract)


@api_boundary
def scatter_sub(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Array:
    """Subtract from windows of an array at computed places.

    Example:
        >>> import accnp as jnp
        >>> numbers = jnp.lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> jnp.lax.scatter_sub(jnp.zeros(3), jnp.array([[1], [1]]), jnp.ones(2), numbers)
        Array([ 0., -2.,  0.], dtype=float32)
    """
    nodes = [as_node(v, "lax.scatter_sub") for v in (operand, scatter_indices, updates)]
    return scatter_sub_p.bind(
        *map(wrap, nodes),
        dimension_numbers=dimension_numbers,
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
    )


@api_boundary
def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Array], Array],
    dimension_numbers: Any,
    *,
    update_shape: Any = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Array:
    """Replace elements of windows at computed places by what a function of them gives; an element
    that is named twice is changed twice.

    Args:
        operand, scatter_indices, dimension_numbers: as of `scatter`.
        func: a function of one element.
        update_shape: the shape that the updates of a `scatter` would have.
        unique_indices: no element is named twice, so that the function is applied once.

    Example:
        >>> import accnp as jnp
        >>> numbers = jnp.lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> places = jnp.array([[0], [0], [2]])
        >>> jnp.lax.scatter_apply(
        ...     jnp.ones(3), places, lambda x: 2 * x, numbers, update_shape=(3,))
        Array([4., 1., 2.], dtype=float32)
    """
    x, starts = as_node(operand, "lax.scatter_apply"), as_node(scatter_indices, "lax.scatter_apply")
    shape = as_shape(update_shape, "lax.scatter_apply")
    times = wrap(
        o.scatter_add(
            full(x.aval.shape, 0, INDEX),
            starts,
            full(shape, 1, INDEX),
            dimension_numbers=dimension_numbers,
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode),
        )
    )

    def once(k: Any, v: Array) -> Array:
        new = vmap(func)(v.ravel()).reshape(v.shape)
        return where(times > k, wrap(cast(new._node, x.aval.dtype)), v)

    start = wrap(cast(x, x.aval.dtype))
    if unique_indices or not x.aval.size:
        return once(0, start)
    most = times.max()
    found = concrete(most._node)
    if found is not None:
        out = start
        for k in range(int(found)):
            out = once(k, out)
        return out
    return fori_loop(0, most, once, start)


@api_boundary
def index_take(src: Any, idxs: Any, axes: Sequence[int]) -> Array:
    """Take slices at places along axes: for each of the axes a vector of integers, wrapped around.

    Example:
        >>> import accnp as jnp
        >>> x = jnp.arange(6.0).reshape(2, 3)
        >>> jnp.lax.index_take(x, (jnp.array([0, 1]), jnp.array([2, -1])), (0, 1))
        Array([2., 5.], dtype=float32)
    """
    x = as_node(src, "lax.index_take")
    each = [as_node(i, "lax.index_take") for i in idxs]
    sizes = [x.aval.shape[d] for d in axes]
    columns = [(wrap(i) % n)._node for i, n in zip(each, sizes, strict=True)]
    wide = [o.reshape(c, new_sizes=(*c.aval.shape, 1), dimensions=None) for c in columns]
    starts = wide[0] if len(wide) == 1 else o.concatenate(*wide, dimension=1)
    dims = GatherDimensionNumbers(
        tuple(range(1, x.aval.ndim - len(axes) + 1)), tuple(axes), tuple(axes)
    )
    cut = tuple(1 if d in axes else n for d, n in enumerate(x.aval.shape))
    return gather(src, wrap(starts), dims, cut)


# --- dynamic slices ------------------------------------------------------------------------------


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


@api_boundary
def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort along an axis; of several arrays, the first `num_keys` are keys and all are moved.

    Shapes and dtypes stay; equals keep their order.

    Raises:
        TypeError: there is no operand, or shapes differ.
        ValueError: there is no such axis, or num_keys is not from 1 to the number of operands.

    >>> import accnp as jnp
    >>> jnp.lax.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    many = isinstance(operand, Sequence)
    nodes = [as_node(x, "lax.sort") for x in (operand if many else [operand])]
    if not nodes:
        raise TypeError("lax.sort: Sort requires at least one operand; got none; pass arrays")
    at = as_axis(dimension, nodes[0].aval.ndim, "lax.sort")
    out = o.sort(*nodes, dimension=at, is_stable=bool(is_stable), num_keys=num_keys)
    results = unpack(out)
    return tuple(results) if many else results[0]


def unpack(node: Node) -> list[Array]:
    """Wrap each result of an op with several."""
    if not isinstance(node.aval, tuple):
        return [wrap(node)]
    return [wrap(o.item(node, index=i)) for i in range(len(node.aval))]


@api_boundary
def sort_key_val(
    keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort keys along an axis, and move values with them.

    Both have one shape; shapes and dtypes stay.

    Raises:
        TypeError: shapes differ.
        ValueError: there is no such axis.

    >>> import accnp as jnp
    >>> jnp.lax.sort_key_val(jnp.array([3, 1]), jnp.array([0, 1]))
    (Array([1, 3], dtype=int32), Array([1, 0], dtype=int32))
    """
    return sort((keys, values), dimension, is_stable, 1)
