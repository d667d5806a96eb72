"""Updates in place: the kernel that computes the new values of a static slice stores them there.

Input: a fused program with updates at known indices, and its clusters. Output: the updates that
need no step of their own; their values know where they are stored (`Value.home`). The planner then
reuses or copies the memory of the array before the kernel runs. Whether the kernel also reads other
elements of the array is known only after lowering (`reads_elsewhere`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from accnp.compiler.fusion.clusters import Cluster, cluster_of
from accnp.compiler.fusion.program import Program, Value
from accnp.compiler.fusion.spaces import (
    NATIVE,
    is_one_value,
    keeps_order,
    strip_views,
)
from accnp.compiler.fusion.update_regions import region_of
from accnp.ir.kernel import Access, KernelSpec

__all__ = ["StoreLocation", "place_updates", "read_updates", "reads_elsewhere"]


class StoreLocation(NamedTuple):
    """The location of a value in the result of an update of `array`: strides and offset."""

    update: Value
    array: Value
    strides: tuple[int, ...]
    offset: int


def place_updates(
    program: Program, clusters: list[Cluster], apart: Collection[Cluster] = ()
) -> dict[int, StoreLocation]:
    """Find the values that can be stored directly in the arrays that they update.

    Returns their homes by the id of the update. Clusters in `apart` are not used, and others may be
    reordered.
    """
    updates = [c.roots[0] for c in clusters if c.form == "host" and c.roots]
    updates = [u for u in updates if u.op.indexing == "update"]
    if not updates:
        return {}
    single = {id(c.roots[0]): c for c in clusters if _is_single(c)}
    clusters[:] = _delay_update_kernels(clusters, updates, single)
    uses = Counter([id(x) for v in program.values if v.parent is None for x in v.inputs])
    uses.update([id(v) for v in (*program.outputs, *program.effects)])
    order = {c: k for k, c in enumerate(clusters)}
    homes: dict[int, StoreLocation] = {}
    for u in updates:
        v = u.inputs[1]
        while v.op.kind == "view" and keeps_order(v) and not v.stored and uses[id(v)] == 1:
            v = v.inputs[0]
        c = _cluster_of(v) or single.get(id(v))
        if c not in order or c in apart or uses[id(v)] != 1 or not _is_stored_once(c, v):
            continue
        array, views = strip_views(u.inputs[0], through=True)
        at = _find_position(u, v)
        if views or at is None or is_one_value(u.inputs[0]) or array.aval.dtype not in NATIVE:
            continue
        if _is_known(array, c, order) and not _is_read(array, u, c, order, clusters):
            v.home = homes[id(u)] = StoreLocation(u, array, *at)
    return homes


def _is_single(c: Cluster) -> bool:
    """Return whether a kernel computes one number from numbers; other kernels may recompute it."""
    return c.form == "map" and len(c.roots) == 1 and c.roots[0].role == "scalar"


def _delay_update_kernels(
    clusters: list[Cluster], updates: Sequence[Value], single: Mapping[int, Cluster]
) -> list[Cluster]:
    """Reorder clusters so that a kernel that computes the values of one update comes after the step
    that makes the updated array, as in a chain of updates."""
    for u in updates:
        written, at = strip_views(u.inputs[1], through=True)[0], cluster_of(u)
        c = _cluster_of(written) or single.get(id(written))
        array = strip_views(u.inputs[0], through=True)[0]
        producer = None if array.is_leaf else _cluster_of(array.parent or array)
        if producer is None or c is None:
            continue
        if c.form != "map" or len(c.roots) != 1 or c.readers != {at}:
            continue
        order = {x: k for k, x in enumerate(clusters)}
        if producer not in order or c not in order or order[producer] < order[c]:
            continue
        between = clusters[order[c] + 1 : order[at]]
        if not any(_may_overwrite(x, c.loads) for x in between):
            clusters = [x for x in clusters if x is not c]
            clusters.insert(clusters.index(at), c)
    return clusters


def _may_overwrite(c: Cluster, loads: Collection[int]) -> bool:
    """Return whether a step may overwrite one of these arrays."""
    v = c.roots[0] if c.form == "host" and c.roots else None
    if v is None or v.op.updated_operand is None:
        return False
    return strip_views(v.inputs[v.op.updated_operand], through=True)[0].id in loads


def _is_stored_once(c: Cluster, v: Value) -> bool:
    """Return whether a kernel stores each element of a value once: the result of a map, or of
    reductions that the kernel completes."""
    ways = {"map": ("full", "scalar"), "row": ("row",), "column": ("row",)}
    stores = not c.cuts and v in c.roots and v.role in ways.get(c.form, ())
    return stores and v.aval.size > 0 and v.aval.dtype in NATIVE


def _cluster_of(v: Value) -> Cluster | None:
    """Return the cluster that stores a value; None for an alias."""
    return None if v.cluster is None or v.role == "alias" else v.cluster.resolve_merged()


def _find_position(u: Value, v: Value) -> tuple[tuple[int, ...], int] | None:
    """Return the strides and the offset of a value in the result of an update; None if they are not
    known at planning time."""
    region = region_of(u)
    if region is None:
        return None
    sizes, whole = u.inputs[1].aval.shape, u.aval.shape
    long = [s for s, n in zip(region.strides(whole), sizes, strict=True) if n != 1]
    mine = [n for n in v.aval.shape if n != 1]
    if mine != [n for n in sizes if n != 1]:
        return None
    long_strides = iter(long)
    strides = tuple([next(long_strides) if n != 1 else 0 for n in v.aval.shape])
    return strides, region.offset(whole)


def _is_known(array: Value, c: Cluster, order: dict[Cluster, int]) -> bool:
    """Return whether an array is computed before a kernel runs."""
    if array.is_leaf:
        return True
    producer = _cluster_of(array.parent or array)
    return producer in order and producer is not c and order[producer] < order[c]


def _is_read(
    array: Value, u: Value, c: Cluster, order: dict[Cluster, int], clusters: Sequence[Cluster]
) -> bool:
    """Return whether a step between a kernel and an update reads the array."""
    between = clusters[order[c] + 1 : order[cluster_of(u)]]
    for other in between:
        if array.id in other.loads:
            return True
        if other.form == "host":
            whole = other.roots[0].parent or other.roots[0]
            if any(strip_views(x, through=True)[0] is array for x in whole.inputs):
                return True
    return False


def reads_elsewhere(home: StoreLocation, specs: Sequence[KernelSpec]) -> bool:
    """Return whether kernels read other elements of an array than those that they update at the
    same index."""
    loads = [(spec, a) for spec in specs for a in spec.accesses if a.value is home.array]
    return any(
        not a.store and _find_store_of_same_elements(spec, home, a) is None for spec, a in loads
    )


def read_updates(homes: Sequence[StoreLocation], spec: KernelSpec) -> None:
    """Make a kernel read arrays through the pointers to their updates, which initially hold the
    same values.

    Compilers assume that pointers do not alias. With two pointers to memory that is updated in
    place, a loop around the kernel could read old values.
    """
    replacements: dict[int, Access] = {}
    for home in homes:
        for a in spec.accesses:
            if a.value is home.array and not a.store and id(a) not in replacements:
                there = _find_store_of_same_elements(spec, home, a)
                assert there is not None, "a kernel reads an array beside its update"
                replacements[id(a)] = there
    for s in (
        *spec.scalars,
        *spec.row_head,
        *[s for phase in spec.phases for s in (*phase.full, *phase.row)],
    ):
        if s.access is not None:
            s.access = replacements.get(id(s.access), s.access)
    spec.accesses = [a for a in spec.accesses if id(a) not in replacements]
    for k, a in enumerate(spec.accesses):
        a.number = k


def _find_store_of_same_elements(
    spec: KernelSpec, home: StoreLocation, load: Access
) -> Access | None:
    """Return the store of an update to the same elements as a load; None if there is none."""
    for a in spec.accesses:
        same = (a.strides, a.offset, a.dtype) == (load.strides, load.offset, load.dtype)
        if a.store and a.value is home.update and same and not load.terms:
            return a
    return None
