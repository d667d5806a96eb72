"""Graph traversal for transformations: which nodes to visit, and in which order.

The functions take output nodes and the trace or the leaves from which they were recorded. They
return nodes in an order in which they can be computed, or the subset that depends on given leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from accnp.ir.graph import toposort
from accnp.ir.node import Node
from accnp.ir.op import ZERO
from accnp.ir.trace import Trace, state
from accnp.primitives.kinds import dtype_kind

__all__ = ["dependents", "inexact", "nodes_within", "sort_as_recorded", "take_recorded", "within"]

_INEXACT: dict[np.dtype, bool] = {}


def inexact(dtype: np.dtype) -> bool:
    """Return whether values of this dtype have tangents, which is true for floating and complex
    ones."""
    is_inexact = _INEXACT.get(dtype)
    if is_inexact is None:
        is_inexact = _INEXACT[dtype] = dtype_kind(dtype) in "fc"
    return is_inexact


def within(node: Node, trace: Trace) -> bool:
    """Return whether a node was recorded in a trace or in a trace nested in it."""
    t = node.trace
    while t is not None and t is not trace:
        t = t.parent
    return t is not None


def nodes_within(outputs: Iterable[Node], leaves: Sequence[Node], trace: Trace) -> list[Node]:
    """Return the nodes of a trace between leaves and outputs, inputs first."""
    return toposort(outputs, set(map(id, leaves)), lambda n: within(n, trace))


def take_recorded(outputs: Iterable[Node], leaves: Sequence[Node], trace: Trace) -> list[Node]:
    """Return the nodes that `forward` visits.

    While a jaxpr is made, these are all nodes of the trace in recorded order, including unused
    ones. They are removed from the trace, because `forward` records them again, so that equations
    and their derivatives are next to each other.
    """
    if not state.named:
        return nodes_within([*_pending_effects(trace), *outputs], leaves, trace)
    order = trace.recorded[trace.start :]
    del trace.recorded[trace.start :]
    return order


def sort_as_recorded(nodes: list[Node], trace: Trace) -> list[Node]:
    """Sort the nodes of a trace in recorded order, if that is known (while a jaxpr is made)."""
    if not state.named:
        return nodes
    at = {id(x): i for i, x in enumerate(trace.recorded)}
    return sorted(nodes, key=lambda x: at.get(id(x), -1))


def _pending_effects(trace: Trace) -> list[Node]:
    """Return the operations of a trace with effects that a derivative must visit, in order.

    Outside of abstract traces they have run already; only those that cannot be differentiated are
    returned, so that they raise.
    """
    if state.abstract is not None:
        return [n for n in state.abstract.effects if within(n, trace)]
    return [n for n in trace.effects if n.op.kind == "callback" and n.op.jvp is not ZERO]


def dependents(order: Sequence[Node], leaves: Iterable[Node]) -> list[Node]:
    """Return the nodes of an order that depend on the leaves."""
    reached = set(map(id, leaves))
    out: list[Node] = []
    for node in order:
        for x in node.inputs:
            if id(x) in reached:
                reached.add(id(node))
                out.append(node)
                break
    return out
