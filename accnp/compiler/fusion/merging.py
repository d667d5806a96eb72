"""Merging of clusters: kernels over the same index space become one kernel with several outputs.

Input: the clusters of a program, from `fuse.py`. Output: the same clusters. Those that were merged
into another one refer to it (`merged`).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from accnp.compiler.fusion.clusters import Cluster, reaches
from accnp.compiler.fusion.reasons import MAX_REDUCTIONS, MAX_STORES, why_not_merged
from accnp.compiler.fusion.spaces import axes_longer_than_one, strip_views

if TYPE_CHECKING:
    from collections.abc import Hashable


__all__ = ["merge", "merge_siblings"]

# The maximum number of operations per element with which column kernels share a pass. A pass adds
# several rows to the sums at once only if a row takes few statements
# (`compiler/passes/join_rows.py`).
MAX_ELEMENTWISE = 2


def merge(homes: set[Cluster]) -> str:
    """Merge independent clusters with the same index space into one kernel with several outputs.

    Returns why the last cluster that was not merged could not be, or "".
    """
    order = sorted(homes, key=attrgetter("number"))
    first, refusal = order[0], ""
    for other in order[1:]:
        refusal = why_not_merged(first, other)
        if not refusal:
            if other.form == "row" and first.form == "map":
                first.form, first.axes = other.form, other.axes
            first.absorb_cluster(other)
    return refusal


def merge_siblings(clusters: Sequence[Cluster]) -> None:
    """Merge kernels with the same index space that read the same array."""
    by_shape: dict[Hashable, list[Cluster]] = {}
    for c in clusters:
        if c.merged is None and c.form in ("map", "row") and len(c.shape):
            by_shape.setdefault(c.shape, []).append(c)
        elif c.merged is None and c.form == "column" and c.axes is not None and not c.cuts:
            key = c.shape, frozenset(axes_longer_than_one(c.shape, c.axes))
            by_shape.setdefault(key, []).append(c)
    for group in by_shape.values():
        for i, a in enumerate(group):  # only clusters that are close, since all pairs take too long
            for b in group[i + 1 : i + 32]:
                if a.merged is None and b.merged is None and a.loads & b.loads:
                    if a.form != "column":
                        merge({a, b})
                    elif share_pass(a, b):
                        a.absorb_cluster(b)


def share_pass(a: Cluster, b: Cluster) -> bool:
    """Return whether two kernels that sum over the same axes should read their array in one pass,
    such as a sum of float32 values and the float64 sum for a variance.

    For minimum and maximum, one pass is slower (1.3 times the time of two passes, for 1000 x 64
    float32 values on two cores).
    """
    if any(v.op.combine != "sum" for c in (a, b) for v in c.members if v.op.kind == "reduce"):
        return False
    loaded, _ = _find_element_loads([a])
    both, more = _find_element_loads([a, b])
    if both != loaded or both != _find_element_loads([b])[0] or len(more) > MAX_ELEMENTWISE:
        return False
    if (
        a.reduction_count + b.reduction_count > MAX_REDUCTIONS
        or len(a.roots) + len(b.roots) > MAX_STORES
    ):
        return False
    return a.has_room(b.size) and not reaches(a, b) and not reaches(b, a)


def _find_element_loads(clusters: Sequence[Cluster]) -> tuple[set[int], set[int]]:
    """Return the ids of the arrays that are loaded for each reduced element, and of the values that
    are computed from them."""
    loaded: set[int] = set()
    computed: set[int] = set()
    stack = [v.inputs[0] for c in clusters for v in c.members if v.op.kind == "reduce"]
    while stack:
        v = strip_views(stack.pop())[0]
        if v.is_leaf or v.stored:
            loaded.add(v.id)
        elif v.aval.ndim and v.id not in computed:
            computed.add(v.id)
            stack += v.inputs
    return loaded, computed
