"""Joining, splitting and repeating arrays. The parts of a split are views."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, promote
from accnp.api.arguments.non_numeric import moves_elements
from accnp.api.arguments.shapes import (
    as_axis,
    as_int,
    as_shape,
    as_size,
    as_sizes,
    as_static,
)
from accnp.api.arguments.values import no_out, node_of, to_dtype
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import (
    Array,
    ArrayData,
    ArrayLike,
    ArraySequence,
    Shape,
    ShardingLike,
    rows_of_numpy,
    wrap,
)
from accnp.dtypes.names import DTypeLike
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.indexing import gather_axis
from accnp.numpy.manipulation import cube, cut, expand_node, reshape_plain, row
from accnp.primitives.kinds import broadcast_to
from accnp.runtime import device
from accnp.sharding.device_placement import with_out_sharding

__all__ = [
    "append", "array_split", "block", "column_stack", "concat", "concatenate", "dsplit",
    "dstack", "hsplit", "hstack", "repeat", "resize", "split", "stack", "tile",
    "unstack", "vsplit", "vstack",
]  # fmt: skip


def _arrays_of_sequence(arrays: Any, function: str, dtype: Any = None) -> list[Node]:
    """Return the arrays of a sequence (or of one array along axis 0) as nodes of one dtype."""
    if isinstance(arrays, Array | np.ndarray):
        arrays = unstack(arrays)
    elif not isinstance(arrays, Sequence):
        raise TypeError(
            f"{function}: expected a sequence of arrays; got {type(arrays).__name__}; "
            "put the arrays into a list"
        )
    if not len(arrays):
        verb = function.rpartition(".")[2]
        raise ValueError(f"{function}: Need at least one array to {verb}; got no arrays; pass some")
    if dtype is None:
        return promote(function, *arrays)
    kind = dtypes.requested_dtype(dtype, function)
    return [to_dtype(as_node(a, function), kind) for a in arrays]


def _join(nodes: list[Node], axis: int) -> Node:
    return nodes[0] if len(nodes) == 1 else o.concatenate(*nodes, dimension=axis)


@moves_elements()
@api_boundary
def concatenate(
    arrays: ArraySequence, axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Join arrays along an existing axis.

    Parameters
    ----------
    {arrays_joined}
    axis : int, optional
        Axis along which to join. The default is 0; None joins the flattened arrays.
    {dtype_joined}

    Returns
    -------
    Array
        Joined array. Dtypes promote as in JAX: int8 and float16 give float16.

    Raises
    ------
    {raises_joined}

    See Also
    --------
    stack : Join along a new axis.
    hstack, vstack, dstack : Join along a given axis.
    block : Assemble an array from blocks.
    split : Split an array.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.concatenate([jnp.ones(1), jnp.zeros(1)])
    Array([1., 0.], dtype=float32)
    """
    name = "jnp.concatenate"
    nodes = _arrays_of_sequence(arrays, name, dtype)
    if axis is None:
        nodes, axis = [reshape_plain(x, (x.aval.size,)) for x in nodes], 0
    rank = nodes[0].aval.ndim
    if rank == 0:
        raise ValueError(
            "concatenate: Zero-dimensional arrays cannot be concatenated; got a scalar; use "
            "jnp.stack"
        )
    if any(x.aval.ndim != rank for x in nodes):
        shapes = ", ".join(str(x.aval.shape) for x in nodes)
        text = f"got {shapes}; add axes"
        raise IncompatibleShapesError(
            f"concatenate: Cannot concatenate arrays with different numbers of dimensions; {text}"
        )
    return wrap(_join(nodes, as_axis(axis, rank, name)))


@moves_elements()
@api_boundary
def concat(arrays: ArraySequence, /, *, axis: int | None = 0) -> Array:
    """Join arrays along an existing axis, as the array API standard defines it.

    Parameters
    ----------
    {arrays_joined}
    axis : int, optional
        Axis along which to join. The default is 0; None joins the flattened arrays.

    Returns
    -------
    Array
        Joined array, with the promoted dtype.

    Raises
    ------
    {raises_joined}

    See Also
    --------
    concatenate : The same with a choice of dtype.
    stack : Join along a new axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.concat([jnp.ones(1), jnp.zeros(1)])
    Array([1., 0.], dtype=float32)
    """
    return concatenate(arrays, axis)


