"""Dispatch cache entries for pending graphs that occur repeatedly.

When a pending graph has found its plan in the cache several times, the engine calls `add_entry`. It
adds an entry (`runtime/dispatch_entries.py`) with which the C extension recognizes the structure of
the graph and runs its plan without Python. Graphs whose execution needs Python get no entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accnp._native import COMPILED, KEEP_GIL, Record
from accnp.caches import BoundedCache
from accnp.config import epoch, scoped
from accnp.engine import watch
from accnp.engine.pending import Pending, is_kept
from accnp.engine.steps import Plan
from accnp.engine.values import set_values
from accnp.ir.node import Form, Node
from accnp.runtime import device as devices
from accnp.runtime.buffer import Buffer
from accnp.runtime.dispatch_entries import PendingGraphEntry
from accnp.runtime.stream import default_stream

__all__ = ["add_entry", "idle_conditions"]

HELD = 2  # the value for nodes whose references outside the graph do not matter
MOST = 4  # entries per form of the root node, since the extension tries them one after the other
ROOM = 4096  # the maximum number of nodes and leaves, which the extension lists on the stack


def idle_conditions() -> tuple[list[Any], list[tuple[Any, str, Any]]]:
    """Return the conditions under which the extension may compute on this thread.

    These are containers that must be empty and names that must have a given value. Together they
    mean that there is no GPU and that the stream has no work.
    """
    stream = default_stream()
    queue = stream._queue  # pyright: ignore[reportPrivateUsage]  # the extension reads it
    return [queue], [(vars(devices), "gpu_possible", False), (vars(stream), "_owner", 0)]


def add_entry(
    now: object,
    pending_graph: Pending,
    places: Sequence[int],
    plan: Plan,
    records: BoundedCache[Form, tuple[Record, ...]],
) -> None:
    """Add an entry for a pending graph with this plan, if it can have one."""
    form = pending_graph.order[0].form
    if pending_graph.n_requested != 1 or form is None:
        return
    record = (
        _make_entry(now, pending_graph, places, plan)
        if COMPILED
        else _make_python_entry(now, pending_graph, plan)
    )
    if record is None:
        return
    known = records.get(form) or records.recall(form) or ()
    others = [r for r in known if r.keeps[0] is now and r.keeps[1] is not plan]
    records.store(form, (record, *others[: MOST - 1]))


def _make_entry(
    now: object, pending_graph: Pending, places: Sequence[int], plan: Plan
) -> Record | None:
    """Return the entry of a pending graph with one root, or None if its plan needs Python.

    `now` identifies the current options, and `places` is what `nodes_to_store` returned. Another
    thread may be computing the graph meanwhile.
    """
    table, order = plan.launch_table, pending_graph.order
    if (
        table is None
        or plan.quick is None
        or table.mode != KEEP_GIL
        or table.helpers
        or watch.on
        or scoped
    ):
        return None
    if plan.device is not None or plan.overwritten or plan.spare or pending_graph.updated_leaves:
        return None
    if any(type(n.form) is not Form or type(n.aval) is tuple for n in order):
        return None
    leaves = len(pending_graph.leaves)
    if leaves + len(order) + len(plan.constants) > ROOM:
        return None
    first = leaves + len(plan.constants)  # the number of the first allocated buffer
    stored = places if places[0] == 0 else (0,)  # positions of the stored nodes
    if any(which < first for which in table.outputs):
        return None
    nodes = [
        (form, _required_references(pending_graph, i, i in stored), uses, ins)
        for i, ((form, *ins), uses) in enumerate(
            zip(pending_graph.key, pending_graph.uses, strict=True)
        )
    ]
    empty, same = idle_conditions()
    repeat = PendingGraphEntry(
        nodes=nodes,
        leaves=leaves,
        fixed=[b.ptr for b in plan.constants],
        sizes=[*table.results, *([table.scratch] if table.scratch else ())],
        places=[(pending_graph.leaves.index(x), x.params) for x in pending_graph.places]
        if plan.depends_on_indices
        else (),
        results=[(k - first, i) for k, i in zip(table.outputs, stored, strict=True)],
        depth=order[0].depth,
        table=table.table,
        empty=[scoped, *empty],
        same=[(epoch, "now", now), (vars(watch), "on", False), *same],
        keeps=(now, plan, table, [n.form for n in order]),
    )
    return repeat.record()


def _make_python_entry(now: object, pending_graph: Pending, plan: Plan) -> Record | None:
    """Return an entry written in Python, for use without the extension, for a graph of one
    operation on one or two operands; or None."""
    node, run = pending_graph.order[0], plan.quick
    both = len(node.inputs) == 2
    if (
        len(pending_graph.order) != 1
        or run is None
        or plan.device is not None
        or node.op.updated_operand is not None
    ):
        return None
    if plan.overwritten or plan.spare or plan.constants or not 0 < len(node.inputs) < 3:
        return None
    if len(plan.out_avals) != 1 or type(node.aval) is tuple:
        return None
    same = node.inputs[0] is node.inputs[-1]
    two = both and not same

    def compute(node: Node) -> bool:
        if (
            epoch["now"] is not now
            or scoped
            or watch.on
            or watch.unkeyed_options
            or devices.gpu_possible
        ):
            return False
        inputs = node.inputs
        if node.trace is not None or (inputs[0] is inputs[-1]) is not same:
            return False
        a = inputs[0].value
        b = inputs[1].value if two else a
        if type(a) is not Buffer or type(b) is not Buffer or not default_stream().idle:
            return False
        set_values([node], run([a, b] if two else [a]))
        return True

    return Record((), (), (now, plan, compute))


def _required_references(pending_graph: Pending, place: int, stored: bool) -> int:
    """Return whether a node must be referenced outside the graph (1), must not be (0), or either
    (HELD), so that the same nodes are stored."""
    return HELD if place == 0 or not (stored or is_kept(pending_graph, place)) else int(stored)
