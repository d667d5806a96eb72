"""Inserting and removing elements: `insert`, `delete` and `trim_zeros`.

A few static positions cut the array into pieces, which are concatenated. Many positions, or traced
ones, become one gather of the array (and the values) in the order of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, SupportsIndex

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, scalar_node
from accnp.api.arguments.non_numeric import moves_elements
from accnp.api.arguments.shapes import AxesLike, as_axes, as_axis, as_static
from accnp.api.arguments.values import node_of, to_dtype
from accnp.array_type import Array, ArrayLike, is_traced, wrap
from accnp.errors import AxisError, api_boundary
from accnp.ir.aval import make_aval
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.indexing import gather_axis
from accnp.numpy.manipulation import cut, reshape_plain
from accnp.numpy.sorting import argsort_node
from accnp.primitives.kinds import broadcast_to

__all__ = ["delete", "insert", "trim_zeros"]


def _positions(obj: Any, n: int, function: str) -> np.ndarray:
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n))
    as_node(obj, function)  # raises for lists
    return np.asarray(as_static(obj, function))


# The largest number of positions for which pieces are concatenated. Each number of pieces needs a
# kernel of its own.
FEW = 8


def _concatenate_pieces(pieces: list[Node], d: int) -> Node:
    return pieces[0] if len(pieces) == 1 else o.concatenate(*pieces, dimension=d)


def _remove_holes(x: Node, d: int, holes: list[tuple[int, int]]) -> Node:
    """Return the elements outside of the holes, which are sorted intervals."""
    starts = [0, *[stop for _, stop in holes]]
    stops = [*[start for start, _ in holes], x.aval.shape[d]]
    whole = [cut(x, d, a, b) for a, b in zip(starts, stops, strict=True) if a < b]
    return _concatenate_pieces(whole or [cut(x, d, 0, 0)], d)


def _nonnegative_positions(places: Node, n: int) -> Node:
    """Return traced positions as a vector, with negative ones counted from the front."""
    places = to_dtype(reshape_plain(places, (places.aval.size,)), dtypes.int32)
    zero, size = (scalar_node(v, dtypes.int32, False) for v in (0, n))
    places = o.select_n(o.lt(places, zero), places, o.add(places, size))
    return o.clamp(zero, places, size)


@moves_elements()
@api_boundary
def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice | Sequence[SupportsIndex],
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """Return a copy of an array without some elements along an axis.

    Parameters
    ----------
    arr : array_like
        Array to copy. Lists and tuples are not accepted.
    obj : int, slice or array_like of int or bool
        Positions of the elements to leave out.
    axis : int, optional
        Axis along which to delete. None, the default, uses the flattened array.
    assume_unique_indices : bool, optional
        Promise that no position is given twice, which makes the length of the result static. It is
        required if the positions are traced. The default is False.

    Returns
    -------
    Array
        Remaining elements, with the dtype of `arr`.

    Raises
    ------
    TypeError
        If `arr` is neither an array nor a number, or the positions are traced and not promised to
        be unique.
    IndexError
        If a position is out of bounds or not an integer (also a ValueError).
    ValueError
        If the axis is out of bounds.

    See Also
    --------
    insert : Insert values.
    compress : Choose slices by a condition.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.delete(jnp.array([1, 2, 3]), 1)
    Array([1, 3], dtype=int32)
    """
    name = "jnp.delete"
    x = as_node(arr, name)
    if axis is None:
        x, axis = reshape_plain(x, (x.aval.size,)), 0
    d = as_axis(axis, x.aval.ndim, name)
    n = x.aval.shape[d]
    if assume_unique_indices and type(obj) is Array and is_traced(obj._node):
        places = _nonnegative_positions(as_node(obj), n)
        out = o.reduce_or(
            o.eq(
                broadcast_to(places, (places.aval.size, n), (0,)),
                o.iota(dtype=dtypes.int32, shape=(places.aval.size, n), dimension=1),
            ),
            axes=(0,),
        )
        # A stable sort moves the elements to keep to the front, in order; the rest is cut off.
        order = argsort_node(to_dtype(out, dtypes.int32), 0)
        return wrap(gather_axis(x, cut(order, 0, 0, max(0, n - places.aval.size)), d))
    if isinstance(obj, slice) and len(run := range(*obj.indices(n))) and abs(run.step) == 1:
        return wrap(_remove_holes(x, d, [(min(run), max(run) + 1)]))
    places = _positions(obj, n, name)
    if places.dtype.kind not in "iub":
        raise AxisError(
            f"{name}: indices must be integers or bools; got {places.dtype.name}; convert them "
            "with astype"
        )
    if places.dtype.kind != "b":
        bad = [i for i in places.flat if not -n <= i < n]
        if bad:
            raise AxisError(
                f"{name}: index {bad[0]} is out of bounds for an axis of size {n}; pass indices "
                f"from {-n} to {n - 1}"
            )
        if places.size <= FEW:
            return wrap(
                _remove_holes(x, d, [(i, i + 1) for i in sorted({int(i) % n for i in places.flat})])
            )
    remaining = np.delete(np.arange(n), places)
    return wrap(gather_axis(x, node_of(remaining, np.int32), d))


@moves_elements("arr", "values")
@api_boundary
def insert(
    arr: ArrayLike,
    obj: ArrayLike | slice | Sequence[SupportsIndex],
    values: ArrayLike,
    axis: int | None = None,
) -> Array:
    """Return a copy of an array with values inserted along an axis.

    Parameters
    ----------
    arr : array_like
        Array to copy. Lists and tuples are not accepted.
    obj : int, slice or array_like of int
        Positions before which to insert. Unlike in NumPy, those out of range count as the ends.
    values : array_like
        Values to insert, which broadcast.
    axis : int, optional
        Axis along which to insert. None, the default, uses the flattened array.

    Returns
    -------
    Array
        Array with the values, with the dtype of `arr`.

    Raises
    ------
    TypeError
        If `arr` is neither an array nor a number.
    ValueError
        If `obj` does not hold integers, or the axis is out of bounds.

    See Also
    --------
    append : Append values.
    delete : Remove elements.
    concatenate : Join arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.insert(jnp.array([1, 3]), 1, 2)
    Array([1, 2, 3], dtype=int32)
    """
    name = "jnp.insert"
    x, v = as_node(arr, name), as_node(values, name)
    v = to_dtype(v, x.aval.dtype)
    if axis is None:
        x, axis = reshape_plain(x, (x.aval.size,)), 0
    d = as_axis(axis, x.aval.ndim, name)
    n, rank = x.aval.shape[d], x.aval.ndim
    known = not (type(obj) is Array and is_traced(obj._node))
    places = _positions(obj, n, name) if known else as_node(obj).aval
    if places.shape == (0,):  # np.array([]) has dtype float64
        places = np.zeros(0, np.int32) if known else make_aval((0,), np.dtype(np.int32))
    if places.dtype.kind not in "iu" or places.ndim > 1:
        raise ValueError(
            f"{name}: obj must be a slice or integers of at most one axis; got {obj!r}; "
            "pass a vector of indices"
        )
    count = max(1, places.size) if places.ndim == 0 else places.size
    if places.ndim == 0 and v.aval.ndim:  # as in NumPy, `values` is indexed along its axis 0
        v = reshape_plain(v, (1,) * (rank - v.aval.ndim) + v.aval.shape)
        order = [*range(1, d + 1), 0, *range(d + 1, rank)]
        v = o.transpose(v, permutation=tuple(order)) if rank > 1 and d else v
        count = v.aval.shape[d]
    else:
        v = reshape_plain(v, (1,) * (rank - v.aval.ndim) + v.aval.shape)
        count = v.aval.shape[d] if count == 1 else count
    shape = (*x.aval.shape[:d], count, *x.aval.shape[d + 1 :])
    v = broadcast_to(reshape_plain(v, (1,) * (rank - v.aval.ndim) + v.aval.shape), shape)
    if isinstance(places, np.ndarray):
        front = np.clip(np.where(places < 0, places + n, places), 0, n)
        if front.size == 1 or count <= FEW:
            out = _put_between(x, v, d, np.broadcast_to(front, (count,)))
            return wrap(cast(out, x.aval.dtype, x.aval.weak_type))
    # Sorting by these keys puts new elements of index p (2 p) before the old element p (2 p + 1).
    old = np.arange(n, dtype=np.int32) * 2 + 1
    if isinstance(places, np.ndarray):
        new = np.broadcast_to(front.astype(np.int32) * 2, (count,))
        order = node_of(np.argsort(np.concatenate([old, new]), stable=True), np.int32)
    else:
        new = _nonnegative_positions(as_node(obj), n)
        new = broadcast_to(o.add(new, new), (count,), (0,))
        order = argsort_node(o.concatenate(node_of(old), new, dimension=0), 0)
    out = gather_axis(o.concatenate(x, v, dimension=d), order, d)
    return wrap(cast(out, x.aval.dtype, x.aval.weak_type))


def _put_between(x: Node, v: Node, d: int, front: np.ndarray) -> Node:
    """Insert the elements of v before the given indices of x; equal indices keep the order of v."""
    order = np.argsort(front, stable=True)
    edges = [0, *np.flatnonzero(np.diff(front[order])) + 1, front.size]  # runs of equal places
    pieces, done = [], 0
    v = v if (order == np.arange(front.size)).all() else gather_axis(v, node_of(order, np.int32), d)
    for a, b in pairwise(map(int, edges)):
        place = int(front[order[a]]) if a < b else 0
        pieces += [cut(x, d, done, place), cut(v, d, a, b)]
        done = place
    pieces.append(cut(x, d, done, x.aval.shape[d]))
    return _concatenate_pieces([piece for piece in pieces if piece.aval.shape[d]] or [x], d)


@api_boundary
def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: AxesLike | None = None) -> Array:
    """Remove zeros from the ends of an array.

    Parameters
    ----------
    filt : array_like
        Array whose values are known, not traced.
    trim : {'fb', 'f', 'b'}, optional
        Where to remove them: at the front ('f'), at the back ('b') or both, the default.
    axis : int or sequence of int, optional
        Axes along which to remove slices of zeros. The default, None, means all axes.

    Returns
    -------
    Array
        Trimmed array, with the dtype of `filt`.

    Raises
    ------
    TypeError
        If `filt` is neither an array nor a number, or is traced.
    ValueError
        If an axis is out of bounds.

    See Also
    --------
    nonzero : Indices of the elements that are not zero.
    pad : Add elements at the ends.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    """
    x = as_node(filt, "jnp.trim_zeros")
    used = np.asarray(as_static(wrap(x), "jnp.trim_zeros")) != 0
    rank = used.ndim
    axes = range(rank) if axis is None else as_axes(axis, rank, "jnp.trim_zeros")
    for d in axes if {*trim.lower()} & {*"fb"} else ():
        places = np.flatnonzero(used.any(axis=tuple([i for i in range(rank) if i != d])))
        low = int(places[0]) if "f" in trim.lower() and places.size else 0
        high = int(places[-1]) + 1 if "b" in trim.lower() and places.size else used.shape[d]
        x = cut(x, d, low, high if places.size else low)
    return wrap(x)
