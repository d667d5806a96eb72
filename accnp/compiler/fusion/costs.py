"""Compute again or store: what fusion weighs.

In: a value and what its readers demand. Out: whether computing it once for each of them costs less
than a pass over memory. The answer depends on operations, never on sizes: a new shape compiles
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.compiler.fusion.clusters import Demand
from accnp.compiler.fusion.program import Value
from accnp.compiler.fusion.spaces import in_kernel, strip_views

__all__ = ["AGAIN", "cheap", "distinct", "not_expanding", "times", "work", "worth_again"]

CHEAP = 4  # an operation of at most this cost, on leaves alone, is computed again, not stored
# Instructions for one element (loads too) that may be done again in place of a store, which is a
# pass over memory for the writer and for each reader: some 0.8 ns an element, vectors of 8.
AGAIN = 32
HEAVY = 10  # an operation of more than this cost is never done again


def cheap(v: Value) -> bool:
    return _widens(v) or (
        v.op.cost <= CHEAP
        and len(v.inputs) <= 2
        and all(strip_views(x)[0].op.kind in ("leaf", "iota") for x in v.inputs)
    )


def _widens(v: Value) -> bool:
    """Whether a value is another one in float64: stored, that one takes half the memory."""
    return (
        v.op.name == "convert_element_type"
        and v.aval.dtype == np.float64
        and v.inputs[0].aval.dtype == np.float32
        and all(not_expanding(d, v) for d in v.demands)
    )


def work(v: Value) -> int:
    """Instructions for one element of a value and all that it is computed from, loads too; more
    than `AGAIN` where it is not to be computed again."""
    total, stack, seen = 0, [v], set()
    while stack and total <= AGAIN:
        x = strip_views(stack.pop())[0]
        if id(x) in seen or x.aval.ndim == 0:
            continue
        seen.add(id(x))
        if x.stored or x.op.kind not in ("map", "assemble") or not in_kernel(x):
            total += 1
        elif x.op.cost > HEAVY:
            return AGAIN + 1
        else:
            total += x.op.cost
            stack += x.inputs
    return total


def not_expanding(d: Demand, v: Value) -> bool:
    """Whether a value is computed for no more places than it has elements."""
    top = None
    for w in d.chain:
        top = w.aval.size if top is None else top
        if w.op is w:
            if top > w.aval.size:
                return False
            # Only its region is computed; an index is done once for its window, if that is inside.
            top = None if w.outside else top
            if w.inputs[0] is v and top is None:
                return True
    return top is None or top <= v.aval.size


def worth_again(v: Value) -> bool:
    """Whether to compute a value once for each demand rather than to store it."""
    if not all(not_expanding(d, v) for d in v.demands):
        return False
    if len(v.demands) == 1:
        return True
    if any(d.context != "full" for d in v.demands):
        return False
    n = times(v)
    each = work(v) if n > 1 else 1
    room = all(d.cluster.takes(n * each) for d in v.demands)
    return room and (n - 1) * each <= AGAIN


def distinct(demands: Sequence[Demand]) -> list[Demand]:
    """Demands without those that one computation serves: in one kernel, through the same views."""
    found: dict[Any, Demand] = {}
    for d in demands:
        found.setdefault((id(d.cluster), d.context, *map(id, d.chain)), d)
    return list(found.values())


def times(v: Value) -> int:
    """How often each element would be computed: readers of different regions share the work."""
    total = 0
    for d in distinct(v.demands):
        below = next((w for w in reversed(d.chain) if w.op is w), None)
        top = d.chain[0].aval.size if d.chain else v.aval.size
        total += top if below is None else min(top, below.inputs[0].aval.size)
    return -(-total // v.aval.size)
