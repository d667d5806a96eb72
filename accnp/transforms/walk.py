"""Which nodes a transformation visits.

In: output nodes, the trace or leaves they hang from. Out: nodes in an order in which they can be
computed, and those of them that depend on given leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from accnp.ir.graph import toposort
from accnp.ir.node import Node
from accnp.ir.op import ZERO
from accnp.ir.trace import Trace, state
from accnp.primitives.kinds import dtype_kind

__all__ = [
    "dependents",
    "in_order",
    "inexact",
    "nodes_within",
    "taken_back",
    "within",
]

_INEXACT: dict[np.dtype, bool] = {}


def inexact(dtype: np.dtype) -> bool:
    """Whether values of this dtype have tangents: floating and complex ones do."""
    found = _INEXACT.get(dtype)
    if found is None:
        found = _INEXACT[dtype] = dtype_kind(dtype) in "fc"
    return found


def within(node: Node, trace: Trace) -> bool:
    """Whether a node was recorded in a trace, or in one that was made inside it."""
    t = node.trace
    while t is not None and t is not trace:
        t = t.parent
    return t is not None


def nodes_within(outputs: Iterable[Node], leaves: Sequence[Node], trace: Trace) -> list[Node]:
    """Return the nodes of a trace between leaves and outputs, inputs first."""
    return toposort(outputs, set(map(id, leaves)), lambda n: within(n, trace))


def taken_back(outputs: Iterable[Node], leaves: Sequence[Node], trace: Trace) -> list[Node]:
    """Return the nodes that `forward` visits; it records them again while a jaxpr is made.

    Then they are all that the trace has recorded, dead ones too, in that order: equations stand
    beside those of their derivatives.
    """
    if not state.named:
        return nodes_within([*_effects(trace), *outputs], leaves, trace)
    order = trace.recorded[trace.start :]
    del trace.recorded[trace.start :]
    return order


def in_order(nodes: list[Node], trace: Trace) -> list[Node]:
    """Bring nodes of a trace into the order in which they were recorded, where that is known."""
    if not state.named:
        return nodes
    at = {id(x): i for i, x in enumerate(trace.recorded)}
    return sorted(nodes, key=lambda x: at.get(id(x), -1))


def _effects(trace: Trace) -> list[Node]:
    """Return the operations with an effect of a trace that a derivative has to visit, in order.

    Where values are there they are done already: left are those that refuse to be differentiated.
    """
    if state.abstract is not None:
        return [n for n in state.abstract.effects if within(n, trace)]
    return [n for n in trace.effects if n.op.kind == "callback" and n.op.jvp is not ZERO]


def dependents(order: Sequence[Node], leaves: Iterable[Node]) -> list[Node]:
    """Return those nodes of an order that depend on the leaves."""
    reached = set(map(id, leaves))
    out = []
    for node in order:
        for x in node.inputs:
            if id(x) in reached:
                reached.add(id(node))
                out.append(node)
                break
    return out
