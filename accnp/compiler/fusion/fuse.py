"""The fusion pass, which decides which values share a kernel.

Input: a Program. Output: `Cluster`s, and for each Value whether it is stored. `lower.py` turns the
clusters into kernels.

Values are visited from the outputs to the leaves, so that each consumer has a cluster before its
producer is visited. A consumer in a cluster *demands* its operands there, each through the views
between them:

    same   the operand has the index space of the cluster and there is no view in between: it can be
           computed in the loop body;
    row    it is broadcast over the trailing axes: it can be computed once per row, and may be a
           reduction over the row;
    view   any other case: it can be computed inline under the view, if it has no other consumer.

A value that its consumers demand in several ways is stored, and they load it. The rule that decides
this notes the reason in `Value.why`.

A program with more operations than `config.fusion_limit` is not fused. The number of different
kernels, and therefore the compile time, then depends on the types of its operations and not on its
length.
"""

from __future__ import annotations

from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING

from accnp.compiler.fusion.clusters import (
    Chain,
    Cluster,
    Demand,
    how,
    in_order,
    reaches,
    write_last,
)
from accnp.compiler.fusion.costs import distinct, is_cheap, is_worth_recomputing
from accnp.compiler.fusion.gathers import Coordinate, is_gather
from accnp.compiler.fusion.merging import merge, merge_siblings
from accnp.compiler.fusion.program import Program, Value
from accnp.compiler.fusion.reasons import (
    LONG_REDUCTION,
    MAX_MEMBERS,
    MAX_REDUCTIONS,
    OUTPUT,
    TOO_LONG,
    TOO_MANY_REDUCTIONS,
    TURNED,
    UNFUSED,
    form_of,
    other_space,
    store,
    why_not_inline,
    why_other_reduction,
)
from accnp.compiler.fusion.regions import Placed, placed
from accnp.compiler.fusion.selection_rules import place_assembled, place_gather
from accnp.compiler.fusion.spaces import (
    apply_views,
    axes_longer_than_one,
    expressible,
    in_kernel,
    index_strides,
    is_one_value,
    is_turned,
    is_walkable,
    reduction_form,
    row_axes,
    strided,
    strip_views,
)  # fmt: skip
from accnp.config import config
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.compiler.fusion.spaces import Views


__all__ = ["Cluster", "fuse"]


def fuse(program: Program) -> list[Cluster]:
    """Assign every value to a cluster; return the clusters, including those of host steps, in
    topological order."""
    return Fusion(program).run()


def is_computed(v: Value) -> bool:
    """Return whether a generated kernel can compute a value, and it is not a view or an iota."""
    return is_gather(v) or (in_kernel(v) and v.op.kind not in ("view", "iota"))


