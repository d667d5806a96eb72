"""The ops sort, partition, top_k and searchsorted.

All sorts are stable, and NaN is last. `sort` with one operand has one result, otherwise a tuple.
The kernels are in `compiler/library/sorts/`, and the public functions in `accnp/numpy/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Literal

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node, items
from accnp.ir.op import ZERO, Lowering, o
from accnp.primitives.index import GatherDimensionNumbers, GatherScatterMode
from accnp.primitives.kinds import INDEX, broadcast_to, check_index_dtype, opaque, weak_as_operands
from accnp.primitives.reference import ordered_bits, quiet

if TYPE_CHECKING:
    from accnp.ir.op_types import Avals, Batched, Params, Tangents

__all__ = ["gather_permuted", "permutation_of", "sortable"]


def sortable(x: np.ndarray) -> np.ndarray:
    """Convert small floats to float32, because NumPy does not sort NaN last for them."""
    return x.astype(np.float32) if x.dtype.isbuiltin != 1 else x


def _sort_values(x: np.ndarray, axis: int) -> np.ndarray:
    """Sort values. NumPy's fastest sort is not stable, which matters only for signed zeros."""
    zeros = x[x == 0] if x.dtype.kind == "f" else x[:0]
    mixed = np.signbit(zeros).any() and not np.signbit(zeros).all()
    return np.sort(x, axis, kind="stable" if mixed else None)


@quiet
def _stable_order(x: np.ndarray, axis: int) -> np.ndarray:
    """Return the stable order of one key.

    Keys of up to 32 bits are combined with positions into 64-bit integers for NumPy's fastest sort
    (1e5 float32: 1.5 ms; NumPy's stable argsort takes 15 ms).
    """
    n: int = x.shape[axis]
    kind = x.dtype.kind
    if x.dtype.itemsize > 4 or kind not in "iuf" or n < 32 or n > np.iinfo(np.int32).max:
        return np.argsort(x, axis=axis, kind="stable")
    if kind == "f":
        bits = (x.astype(np.float32) + np.float32(0)).view(np.int32)  # -0.0 becomes 0.0
        key = ordered_bits(bits).astype(np.int64)
        nan = np.isnan(x)
        if nan.any():
            key[nan] = np.iinfo(np.int32).max
    else:
        key = x.astype(np.int64) - (1 << 31 if kind == "u" else 0)
    places = np.arange(n).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    return np.sort((key << 32) | places, axis=axis) & 0xFFFFFFFF


def _complex_keys(x: np.ndarray) -> list[np.ndarray]:
    """Return the keys of complex numbers; those with NaN are last, as in NumPy."""
    parts = [np.real(x), np.imag(x)]
    nan = [np.isnan(part) for part in parts]
    return [*nan, *parts] if any(v.any() for v in nan) else parts


def _order(keys: Sequence[np.ndarray], axis: int) -> np.ndarray:
    if len(keys) == 1 and keys[0].dtype.kind != "c":
        return _stable_order(sortable(keys[0]), axis)
    parts = [_complex_keys(x) if x.dtype.kind == "c" else [sortable(x)] for x in keys]
    return np.lexsort([part for key in parts for part in key][::-1], axis=axis)


def _take_along_axis(x: np.ndarray, order: np.ndarray, axis: int) -> np.ndarray:
    """Take elements along an axis by flat indices; takes half the time of np.take_along_axis."""
    lines = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    order = np.moveaxis(order, axis, -1)
    count = order.shape[:-1]
    first = (np.arange(prod(count)) * x.shape[axis]).reshape(*count, 1)
    return np.moveaxis(lines.reshape(-1).take(order + first, mode="clip"), -1, axis)


def _sort_infer(*xs: Aval, dimension: int, is_stable: bool, num_keys: int) -> Avals:
    shape = xs[0].shape
    if any(x.shape != shape for x in xs):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise TypeError(
            f"sort: Arguments to sort must have equal shapes, got: {shapes}; broadcast them first"
        )
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"sort: axis {dimension} is out of bounds for rank {len(shape)}; pass an axis of the "
            "operands"
        )
    if not 1 <= num_keys <= len(xs):
        raise ValueError(
            f"sort: num_keys must be from 1 to {len(xs)}; got {num_keys}; pass one of these"
        )
    out = tuple([make_aval(x.shape, x.dtype, x.weak_type) for x in xs])
    return out if len(out) != 1 else out[0]