@moves_elements()
@api_boundary
def stack(
    arrays: ArraySequence, axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """Join arrays of one shape along a new axis.

    Parameters
    ----------
    {arrays_joined}
    axis : int, optional
        Position of the new axis in the result. The default is 0.
    {out}
    {dtype_joined}

    Returns
    -------
    Array
        Array with one more axis than each of `arrays`.

    Raises
    ------
    TypeError
        If `arrays` is not a sequence, or an element is neither an array nor a number.
    ValueError
        If no array is given, their shapes differ, or the axis is out of bounds.
    {raises_out}

    See Also
    --------
    concatenate : Join along an existing axis.
    unstack : Take an array apart along an axis.

    Notes
    -----
    Unlike in NumPy, there is no `casting` parameter.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.stack([jnp.ones(2), jnp.zeros(2)])
    Array([[1., 1.],
           [0., 0.]], dtype=float32)
    """
    name = "jnp.stack"
    no_out(out, name)
    nodes = _arrays_of_sequence(arrays, name, dtype)
    shape = nodes[0].aval.shape
    if any(x.aval.shape != shape for x in nodes):
        shapes = ", ".join(str(x.aval.shape) for x in nodes)
        raise ValueError(
            f"{name}: All input arrays must have the same shape. Got {shapes}; broadcast them first"
        )
    at = as_axis(axis, len(shape) + 1, name)
    return wrap(_join([expand_node(x, (at,)) for x in nodes], at))


@moves_elements()
@api_boundary
@compiled_if_small("x", limit=64)
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Take an array apart along an axis.

    Parameters
    ----------
    x : array_like
        Array with at least one axis. Lists and tuples are not accepted.
    axis : int, optional
        Axis along which to take it apart. The default is 0.

    Returns
    -------
    tuple of Array
        Slices along the axis, each with the shape of `x` without the axis, and the dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is neither an array nor a number.
    ValueError
        If `x` has no axis, or the axis is out of bounds.

    See Also
    --------
    stack : The inverse.
    split : Split into parts that keep the axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.unstack(jnp.arange(2))
    (Array(0, dtype=int32), Array(1, dtype=int32))
    """
    node = as_node(x, "jnp.unstack")
    if node.aval.ndim == 0:
        raise ValueError(
            "jnp.unstack: the array must have at least one axis; got a scalar; reshape it first"
        )
    d = as_axis(axis, node.aval.ndim, "jnp.unstack")
    parts = [cut(node, d, i, i + 1) for i in range(node.aval.shape[d])]
    return tuple([wrap(o.squeeze(p, dimensions=(d,))) for p in parts])


# Arrays with more rows than this are read from memory, if they have values, instead of being
# recorded as slices.
FEW = 128


def rows_of(x: Array) -> Iterator[Array]:
    """Yield the rows of an array, recording or reading them in chunks on demand."""
    node, count = x._node, len(x)
    here = node.trace is None and node.aval.devices is None and not device.gpu_possible
    if here and count > FEW and x.size:
        yield from rows_of_numpy(np.asarray(x), node.aval.weak_type)
        return
    for i in range(0, count, FEW):
        yield from unstack(x if count <= FEW else x[i : i + FEW])


def _stack(tup: Any, function: str, shape: Any, axis: int, dtype: Any = None) -> Array:
    nodes = [shape(x) for x in _arrays_of_sequence(tup, function, dtype)]
    return concatenate([wrap(x) for x in nodes], axis)


@moves_elements()
@api_boundary
def hstack(tup: ArraySequence, dtype: DTypeLike | None = None) -> Array:
    """Join arrays horizontally: along axis 1, or axis 0 for vectors.

    Parameters
    ----------
    {tup_joined}
    {dtype_joined}

    Returns
    -------
    Array
        Joined array. Numbers count as vectors of one element.

    Raises
    ------
    {raises_joined}

    See Also
    --------
    concatenate : Join along any axis.
    vstack, dstack : Join along axis 0 and axis 2.
    hsplit : Split along axis 1.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.hstack([jnp.ones(1), jnp.zeros(1)])
    Array([1., 0.], dtype=float32)
    """
    nodes = _arrays_of_sequence(tup, "jnp.hstack", dtype)
    nodes = [reshape_plain(x, x.aval.shape or (1,)) for x in nodes]
    return concatenate([wrap(x) for x in nodes], 0 if nodes[0].aval.ndim == 1 else 1)


@moves_elements()
@api_boundary
def vstack(tup: ArraySequence, dtype: DTypeLike | None = None) -> Array:
    """Join arrays vertically: along axis 0, vectors as rows.

    Parameters
    ----------
    {tup_joined}
    {dtype_joined}

    Returns
    -------
    Array
        Joined array of at least two axes.

    Raises
    ------
    {raises_joined}

    See Also
    --------
    concatenate : Join along any axis.
    hstack, dstack : Join along axis 1 and axis 2.
    vsplit : Split along axis 0.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vstack([jnp.ones(2), jnp.zeros(2)])
    Array([[1., 1.],
           [0., 0.]], dtype=float32)
    """
    return _stack(tup, "jnp.vstack", row, 0, dtype)


@moves_elements()
@api_boundary
def dstack(tup: ArraySequence, dtype: DTypeLike | None = None) -> Array:
    """Join arrays in depth: along axis 2.

    Parameters
    ----------
    {tup_joined}
    {dtype_joined}

    Returns
    -------
    Array
        Joined array of at least three axes. Vectors of n elements count as arrays of shape (1, n,
        1), and matrices of shape (n, m) as arrays of shape (n, m, 1).

    Raises
    ------
    {raises_joined}

    See Also
    --------
    concatenate : Join along any axis.
    hstack, vstack : Join along axis 1 and axis 0.
    dsplit : Split along axis 2.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.dstack([jnp.ones(2), jnp.zeros(2)]).shape
    (1, 2, 2)
    """
    return _stack(tup, "jnp.dstack", cube, 2, dtype)


@moves_elements()
@api_boundary
def column_stack(tup: ArraySequence) -> Array:
    """Join arrays along axis 1, vectors as columns.

    Parameters
    ----------
    {tup_joined}

    Returns
    -------
    Array
        Joined array of at least two axes, with the promoted dtype.

    Raises
    ------
    {raises_joined}

    See Also
    --------
    hstack : Join along axis 1, vectors along axis 0.
    stack : Join along a new axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.column_stack([jnp.ones(2), jnp.zeros(2)])
    Array([[1., 0.],
           [1., 0.]], dtype=float32)
    """

    def column(x: Node) -> Node:
        return x if x.aval.ndim >= 2 else reshape_plain(x, (x.aval.size, 1))

    return _stack(tup, "jnp.column_stack", column, 1)


@moves_elements("arr", "values")
@api_boundary
@compiled_if_small("arr", "values")
@shown(arrays=2)
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Return a copy of an array with values appended.

    Parameters
    ----------
    arr : array_like
        Array to which to append. It is not changed.
    values : array_like
        Values to append. With an axis, their shape has to agree with that of `arr` in the other
        axes.
    axis : int, optional
        Axis along which to append. None, the default, flattens both first.

    Returns
    -------
    Array
        Joined array, with the promoted dtype.

    Raises
    ------
    TypeError
        If `arr` or `values` is neither an array nor a number, or the shapes differ in other axes.
    ValueError
        If the axis is out of bounds.

    See Also
    --------
    concatenate : Join several arrays.
    insert, delete : Insert and remove elements.

    Notes
    -----
    Each call copies the array. To collect many values, gather them in a list and join them once.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.append(jnp.array([1]), 2)
    Array([1, 2], dtype=int32)
    """
    return concatenate([arr, values], axis)


@moves_elements()
@api_boundary
def block(arrays: ArrayData) -> Array:
    """Assemble an array from nested lists of blocks.

    Parameters
    ----------
    arrays : array_like or nested list of array_like
        Blocks. The innermost lists are joined along the last axis, the next ones along the axis
        before it, and so on. All lists are nested equally deep.

    Returns
    -------
    Array
        Assembled array, with the promoted dtype.

    Raises
    ------
    TypeError
        If the shapes of blocks do not fit, or a block is neither an array nor a number.
    ValueError
        If a block is a tuple, a list is empty, or lists are nested unequally deep.

    See Also
    --------
    concatenate, stack : Join along one axis.
    hstack, vstack : Join along axis 1 and axis 0.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.block([jnp.ones(1), jnp.zeros(1)])
    Array([1., 0.], dtype=float32)
    """

    def depth(x: Any) -> int:
        if isinstance(x, tuple):
            raise ValueError(
                f"jnp.block: blocks cannot be tuples; got one of {len(x)}; put parts into a list"
            )
        depths = sorted({depth(part) for part in x}) or [0] if isinstance(x, list) else [-1]
        if len(depths) > 1:
            raise ValueError(
                f"jnp.block: all parts of a list must be nested equally deep; got depths {depths}; "
                "put lists around the others"
            )
        return 1 + depths[0]

    def join(x: Any, level: int, rank: int) -> Node:
        if not isinstance(x, list):
            node = node_of(x, function="jnp.block")
            return reshape_plain(node, (1,) * (rank - node.aval.ndim) + node.aval.shape)
        parts = [wrap(join(item, level - 1, rank)) for item in x]
        return concatenate(parts, axis=-level)._node

    def widest(x: Any) -> int:
        return max(map(widest, x), default=0) if isinstance(x, list) else np.ndim(x)

    levels = depth(arrays)
    return wrap(join(arrays, levels, max(levels, widest(arrays))))


# --- splitting -----------------------------------------------------------------------------------


def _split_array(ary: Any, at: Any, axis: int, function: str, even: bool) -> list[Array]:
    x = as_node(ary, function)
    d = as_axis(axis, x.aval.ndim, function)
    n = x.aval.shape[d]
    at = as_static(at, function)
    if isinstance(at, Sequence) or (isinstance(at, np.ndarray) and at.ndim):
        points = [as_int(i, function, "an index") for i in at]
        bounds = [0, *points, n]
        if any(a > b for a, b in itertools.pairwise(bounds)):
            raise ValueError(
                f"{function}: indices must be sorted and within 0 and {n}, the size of axis {d}; "
                f"got {points}; sort and clip them"
            )
    else:
        parts = as_int(at, function, "the number of sections")
        if parts <= 0:
            kind = ValueError if parts else ZeroDivisionError
            raise kind(f"{function}: the number of parts must be 1 or more; got {parts}; pass 1")
        each, rest = divmod(n, parts)
        if rest and even:
            raise ValueError(
                f"{function}: array split does not result in an equal division: rest is {rest}; "
                f"got {parts} parts for axis {d} of shape {x.aval.shape}; use jnp.array_split, or "
                "indices"
            )
        sizes = [each + 1] * rest + [each] * (parts - rest)
        bounds = [0, *np.cumsum(sizes).tolist()]
    pairs = itertools.pairwise(bounds)
    return [wrap(cut(x, d, a, b)) for a, b in pairs]


@moves_elements()
@api_boundary
def split(
    ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[SupportsIndex], axis: int = 0
) -> list[Array]:
    """Split an array into equal parts, or before given indices.

    Parameters
    ----------
    {ary_split}
    {sections}
    axis : int, optional
        Axis along which to split. The default is 0.

    Returns
    -------
    list of Array
        Parts, with the dtype of `ary`.

    Raises
    ------
    {raises_split}

    See Also
    --------
    array_split : Split into parts that may differ in length by one.
    hsplit, vsplit, dsplit : Split along a given axis.
    concatenate : The inverse.

    Notes
    -----
    Indices out of bounds are an error, where NumPy clips them.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.split(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split_array(ary, indices_or_sections, axis, "jnp.split", True)


@moves_elements()
@api_boundary
def array_split(
    ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[SupportsIndex], axis: int = 0
) -> list[Array]:
    """Split an array into parts of nearly equal length, or before given indices.

    Parameters
    ----------
    {ary_split}
    indices_or_sections : int or sequence of int
        Number of parts, or the indices before which to split, in rising order. Both are static.
    axis : int, optional
        Axis along which to split. The default is 0.

    Returns
    -------
    list of Array
        Parts, with the dtype of `ary`. If the axis cannot be split evenly, the first parts are
        longer by one element.

    Raises
    ------
    TypeError
        If `ary` is neither an array nor a number, or the indices are traced.
    ValueError
        If the number of parts is negative, the indices do not rise within the bounds, or the axis
        is out of bounds.
    ZeroDivisionError
        If the number of parts is 0.

    See Also
    --------
    split : Split into equal parts, or raise an error.
    concatenate : The inverse.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.array_split(jnp.arange(3), 2)
    [Array([0, 1], dtype=int32), Array([2], dtype=int32)]
    """
    return _split_array(ary, indices_or_sections, axis, "jnp.array_split", False)


@moves_elements()
@api_boundary
def vsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[SupportsIndex]) -> list[Array]:
    """Split an array vertically, along axis 0.

    Parameters
    ----------
    {ary_split}
    {sections}

    Returns
    -------
    list of Array
        Parts, with the dtype of `ary`.

    Raises
    ------
    {raises_split}

    See Also
    --------
    split : Split along any axis.
    vstack : The inverse.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vsplit(jnp.ones((2, 2)), 2)
    [Array([[1., 1.]], dtype=float32), Array([[1., 1.]], dtype=float32)]
    """
    return _split_array(ary, indices_or_sections, 0, "jnp.vsplit", True)


@moves_elements()
@api_boundary
def hsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[SupportsIndex]) -> list[Array]:
    """Split an array horizontally: along axis 1, or axis 0 for vectors.

    Parameters
    ----------
    {ary_split}
    {sections}

    Returns
    -------
    list of Array
        Parts, with the dtype of `ary`.

    Raises
    ------
    {raises_split}

    See Also
    --------
    split : Split along any axis.
    hstack : The inverse.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.hsplit(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split_array(ary, indices_or_sections, 0 if np.ndim(ary) == 1 else 1, "jnp.hsplit", True)


@moves_elements()
@api_boundary
def dsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[SupportsIndex]) -> list[Array]:
    """Split an array in depth, along axis 2.

    Parameters
    ----------
    ary : array_like
        Array with at least three axes. Lists and tuples are not accepted.
    {sections}

    Returns
    -------
    list of Array
        Parts, with the dtype of `ary`.

    Raises
    ------
    {raises_split}

    See Also
    --------
    split : Split along any axis.
    dstack : The inverse.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.dsplit(jnp.ones((1, 1, 2)), 2)[0].shape
    (1, 1, 1)
    """
    return _split_array(ary, indices_or_sections, 2, "jnp.dsplit", True)


# --- repeating -----------------------------------------------------------------------------------


@moves_elements()
@api_boundary
def tile(A: ArrayLike, reps: Shape) -> Array:
    """Repeat a whole array along each axis.

    Parameters
    ----------
    A : array_like
        Array to repeat. Lists and tuples are not accepted.
    reps : int or sequence of int
        Number of repetitions along each axis, static. If there are fewer than axes, or fewer axes
        than repetitions, ones are added in front.

    Returns
    -------
    Array
        Repeated array, with the dtype of `A`.

    Raises
    ------
    TypeError
        If `A` is neither an array nor a number, or `reps` is negative, traced or not an integer.

    See Also
    --------
    repeat : Repeat each element.
    broadcast_to : Repeat without copying.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tile(jnp.array([1, 2]), 2)
    Array([1, 2, 1, 2], dtype=int32)
    """
    x = as_node(A, "jnp.tile")
    times = as_shape(reps, "jnp.tile")
    rank = max(x.aval.ndim, len(times))
    times = (1,) * (rank - len(times)) + times
    shape = (1,) * (rank - x.aval.ndim) + x.aval.shape
    x = reshape_plain(x, shape)
    wide = tuple([n for pair in zip(times, shape, strict=True) for n in pair])
    x = broadcast_to(x, wide, tuple(range(1, 2 * rank, 2)))
    return wrap(reshape_plain(x, tuple([t * n for t, n in zip(times, shape, strict=True)])))


@moves_elements()
@api_boundary
@with_out_sharding
def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Repeat each element of an array.

    Parameters
    ----------
    {a}
    repeats : int or array_like of int
        Number of repetitions, one for all elements or one for each along the axis.
    axis : int, optional
        Axis along which to repeat. None, the default, repeats the elements of the flattened array.
    total_repeat_length : int, optional
        Static length of the axis in the result, which is required if `repeats` is traced. Surplus
        elements are dropped, and the last element fills up missing ones.
    {out_sharding}

    Returns
    -------
    Array
        Array with the shape of `a`, except for the axis, and the dtype of `a`.

    Raises
    ------
    TypeError
        If `a` or `repeats` is a list, or `repeats` is not an integer, is negative, or is traced
        without `total_repeat_length`.
    ValueError
        If the length of `repeats` is neither 1 nor that of the axis, or the axis is out of bounds.

    See Also
    --------
    tile : Repeat the whole array.
    broadcast_to : Repeat without copying.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.repeat(jnp.array([1, 2]), 2)
    Array([1, 1, 2, 2], dtype=int32)
    """
    name = "jnp.repeat"
    x = as_node(a, name)
    if axis is None:
        x, d = reshape_plain(x, (x.aval.size,)), 0
    else:
        if not x.aval.ndim and np.ndim(repeats) == 0:
            x = reshape_plain(x, (1,))  # a scalar is repeated as a vector of length 1
        d = as_axis(axis, x.aval.ndim, name)
    n = x.aval.shape[d]
    if not np.isscalar(repeats):
        as_node(repeats, name)
    if total_repeat_length is not None:
        return _repeat_to(x, repeats, d, as_size(total_repeat_length, name, "total_repeat_length"))
    counts = np.asarray(as_static(repeats, name, "shape"))
    if counts.ndim > 1 or counts.dtype.kind not in "iub":
        raise TypeError(
            f"{name}: repeats must be integers of at most one axis; got {repeats!r}; "
            "pass one integer, or one for each element"
        )
    if counts.size == 1:
        times = int(counts.reshape(()))
        if times < 0:
            raise TypeError(f"{name}: repeats cannot be negative; got {times}; pass 0 or more")
        shape = x.aval.shape
        wide = (*shape[: d + 1], times, *shape[d + 1 :])
        dims = (*range(d + 1), *range(d + 2, len(wide)))
        x = broadcast_to(x, wide, dims)
        return wrap(reshape_plain(x, (*shape[:d], n * times, *shape[d + 1 :])))
    if counts.size != n:
        raise ValueError(
            f"{name}: repeats needs 1 or {n} values for axis {d} of shape {x.aval.shape}; "
            f"got {counts.size}; pass one, or one for each element"
        )
    index = np.repeat(np.arange(n), np.maximum(counts, 0))
    return wrap(gather_axis(x, node_of(index, np.int32), d))


def _repeat_to(x: Node, repeats: Any, d: int, total: int) -> Array:
    """Repeat to a known length: short results repeat the last element, long ones are truncated."""
    counts = node_of(repeats, function="jnp.repeat")
    n = x.aval.shape[d]
    kind = dtypes.int32
    counts = broadcast_to(reshape_plain(counts, (counts.aval.size,)), (n,), (0,))
    ends = o.cumsum(to_dtype(counts, kind), axis=0, reverse=False)
    # Output position p is the element whose end is the first one greater than p.
    place = o.iota(dtype=kind, shape=(total,), dimension=0)
    index = o.searchsorted(ends, place, side="right")
    last = node_of(max(0, n - 1), kind)
    index = o.min(index, last)
    return wrap(gather_axis(x, index, d))


@moves_elements()
@api_boundary
@compiled_if_small("a")
def resize(a: ArrayLike, new_shape: Shape) -> Array:
    """Make an array of a new shape by repeating the flattened elements.

    Parameters
    ----------
    {a}
    new_shape : int or sequence of int
        Shape of the result, static.

    Returns
    -------
    Array
        Array of the new shape, with the dtype of `a`. If `a` is empty, it holds zeros.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or a size is negative, traced or not an integer.

    See Also
    --------
    reshape : Change the shape and keep all elements.
    tile : Repeat a whole array.
    pad : Extend an array at its borders.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.resize(jnp.array([1, 2]), 3)
    Array([1, 2, 1], dtype=int32)
    """
    x = as_node(a, "jnp.resize")
    shape = as_shape(as_sizes(new_shape, "jnp.resize"), "jnp.resize")
    size = int(np.prod(shape))
    if not x.aval.size or not size:
        return wrap(broadcast_to(cast(node_of(0), x.aval.dtype, x.aval.weak_type), shape))
    times = -(-size // x.aval.size)
    flat = tile(wrap(reshape_plain(x, (x.aval.size,))), times)._node
    return wrap(reshape_plain(cut(flat, 0, 0, size), shape))
