"""Sorting: values, indices, several keys, the largest k, distinct values.

Arrays come in; lazy Arrays go out. NaN sort last; everything is stable.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from accnp import dtypes
from accnp.api.convert import as_node, cast, numpy_node, promote, scalar_node
from accnp.api.indexing import gather_axis
from accnp.api.manipulation import reshape_plain
from accnp.api.named import shown
from accnp.api.shapes import as_axis, as_int
from accnp.api.values import node_of
from accnp.array import Array, is_traced, wrap
from accnp.engine import array_of
from accnp.errors import api_boundary
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.primitives.index import GatherScatterMode
from accnp.primitives.sort import permutation_of
from accnp.trace_fn import conversion_error

__all__ = [
    "argpartition", "argsort", "intersect1d", "isin", "lexsort", "partition", "setdiff1d",
    "setxor1d", "sort", "sort_complex", "top_k", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip


def _prepare(a: Any, axis: int | None, function: str) -> tuple[Node, int]:
    x = as_node(a, function)
    if axis is None:
        return reshape_plain(x, (x.aval.size,)), 0
    return x, as_axis(axis, x.aval.ndim, function)


@api_boundary
@shown()
def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Sort along an axis (None: flattened)."""
    _no_kind(kind, order, "jnp.sort")
    x, d = _prepare(a, axis, "jnp.sort")
    out = o.sort(x, dimension=d, is_stable=bool(stable), num_keys=1)
    return wrap(o.rev(out, dimensions=(d,)) if descending else out)


def _no_kind(kind: Any, order: Any, function: str) -> None:
    if kind is not None:
        raise TypeError(f"{function}: 'kind' is not supported; got {kind!r}; use stable= instead")
    if order is not None:
        raise TypeError(f"{function}: 'order' is not supported; got {order!r}")


def argsort_node(x: Node, d: int, descending: bool = False) -> Node:
    """The indices that sort along an axis; equal elements keep their order both ways."""
    if not descending:
        return permutation_of([x], d)
    index = o.rev(permutation_of([o.rev(x, dimensions=(d,))], d), dimensions=(d,))
    return o.sub(scalar_node(x.aval.shape[d] - 1, index.aval.dtype, False), index)


@api_boundary
@shown()
def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Array:
    """Return the indices that sort along an axis."""
    _no_kind(kind, order, "jnp.argsort")
    x, d = _prepare(a, axis, "jnp.argsort")
    wanted = dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, "jnp.argsort")
    return wrap(cast(argsort_node(x, d, descending), wanted))


@api_boundary
@shown()
def lexsort(keys: Any, axis: int = -1) -> Array:
    """Return the indices that sort by several keys, the last one first."""
    nodes = [node_of(k, function="jnp.lexsort") for k in keys]
    if not nodes:
        raise TypeError("jnp.lexsort: need sequence of keys with len > 0")
    if any(n.aval.shape != nodes[0].aval.shape for n in nodes):
        raise ValueError("jnp.lexsort: all keys need to be the same shape")
    if nodes[0].aval.ndim == 0:
        return wrap(scalar_node(0, dtypes.default_int(), False))
    d = as_axis(axis, nodes[0].aval.ndim, "jnp.lexsort")
    return wrap(cast(permutation_of(nodes[::-1], d), dtypes.default_int()))


@api_boundary
@shown()
def partition(a: Any, kth: int, axis: int = -1) -> Array:
    """Put the smallest `kth` elements first (here: sort completely)."""
    x, d = _prepare(a, axis, "jnp.partition")
    as_axis(kth, x.aval.shape[d], "jnp.partition")
    return sort(a, axis)


@api_boundary
@shown()
def argpartition(a: Any, kth: int, axis: int = -1) -> Array:
    """Return the indices that put the smallest `kth` elements first (here: sort completely)."""
    x, d = _prepare(a, axis, "jnp.argpartition")
    as_axis(kth, x.aval.shape[d], "jnp.argpartition")
    return argsort(a, axis)


@api_boundary
@shown()
def sort_complex(a: Any) -> Array:
    """Sort along the last axis, and convert to complex."""
    out = sort(a)
    if out.dtype.kind == "c":
        return out
    return wrap(cast(out._node, dtypes.default_complex()))


@api_boundary
def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Array]:
    """Return the largest k elements along an axis and their indices, largest first."""
    x, d = _prepare(operand, axis, "lax.top_k")
    out = o.top_k(x, k=as_int(k, "lax.top_k", "k", "shape"), axis=d)
    return [wrap(n) for n in items(out)]


# --- distinct values -----------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def _known(x: Any, function: str) -> np.ndarray:
    node = node_of(x, function=function)
    if is_traced(node):
        raise conversion_error("shape", node, f"{function} (its result's size depends on values)")
    return array_of(node)


def _given(value: np.ndarray, function: str) -> Array:
    kind = dtypes.default_int() if value.dtype == np.intp else value.dtype
    return wrap(numpy_node(value.astype(kind), function, copy=False))


@api_boundary
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """Return the sorted distinct values; under jit pass `size`."""
    name = "jnp.unique"
    if size is not None:
        return _unique_sized(
            ar, return_index, return_inverse, return_counts, axis, size, fill_value, equal_nan
        )
    out = np.unique(
        _known(ar, name), return_index, return_inverse, return_counts, axis, equal_nan=equal_nan
    )
    if isinstance(out, tuple):
        return tuple([_given(np.asarray(v), name) for v in out])
    return _given(out, name)


