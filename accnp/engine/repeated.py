"""Which pending graphs the extension computes when they are met again.

In: a graph that was found to have a plan, several times. Out: a record of its structure
(`runtime/records.py`); or nothing, where Python has a part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accnp._native import ALONE, COMPILED, Record
from accnp.config import epoch, scoped
from accnp.engine import watch
from accnp.engine.pending import Pending, is_kept
from accnp.engine.steps import Plan
from accnp.ir.node import Form
from accnp.runtime import device as devices
from accnp.runtime.records import Repeat
from accnp.runtime.stream import default_stream

__all__ = ["arm", "idle"]

HELD = 2  # of a node: any way
MOST = 4  # records of a form: each is looked at for graphs that fit the ones behind it
FORMS = 1024
ROOM = 4096  # nodes and leaves: machine code lists them on the stack


def idle() -> tuple[list[Any], list[tuple[Any, str, Any]]]:
    """What must be empty, and which names must stand for what, for the extension to compute on this
    thread: there is no GPU, and the stream has no work."""
    stream = default_stream()
    return [stream._queue], [(vars(devices), "reach", False), (vars(stream), "_owner", 0)]


def arm(
    now: object,
    found: Pending,
    places: Sequence[int],
    plan: Plan,
    records: dict[Form, tuple[Record, ...]],
) -> None:
    """Put the record of a pending graph that has this plan among the others."""
    form = found.order[0].form
    if not COMPILED or found.asked != 1 or form is None:
        return
    record = _record(now, found, places, plan)
    if record is None:
        return
    if len(records) >= FORMS:
        records.clear()
    others = [r for r in records.get(form, ()) if r.keeps[0] is now and r.keeps[1] is not plan]
    records[form] = (record, *others[: MOST - 1])


def _record(now: object, found: Pending, places: Sequence[int], plan: Plan) -> Record | None:
    """The record of a pending graph with one root, made under these switches; None if it has no
    such plan. `places`: as of `wanted`. Another thread may be computing the graph meanwhile."""
    walk, order = plan.walks, found.order
    if plan.quick is None or walk.mode != ALONE or walk.helpers or watch.on or scoped:
        return None
    if plan.device is not None or plan.overwritten or plan.spare or found.taken:
        return None
    if any(type(n.form) is not Form or type(n.aval) is tuple for n in order):
        return None
    leaves = len(found.leaves)
    if leaves + len(order) + len(plan.constants) > ROOM:
        return None
    first = leaves + len(plan.constants)  # of the buffers that are made
    stored = places if places[0] == 0 else (0,)  # by their numbers
    if any(which < first for which in walk.outputs):
        return None
    nodes = [
        (form, _held(found, i, i in stored), uses, ins)
        for i, ((form, *ins), uses) in enumerate(zip(found.key, found.uses, strict=True))
    ]
    empty, same = idle()
    made = Repeat(
        nodes=nodes,
        leaves=leaves,
        fixed=[b.ptr for b in plan.constants],
        sizes=[*walk.results, *([walk.scratch] if walk.scratch else ())],
        results=[(k - first, i) for k, i in zip(walk.outputs, stored, strict=True)],
        depth=order[0].depth,
        table=walk.table,
        empty=[scoped, *empty],
        same=[(epoch, "now", now), (vars(watch), "on", False), *same],
        keeps=(now, plan, walk, [n.form for n in order]),
    )
    return made.record()


def _held(found: Pending, place: int, stored: bool) -> int:
    """How a node must be held for the same ones to be stored."""
    return HELD if place == 0 or not (stored or is_kept(found, place)) else int(stored)
