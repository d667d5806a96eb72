"""Distinct values and sets.

With `size`, results have a static length and the functions can be traced: surplus values are
dropped and missing ones are filled in. Without it, the length depends on concrete values.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, numpy_node, promote, scalar_node
from accnp.api.arguments.shapes import as_axis, as_int, as_size, as_static
from accnp.api.arguments.values import node_of, number_node
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, concrete_value, wrap
from accnp.engine import array_of
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.indexing import gather_axis
from accnp.numpy.manipulation import cut, reshape_plain, transpose_node
from accnp.numpy.rearranging import roll
from accnp.numpy.runs import (
    Runs,
    count_true,
    fillers,
    merge_complex_nans,
    positions_below,
    run_starts,
    take_rows,
)
from accnp.numpy.taking import nonzero_nodes
from accnp.primitives.elementwise import like
from accnp.primitives.index import GatherScatterMode
from accnp.primitives.kinds import broadcast_to
from accnp.primitives.sort import permutation_of, sortable
from accnp.sharding.device_placement import beside

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip

_INT = np.dtype(np.int32)
_BOOL = np.dtype(bool)
_DROP = GatherScatterMode.FILL_OR_DROP


class UniqueAll(NamedTuple):
    """Result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def _require_concrete(x: Any, function: str) -> np.ndarray:
    node = node_of(x, function=function)
    return concrete_value(node, "shape", f"{function} (the size of its result depends on values)")


def _make_result(value: np.ndarray, function: str, weak: bool, *of: Node) -> Array:
    kind = dtypes.default_int() if value.dtype == np.intp else value.dtype
    weak = weak and kind.kind != "c"  # as in JAX
    node = cast(numpy_node(value.astype(kind), function, copy=False), kind, weak)
    return wrap(beside(function, node, *of))


def _neighbors_differ(left: Node, right: Node, nan: bool) -> Node:
    """Return where sorted neighbors differ; with `nan`, all nan count as one value."""
    differs = o.ne(left, right)
    if nan and left.aval.dtype.kind in "fcV":
        differs = o.and_(differs, o.not_(o.and_(o.ne(left, left), o.ne(right, right))))
    return differs


