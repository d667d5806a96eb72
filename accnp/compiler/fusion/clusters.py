"""The data structures of fusion: clusters, and the demands of consumers.

A `Cluster` is the set of values that will be computed by one kernel. A `Demand` says how a consumer
in a cluster reads a value. `fuse.py` fills clusters, this module also orders them, and `lower.py`
turns each into `KernelSpec`s.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING

from accnp.compiler.fusion.program import Program, Value
from accnp.compiler.fusion.regions import Cuts, count_cells, union_of_cuts
from accnp.compiler.fusion.spaces import (
    is_one_value,
    is_row,
    keeps_order,
    row_axes,
    strided,
    strip_views,
)
from accnp.config import config
from accnp.ir.op import Op

if TYPE_CHECKING:
    from accnp.compiler.fusion.spaces import Views


__all__ = [
    "MAX_CELLS", "MAX_MEMBERS", "Chain", "Cluster", "Demand", "chains", "cluster_of", "how",
    "in_order", "reaches", "write_last",
]  # fmt: skip

MAX_MEMBERS = 100  # statements of a kernel; above this, compile time grows faster than linearly
MAX_CELLS = 32  # cells of a kernel, each of which may need its own loop nest
MAX_STATEMENTS = 512  # statements in all cells of a kernel


class Demand:
    """How one consumer reads a value: in which cluster, in which way (`how`), and through which
    views, outermost first."""

    __slots__ = ("_cluster", "chain", "context", "how")

    def __init__(self, cluster: Cluster, how: str, context: str, chain: Views) -> None:
        self._cluster = cluster
        self.how = how
        self.context = context  # where the consumer is computed: "full", "row", "scalar", "host"
        self.chain = chain

    @property
    def cluster(self) -> Cluster:
        return self._cluster.resolve_merged()


class Cluster:
    """The values that one kernel computes: an index space, members, and stored values (roots)."""

    __slots__ = (
        "axes", "cuts", "form", "level", "loads", "members", "merged", "needs", "number", "readers",
        "reduction_count", "requests", "roots", "shape", "size",
    )  # fmt: skip

    def __init__(self, number: int, shape: tuple[int, ...], form: str = "map") -> None:
        self.number = number  # its index among all clusters
        self.shape = shape
        # map, row, split or column; host for a step without fusion, or own if the planner finds
        # that the op has its own kernel
        self.form = form
        self.axes: tuple[int, ...] | None = None  # the axes of a row, or the reduced axes
        self.roots: list[Value] = []
        self.loads: set[int] = set()  # ids of leaves and stored values that it reads in full
        self.needs: set[Cluster] = set()  # clusters whose stored values this one loads
        self.readers: set[Cluster] = set()  # clusters that need this one
        self.level = 0  # less than the level of each cluster that it needs
        self.members: list[Value] = []  # values computed once in the loop nest (not inline)
        self.requests: list[Demand] = []  # its demands for values that are not leaves
        self.size = 0
        self.reduction_count = 0
        # Cuts of the index space for assembled values. Each cell has its own loop nest.
        self.cuts: Cuts = ()
        self.merged: Cluster | None = None

    def has_room(self, more: int = 1, cuts: Cuts = ()) -> bool:
        """Return whether the cluster may get more members or more cuts, by the size limits."""
        size = self.size + more
        cells = count_cells(union_of_cuts(self.cuts, cuts))
        return size <= MAX_MEMBERS and cells <= MAX_CELLS and size * cells <= MAX_STATEMENTS

    def need(self, other: Cluster) -> None:
        """Record that this cluster loads a value that another one stores."""
        self.needs.add(other)
        other.readers.add(self)
        _raise_levels(self)

    def absorb_cluster(self, other: Cluster) -> None:
        """Merge another cluster into this one. Neither may depend on the other."""
        self.roots += other.roots
        self.size += other.size
        self.reduction_count += other.reduction_count
        self.cuts = union_of_cuts(self.cuts, other.cuts)
        self.loads |= other.loads
        self.members += other.members
        self.requests += other.requests
        for n in other.needs:
            n.readers.discard(other)
            n.readers.add(self)
        for r in other.readers:
            r.needs.discard(other)
            r.needs.add(self)
        self.needs |= other.needs
        self.readers |= other.readers
        self.level = max(self.level, other.level)
        other.merged = self
        _raise_levels(self)

    def resolve_merged(self) -> Cluster:
        """Return the cluster that this one has been merged into, or itself."""
        c = self
        while c.merged is not None:
            c = c.merged
        return c


def cluster_of(v: Value) -> Cluster:
    """Return the cluster of a value that was planned and is not an alias."""
    assert v.cluster is not None
    return v.cluster.resolve_merged()


class Chain:
    """The clusters of effects, each of which depends on the previous one, to keep their order."""

    __slots__ = ("later", "members")

    def __init__(self, effects: Iterable[Value]) -> None:
        self.members = {id(v) for v in effects}
        self.later: Cluster | None = None

    def place(self, v: Value, c: Cluster) -> None:
        """Record the cluster of a value. Called for the values in reverse order."""
        if id(v) in self.members:
            if self.later is not None:
                self.later.need(c)
            self.later = c


def reaches(a: Cluster, b: Cluster) -> bool:
    """Return whether `a` needs `b`, directly or indirectly.

    This is a bidirectional search that advances the smaller side and stays between the two levels.
    A search through all clusters for each pair would make planning quadratic.
    """
    ahead, behind = {a}, {b}
    front: list[Cluster] = [a]
    back: list[Cluster] = [b]
    while front and back and a.level < b.level:
        if len(ahead) <= len(behind):
            neighbors = {n for c in front for n in c.needs if n.level <= b.level}
            front = list(neighbors - ahead)
            ahead |= neighbors
        else:
            neighbors = {r for c in back for r in c.readers if r.level >= a.level}
            back = list(neighbors - behind)
            behind |= neighbors
        if not ahead.isdisjoint(behind):
            return True
    return False


def _raise_levels(c: Cluster) -> None:
    """Raise the levels of the clusters that a cluster needs above its own, transitively."""
    stack = [c]
    while stack:
        c = stack.pop()
        for n in c.needs:
            if n.level <= c.level:
                n.level = c.level + 1
                stack.append(n)


def write_last(clusters: list[Cluster]) -> list[Cluster]:
    """Make steps that update an operand in place depend on its other readers, so that the operand
    need not be copied for them. Returns the clusters unchanged."""
    loading: dict[int, list[Cluster]] = {}
    for c in clusters:
        for i in c.loads:
            loading.setdefault(i, []).append(c)
    for c in clusters:
        v = c.roots[0] if c.form == "host" else None
        if v is None or v.op.updated_operand is None:
            continue
        x = v.inputs[v.op.updated_operand]
        if is_one_value(x):
            continue
        if not x.stored:
            x = strip_views(x)[0]
        for r in {*loading.get(x.id, ()), *[d.cluster for d in x.demands]}:
            if r is not c and not reaches(r, c):
                c.need(r)
    return clusters


def in_order(clusters: list[Cluster]) -> list[Cluster]:
    """Sort clusters topologically: each comes after those that it needs."""
    done: set[Cluster] = set()
    out: list[Cluster] = []
    for root in reversed(clusters):
        stack = [(root, iter(root.needs))]
        if root in done:
            continue
        done.add(root)
        while stack:
            c, rest = stack[-1]
            for n in rest:
                if n not in done:
                    done.add(n)
                    stack.append((n, iter(n.needs)))
                    break
            else:
                out.append(c)
                stack.pop()
    return out


def chains(clusters: list[Cluster], program: Program) -> dict[Cluster, Cluster]:
    """Find pairs of elementwise clusters for execution in bands of rows.

    The first stores one value, which only the second reads. A kernel can then compute the first for
    the rows that the second needs next (`compiler/specs/chains.py`). Returns the second cluster by
    the first.
    """
    if len(program.values) > config.fusion_limit:
        return {}
    stored_ids = {id(v) for v in program.outputs}
    stored_ids |= {id(v.alias) for v in program.values if v.alias is not None}
    reader_of: dict[Cluster, Cluster] = {}
    for c in clusters:
        (reader, *others), (v, *more) = list(c.readers) or [c], c.roots or [None]
        if (
            not (others or more)
            and v is not None
            and c.form == reader.form == "map"
            and reader is not c
            and v.role == "full"
            and id(v) not in stored_ids
            and len(c.shape) == len(reader.shape) > 0
            and reader not in reader_of.values()
            and c not in reader_of.values()
        ):
            reader_of[c] = reader
    return reader_of


def how(c: Cluster, base: Value, chain: Views, context: str) -> str:
    """Classify how a consumer reads a base value through views (see `fuse.py`)."""
    if base.aval.ndim == 0:
        return "scalar"
    if context == "scalar":
        return "load"
    if context == "row":
        return "same" if all(keeps_order(w) for w in chain) else "view"
    if not chain:
        return "same"
    if any(
        not isinstance(w.op, Op) for w in chain
    ):  # not a view of the program: see Placed, Coordinate
        return "view"
    seen = strided(base, chain)
    assert seen is not None
    shape, strides, offset = seen
    if offset == 0 and shape == c.shape and base.aval.size < prod(shape):
        axes = row_axes(shape, strides)
        if axes is not None and is_row(shape, strides, axes, base.aval.shape):
            return "row"
    return "view"