def _unique_sized(
    ar: Any, index: bool, inverse: bool, counts: bool, axis: Any, size: int, fill: Any, nan: bool
) -> Any:
    """Distinct values of a static number, by sorting and numbering the runs."""
    name = "jnp.unique"
    if axis is not None and np.ndim(ar) > 1:
        raise NotImplementedError(f"{name}: size= together with axis= is not supported")
    x = node_of(ar, function=name)
    shape, x = x.aval.shape, reshape_plain(x, (x.aval.size,))
    n, kind = x.aval.size, np.dtype(np.int32)
    perm = permutation_of([x], 0)
    ordered = gather_axis(x, perm, 0)
    if n:
        left = o.slice(ordered, start_indices=(0,), limit_indices=(n - 1,), strides=None)
        right = o.slice(ordered, start_indices=(1,), limit_indices=(n,), strides=None)
        differs = o.ne(left, right)
        if nan and x.aval.dtype.kind in "fc":
            both = o.and_(o.ne(left, left), o.ne(right, right))
            differs = o.and_(differs, o.not_(both))
        first = scalar_node(True, np.dtype(bool), False)
        starts = o.concatenate(reshape_plain(first, (1,)), differs, dimension=0)
    else:
        starts = cast(x, np.dtype(bool))
    run = o.sub(o.cumsum(cast(starts, kind), axis=0, reverse=False), scalar_node(1, kind, False))
    place = o.searchsorted(run, o.iota(dtype=kind, shape=(size,), dimension=0), side="left")
    drop = GatherScatterMode.FILL_OR_DROP
    least = gather_axis(ordered, scalar_node(0, kind, False), 0) if n else None
    filler = least if fill is None else cast(as_node(fill, name), x.aval.dtype)
    valid = o.lt(place, scalar_node(n, kind, False))
    values = gather_axis(ordered, place, 0, drop)
    if filler is not None:
        wide = o.broadcast_in_dim(filler, shape=(size,), broadcast_dimensions=())
        values = o.select_n(valid, wide, values)
    out = [values]
    if index:
        safe = o.select_n(
            valid,
            o.broadcast_in_dim(scalar_node(0, kind, False), shape=(size,), broadcast_dimensions=()),
            place,
        )
        out.append(gather_axis(perm, safe, 0))
    if inverse:
        back = permutation_of([perm], 0)
        out.append(reshape_plain(gather_axis(run, back, 0), shape))
    if counts:
        ends = o.searchsorted(run, o.iota(dtype=kind, shape=(size,), dimension=0), side="right")
        out.append(o.sub(ends, place))
    arrays = [wrap(v) for v in out]
    return tuple(arrays) if len(arrays) > 1 else arrays[0]


@api_boundary
def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Return the distinct values."""
    return unique(x, size=size, fill_value=fill_value, equal_nan=False)


@api_boundary
def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """Return the distinct values and how often they occur."""
    return UniqueCounts(
        *unique(x, return_counts=True, size=size, fill_value=fill_value, equal_nan=False)
    )


@api_boundary
def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueInverse:
    """Return the distinct values and the place of each element among them."""
    return UniqueInverse(
        *unique(x, return_inverse=True, size=size, fill_value=fill_value, equal_nan=False)
    )


@api_boundary
def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueAll:
    """Return the distinct values, first indices, places of each element, and counts."""
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
    values = [_known(wrap(v), f"jnp.{name}") for v in (x, y)]
    return getattr(np, name)(*values, *args)


@api_boundary
def union1d(ar1: Any, ar2: Any) -> Array:
    """Return the sorted values that are in either array."""
    return _given(_set_operation("union1d", ar1, ar2), "jnp.union1d")


@api_boundary
def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """Return the sorted values that are in both arrays."""
    out = _set_operation("intersect1d", ar1, ar2, assume_unique, return_indices)
    if return_indices:
        return tuple([_given(v, "jnp.intersect1d") for v in out])
    return _given(out, "jnp.intersect1d")


@api_boundary
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """Return the sorted values that are in the first array only."""
    return _given(_set_operation("setdiff1d", ar1, ar2, assume_unique), "jnp.setdiff1d")


@api_boundary
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """Return the sorted values that are in exactly one of the arrays."""
    return _given(_set_operation("setxor1d", ar1, ar2, assume_unique), "jnp.setxor1d")


@api_boundary
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Return, for each element, whether it is among the test elements."""
    x, tests = promote("jnp.isin", element, test_elements)
    flat, tests = (reshape_plain(v, (v.aval.size,)) for v in (x, tests))
    n = tests.aval.size
    if n == 0:
        found = (
            o.ne(flat, flat)
            if x.aval.dtype.kind not in "fc"
            else o.lt(
                o.iota(dtype=np.dtype(np.int32), shape=flat.aval.shape, dimension=0),
                scalar_node(0, np.dtype(np.int32), False),
            )
        )
    else:
        ordered = o.sort(tests, dimension=0, is_stable=True, num_keys=1)
        at = o.searchsorted(ordered, flat, side="left")
        found = o.eq(gather_axis(ordered, at, 0), flat)
    found = reshape_plain(found, x.aval.shape)
    return wrap(o.not_(found) if invert else found)
