"""The cost model of fusion, which decides between recomputing and storing a value.

Input: a value and the demands of its readers. Output: whether computing it once for each reader
costs less than writing and reading memory. The decision depends on operations and never on sizes,
so that a new shape needs no new kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from accnp.compiler.fusion.clusters import Demand
from accnp.compiler.fusion.program import Value
from accnp.compiler.fusion.spaces import in_kernel, strip_views
from accnp.ir.op import Op
from accnp.primitives.conversion import CONVERT

if TYPE_CHECKING:
    from collections.abc import Hashable


__all__ = [
    "AGAIN", "distinct", "does_not_expand", "is_cheap", "is_worth_recomputing", "times", "work",
]  # fmt: skip

CHEAP = 4  # an operation of at most this cost, whose operands are leaves, is recomputed
# Instructions per element, including loads, that may be repeated to avoid storing a value. Storing
# costs a pass over memory for the writer and for each reader: some 0.8 ns per element, with vectors
# of 8 elements.
AGAIN = 32
HEAVY = 10  # an operation of more than this cost is never recomputed


def is_cheap(v: Value) -> bool:
    return _is_widening(v) or (
        v.op.cost <= CHEAP
        and len(v.inputs) <= 2
        and all(strip_views(x)[0].op.kind in ("leaf", "iota") for x in v.inputs)
    )


def _is_widening(v: Value) -> bool:
    """Return whether a value is the conversion of a float32 value to float64. Storing the float32
    value instead takes half the memory."""
    return (
        v.op is CONVERT
        and v.aval.dtype == np.float64
        and v.inputs[0].aval.dtype == np.float32
        and all(does_not_expand(d, v) for d in v.demands)
    )


def work(v: Value) -> int:
    """Return the instructions per element of a value and of the values that it is computed from,
    including loads. The result is larger than `AGAIN` if the value must not be recomputed."""
    total, stack = 0, [v]
    seen: set[int] = set()
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


def does_not_expand(d: Demand, v: Value) -> bool:
    """Return whether a reader needs at most as many elements as the value has."""
    top = None
    for w in d.chain:
        top = w.aval.size if top is None else top
        rule = w.op
        if not isinstance(rule, Op):
            if top > w.aval.size:
                return False
            # Only the region of a Placed view is computed. The coordinates of a gather are computed
            # once per window if the loops over windows are inside.
            top = None if rule.outside else top
            if w.inputs[0] is v and top is None:
                return True
    return top is None or top <= v.aval.size


def is_worth_recomputing(v: Value) -> bool:
    """Return whether to compute a value once for each demand instead of storing it."""
    if not all(does_not_expand(d, v) for d in v.demands):
        return False
    if len(v.demands) == 1:
        return True
    if any(d.context != "full" for d in v.demands):
        return False
    n = times(v)
    each = work(v) if n > 1 else 1
    room = all(d.cluster.has_room(n * each) for d in v.demands)
    return room and (n - 1) * each <= AGAIN


def distinct(demands: Sequence[Demand]) -> list[Demand]:
    """Return the demands without duplicates: those in the same kernel and through the same views,
    which share one computation."""
    unique: dict[Hashable, Demand] = {}
    for d in demands:
        unique.setdefault((id(d.cluster), d.context, *map(id, d.chain)), d)
    return list(unique.values())


def times(v: Value) -> int:
    """Return how often each element would be computed on average. Readers of different regions
    compute different elements."""
    total = 0
    for d in distinct(v.demands):
        below = next((w for w in reversed(d.chain) if not isinstance(w.op, Op)), None)
        top = d.chain[0].aval.size if d.chain else v.aval.size
        total += top if below is None else min(top, below.inputs[0].aval.size)
    return -(-total // v.aval.size)