@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[True],
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    *,
    return_inverse: Literal[True],
    return_counts: bool = False,
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    *,
    return_counts: Literal[True],
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any: ...
@api_boundary
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """Find the distinct values of an array, in rising order.

    Parameters
    ----------
    ar : array_like
        Array whose values to find; it is flattened unless there is an axis.
    return_index : bool, optional
        If True, return the index of the first occurrence of each value as well.
    return_inverse : bool, optional
        If True, return the position of the value of each element as well.
    return_counts : bool, optional
        If True, return how often each value occurs as well.
    axis : int, optional
        Axis whose slices to compare. None, the default, compares elements.
    equal_nan : bool, optional
        If True, the default, all nan count as one value.
    {size_values}
    {fill_values}
    sorted : bool, optional
        Has no effect: the values are always sorted.

    Returns
    -------
    Array or tuple of Array
        Distinct values, with the dtype of `ar`, and the indices, inverse and counts asked for, of
        dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    {raises_traced_size}
    ValueError
        If the axis is out of bounds, or the array is empty and `size` is given without
        `fill_value`.

    See Also
    --------
    unique_values, unique_counts, unique_inverse, unique_all : Functions of the array API standard.
    isin, intersect1d, union1d, setdiff1d : Operations on sets.

    Notes
    -----
    {note_sizes}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    name = "jnp.unique"
    whole = as_node(ar, name)
    more = return_index, return_inverse, return_counts
    if size is not None:
        count = as_size(size, name)
        return _unique_sized(name, wrap(whole), more, axis, count, fill_value, equal_nan)
    known = _require_concrete(wrap(merge_complex_nans(whole)), name)
    if not any(more) and axis is None and equal_nan and known.dtype.kind in "biufV" and known.size:
        flat = reshape_plain(whole, (whole.aval.size,))
        ordered = array_of(o.sort(flat, dimension=0, is_stable=True, num_keys=1))
        return _make_result(_distinct(ordered), name, whole.aval.weak_type, whole)
    axis = None if axis is None else as_axis(axis, known.ndim, name)
    out: Any = np.unique(sortable(known), *more, axis, equal_nan=equal_nan)  # type: ignore[reportCallIssue, reportArgumentType]
    if isinstance(out, tuple):
        values, *places = out
        index_arrays = [_make_result(np.asarray(v), name, False, whole) for v in places]
        weak = whole.aval.weak_type
        return _make_result(values.astype(known.dtype), name, weak, whole), *index_arrays
    return _make_result(out.astype(known.dtype), name, whole.aval.weak_type, whole)


def _distinct(ordered: np.ndarray) -> np.ndarray:
    """Return the first of each run of sorted values; nan come last and count as one value."""
    wide = sortable(ordered)
    if wide.dtype.kind == "f" and np.isnan(wide[-1]):
        wide = wide[: np.argmax(np.isnan(wide)) + 1]
    keep = np.empty(wide.size, bool)
    keep[0] = True
    np.not_equal(wide[1:], wide[:-1], out=keep[1:])
    return ordered[: wide.size][keep]


def _unique_sized(
    name: str, ar: Any, more: tuple[bool, ...], axis: Any, size: int, fill: Any, nan: bool
) -> Any:
    """Return a static number of distinct values, by sorting and numbering the runs."""
    x = merge_complex_nans(node_of(ar, function=name))
    shape = x.aval.shape
    d = 0 if axis is None else as_axis(axis, len(shape), name)
    x = reshape_plain(x, (x.aval.size,)) if axis is None else x
    rank = x.aval.ndim
    x = transpose_node(x, (d, *[k for k in range(rank) if k != d]))
    n = x.aval.shape[0]
    if not x.aval.size:
        if size and fill is None and not n:
            raise ValueError(
                f"{name}: for zero-sized input with nonzero size argument, fill_value must be "
                f"specified; got shape {shape}; pass fill_value="
            )
        return _unique_of_empty(name, x, more, size, fill, shape if axis is None else (n,), d)
    columns = reshape_plain(x, (n, x.aval.size // n))
    m = columns.aval.shape[1]
    keys = [reshape_plain(cut(columns, 1, k, k + 1), (n,)) for k in range(m)]
    perm = permutation_of(keys, 0)
    ordered = take_rows(x, perm)
    differs = scalar_node(True, _BOOL, False)
    if n > 1:
        flat = reshape_plain(ordered, (n, m))
        differs = _neighbors_differ(cut(flat, 0, 1, n), cut(flat, 0, 0, n - 1), nan)
        differs = o.reduce_or(differs, axes=(1,))
    mask = run_starts(differs, n)
    place = nonzero_nodes(wrap(mask), size, None, name)[0]
    values = take_rows(ordered, place)
    if fill is not None:
        filler = broadcast_to(cast(as_node(fill, name), x.aval.dtype), values.aval.shape)
        valid = broadcast_to(positions_below(size, count_true(mask)), values.aval.shape, (0,))
        values = o.select_n(valid, filler, values)
    out = [transpose_node(values, (*range(1, d + 1), 0, *range(d + 1, rank)))]
    if more[0]:
        out.append(take_rows(perm, place))
    if more[1]:
        run = o.cumsum(cast(mask, _INT), axis=0, reverse=False)
        inverse = take_rows(o.sub(run, like(run, 1)), permutation_of([perm], 0))
        out.append(reshape_plain(inverse, shape if axis is None else (n,)))
    if more[2]:
        ends = nonzero_nodes(wrap(mask), size + 1, n, name)[0]
        out.append(o.sub(cut(ends, 0, 1, size + 1), cut(ends, 0, 0, size)))
    arrays = [wrap(out[0]), *[wrap(cast(v, dtypes.default_int())) for v in out[1:]]]
    return tuple(arrays) if len(arrays) > 1 else arrays[0]


def _unique_of_empty(
    name: str, x: Node, more: tuple[bool, ...], size: int, fill: Any, places: Any, d: int
) -> Any:
    """Handle slices without elements, which are all equal, with padding if there are values."""
    some = min(n := x.aval.shape[0], 1)
    shape = (some if fill is None and n else size, *x.aval.shape[1:])
    filler = cast(as_node(0 if fill is None else fill, name), x.aval.dtype)
    back = (*range(1, d + 1), 0, *range(d + 1, len(shape)))
    values = transpose_node(broadcast_to(filler, shape), back)
    numbers = [scalar_node(k, dtypes.default_int(), False) for k in (0, 0, n)]
    rest = map(broadcast_to, numbers, ((some,), places, (some,)))
    out = [values, *[part for part, is_requested in zip(rest, more, strict=True) if is_requested]]
    return tuple(map(wrap, out)) if len(out) > 1 else wrap(values)


@api_boundary
def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Find the distinct values of an array, as the array API standard defines it.

    Parameters
    ----------
    x : array_like
        Array of any shape, which is flattened.
    {size_values}
    {fill_values}

    Returns
    -------
    Array
        Vector of the distinct values in rising order, with the dtype of `x`.

    Raises
    ------
    {raises_traced_size}

    See Also
    --------
    unique : The same with more options.
    unique_counts, unique_inverse, unique_all : The same with more results.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.unique_values(jnp.array([5, 4, 5]))
    Array([4, 5], dtype=int32)
    """
    return unique(x, size=size, fill_value=fill_value, equal_nan=False)