def _sort_numpy(
    *xs: np.ndarray, dimension: int, is_stable: bool, num_keys: int
) -> np.ndarray | tuple[np.ndarray, ...]:
    if len(xs) == 1 and xs[0].dtype.isbuiltin == 1 and xs[0].dtype.kind != "c":
        return _sort_values(xs[0], dimension)
    perm = _order(xs[:num_keys], dimension)
    out = tuple([_take_along_axis(x, perm, dimension) for x in xs])
    return out if len(out) != 1 else out[0]


def permutation_of(keys: Sequence[Node], axis: int) -> Node:
    """Record the indices that sort by these keys."""
    check_index_dtype("argsort", keys[0].aval.shape[axis], INDEX)
    index = o.iota(dtype=INDEX, shape=keys[0].aval.shape, dimension=axis)
    out = o.sort(*keys, index, dimension=axis, is_stable=True, num_keys=len(keys))
    return items(out)[-1]


def gather_permuted(x: Node, index: Node, axis: int) -> Node:
    """Record the element at each position's index along an axis."""
    rank = x.aval.ndim
    others = tuple([k for k in range(rank) if k != axis])
    shape = index.aval.shape
    return o.gather(
        x,
        o.reshape(index, new_sizes=(*shape, 1), dimensions=None),
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), others, others),
        slice_sizes=(1,) * rank,
        indices_are_sorted=False,
        unique_indices=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def _sort_jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params
) -> Node | Sequence[Node | None] | None:
    axis = p["dimension"]
    perm = permutation_of(xs[: p["num_keys"]], axis)
    out = [None if t is None else gather_permuted(t, perm, axis) for t in ts]
    return out if len(out) > 1 else out[0]


def _broadcast_batch(size: int, xs: Sequence[Node], batched: Sequence[bool]) -> list[Node]:
    return [
        x if b else broadcast_to(x, (size, *x.aval.shape)) for x, b in zip(xs, batched, strict=True)
    ]


def _sort_batch(size: int, xs: Sequence[Node], batched: Sequence[bool], p: Params) -> Batched:
    out = o.sort(*_broadcast_batch(size, xs, batched), **{**p, "dimension": p["dimension"] + 1})
    if len(xs) == 1:
        return out, True
    return list(items(out)), [True] * len(xs)


opaque(
    "sort",
    lowering=Lowering("sorts.lowering.sort", gpu="cupy.calls.sort"),
    infer=_sort_infer,
    numpy=_sort_numpy,
    halves="float32",
    jvp=_sort_jvp,
    batch=_sort_batch,
    several=True,
    float0=False,
    sharding="sort",
)


# --- partition -----------------------------------------------------------------------------------


def _partition_infer(x: Aval, *, kth: int, axis: int) -> Aval:
    if not 0 <= axis < x.ndim or not 0 <= kth < x.shape[axis]:
        raise ValueError(
            f"partition: kth is out of bounds; got {kth} along axis {axis} of {x}; pass an index "
            "of that axis"
        )
    return x


def _partition_numpy(x: np.ndarray, *, kth: int, axis: int) -> np.ndarray:
    return np.partition(sortable(x), kth, axis).astype(x.dtype, copy=False)


def _partition_jvp(t: Node, y: Node, x: Node, *, kth: int, axis: int) -> Node:
    """Match the positions of equal rank in the operand and the result."""
    back = permutation_of([permutation_of([y], axis)], axis)
    return gather_permuted(t, gather_permuted(permutation_of([x], axis), back, axis), axis)


opaque(
    "partition",
    lowering=Lowering("sorts.shared_sorts.partition"),
    infer=_partition_infer,
    numpy=_partition_numpy,
    halves="float32",
    jvp=(_partition_jvp,),
    batch=lambda size, xs, batched, p: (o.partition(xs[0], **{**p, "axis": p["axis"] + 1}), True),
    sharding="along_axis",
)


# --- top_k ---------------------------------------------------------------------------------------


