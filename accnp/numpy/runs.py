"""Runs of equal values in sorted arrays, from which `sets.py` computes distinct values and sets.

No function depends on concrete values, so all of them can be traced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.api.arguments.convert import cast, promote, scalar_node, to_shape
from accnp.array_type import wrap
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.indexing import gather_axis
from accnp.numpy.manipulation import cut, reshape_plain
from accnp.numpy.taking import nonzero_nodes
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import broadcast_to
from accnp.primitives.sort import permutation_of

__all__ = [
    "Runs", "count_true", "fillers", "merge_complex_nans", "positions_below", "run_starts",
    "take_rows",
]  # fmt: skip

_INT = np.dtype(np.int32)
_BOOL = np.dtype(bool)


def merge_complex_nans(x: Node) -> Node:
    """Replace complex numbers with a nan part by nan + 0j, which sorts last and is one value."""
    if x.aval.dtype.kind != "c":
        return x
    nan = scalar_node(complex(np.nan), x.aval.dtype, False)
    return o.select_n(o.ne(x, x), x, broadcast_to(nan, x.aval.shape))


def run_starts(differs: Node, n: int) -> Node:
    """Return a flag for each of n sorted elements: whether it is the first of its run."""
    first = broadcast_to(scalar_node(True, _BOOL, False), (1,))
    return o.concatenate(first, differs, dimension=0) if n > 1 else first


def take_rows(x: Node, places: Node) -> Node:
    return gather_axis(x, places, 0)


def positions_below(size: int, count: Node) -> Node:
    """Return a flag for each of `size` positions: whether it is below a count."""
    return o.lt(o.iota(dtype=_INT, shape=(size,), dimension=0), broadcast_to(count, (size,)))


def count_true(mask: Node) -> Node:
    return o.reduce_sum(cast(mask, _INT), axes=(0,))


class Runs:
    """Two arrays sorted together and divided into runs of equal values. Within a run, elements of
    the first array come before those of the second."""

    def __init__(self, name: str, a: Any, b: Any) -> None:
        x, y = (merge_complex_nans(reshape_plain(v, (v.aval.size,))) for v in promote(name, a, b))
        self.name = name
        self.sizes = x.aval.size, y.aval.size
        self.n = n = sum(self.sizes)
        both = o.concatenate(x, y, dimension=0)
        self.empty = n == 0
        self.dtype = both.aval.dtype
        if self.empty:
            return
        self.perm = permutation_of([both], 0)
        self.ordered = take_rows(both, self.perm)
        second = o.ge(self.perm, like(self.perm, self.sizes[0]))
        differs = like(second, True)
        if n > 1:
            parts = [[cut(v, 0, i, n - 1 + i) for i in (1, 0)] for v in (self.ordered, second)]
            same_array = o.not_(o.ne(*parts[1]))
            nan = o.and_(o.ne(parts[0][0], parts[0][0]), o.ne(parts[0][1], parts[0][1]))
            differs = o.and_(o.ne(*parts[0]), o.not_(o.and_(nan, same_array)))
        begins = run_starts(differs, n)
        edges = nonzero_nodes(wrap(begins), n + 1, n, name)[0]
        self.start, self.end = cut(edges, 0, 0, n), cut(edges, 0, 1, n + 1)
        self.valid = positions_below(n, count_true(begins))
        # The number of elements of the second array before each position.
        counts = o.cumsum(cast(second, _INT), axis=0, reverse=False)
        zero = broadcast_to(scalar_node(0, _INT, False), (1,))
        counts = o.concatenate(zero, counts, dimension=0)
        self.of_second = o.sub(take_rows(counts, self.end), take_rows(counts, self.start))
        self.length = o.sub(self.end, self.start)

    def equals_next(self) -> Node:
        """Return a flag for each sorted element: whether the next one is equal (nan never is)."""
        last = broadcast_to(scalar_node(False, _BOOL, False), (1,))
        if self.n == 1:
            return last
        first, second = (cut(self.ordered, 0, i, self.n - 1 + i) for i in (0, 1))
        return o.concatenate(o.eq(first, second), last, dimension=0)

    def chosen(self, keep: Node, size: int, fill: Any) -> tuple[Node, Node, Node]:
        """Return the values of selected runs, the indices of the runs, and which are valid."""
        return self.picked(o.and_(self.valid, keep), self.start, size, fill)

    def picked(
        self, keep: Node, places: Node | None, size: int, fill: Any
    ) -> tuple[Node, Node, Node]:
        """Like `chosen`, for flags of the sorted elements, or of the elements at `places`."""
        runs = nonzero_nodes(wrap(keep), size, 0, self.name)[0]
        valid = positions_below(size, count_true(keep))
        values = take_rows(self.ordered, runs if places is None else take_rows(places, runs))
        values = cast(values, values.aval.dtype)
        if fill is None:  # the smallest value, or 0 if there is none
            least = reshape_plain(cut(values, 0, 0, 1), ()) if size else like(values, 0)
            some = o.gt(count_true(keep), scalar_node(0, _INT, False))
            filler = o.select_n(some, like(values, 0), least)
        else:  # promoted, as in `where`: 2.5 does not become 2
            values, filler = promote(self.name, wrap(values), fill)
        chosen = o.select_n(valid, to_shape(filler, (size,), self.name), values)
        return chosen, runs, valid


def fillers(runs: Runs, size: int, fill: Any) -> Node:
    none = scalar_node(0, runs.dtype, False)
    value = none if fill is None else promote(runs.name, wrap(none), fill)[1]
    return to_shape(value, (size,), runs.name)
