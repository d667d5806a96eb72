"""Memory traffic of steps, and the results that are written with non-temporal stores.

Input: a KernelSpec, or the Value of a step without one. Output: the sum of bytes read and written,
with each element counted once. Repeated reads are assumed to hit the cache, so that bytes over time
can be compared with the bandwidth of memory. The planner also asks here which results are so large
that their stores should bypass the caches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING

from accnp.compiler.fusion.spaces import is_one_value
from accnp.ir.aval import result_avals
from accnp.ir.kernel import KernelSpec
from accnp.primitives.views import contiguous
from accnp.runtime.nontemporal import Pieces

if TYPE_CHECKING:
    from accnp.compiler.fusion.program import Value
    from accnp.engine.steps import KernelStep

__all__ = ["LARGE", "find_nontemporal", "find_nontemporal_in_nests", "spec_bytes", "value_bytes"]

# Bytes of a result from which its stores bypass the caches: half of a typical last-level cache.
LARGE = 15 << 20


def spec_bytes(specs: Iterable[KernelSpec], between: Value | None = None) -> int:
    """Return the bytes of the elements that a kernel loads and stores, over all its loop nests.

    Overlapping windows, as those of a stencil, are counted once. The value `between` is not
    counted, since it stays in the cache.
    """
    touched: dict[tuple[int, bool], int] = {}
    whole: dict[tuple[int, bool], int] = {}
    for spec in specs:
        sizes = (*spec.outer, *spec.reduced, *spec.inner)
        for a in spec.accesses:
            if a.value is between:
                continue
            key = (id(a.value), a.store)
            count = prod([n for n, s in zip(sizes, a.strides, strict=True) if s or a.terms])
            touched[key] = touched.get(key, 0) + count * a.dtype.itemsize
            whole[key] = a.value.aval.nbytes
    return sum(min(n, whole[key]) for key, n in touched.items())


def find_nontemporal(spec: KernelSpec, step: KernelStep) -> tuple[Pieces, Pieces]:
    """Return the results of a step for non-temporal stores, and the operands that it reads alike.

    These are large results that are written contiguously along the parallel index, and operands
    that are read in pieces of the same size, as pairs: number of the pointer, bytes of a piece.
    """
    sizes = (*spec.outer, *spec.reduced, *spec.inner)
    extent = prod(spec.outer) if spec.outer else prod(spec.inner)
    if step.text.tiles:  # tiles write parts of rows and may contain non-temporal stores themselves
        return find_nontemporal_in_nests([spec], step)
    if spec.form not in ("map", "row") or step.extent != extent:
        return (), ()
    slots = [slot for slot, _ in step.pointers]
    fresh = dict(step.allocs)
    results: list[tuple[int, int]] = []
    operands: list[tuple[int, int]] = []
    for a in spec.accesses:
        axes = [(n, s) for n, s in zip(sizes, a.strides, strict=True) if s]
        nbytes = prod([n for n, _ in axes]) * a.dtype.itemsize
        if tuple([s for _, s in axes]) != contiguous(tuple([n for n, _ in axes])):
            continue
        piece = a.number, nbytes // extent
        if not a.store:
            operands.append(piece)
            continue
        slot = slots[a.number]
        whole = not a.offset and nbytes == fresh.get(slot) and slots.count(slot) == 1
        if whole and nbytes >= LARGE:
            results.append(piece)
    widths = {width for _, width in results[:1]}
    return tuple(results), tuple([p for p in operands if p[1] in widths])


def find_nontemporal_in_nests(
    specs: Sequence[KernelSpec], step: KernelStep
) -> tuple[Pieces, Pieces]:
    """Return the same for loop nests in one launch, which write scattered parts of results.

    If a result is large, one piece with pointer number -1 is returned. It selects the non-temporal
    stores that the nests contain, if any.
    """
    fresh = dict(step.allocs)
    slots = {slot for slot, _ in step.pointers} & step.stores
    most = max([fresh.get(slot, 0) for slot in slots], default=0)
    if most < LARGE or any(spec.form != "map" for spec in specs):
        return (), ()
    return ((-1, most // step.extent),), ()


def value_bytes(v: Value) -> int:
    """Return the bytes of the operands and results of an operation that is a step of its own.

    An update reads and writes as many elements of its operand as there are new values. The step
    counts a copy of the operand before the update.
    """
    results = result_avals(v.aval)
    result_bytes = sum(a.nbytes for a in results)
    sizes = [x.aval.nbytes for x in v.inputs]
    if v.op.updated_operand is not None:
        others = [x.aval for i, x in enumerate(v.inputs) if i != v.op.updated_operand]
        # If the operand repeats one value, the whole result is written, then updated in the cache.
        if is_one_value(v.inputs[v.op.updated_operand]):
            return sum(a.nbytes for a in others) + result_bytes
        update_bytes = max([a.nbytes for a in others if a.dtype == results[0].dtype], default=0)
        return sum(a.nbytes for a in others) + 2 * update_bytes
    if v.op.indexing in ("slice", "gather") and sizes:
        sizes[0] = min(sizes[0], result_bytes)
    return result_bytes + sum(sizes)
