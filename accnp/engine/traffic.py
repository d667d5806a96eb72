"""Bytes that a step must move between memory and the processor, each element counted once.

In: a KernelSpec, or the Value of a step without one. Out: bytes read and written together. What a
kernel reads again from its caches is not counted, so that this over the time is a share of what
memory can do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from accnp.compiler.fusion.spaces import is_one_value
from accnp.ir.kernel import KernelSpec
from accnp.primitives.views import contiguous
from accnp.runtime.nontemporal import Pieces

__all__ = ["LARGE", "parts_past_caches", "past_caches", "spec_bytes", "value_bytes"]

LARGE = 15 << 20  # bytes of a result that is not kept in caches: half of a usual last-level one

# Ops that read as many elements of their first operand as they return.
_PICKING = frozenset(["dynamic_slice", "gather"])


def spec_bytes(specs: Iterable[KernelSpec], between: Any = None) -> int:
    """Bytes of the elements that one kernel loads and stores, over all its cells; windows that
    overlap, as those of a stencil do, are counted once, and what stays in caches is not."""
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


def past_caches(spec: KernelSpec, step: Any) -> tuple[Pieces, Pieces]:
    """Large results of a step whose parallel index writes one piece after the other, and operands
    that it reads in pieces as large: which pointers these are, and the bytes of a piece."""
    sizes = (*spec.outer, *spec.reduced, *spec.inner)
    extent = prod(spec.outer) if spec.outer else prod(spec.inner)
    if step.text.tiles:  # parts of rows, which may have stores of their own for it
        return parts_past_caches([spec], step)
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


def parts_past_caches(specs: Sequence[KernelSpec], step: Any) -> tuple[Pieces, Pieces]:
    """The same of kernels in one launch, which write parts of a result here and there: whether one
    is large. They have stores of their own for it, or none: -1 stands for no pointer."""
    fresh = dict(step.allocs)
    slots = {slot for slot, _ in step.pointers} & step.stores
    most = max([fresh.get(slot, 0) for slot in slots], default=0)
    if most < LARGE or any(spec.form != "map" for spec in specs):
        return (), ()
    return ((-1, most // step.extent),), ()


def value_bytes(v: Any) -> int:
    """Bytes of the operands and results of an operation that is a step of its own.

    An update reads and writes as much of its operand as it is given values; what is copied before
    that is counted by the step.
    """
    results = v.aval if isinstance(v.aval, tuple) else (v.aval,)
    made = sum(a.nbytes for a in results)
    sizes = [x.aval.nbytes for x in v.inputs]
    if v.op.takes is not None:
        others = [x.aval for i, x in enumerate(v.inputs) if i != v.op.takes]
        if is_one_value(v.inputs[v.op.takes]):  # it writes all of it, and then adds in the cache
            return sum(a.nbytes for a in others) + made
        given = max([a.nbytes for a in others if a.dtype == results[0].dtype], default=0)
        return sum(a.nbytes for a in others) + 2 * given
    if v.op.name in _PICKING and sizes:
        sizes[0] = min(sizes[0], made)
    return made + sum(sizes)
