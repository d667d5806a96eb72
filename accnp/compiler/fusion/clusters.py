"""Clusters: kernels in the making, and what they want of each other. `fuse.py` fills them,
`lower.py` makes kernels of them."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from accnp.compiler.fusion.program import Program, Value
from accnp.compiler.fusion.regions import Cuts, count_cells, joined
from accnp.compiler.fusion.spaces import (
    is_one_value,
    is_row,
    keeps_order,
    row_axes,
    strided,
    strip_views,
)
from accnp.config import config

__all__ = [
    "MAX_CELLS", "MAX_MEMBERS", "Chain", "Cluster", "Demand", "chains", "how", "in_order",
    "reaches", "write_last",
]  # fmt: skip

MAX_MEMBERS = 100  # statements of one kernel; compile time grows faster than linearly past this
MAX_CELLS = 32  # cells of one kernel, each of which may have a text of its own
MAX_STATEMENTS = 512  # of all cells together


class Demand:
    """One consumer's wish for a value: in which cluster, how, and through which views (outermost
    first)."""

    __slots__ = ("_cluster", "chain", "context", "how")

    def __init__(self, cluster: Cluster, how: str, context: str, chain: tuple[Any, ...]) -> None:
        self._cluster = cluster
        self.how = how
        self.context = context  # where the consumer stands: "full", "row", "scalar", "host"
        self.chain = chain

    @property
    def cluster(self) -> Cluster:
        return self._cluster.current()


class Cluster:
    """One kernel in the making: an index space, its members, the values it stores."""

    __slots__ = (
        "axes",
        "cuts",
        "folds",
        "form",
        "level",
        "loads",
        "members",
        "merged",
        "needs",
        "number",
        "readers",
        "roots",
        "shape",
        "size",
        "wishes",
    )

    def __init__(self, number: int, shape: tuple[int, ...], form: str = "map") -> None:
        self.number = number  # its place among all clusters
        self.shape = shape
        # map, row, split, column; host, or own where the planner finds a kernel of the op's own
        self.form = form
        self.axes: tuple[int, ...] | None = None  # the axes that make up a row, or are folded over
        self.roots: list[Value] = []
        self.loads: set[int] = set()  # ids of leaves and stored values that it reads in full
        self.needs: set[Cluster] = set()  # clusters whose stored values this one loads
        self.readers: set[Cluster] = set()  # those that need this one
        self.level = 0  # less than that of each cluster that it needs
        self.members: list[Value] = []  # computed here at a place of their own (not inline)
        self.wishes: list[Demand] = []  # what it demands of values that are no leaves
        self.size = 0
        self.folds = 0
        # Where the index space is cut for assembled values: each cell is a nest of its own.
        self.cuts: Cuts = ()
        self.merged: Cluster | None = None

    def takes(self, more: int = 1, cuts: Cuts = ()) -> bool:
        """Whether there is room for more members, or for more cuts."""
        size = self.size + more
        cells = count_cells(joined(self.cuts, cuts))
        return size <= MAX_MEMBERS and cells <= MAX_CELLS and size * cells <= MAX_STATEMENTS

    def need(self, other: Cluster) -> None:
        """Note that this cluster loads what another one stores."""
        self.needs.add(other)
        other.readers.add(self)
        _sink(self)

    def swallow(self, other: Cluster) -> None:
        """Make another cluster, which no path connects with this one, part of it."""
        self.roots += other.roots
        self.size += other.size
        self.folds += other.folds
        self.cuts = joined(self.cuts, other.cuts)
        self.loads |= other.loads
        self.members += other.members
        self.wishes += other.wishes
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
        _sink(self)

    def current(self) -> Cluster:
        """The cluster that this one has become part of."""
        c = self
        while c.merged is not None:
            c = c.merged
        return c


class Chain:
    """Effects in the making: each needs the one before it, so that they keep their order."""

    __slots__ = ("later", "members")

    def __init__(self, effects: Iterable[Value]) -> None:
        self.members = {id(v) for v in effects}
        self.later: Cluster | None = None

    def place(self, v: Value, c: Cluster) -> None:
        """Note the cluster of a value; called from the last one to the first."""
        if id(v) in self.members:
            if self.later is not None:
                self.later.need(c)
            self.later = c


def reaches(a: Cluster, b: Cluster) -> bool:
    """Whether `a` needs `b`, directly or through others.

    Walks from both ends, on the side that has seen less, and only between their levels: a walk
    through all clusters for each pair would make planning quadratic.
    """
    ahead, behind = {a}, {b}
    front, back = [a], [b]
    while front and back and a.level < b.level:
        if len(ahead) <= len(behind):
            found = {n for c in front for n in c.needs if n.level <= b.level}
            front = list(found - ahead)
            ahead |= found
        else:
            found = {r for c in back for r in c.readers if r.level >= a.level}
            back = list(found - behind)
            behind |= found
        if not ahead.isdisjoint(behind):
            return True
    return False


def _sink(c: Cluster) -> None:
    """Put what a cluster needs on levels below its own."""
    stack = [c]
    while stack:
        c = stack.pop()
        for n in c.needs:
            if n.level <= c.level:
                n.level = c.level + 1
                stack.append(n)


def write_last(clusters: list[Cluster]) -> list[Cluster]:
    """Let kernels that update an operand in place come after its other readers, for whom it would
    have to be copied; returns the clusters as they came."""
    loading: dict[int, list[Cluster]] = {}
    for c in clusters:
        for i in c.loads:
            loading.setdefault(i, []).append(c)
    for c in clusters:
        v = c.roots[0] if c.form == "host" else None
        if v is None or v.op.takes is None:
            continue
        x = v.inputs[v.op.takes]
        if is_one_value(x):
            continue
        if not x.stored:
            x = strip_views(x)[0]
        for r in {*loading.get(x.id, ()), *[d.cluster for d in x.demands]}:
            if r is not c and not reaches(r, c):
                c.need(r)
    return clusters


def in_order(clusters: list[Cluster]) -> list[Cluster]:
    """Sort so that what is needed comes first."""
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
    """Maps that store one value for one other map, and that map: what may be done in bands of rows,
    the one as far as the other wants it (`compiler/specs/chains.py`)."""
    if len(program.values) > config.fusion_limit:
        return {}
    kept = {id(v) for v in program.outputs}
    kept |= {id(v.cluster) for v in program.values if v.role == "alias"}
    found: dict[Cluster, Cluster] = {}
    for c in clusters:
        (reader, *others), (v, *more) = list(c.readers) or [c], c.roots or [None]
        if (
            not (others or more)
            and v is not None
            and c.form == reader.form == "map"
            and reader is not c
            and v.role == "full"
            and id(v) not in kept
            and len(c.shape) == len(reader.shape) > 0
            and reader not in found.values()
            and c not in found.values()
        ):
            found[c] = reader
    return found


def how(c: Cluster, base: Value, chain: tuple[Value, ...], context: str) -> str:
    """Classify the way from a base through views to where a consumer stands."""
    if base.aval.ndim == 0:
        return "scalar"
    if context == "scalar":
        return "load"
    if context == "row":
        return "same" if all(keeps_order(w) for w in chain) else "view"
    if not chain:
        return "same"
    if any(w.op is w for w in chain):  # no view of the program: see Placed, Coordinate
        return "view"
    seen = strided(base, chain)
    assert seen is not None
    shape, strides, offset = seen
    if offset == 0 and shape == c.shape and base.aval.size < prod(shape):
        axes = row_axes(shape, strides)
        if axes is not None and is_row(shape, strides, axes, base.aval.shape):
            return "row"
    return "view"
