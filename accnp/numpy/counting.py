"""Bins, counts, and conversion between flat indices and coordinates.

If the shape of a result depends on values, these must be concrete, or `length=` must be given.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, SupportsIndex

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, broadcast_nodes, cast, promote, scalar_node
from accnp.api.arguments.shapes import as_int, as_shape, as_size
from accnp.api.arguments.values import to_dtype
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import (
    Array,
    ArrayLike,
    ArraySequence,
    Shape,
    ShardingLike,
    concrete_value,
    is_traced,
    wrap,
)
from accnp.dtypes.names import DTypeLike
from accnp.errors import ShardingTypeError, api_boundary, not_one_of
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.index_updates import ADD, write
from accnp.numpy.indexing import wrap_negative
from accnp.numpy.manipulation import cut, reshape_plain
from accnp.numpy.selection import where
from accnp.numpy.taking import METHODS, integers, modulo
from accnp.numpy.ufunc_rules import compare
from accnp.primitives.kinds import INDEX, broadcast_to, check_index_dtype, dtype_of_indices
from accnp.primitives.kinds import full as full_node
from accnp.sharding.device_placement import record_sharded

__all__ = ["bincount", "digitize", "ravel_multi_index", "unravel_index"]


@api_boundary
@compiled_if_small("x", "bins")
def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """Find the number of the bin that each value falls into.

    Parameters
    ----------
    x : array_like
        Values of any shape. Lists and tuples are not accepted.
    bins : array_like
        Vector of the edges of the bins, in rising or falling order.
    right : bool, optional
        If True, bins include their upper edge; if False, the default, their lower one.
    {searchsorted_method}

    Returns
    -------
    Array
        Numbers with the shape of `x`, of dtype int32 (int64 with `jax_enable_x64`): 0 before the
        first edge, and the number of edges after the last one.

    Raises
    ------
    TypeError
        If an operand is neither an array nor a number.
    ValueError
        If `bins` is not a vector, or the method is unknown.

    See Also
    --------
    searchsorted : Positions in a sorted vector.
    histogram, bincount : Counts of values.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.digitize(jnp.array([0.5, 2.5]), jnp.array([1.0, 2.0, 3.0]))
    Array([0, 2], dtype=int32)
    """
    if method is not None and method not in METHODS:
        raise not_one_of("jnp.digitize", "method", method, METHODS)
    v, edges = promote("jnp.digitize", x, bins)
    n = edges.aval.shape[0] if edges.aval.ndim == 1 else -1
    if n < 0:
        raise ValueError(
            f"jnp.digitize: bins must be a 1-dimensional array; got {edges.aval}; ravel it"
        )
    if n == 0:
        return wrap(full_node(v.aval.shape, 0, INDEX))
    side = "left" if right else "right"
    up = o.searchsorted(edges, v, side=side)
    down = o.searchsorted(o.rev(edges, dimensions=(0,)), v, side=side)
    down = o.sub(scalar_node(n, INDEX, False), down)
    first, last = (reshape_plain(cut(edges, 0, i, i + 1), ()) for i in (0, n - 1))
    rising = broadcast_to(compare("ge")(last, first), v.aval.shape)
    return wrap(o.select_n(rising, down, up))


@api_boundary
def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Count how often each non-negative integer occurs in a vector.

    Parameters
    ----------
    x : array_like of int
        Vector of integers. Negative ones count as 0, where NumPy raises an error.
    weights : array_like, optional
        Weight of each element, which is added up instead of 1. The default, None, counts.
    minlength : int, optional
        Minimum length of the result. The default is 0.
    length : int, optional
        Static length of the result, which is required under `jit`. Larger integers are not counted.
    out_sharding : NamedSharding or PartitionSpec, optional
        Sharding of the counts, which must be replicated.

    Returns
    -------
    Array
        Vector of counts, of dtype int32 (int64 with `jax_enable_x64`), or of the dtype of
        `weights`.

    Raises
    ------
    TypeError
        If `x` does not hold integers, is a list, or is traced and `length` is not given.
    ValueError
        If `x` is not a vector, or `weights` has another shape.
    ShardingTypeError
        If `out_sharding` is not replicated.

    See Also
    --------
    histogram : Counts of real numbers in bins.
    unique : Distinct values and their counts.
    ops.segment_sum : Sums of segments of any rank.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.bincount(jnp.array([0, 2, 2]))
    Array([1, 0, 2], dtype=int32)
    """
    name = "jnp.bincount"
    v = integers(x, name)
    if v.aval.ndim != 1:
        raise ValueError(
            f"{name}: only 1-dimensional input is supported; got {v.aval.shape}; ravel it"
        )
    w = scalar_node(1, dtypes.default_int(), False) if weights is None else as_node(weights, name)
    if weights is not None and w.aval.shape != v.aval.shape:
        raise ValueError(
            f"{name}: shape of weights must match shape of x; got {w.aval.shape}; "
            "pass one weight for each element"
        )
    spec = getattr(out_sharding, "spec", None)
    if spec is not None and any(spec):
        raise ShardingTypeError(
            f"{name}: out_sharding must be fully replicated, because each element may be counted "
            f"anywhere; got {spec}; use reshard on the result"
        )
    if length is None:
        values = concrete_value(v, "shape", f"{name} (without length=)")
        top = int(np.max(values, initial=0)) + 1 if v.aval.size else 0
        length = max(top, as_int(minlength, name, "minlength"))
    length = as_size(length, name, "length")

    def record(v: Node, w: Node) -> Node:
        zero = full_node((length,), 0, w.aval.dtype)
        if not length:
            return zero
        low = scalar_node(0, v.aval.dtype, False)
        # Negative values count as zero; values beyond the end are dropped.
        index = v if v.aval.dtype.kind == "u" else o.max(v, low)
        return write(zero, wrap(index), wrap(w), ADD, mode="drop")

    return wrap(record_sharded(name, out_sharding, record, v, w))


