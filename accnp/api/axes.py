"""Axis arguments. In: what users pass for `axis`, a rank. Out: non-negative ints, or an error that names both."""

from __future__ import annotations

import operator
from typing import Any

from accnp.array import Array, is_traced
from accnp.trace_fn import conversion_error

__all__ = ["axes_tuple", "one_axis", "static_int"]


def static_int(value: Any, name: str, kind: str = "axis") -> int:
    """Return a static integer argument; a traced one raises with advice."""
    if type(value) is int:
        return value
    if isinstance(value, Array) and is_traced(value._node):
        raise conversion_error(kind, value._node, name)
    try:
        return operator.index(value)
    except TypeError:
        got = type(value).__name__
        raise TypeError(
            f"{name}: {kind} must be an int or a tuple of ints; got {value!r} of type {got}; pass an int"
        ) from None


def one_axis(axis: Any, rank: int, name: str) -> int:
    """Return one axis as a non-negative int."""
    found = static_int(axis, name)
    if not -rank <= found < rank:
        raise ValueError(
            f"{name}: axis {found} is out of bounds for array of dimension {rank}; "
            f"pass one from {-rank} to {rank - 1}"
        )
    return found + rank if found < 0 else found


def axes_tuple(axis: Any, rank: int, name: str) -> tuple[int, ...]:
    """Return the sorted axes that `axis` (None, an int, a sequence) names."""
    if axis is None:
        return tuple(range(rank))
    if not isinstance(axis, tuple | list):
        return (one_axis(axis, rank, name),)
    found = [one_axis(a, rank, name) for a in axis]
    if len(set(found)) != len(found):
        raise ValueError(
            f"{name}: duplicate value in 'axis': {tuple(axis)}; name each axis of the array once"
        )
    return tuple(sorted(found))