class Fusion:
    """The state of the fusion pass: the clusters so far."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.clusters: list[Cluster] = []
        self.apart = len(program.values) > config.fusion_limit
        self.effects = Chain(program.effects)
        self.refusal = ""  # why the last rule did not apply
        self.reducing: dict[int, list[Cluster]] = {}  # clusters that reduce a value, by its id

    def run(self) -> list[Cluster]:
        for v in self.program.values:
            v.stored, v.cluster, v.alias, v.role, v.demands, v.why = False, None, None, "", [], ()
        for v in self.program.outputs:
            store(v, OUTPUT)
        for v in reversed(self.program.values):
            self.place(v)
        if not self.apart:
            merge_siblings(self.clusters)
        return in_order(write_last([c for c in self.clusters if c.merged is None]))

    def open(self, shape: tuple[int, ...], form: str = "map") -> Cluster:
        """Create a new cluster."""
        c = Cluster(len(self.clusters), shape, form)
        self.clusters.append(c)
        return c

    def refuse(self, why: str) -> bool:
        """Return False, and note the reason."""
        self.refusal = why
        return False

    # --- placing ---

    def place(self, v: Value) -> None:
        kind = v.op.kind
        if kind == "barrier":
            self.barrier(v)
        elif self.apart and (v.demands or v.stored) and is_computed(v):
            store(v, UNFUSED)
            place_assembled(self, v) if kind == "assemble" else self.root(v)
        elif is_gather(v):
            place_gather(self, v)
        elif not in_kernel(v):
            self.host(v)
        elif kind == "view":
            if v.stored and not self.alias(v):
                self.root_view(v)
        elif kind == "assemble":
            place_assembled(self, v)
        elif kind == "iota":
            if v.stored:
                self.root(v)
        elif not v.demands and not v.stored:
            pass  # the value is no longer used
        elif kind == "reduce":
            self.place_reduce(v)
        elif v.aval.ndim == 0:
            self.place_scalar(v)
        else:
            self.place_map(v)

    def host(self, v: Value) -> None:
        """Make a step without fusion: a library call or the op's own kernel. Operands are strided
        views if possible."""
        v.stored = True
        if v.parent is not None:  # one of several results: the parent is the step
            v.parent.demands += v.demands
            return
        c = self.open((), "host")
        v.why += (c,)
        c.roots.append(v)
        self.provide(v, c)
        v.cluster = c
        self.effects.place(v, c)
        updated = (
            None if v.op.updated_operand is None else strip_views(v.inputs[v.op.updated_operand])[0]
        )
        for i, x in enumerate(v.inputs):
            base, chain = strip_views(x)
            is_updated = i == v.op.updated_operand and not is_one_value(x)
            # If an operand is a small part of the updated array, the part is copied, so that the
            # array can be updated in place.
            part = base is updated and 2 * x.aval.size <= base.aval.size
            if chain and (v.op.kind == "loop" or is_updated or part):  # needs a contiguous buffer
                store(x, c)
                base, chain = x, ()
            if (
                chain
                and apply_views(chain, base.aval.shape, contiguous(base.aval.shape), 0) is None
            ):
                store(x, c)
                base, chain = x, ()
            store(base, c)
            self.look_through(chain, c)
            self.request(base, Demand(c, "load", "host", chain))

    def barrier(self, v: Value) -> None:
        """Make each result of an optimization barrier an alias of its operand. All operands are
        stored, so that everything after the barrier depends on all of them."""
        for i, x in enumerate(v.inputs if v.parent is not None else ()):
            store(x, f"{v.op.name} keeps apart what comes before it and after it")
            if i == v.index:
                v.stored, v.role, v.alias = True, "alias", x
            for d in v.demands:
                if i == v.index:
                    self.request(x, Demand(d.cluster, "load", d.context, d.chain))
                elif not x.is_leaf:
                    x.demands.append(Demand(d.cluster, "load", "", ()))

    def alias(self, v: Value) -> bool:
        """Make a stored view an alias if it shows all elements of a value in order. Return whether
        it is one."""
        base, below = strip_views(v.inputs[0])
        chain = (v, *below)
        if strided(base, chain) is None:  # continue from a lower view, which must be stored anyway
            base, chain = chain[keep := expressible(base, chain)], chain[:keep]
        seen = strided(base, chain)
        if seen is None or base.aval.size != v.aval.size:
            return False
        shape, strides, offset = seen
        if offset or any(
            n != 1 and s != w for n, s, w in zip(shape, strides, contiguous(shape), strict=True)
        ):
            return False
        store(base, f"{v.op.name} of it is stored, too, and shares its memory")
        v.role = "alias"
        v.alias = base
        for d in v.demands:
            self.request(base, Demand(d.cluster, "load", d.context, d.chain))
        return True

    def place_scalar(self, v: Value) -> None:
        """Place a value of rank 0: it is computed in the prologue of each consumer, and also stored
        if it is an output."""
        v.role = "scalar"
        wanting = {d.cluster for d in v.demands if d.how != "load"}
        if any(c.size >= MAX_MEMBERS for c in wanting):
            # The chain is too long for one prologue, so the rest of it becomes a separate kernel.
            store(v, TOO_LONG)
            c = self.open(())
            return self.join(v, c, "full")
        if v.stored:
            c = self.open(())
            c.roots.append(v)
            for d in v.demands:
                if d.how == "load":
                    d.cluster.need(c)
            self.demand_inputs(v, c, "scalar", ())
        for c in wanting:
            c.size += 1
            self.demand_inputs(v, c, "scalar", ())

    def place_map(self, v: Value) -> None:
        demands = v.demands
        self.refusal = ""
        if not v.stored and self.try_inline(v):
            return
        homes = {d.cluster for d in demands}
        if len(homes) > 1 and all(d.how == "same" and d.context == "full" for d in demands):
            self.refusal = merge(homes)
            homes = {d.cluster for d in demands}
        hows = {(d.how, d.context) for d in demands}
        why = why_not_inline(homes, self.refusal)
        if len(homes) == 1:
            home = next(iter(homes))
            if home.has_room() and hows == {("same", "full")} and v.aval.shape == home.shape:
                return self.join(v, home, "full")
            if home.has_room() and self.accept_row(home, v):
                return self.join(v, home, "row")
            why = self.refusal if home.has_room() else TOO_LONG
        host = self.row_host(v, homes) if len(homes) > 1 else None
        if host is not None:
            store(v, why)
            return self.join(v, host, "row")
        # Compute the value in one consumer with the same index space, and store it for the others.
        for d in demands:
            home = d.cluster
            if d.how == "same" and d.context == "full" and home.shape == v.aval.shape:
                others = homes - {home}
                good = home.has_room() and home.form in ("map", "row")
                # A kernel cannot load other elements of a value that it has not stored yet.
                good = good and all(
                    e.how == "same" and e.context == "full" for e in demands if e.cluster is home
                )
                if good and not any(reaches(home, other) for other in others):
                    store(v, why)
                    return self.join(v, home, "full")
        store(v, why)
        return self.root(v)

    def try_inline(self, v: Value) -> bool:
        """Compute a value inline in its consumer, under views, or in all consumers if that costs
        less than storing it. Return whether this was possible."""
        viewed = any(d.how == "view" for d in v.demands)
        if not ((viewed or len(v.demands) > 1) and is_cheap(v)) and not (
            viewed and is_worth_recomputing(v)
        ):
            return False
        for d in v.demands:
            if d.how == "load" or not d.cluster.has_room():
                return False
            for x in v.inputs:
                base, chain = strip_views(x)
                if x.aval.ndim and strided(base, (*d.chain, *chain)) is None:
                    return False
        v.role = "inline"
        for d in distinct(v.demands):
            d.cluster.size += 1
            self.demand_inputs(v, d.cluster, d.context, d.chain)
        return True

    def row_host(self, v: Value, homes: set[Cluster]) -> Cluster | None:
        """Return one of several readers that can compute a value once per row and store it for the
        others. It must not depend on the others."""
        for home in sorted(homes, key=attrgetter("number")) if v.aval.ndim else ():
            mine = [d for d in v.demands if d.cluster is home]
            rows = home.form == "row" or any(d.how == "row" for d in mine)
            if v.op.kind == "reduce":
                source, axes = v.inputs[0].aval.shape, v.params["axes"]
                rows = rows and home.shape == source and home.reduction_count < MAX_REDUCTIONS
                rows = rows and axes_longer_than_one(source, axes) == axes_longer_than_one(
                    source, home.axes
                )
            if not rows or not home.has_room() or any(reaches(home, c) for c in homes - {home}):
                continue
            if self.accept_row(home, v, mine):
                return home
        return None

    def accept_row(self, home: Cluster, v: Value, demands: list[Demand] | None = None) -> bool:
        """Return whether a cluster can compute a value once per row, because its rows are those of
        the demands. A map cluster becomes a row cluster."""
        common_axes: set[int] | None = None
        for d in v.demands if demands is None else demands:
            if d.how == "same" and d.context == "row":
                continue
            if d.how != "row" or d.context != "full":
                return self.refuse(other_space(home, v, d))
            seen = strided(v, d.chain)
            axes = row_axes(*seen[:2]) if seen else None
            if axes is None:
                return self.refuse(other_space(home, v, d))
            mine = {a for a in axes if home.shape[a] != 1}
            if common_axes not in (None, mine):
                return self.refuse("its reader broadcasts it along different axes")
            common_axes = mine
        if home.form == "map" and not home.cuts and common_axes:
            home.form, home.axes = "row", tuple(sorted(common_axes))
            return True
        if home.form == "row" and common_axes in (
            None,
            axes_longer_than_one(home.shape, home.axes),
        ):
            return True
        return self.refuse(f"its reader is {form_of(home)}, whose rows are other ones")

    def place_reduce(self, v: Value) -> None:
        source = v.inputs[0].aval.shape
        axes = tuple(v.params["axes"])
        form = reduction_form(source, axes)
        homes = {d.cluster for d in v.demands}
        if form == "row" and len(homes) > 1 and all(c.shape == source for c in homes):
            self.refusal = merge(homes)
            homes = {d.cluster for d in v.demands}
        self.refusal = LONG_REDUCTION if form == "split" and homes else ""
        home = next(iter(homes)) if len(homes) == 1 else None
        if (
            home is not None
            and v.aval.ndim
            and home.size < MAX_MEMBERS
            and home.reduction_count < MAX_REDUCTIONS
        ):
            fits = form == "row" and home.shape == source
            if (
                fits
                and self.accept_row(home, v)
                and axes_longer_than_one(source, home.axes) == axes_longer_than_one(source, axes)
            ):
                return self.join(v, home, "row")
            if form != "split" and self.absorb(home, v, source, axes, form):
                return self.join(v, home, "row")
        elif home is not None and v.aval.ndim:
            self.refusal = TOO_LONG if home.size >= MAX_MEMBERS else TOO_MANY_REDUCTIONS
        host = self.row_host(v, homes) if form == "row" and len(homes) > 1 else None
        store(v, why_not_inline(homes, self.refusal) or self.refusal)
        if host is not None:
            return self.join(v, host, "row")
        base = strip_views(v.inputs[0])[0]
        alike = {c.resolve_merged() for c in self.reducing.get(base.id, ())}
        for c in sorted(alike, key=attrgetter("number")):
            # Reductions of the same values over the same axes share a pass.
            if (
                c.form == form
                and c.shape == source
                and c.size < MAX_MEMBERS
                and c.reduction_count < MAX_REDUCTIONS
                and axes_longer_than_one(source, c.axes) == axes_longer_than_one(source, axes)
                and not any(h is c or reaches(c, h) for h in homes)
            ):
                return self.join(v, c, "row")
        return self.root(v)

    def absorb(
        self,
        home: Cluster,
        v: Value,
        source: tuple[int, ...],
        axes: tuple[int, ...] | None,
        form: str,
    ) -> bool:
        """Turn a map cluster over the result of a reduction into the epilogue of the reduction."""
        alike = all(d.how == "same" and d.context == "full" for d in v.demands)
        if not alike or home.form != "map" or home.cuts or home.shape != v.aval.shape:
            return self.refuse(why_other_reduction(home, v))
        if prod(home.shape) == 1:
            return self.refuse(
                "a reduction to one element is complete only at the end of its kernel"
            )
        home.shape, home.axes, home.form = source, axes, form
        for w in home.members:
            w.role = "row"
        for d in home.requests:
            if d.context == "full":
                d.context = "row"
                d.how = "same" if d.how == "row" and not d.chain else d.how
        return True

    def root(self, v: Value) -> None:
        """Start a new cluster whose result is `v`."""
        if v.op.kind == "reduce":
            c = self.open(v.inputs[0].aval.shape)
            c.axes = tuple(v.params["axes"])
            c.form = reduction_form(c.shape, c.axes)
        else:
            c = self.open(v.aval.shape)
        self.join(v, c, "row" if v.op.kind == "reduce" else "full")

    def root_view(self, v: Value) -> None:
        """Start a new cluster that copies a stored view."""
        c = self.open(v.aval.shape)
        c.roots.append(v)
        self.provide(v, c)
        v.cluster = c
        base, chain = strip_views(v.inputs[0])
        self.demand_through(base, c, "full", (v, *chain))

    # --- demanding ---

    def demand_places(self, v: Value, c: Cluster, outer: Views) -> None:
        x, starts = v.inputs
        for k in range(starts.aval.shape[-1]):
            self.demand(starts, c, "full", (*outer, Coordinate(v, k)))
        base, chain = strip_views(x)
        if strided(base, chain) is None:
            base, chain = x, ()
        store(base, "gather reads it at computed places")
        self.look_through(chain, c)
        self.request(base, Demand(c, "load", "full", chain))

    def join(self, v: Value, c: Cluster, role: str) -> None:
        v.cluster, v.role = c, role
        c.members.append(v)
        c.size += 1
        c.reduction_count += v.op.kind == "reduce"
        if v.stored:
            c.roots.append(v)
            self.provide(v, c)
        if v.op.kind == "reduce":
            x = v.inputs[0]
            if v.stored:
                self.reducing.setdefault(strip_views(x)[0].id, []).append(c)
            if x.op.kind == "view" and in_kernel(x) and is_turned(x, v.params["axes"]):
                walk = (
                    c.form == "row" and c.reduction_count == 1 and is_walkable(x, v.params["axes"])
                )
                if not walk or any(w.role == "full" for w in c.members):
                    store(x, TURNED)
            self.demand(x, c, "full", ())
        elif v.op.kind == "assemble":
            self.demand_parts(v, placed(v) or (), c, ())
        elif v.op.indexing == "gather":
            self.demand_places(v, c, ())
        else:
            self.demand_inputs(v, c, role, ())

    def demand_parts(self, v: Value, parts: tuple[Placed, ...], c: Cluster, outer: Views) -> None:
        for p in parts:
            self.demand(p.inputs[0], c, "full", (*outer, p))

    def provide(self, v: Value, c: Cluster) -> None:
        for d in v.demands:
            if d.cluster is not c:
                d.cluster.need(c)

    def demand_inputs(self, v: Value, c: Cluster, context: str, outer: Views) -> None:
        for x in v.inputs:
            self.demand(x, c, context, outer)

    def demand(self, x: Value, c: Cluster, context: str, outer: Views) -> None:
        base, chain = strip_views(x)
        if x.aval.ndim == 0:  # computed in the prologue, where the consumer's views do not apply
            context, outer = "scalar", ()
        self.demand_through(base, c, context, (*outer, *chain))

    def demand_through(self, base: Value, c: Cluster, context: str, chain: Views) -> None:
        if base.op.kind == "iota" and not base.stored and index_strides(base, chain) is None:
            # It is not an affine function of the loop indices, so it is stored and loaded.
            store(base, "no strides can say this view of an index")
        was_stored = False
        while base.aval.ndim and strided(base, chain) is None:
            # Strides cannot express these views: store the value below the first of them, and
            # continue from there.
            keep = expressible(base, chain)
            lower = base.aval.shape
            view = chain[keep]
            assert isinstance(view, Value)  # strides express the others
            base, chain, was_stored = view, chain[:keep], True
            store(base, f"no strides can say {base.op.name} of {list(lower)}, read through views")
        self.look_through(chain, c)
        way = "view" if was_stored else how(c, base, chain, context)
        self.request(base, Demand(c, way, context, chain))

    def look_through(self, chain: Views, c: Cluster) -> None:
        """Add demands to the views of a chain. If another consumer needs one of them stored, this
        cluster loads it too and must come later."""
        for view in chain:
            view.demands.append(Demand(c, "load", "", ()))

    def request(self, v: Value, d: Demand) -> None:
        if v.is_leaf or v.stored:
            d.cluster.loads.add(v.id)
        if not v.is_leaf:
            d.cluster.requests.append(d)
            v.demands.append(d)
            if v.parent is not None:
                v.parent.demands.append(d)