@api_boundary
def unravel_index(indices: ArrayLike, shape: Shape) -> tuple[Array, ...]:
    """Convert flat indices to one index for each axis of a shape.

    Parameters
    ----------
    indices : array_like of int
        Indices into the flattened array. Those out of range are clamped.
    shape : sequence of int
        Shape of the array; it may be traced.

    Returns
    -------
    tuple of Array
        One array of indices for each axis, with the shape and dtype of `indices`.

    Raises
    ------
    TypeError
        If `indices` does not hold integers, or is a list.

    See Also
    --------
    ravel_multi_index : The inverse.
    argmax, argmin : Functions that return flat indices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.unravel_index(jnp.array([2, 3]), (2, 3))
    (Array([0, 1], dtype=int32), Array([2, 0], dtype=int32))
    """
    name = "jnp.unravel_index"
    x = integers(indices, name)
    each = shape if isinstance(shape, list | tuple) else [shape]
    if any(isinstance(n, Array) and is_traced(n._node) for n in each):
        return _unravel_traced(x, list(shape) if isinstance(shape, Array) and shape.ndim else each)
    sizes = as_shape(shape, name)
    total, dtype = prod(sizes), x.aval.dtype
    weak = x.aval.weak_type
    kind = dtype_of_indices(total)  # the given dtype may not hold the total
    kind = dtype if dtype.itemsize >= kind.itemsize else kind
    x = wrap_negative(cast(x, kind, weak), total)
    x = o.convert_element_type(x, new_dtype=kind, weak_type=weak)
    x = o.clamp(scalar_node(0, kind, weak), x, scalar_node(max(0, total - 1), kind, weak))
    out = []
    for d, n in enumerate(sizes):
        step = scalar_node(max(1, prod(sizes[d + 1 :])), kind, weak)
        place = o.rem(o.div(x, step), scalar_node(max(n, 1), kind, weak))
        out.append(wrap(cast(place, dtype, weak)))
    return tuple(out)


