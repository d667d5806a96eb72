"""Joining clusters: kernels over one index space become one with several outputs.

In: the clusters of a program. Out: the same; those that became part of another say so (`merged`).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from accnp.passes.clusters import Cluster
from accnp.passes.reasons import why_two

__all__ = ["merge", "merge_siblings"]


def merge(homes: set[Cluster]) -> str:
    """Join clusters of one index space that no path connects: one kernel with several outputs.
    Returns why the last one could not, or ""."""
    order = sorted(homes, key=attrgetter("number"))
    first, refusal = order[0], ""
    for other in order[1:]:
        refusal = why_two(first, other)
        if not refusal:
            if other.form == "row" and first.form == "map":
                first.form, first.axes = other.form, other.axes
            first.swallow(other)
    return refusal


def merge_siblings(clusters: Sequence[Cluster]) -> None:
    """Join kernels over one index space that read the same array."""
    by_shape: dict[Any, list[Cluster]] = {}
    for c in clusters:
        if c.merged is None and c.form in ("map", "row") and len(c.shape):
            by_shape.setdefault(c.shape, []).append(c)
    for group in by_shape.values():
        for i, a in enumerate(group):  # neighbours only: all pairs would take too long
            for b in group[i + 1 : i + 32]:
                if a.merged is None and b.merged is None and a.loads & b.loads:
                    merge({a, b})