@api_boundary
def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCounts:
    """Find the distinct values of an array and how often each occurs.

    Parameters
    ----------
    x : array_like
        Array of any shape, which is flattened.
    {size_values}
    {fill_values}

    Returns
    -------
    values, counts : Array
        Named tuple of the distinct values in rising order, with the dtype of `x`, and their counts,
        of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    {raises_traced_size}

    See Also
    --------
    unique : The same with more options.
    bincount : Counts of small integers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.unique_counts(jnp.array([5, 4, 5])).counts
    Array([1, 2], dtype=int32)
    """
    return UniqueCounts(
        *unique(x, return_counts=True, size=size, fill_value=fill_value, equal_nan=False)
    )


@api_boundary
def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverse:
    """Find the distinct values of an array and the position of each element among them.

    Parameters
    ----------
    x : array_like
        Array of any shape, which is flattened.
    {size_values}
    {fill_values}

    Returns
    -------
    values, inverse_indices : Array
        Named tuple of the distinct values in rising order, with the dtype of `x`, and their
        positions, of dtype int32 (int64 with `jax_enable_x64`) and the shape of `x`.

    Raises
    ------
    {raises_traced_size}

    See Also
    --------
    unique : The same with more options.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.unique_inverse(jnp.array([5, 4, 5])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return UniqueInverse(
        *unique(x, return_inverse=True, size=size, fill_value=fill_value, equal_nan=False)
    )


@api_boundary
def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAll:
    """Find the distinct values of an array, their first indices, positions and counts.

    Parameters
    ----------
    x : array_like
        Array of any shape, which is flattened.
    {size_values}
    {fill_values}

    Returns
    -------
    values, indices, inverse_indices, counts : Array
        Named tuple of the distinct values in rising order, with the dtype of `x`, the index of the
        first occurrence of each, the position of each element among them, and their counts, of
        dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    {raises_traced_size}

    See Also
    --------
    unique : The same with more options.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.unique_all(jnp.array([5, 4, 5])).counts
    Array([1, 2], dtype=int32)
    """
    out = unique(
        x,
        return_index=True,
        return_inverse=True,
        return_counts=True,
        size=size,
        fill_value=fill_value,
        equal_nan=False,
    )
    return UniqueAll(*out)


def _set_operation(name: str, a: Any, b: Any, *args: Any) -> Any:
    x, y = promote(f"jnp.{name}", a, b)
    function = f"jnp.{name}"
    values = [sortable(_require_concrete(wrap(merge_complex_nans(v)), function)) for v in (x, y)]
    out = getattr(np, name)(*values, *args)
    if isinstance(out, tuple):
        places = [_make_result(v, function, False, x, y) for v in out[1:]]
        return _make_result(out[0].astype(x.aval.dtype), function, False, x, y), *places
    weak = x.aval.weak_type and y.aval.weak_type
    return _make_result(out.astype(x.aval.dtype), function, weak, x, y)


@api_boundary
def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Find the values that are in at least one of two arrays.

    Parameters
    ----------
    {ar12}
    {size_values}
    {fill_values}

    Returns
    -------
    Array
        Vector of distinct values in rising order, with the promoted dtype.

    Raises
    ------
    {raises_ar12}

    See Also
    --------
    intersect1d : Values in both arrays.
    setdiff1d, setxor1d : Values in one of them only.
    unique : Distinct values of one array.

    Notes
    -----
    {note_sizes}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([2, 3]))
    Array([1, 2, 3], dtype=int32)
    """
    name = "jnp.union1d"
    if size is None:
        return _set_operation("union1d", ar1, ar2)
    x, y = (reshape_plain(v, (v.aval.size,)) for v in promote(name, ar1, ar2))
    return unique(wrap(o.concatenate(x, y, dimension=0)), size=size, fill_value=fill_value)


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: Literal[False] = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    return_indices: Literal[True],
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> tuple[Array, Array, Array]: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any: ...
@api_boundary
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """Find the values that are in both of two arrays.

    Parameters
    ----------
    {ar12}
    {assume_unique}
    return_indices : bool, optional
        If True, return the indices of the first occurrences in both arrays as well. The default is
        False.
    {size_values}
    {fill_values}

    Returns
    -------
    Array or tuple of Array
        Vector of distinct values in rising order, with the promoted dtype, and the indices asked
        for. Indices of missing values are the number of elements of the array.

    Raises
    ------
    {raises_ar12}

    See Also
    --------
    union1d : Values in at least one array.
    isin : Test for each element.

    Notes
    -----
    {note_sizes}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3, 5]))
    Array([2, 3], dtype=int32)
    """
    name = "jnp.intersect1d"
    if size is None:
        return _set_operation("intersect1d", ar1, ar2, assume_unique, return_indices)
    count, runs = as_int(as_static(size, name), name, "size", "shape"), Runs(name, ar1, ar2)
    if runs.empty:
        values = wrap(fillers(runs, count, fill_value))
        none = wrap(broadcast_to(scalar_node(0, dtypes.default_int(), False), (count,)))
        return (values, none, none) if return_indices else values
    if assume_unique:  # a repeated value counts as in both, as without `size`
        values, first, valid = runs.picked(runs.equals_next(), None, count, fill_value)
        second = o.add(first, like(first, 1))
    else:
        some = o.gt(runs.of_second, like(runs.of_second, 0))
        values, which, valid = runs.chosen(
            o.and_(some, o.lt(runs.of_second, runs.length)), count, fill_value
        )
        first = take_rows(runs.start, which)
        second = o.sub(take_rows(runs.end, which), take_rows(runs.of_second, which))
    if not return_indices:
        return wrap(values)
    places = [wrap(values)]
    for at, start, missing in ((first, 0, runs.sizes[0]), (second, runs.sizes[0], runs.sizes[1])):
        at = gather_axis(runs.perm, at, 0, _DROP)
        at = o.select_n(
            valid, broadcast_to(like(at, missing), (count,)), o.sub(at, like(at, start))
        )
        places.append(wrap(cast(at, dtypes.default_int())))
    return tuple(places)


