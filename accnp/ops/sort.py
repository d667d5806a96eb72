"""Order: sort of one or several operands, the largest k, places in a sorted vector.

Everything is stable; NaN come last. One operand gives one result, several give several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node, items
from accnp.ir.op import ZERO, o
from accnp.ops.index import GatherDimensionNumbers, GatherScatterMode
from accnp.ops.kinds import broadcast_to, opaque

__all__ = ["gather_permuted", "permutation_of"]

INDEX = np.dtype(np.int32)


def _sortable(x: Any) -> Any:
    """Small floats as float32: NumPy has no NaN-last order for them."""
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def _order(keys: Sequence[Any], axis: int) -> Any:
    if len(keys) == 1:
        return np.argsort(_sortable(keys[0]), axis=axis, kind="stable")
    return np.lexsort([_sortable(k) for k in reversed(keys)], axis=axis)


def _sort_infer(*xs: Aval, dimension: int, is_stable: bool, num_keys: int) -> Any:
    shape = xs[0].shape
    if any(x.shape != shape for x in xs):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise TypeError(f"sort: operands must have one shape; got {shapes}")
    if not 0 <= dimension < len(shape):
        raise ValueError(f"sort: axis {dimension} is out of bounds for rank {len(shape)}")
    if not 1 <= num_keys <= len(xs):
        raise ValueError(f"sort: num_keys must be from 1 to {len(xs)}; got {num_keys}")
    out = tuple([make_aval(x.shape, x.dtype, x.weak_type) for x in xs])
    return out if len(out) != 1 else out[0]


def _sort_numpy(*xs: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    if len(xs) == 1 and xs[0].dtype.kind != "V":
        return np.sort(xs[0], axis=dimension, kind="stable")
    perm = _order(xs[:num_keys], dimension)
    out = tuple([np.take_along_axis(x, perm, dimension) for x in xs])
    return out if len(out) != 1 else out[0]


def permutation_of(keys: Sequence[Node], axis: int) -> Node:
    """Record the indices that sort by these keys."""
    index = o.iota(dtype=INDEX, shape=keys[0].aval.shape, dimension=axis)
    out = o.sort(*keys, index, dimension=axis, is_stable=True, num_keys=len(keys))
    return items(out)[-1]


def gather_permuted(x: Node, index: Node, axis: int) -> Node:
    """Take, for each position, the element at its index along an axis."""
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


def _sort_jvp(ts: Sequence[Any], y: Node, xs: Sequence[Node], p: dict[str, Any]) -> Any:
    axis = p["dimension"]
    perm = permutation_of(xs[: p["num_keys"]], axis)
    out = [None if t is None else gather_permuted(t, perm, axis) for t in ts]
    return out if len(out) > 1 else out[0]


def _whole(size: int, xs: Any, batched: Any) -> list[Node]:
    return [
        x if b else broadcast_to(x, (size, *x.aval.shape)) for x, b in zip(xs, batched, strict=True)
    ]


def _sort_batch(size: int, xs: Any, batched: Any, p: dict[str, Any]) -> Any:
    out = o.sort(*_whole(size, xs, batched), **{**p, "dimension": p["dimension"] + 1})
    if len(xs) == 1:
        return out, True
    return list(items(out)), [True] * len(xs)


opaque("sort", infer=_sort_infer, numpy=_sort_numpy, jvp=_sort_jvp, batch=_sort_batch)


# --- the largest k -------------------------------------------------------------------------------


def _top_infer(x: Aval, *, k: int, axis: int) -> tuple[Aval, Aval]:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"top_k: axis {axis} is out of bounds for an array of rank {x.ndim}")
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"top_k: k must be from 0 to {x.shape[axis]}; got {k}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return make_aval(shape, x.dtype, x.weak_type), make_aval(shape, INDEX)


def _top_numpy(x: Any, *, k: int, axis: int) -> Any:
    # A stable ascending order of the reversed axis, read backwards: ties keep the lower index.
    n = x.shape[axis]
    back = np.argsort(_sortable(np.flip(x, axis)), axis=axis, kind="stable")
    index = n - 1 - np.flip(back, axis)
    index = np.take(index, range(k), axis=axis)
    return np.take_along_axis(x, index, axis), index.astype(INDEX)


def _top_jvp(ts: Sequence[Any], y: Node, xs: Sequence[Node], p: dict[str, Any]) -> Any:
    if ts[0] is None:
        return [None, None]
    return [gather_permuted(ts[0], items(y)[1], p["axis"]), None]


def _top_batch(size: int, xs: Any, batched: Any, p: dict[str, Any]) -> Any:
    out = o.top_k(xs[0], k=p["k"], axis=p["axis"] + 1)
    return list(items(out)), [True, True]


opaque("top_k", infer=_top_infer, numpy=_top_numpy, jvp=_top_jvp, batch=_top_batch)


# --- places in a sorted vector -------------------------------------------------------------------


def _search_infer(a: Aval, v: Aval, *, side: str) -> Aval:
    if a.ndim != 1 or a.dtype != v.dtype:
        raise TypeError(f"searchsorted: needs a vector and values of its dtype; got {a}, {v}")
    return make_aval(v.shape, INDEX)


def _search_numpy(a: Any, v: Any, *, side: Any) -> Any:
    return np.asarray(np.searchsorted(_sortable(a), _sortable(v), side=side)).astype(INDEX)


def _search_batch(size: int, xs: Any, batched: Any, p: dict[str, Any]) -> Any:
    a, v = xs
    if not batched[0]:
        return o.searchsorted(a, v, side=p["side"]), True
    # A vector for each example: count the elements before each value.
    v = v if batched[1] else broadcast_to(v, (size, *v.aval.shape))
    n, rank = a.aval.shape[1], v.aval.ndim
    shape = (*v.aval.shape, n)
    wide_v = broadcast_to(v, shape, tuple(range(rank)))
    wide_a = broadcast_to(a, shape, (0, rank))
    before = (o.lt if p["side"] == "left" else o.le)(wide_a, wide_v)
    count = o.convert_element_type(before, new_dtype=INDEX, weak_type=False)
    return o.reduce_sum(count, axes=(rank,)), True


opaque(
    "searchsorted",
    infer=_search_infer,
    numpy=_search_numpy,
    jvp=(ZERO, ZERO),
    batch=_search_batch,
)