def _unravel_traced(indices: Node, sizes: Sequence[Any]) -> tuple[Array, ...]:
    """Return coordinates within a shape whose sizes may be traced."""
    rest, places = wrap(indices), []
    for n in reversed(sizes):
        rest, place = divmod(rest, n)
        places.append(place)
    places.reverse()
    past, before = rest > 0, rest < -1  # -1: a negative index, which counts from the end
    return tuple(
        where(past, n - 1, where(before, 0, place)) for n, place in zip(sizes, places, strict=True)
    )


@api_boundary
def ravel_multi_index(
    multi_index: ArraySequence,
    dims: Sequence[SupportsIndex],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Convert one index for each axis of a shape to flat indices.

    Parameters
    ----------
    multi_index : sequence of array_like of int
        One array of indices for each axis. Their shapes broadcast.
    dims : sequence of int
        Shape of the array, static.
    mode : {'raise', 'wrap', 'clip', 'ignore'}, optional
        What happens to indices out of bounds: an error ('raise', the default, which needs concrete
        values), the index modulo the length of the axis ('wrap'), the nearest one ('clip'), or
        nothing ('ignore').
    {order_cf}
    dtype : dtype_like, optional
        Dtype of the result. The default is int32 (int64 with `jax_enable_x64`).

    Returns
    -------
    Array
        Flat indices, with the broadcast shape.

    Raises
    ------
    ValueError
        If an index is out of bounds in mode 'raise' or not an integer, the number of arrays is not
        that of `dims`, or the mode or the order is unknown.
    TypeError
        If `dims` is not a sequence.

    See Also
    --------
    unravel_index : The inverse.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 0])), (2, 3))
    Array([2, 3], dtype=int32)
    """
    name = "jnp.ravel_multi_index"
    if mode not in ("raise", "wrap", "clip", "ignore"):
        raise not_one_of(name, "mode", mode, ("raise", "wrap", "clip", "ignore"))
    if order not in ("C", "F"):
        raise not_one_of(name, "order", order, ("C", "F"))
    if isinstance(dims, int):
        raise TypeError(f"{name}: dims must be a sequence of sizes; got {dims}; pass ({dims},)")
    sizes = as_shape(dims, name)
    parts = broadcast_nodes(name, promote(name, *multi_index))
    if parts[0].aval.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: coordinates must be integers; got {parts[0].aval.dtype.name}; convert them "
            "with astype(int)"
        )
    if len(parts) != len(sizes):
        raise ValueError(
            f"{name}: expected one coordinate for each of {sizes}; got {len(parts)}; "
            "pass that many arrays"
        )
    kind = parts[0].aval.dtype if dtype is None else dtypes.requested_dtype(dtype, name)
    if kind.itemsize == 4:
        check_index_dtype(name, prod(sizes), kind)
    total = None
    strides = [prod(sizes[d + 1 :]) if order == "C" else prod(sizes[:d]) for d in range(len(sizes))]
    for x, n, step in zip(parts, sizes, strides, strict=True):
        x = to_dtype(x, kind)
        if mode == "wrap":
            x = modulo(x, n)
        elif mode == "clip":
            x = o.clamp(scalar_node(0, kind, False), x, scalar_node(n - 1, kind, False))
        elif mode == "ignore":
            pass
        elif np.any(
            ((at := concrete_value(x, "static", f"{name} (mode='raise')")) < 0) | (at >= n)
        ):
            raise ValueError(
                "invalid entry in coordinates array; ravel_multi_index got an index outside "
                f"{tuple(sizes)}; pass mode='clip' or 'wrap'"
            )
        term = o.mul(x, scalar_node(step, kind, False))
        total = term if total is None else o.add(total, term)
    assert total is not None
    return wrap(total)