@api_boundary
def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Find the values of the first array that are not in the second.

    Parameters
    ----------
    {ar12}
    {assume_unique}
    {size_values}
    fill_value : array_like, optional
        Value that stands for missing ones if there are fewer than `size`. The default is 0.

    Returns
    -------
    Array
        Vector of distinct values in rising order, with the dtype of `ar1`.

    Raises
    ------
    {raises_ar12}

    See Also
    --------
    setxor1d : Values in exactly one array.
    isin : Test for each element.

    Notes
    -----
    {note_sizes}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([2]))
    Array([1, 3], dtype=int32)
    """
    name = "jnp.setdiff1d"
    if size is None:
        as_node(0 if fill_value is None else fill_value, name)
        difference = _set_operation("setdiff1d", ar1, ar2, assume_unique)
        first = as_node(ar1, name).aval
        weak = first.weak_type and first.dtype.kind != "c"
        return wrap(cast(difference._node, first.dtype, weak))
    count, x = as_int(size, name, "size", "shape"), as_node(ar1, name)
    x = reshape_plain(x, (x.aval.size,))
    kind, weak = x.aval.dtype, x.aval.weak_type
    filler = cast(number_node(0 if fill_value is None else fill_value, kind, name), kind, weak)
    n = x.aval.size
    if not n:
        return wrap(broadcast_to(filler, (count,)))
    true_size = scalar_node(n, _INT, False)
    if not assume_unique:
        x = unique(wrap(x), size=n)._node
        # The results are padded with the smallest value, so count how often it is repeated.
        first = broadcast_to(reshape_plain(cut(x, 0, 0, 1), ()), (n,))
        true_size = o.sub(scalar_node(n + 1, _INT, False), count_true(o.eq(x, first)))
    mask = o.and_(isin(wrap(x), ar2, invert=True)._node, positions_below(n, true_size))
    values = take_rows(x, nonzero_nodes(wrap(mask), count, 0, name)[0])
    return wrap(
        o.select_n(positions_below(count, count_true(mask)), broadcast_to(filler, (count,)), values)
    )


@api_boundary
def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Find the values that are in exactly one of two arrays.

    Parameters
    ----------
    {ar12}
    {assume_unique}
    {size_values}
    {fill_values}

    Returns
    -------
    Array
        Vector of distinct values in rising order, with the promoted dtype.

    Raises
    ------
    {raises_ar12}

    See Also
    --------
    setdiff1d : Values of the first array only.
    union1d : Values in at least one array.

    Notes
    -----
    {note_sizes}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3]))
    Array([1, 3], dtype=int32)
    """
    name = "jnp.setxor1d"
    if size is None:
        return _set_operation("setxor1d", ar1, ar2, assume_unique)
    count, runs = as_int(as_static(size, name), name, "size", "shape"), Runs(name, ar1, ar2)
    if runs.empty:
        return wrap(fillers(runs, count, fill_value))
    if assume_unique:  # a repeated value counts as in both, as without `size`
        again = runs.equals_next()
        before = roll(wrap(again), 1)._node
        return wrap(runs.picked(o.not_(o.or_(again, before)), None, count, fill_value)[0])
    none = o.eq(runs.of_second, like(runs.of_second, 0))
    alone = o.or_(none, o.eq(runs.of_second, runs.length))
    return wrap(runs.chosen(alone, count, fill_value)[0])