@weak_as_operands
def _top_infer(x: Aval, *, k: int, axis: int) -> tuple[Aval, Aval]:
    if not 0 <= axis < x.ndim:
        raise ValueError(
            f"top_k: axis {axis} is out of bounds for an array of rank {x.ndim}; pass an axis of it"
        )
    if not 0 <= k <= x.shape[axis]:
        what = "nonnegative" if k < 0 else "no larger than size along axis"
        raise ValueError(
            f"top_k: k argument to top_k must be {what}, from 0 to {x.shape[axis]}; got {k} (k); "
            "pass a number in this range"
        )
    if x.shape[axis] > np.iinfo(INDEX).max:
        raise ValueError(
            f"top_k returns int32 indices, which will overflow for array dimensions larger than "
            f"{np.iinfo(INDEX).max}; got length {x.shape[axis]}; slice the array"
        )
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return make_aval(shape, x.dtype), make_aval(shape, INDEX)


def _total_order_keys(x: np.ndarray) -> np.ndarray:
    """Return integers in the total order of floats: -NaN < -inf, -0.0 < 0.0, NaN > inf."""
    if x.dtype.kind != "f":
        return x
    return ordered_bits(np.ascontiguousarray(x).view(f"i{x.itemsize}"))


def _top_numpy(x: np.ndarray, *, k: int, axis: int) -> tuple[np.ndarray, ...]:
    # Sort the reversed axis stably in ascending order and reverse: ties keep the lower index.
    n = x.shape[axis]
    back = _stable_order(_total_order_keys(sortable(np.flip(x, axis))), axis)
    index = n - 1 - np.flip(back, axis)
    index = np.take(index, range(k), axis=axis)
    return _take_along_axis(x, index, axis), index.astype(INDEX)


def _top_jvp(ts: Tangents, y: Node, xs: Sequence[Node], p: Params) -> Sequence[Node | None]:
    if ts[0] is None:
        return [None, None]
    return [gather_permuted(ts[0], items(y)[1], p["axis"]), None]


def _top_batch(size: int, xs: Sequence[Node], batched: Sequence[bool], p: Params) -> Batched:
    out = o.top_k(xs[0], k=p["k"], axis=p["axis"] + 1)
    return list(items(out)), [True, True]


opaque(
    "top_k",
    lowering=Lowering("sorts.short_sorts.top_k", gpu="cupy.calls.top_k"),
    infer=_top_infer,
    numpy=_top_numpy,
    halves="float32",
    jvp=_top_jvp,
    batch=_top_batch,
    several=True,
    sharding="along_axis",
)


# --- searchsorted --------------------------------------------------------------------------------


def _search_infer(a: Aval, v: Aval, *, side: str) -> Aval:
    """Check vectors along the last axis of `a`; its other axes are the leading ones of `v`."""
    rank = a.ndim - 1
    if rank < 0 or a.dtype != v.dtype or a.shape[:rank] != v.shape[:rank]:
        raise TypeError(
            "searchsorted: needs a vector, or one for each row of the values, and values of its "
            f"dtype; got {a}, {v}; convert with astype, or broadcast"
        )
    check_index_dtype("searchsorted", a.shape[-1] + 1, INDEX)
    return make_aval(v.shape, INDEX)


def _search_numpy(a: np.ndarray, v: np.ndarray, *, side: Literal["left", "right"]) -> np.ndarray:
    out = np.empty(v.shape, INDEX)
    for row in np.ndindex(a.shape[:-1]):
        out[row] = np.searchsorted(sortable(a[row]), sortable(v[row]), side=side)
    return out


def _search_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], p: Params
) -> tuple[Node, bool]:
    a, v = xs
    if not batched[0] and a.aval.ndim == 1:
        return o.searchsorted(a, v, side=p["side"]), True
    a, v = (
        x if b else broadcast_to(x, (size, *x.aval.shape)) for x, b in zip(xs, batched, strict=True)
    )
    return o.searchsorted(a, v, side=p["side"]), True


opaque(
    "searchsorted",
    lowering=Lowering("sorts.searches.searchsorted", gpu="cupy.calls.searchsorted"),
    infer=_search_infer,
    numpy=_search_numpy,
    halves="float32",
    jvp=(ZERO, ZERO),
    batch=_search_batch,
)
