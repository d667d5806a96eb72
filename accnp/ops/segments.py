"""Segment reductions: rows with the same segment number are reduced to one row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.api.arguments.shapes import as_int
from accnp.array_type import Array, ArrayLike, ShardingLike, concrete_value, wrap
from accnp.dtypes import iinfo
from accnp.errors import UnsupportedDtypeError, api_boundary
from accnp.ir.node import Node
from accnp.numpy import reductions as red
from accnp.numpy.creation import arange
from accnp.numpy.index_updates import ADD, MAX, MIN, MULTIPLY, Update, write
from accnp.primitives.kinds import broadcast_to, dtype_kind
from accnp.primitives.kinds import full as full_node
from accnp.sharding.device_placement import with_out_sharding

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _count(ids: Node, num_segments: Any, name: str) -> int:
    if num_segments is None:
        return int(np.max(concrete_value(ids, "shape", f"{name} (without num_segments=)"))) + 1
    count = as_int(num_segments, name, "num_segments")
    if count < 0:
        raise ValueError(f"{name}: num_segments must be non-negative; got {count}; pass 0 or more")
    return count


def _segments(
    name: str,
    how: Update,
    unit: Callable[[np.dtype], Any],
    reduce: Callable[..., Array],
    accepts_bools: bool,
    data: Any,
    segment_ids: Any,
    num_segments: Any,
    bucket_size: int | None,
    hints: dict[str, Any],
) -> Array:
    name = f"jax.ops.{name}"
    rows, ids = as_node(data, name), as_node(segment_ids, name)
    if dtype_kind(ids.aval.dtype) not in "iu":
        raise UnsupportedDtypeError(
            f"{name}: segment_ids must be integers; got {ids.aval.dtype.name}; cast them"
        )
    if rows.aval.dtype.kind == "b" and not accepts_bools:
        raise TypeError(f"{name}: data must be numbers; got bool; use astype(int)")
    if not rows.aval.ndim:  # a scalar is used for every row
        rows = broadcast_to(rows, ids.aval.shape)
    if rows.aval.shape[: ids.aval.ndim] != ids.aval.shape:
        raise ValueError(
            f"{name}: segment_ids must have one number for each row; got segment_ids of shape "
            f"{ids.aval.shape} for data of shape {rows.aval.shape}; "
            "pass segment_ids of the shape of data's first axes"
        )
    count = _count(ids, num_segments, name)
    kind = rows.aval.dtype
    tail = rows.aval.shape[ids.aval.ndim :] if ids.aval.ndim > 1 else rows.aval.shape[1:]
    if bucket_size is None:
        start = full_node((count, *tail), unit(kind), kind)
        return wrap(write(start, wrap(ids), wrap(rows), how, wrap_negative_indices=False, **hints))
    size = as_int(bucket_size, name, "bucket_size")
    if size < 1:
        raise ValueError(f"{name}: bucket_size must be positive; got {size}; pass 1 or more")
    buckets = -(-ids.aval.size // size)
    start = full_node((buckets, count, *tail), unit(kind), kind)
    key = (arange(ids.aval.shape[0]) // size, wrap(ids))
    whole = write(start, key, wrap(rows), how, wrap_negative_indices=False, **hints)
    return reduce(wrap(whole), axis=0).astype(kind)


def _lowest_value(dtype: np.dtype) -> Any:
    if dtype_kind(dtype) == "b":
        return False
    return -np.inf if dtype_kind(dtype) in "fc" else iinfo(dtype).min


def _highest_value(dtype: np.dtype) -> Any:
    if dtype_kind(dtype) == "b":
        return True
    return np.inf if dtype_kind(dtype) in "fc" else iinfo(dtype).max


if TYPE_CHECKING:

    class SegmentReduction(Protocol):
        """The type of the segment reductions."""

        def __call__(
            self,
            data: ArrayLike,
            segment_ids: ArrayLike,
            num_segments: int | None = None,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            bucket_size: int | None = None,
            mode: str | None = None,
            out_sharding: ShardingLike = None,
        ) -> Array: ...


def _make(
    name: str,
    how: Update,
    unit: Callable[[np.dtype], Any],
    reduce: Callable[..., Array],
    doc: str,
    *,
    accepts_bools: bool = True,
) -> SegmentReduction:
    """Make a segment reduction from an update; `unit` returns its identity for a dtype."""

    def function(
        data: ArrayLike,
        segment_ids: ArrayLike,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: str | None = None,
        out_sharding: ShardingLike = None,
    ) -> Array:
        hints = {
            "indices_are_sorted": indices_are_sorted,
            "unique_indices": unique_indices,
            "mode": mode,
        }
        return _segments(
            name,
            how,
            unit,
            reduce,
            accepts_bools,
            data,
            segment_ids,
            num_segments,
            bucket_size,
            hints,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return api_boundary(with_out_sharding(function))


segment_sum = _make(
    "segment_sum",
    ADD,
    lambda _: 0,
    red.sum,
    """Sum the rows of each segment.

    Parameters
    ----------
    {data_segments}

    Returns
    -------
    Array
        Sums, of the dtype of `data`; empty segments give 0.
        The shape is (num_segments, ...).

    Raises
    ------
    {raises_segments}

    See Also
    --------
    ops.segment_prod : Product of the rows.
    numpy.bincount : Count or sum scalars.

    Examples
    --------
    >>> import accnp as jax, accnp.numpy as jnp
    >>> jax.ops.segment_sum(jnp.array([1.0, 2.0, 3.0]), jnp.array([0, 1, 0]), num_segments=3)
    Array([4., 2., 0.], dtype=float32)
    """,
    accepts_bools=False,
)
segment_prod = _make(
    "segment_prod",
    MULTIPLY,
    lambda _: 1,
    red.prod,
    """Multiply the rows of each segment.

    Parameters
    ----------
    {data_segments}

    Returns
    -------
    Array
        Products, of the dtype of `data`; empty segments give 1.
        The shape is (num_segments, ...).

    Raises
    ------
    {raises_segments}

    See Also
    --------
    ops.segment_sum : Sum of the rows.

    Examples
    --------
    >>> import accnp as jax, accnp.numpy as jnp
    >>> jax.ops.segment_prod(jnp.array([2, 3, 4]), jnp.array([0, 1, 0]), num_segments=3)
    Array([8, 3, 1], dtype=int32)
    """,
    accepts_bools=False,
)
segment_max = _make(
    "segment_max",
    MAX,
    _lowest_value,
    red.max,
    """Take the maximum of the rows of each segment.

    Parameters
    ----------
    {data_segments}

    Returns
    -------
    Array
        Maxima, of the dtype of `data`; empty segments give its lowest value.
        The shape is (num_segments, ...).

    Raises
    ------
    {raises_segments}

    See Also
    --------
    ops.segment_min : Minimum of the rows.

    Examples
    --------
    >>> import accnp as jax, accnp.numpy as jnp
    >>> jax.ops.segment_max(jnp.array([2.0, 3.0, 4.0]), jnp.array([0, 1, 0]), num_segments=3)
    Array([  4.,   3., -inf], dtype=float32)
    """,
)
segment_min = _make(
    "segment_min",
    MIN,
    _highest_value,
    red.min,
    """Take the minimum of the rows of each segment.

    Parameters
    ----------
    {data_segments}

    Returns
    -------
    Array
        Minima, of the dtype of `data`; empty segments give its highest value.
        The shape is (num_segments, ...).

    Raises
    ------
    {raises_segments}

    See Also
    --------
    ops.segment_max : Maximum of the rows.

    Examples
    --------
    >>> import accnp as jax, accnp.numpy as jnp
    >>> jax.ops.segment_min(jnp.array([2, 3, 4]), jnp.array([0, 1, 0]), num_segments=2)
    Array([2, 3], dtype=int32)
    """,
)
