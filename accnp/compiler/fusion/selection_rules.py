"""Fusion rules for values that select elements of other values: assembled values and gathers.

Input: the state of the fusion pass, and a value whose readers are already in clusters. Output: the
value is computed inline in its readers, or becomes the root of a new cluster. `fuse.py` calls these
rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accnp.compiler.fusion.clusters import MAX_CELLS
from accnp.compiler.fusion.costs import AGAIN, distinct, does_not_expand, times, work
from accnp.compiler.fusion.gathers import COST, Coordinate, can_express_views
from accnp.compiler.fusion.program import Value
from accnp.compiler.fusion.reasons import form_of, store
from accnp.compiler.fusion.regions import Placed, count_cells, cuts_of, placed, union_of_cuts
from accnp.compiler.fusion.spaces import strided, strip_views

if TYPE_CHECKING:
    from accnp.compiler.fusion.fuse import Fusion

__all__ = ["place_assembled", "place_gather"]


def place_assembled(f: Fusion, v: Value) -> None:
    """Place an assembled value: inline in the kernels that read it, or stored by a kernel whose
    index space is cut along the regions."""
    parts = placed(v)
    if parts is None or (not v.stored and _inline_assembled(f, v, parts)):
        return None if parts is not None else f.host(v)
    cuts = cuts_of(v, parts, (), v.aval.shape)
    if cuts is None or count_cells(cuts) > MAX_CELLS:
        return f.host(v)
    store(v, f.refusal)
    c = f.open(v.aval.shape)
    c.cuts = cuts
    f.join(v, c, "full")
    return None


def _inline_assembled(f: Fusion, v: Value, parts: tuple[Placed, ...]) -> bool:
    """Compute an assembled value inline, so that each reader reads the operands directly. Return
    whether this was possible."""
    demands, name = distinct(v.demands), v.op.name
    if any(d.context != "full" or d.how not in ("same", "view") for d in demands):
        return f.refuse(f"a reader does not read {name} element by element")
    if not all(does_not_expand(d, v) for d in demands):
        return f.refuse(f"a reader takes each element of {name} more than once")
    if times(v) > 1 and (times(v) - 1) * work(v) > AGAIN:
        return f.refuse(f"{len(demands)} readers of {name}, which is expensive to recompute")
    cuts_by_demand: list[tuple[tuple[int, ...], ...]] = []
    for d in demands:
        c = d.cluster
        cuts = cuts_of(v, parts, d.chain, c.shape)
        if c.form != "map":
            return f.refuse(f"{name} is read by {form_of(c)}, whose index space cannot be cut")
        if cuts is None:
            return f.refuse(f"the regions of {name} lie across the axes of its reader")
        if not c.has_room(1, cuts):
            return f.refuse(f"{name} would cut its reader into too many cells")
        for p in parts:
            base, chain = strip_views(p.inputs[0])
            if base.aval.ndim and strided(base, (*d.chain, p, *chain)) is None:
                return f.refuse(f"no strides can say the views of {name} on its operands")
        cuts_by_demand.append(cuts)
    v.role = "inline"
    for d, cuts in zip(demands, cuts_by_demand, strict=True):
        c = d.cluster
        c.cuts = union_of_cuts(c.cuts, cuts)
        c.size += 1
        f.demand_parts(v, parts, c, d.chain)
    return True


def place_gather(f: Fusion, v: Value) -> None:
    """Place a gather: inline in its readers if each element is computed once, or else stored."""
    f.refusal = "its elements are read in several ways, or more than once"
    alike = all(d.context == "full" and d.how in ("same", "view") for d in v.demands)
    free = alike and all(does_not_expand(d, v) and d.cluster.has_room(COST) for d in v.demands)
    strides_suffice = (
        free and all(can_express_views(v, d.chain) for d in v.demands) and _reaches_starts(v)
    )
    if not v.stored and strides_suffice and times(v) == 1:
        v.role = "inline"
        for d in distinct(v.demands):
            d.cluster.size += COST // 2
            f.demand_places(v, d.cluster, d.chain)
    elif v.demands or v.stored:
        store(v, f.refusal)
        f.root(v)


def _reaches_starts(v: Value) -> bool:
    """Return whether strides can express every reader's views of the indices."""
    base, chain = strip_views(v.inputs[1])
    views = [(*d.chain, Coordinate(v, 0), *chain) for d in v.demands]
    return base.aval.ndim == 0 or all(strided(base, view) is not None for view in views)