_METHODS = ("compare_all", "binary_search", "sort", "auto")


@api_boundary
@compiled_if_small("element", "test_elements")
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Test for each element whether it is among given values.

    Parameters
    ----------
    element : array_like
        Elements to test, of any shape.
    test_elements : array_like
        Values to look for, of any shape.
    {assume_unique}
    invert : bool, optional
        If True, the result is negated. The default is False.
    method : {'auto', 'compare_all', 'binary_search', 'sort'}, optional
        Algorithm in JAX. It has no effect.

    Returns
    -------
    Array
        Bools with the shape of `element`.

    Raises
    ------
    TypeError
        If an operand is neither an array nor a number.
    ValueError
        If the method is unknown.

    See Also
    --------
    intersect1d : Values in both arrays.
    searchsorted : Positions in a sorted vector.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 3]))
    Array([False,  True,  True], dtype=bool)
    """
    x, tests = promote("jnp.isin", element, test_elements)
    flat, tests = (reshape_plain(v, (v.aval.size,)) for v in (x, tests))
    if tests.aval.size and x.aval.size:
        if method not in _METHODS:
            raise ValueError(f"jnp.isin: {method=} is not implemented; options are {_METHODS}")
        ordered = o.sort(tests, dimension=0, is_stable=True, num_keys=1)
        at = o.searchsorted(ordered, flat, side="left")
        last = like(at, tests.aval.size - 1)
        is_member = cast(o.eq(take_rows(ordered, o.min(at, last)), flat), _BOOL)
    else:
        is_member = broadcast_to(scalar_node(False, _BOOL, False), flat.aval.shape)
    is_member = reshape_plain(is_member, x.aval.shape)
    return wrap(o.not_(is_member) if invert else is_member)
