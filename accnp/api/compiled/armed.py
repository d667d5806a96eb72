"""Which calls of a jitted function take the short way in machine code.

In: a function, an entry of its cache, and the arguments of a call that went well. Out: a record of
such calls with the function (`runtime/records.py`); or nothing, where Python has a part in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accnp.array import Array
from accnp.config import config, epoch, scoped
from accnp.engine import ASYNC, repeated, watch
from accnp.engine.table import Walk
from accnp.ir import trace as traces
from accnp.runtime import threads
from accnp.runtime.records import Record, install_calls

__all__ = ["arm", "put_in_place"]

MOST = 4  # records of a function: each is looked at by calls that fit the ones behind it


def put_in_place(function: type) -> Any:
    """`__call__` of jitted functions in machine code, None where it cannot be."""
    where = {"node_of": (Array, "_node"), "fast": (function, "_fast")}
    return repeated.repeat() and install_calls(function, function._called, where)  # type: ignore[attr-defined]


def arm(function: Any, entry: Any, arguments: Sequence[Any], key: Any) -> None:
    """Give a function a record for calls like this one, made under these switches."""
    now = epoch["now"]  # first: another thread may change them
    if all(e is not entry for e in list(function._cache.values())):
        return  # caches were cleared while this call ran: the program may be an old one
    plan = entry.plan
    if any(type(x) is not Array for x in arguments) or plan is None or plan.quick is None:
        return
    if plan.overwritten or plan.work >= ASYNC or entry.watched is not None or watch.on:
        return
    if scoped or key is not config.key:  # this thread may have other switches than the rest
        return
    record = _record(now, entry, plan, plan.walks, [x._node.aval for x in arguments])
    if record is None:
        return
    others = [r for r in getattr(function, "_fast", ()) if r[1].keeps[0] is not entry]
    function._fast = (record.packed(), *others[: MOST - 1])


def _record(now: object, entry: Any, plan: Any, walk: Walk, avals: Sequence[Any]) -> Record | None:
    empty, same = repeated.switches(now)
    team: tuple[int, ...] = ()
    if walk.helpers:
        team = threads.call_helpers(walk.helpers)
        same.append((vars(threads), "_team", threads._team))
    known = len(avals) + len(entry.consts)
    results = []
    for which, aval in zip(walk.outputs, entry.out_avals, strict=True):
        if known <= which < known + len(plan.constants):
            return None
        results.append((which - (which >= known) * len(plan.constants), aval))
    build: Any = None
    if not entry.single:
        numbers = tuple(range(len(results)))
        alike = entry.out_spec.unflatten([*numbers])
        plain = type(alike) is tuple and alike == numbers
        build = tuple if plain else entry.out_spec.unflatten
    return Record(
        avals=avals,
        nodes=entry.consts,
        fixed=[b.ptr for b in plan.constants],
        sizes=[*walk.results, *([walk.scratch] if walk.scratch else ())],
        results=results,
        build=build,
        table=walk.table,
        mode=walk.mode,
        team=team,
        empty=[traces.tracing, *empty],
        same=same,
        keeps=(entry, plan),
    )
