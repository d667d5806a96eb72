"""Which calls of a jitted function the extension makes when they are met again.

In: a function, an entry of its cache, and the arguments of a call that went well. Out: a record of
such calls with the function (`runtime/records.py`); or nothing, where Python has a part in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from accnp._native import ARRAY, DICT, LIST, NUMBER, SAME, TUPLE
from accnp.api.arguments.convert import as_node
from accnp.array import Array
from accnp.config import config, epoch, scoped
from accnp.engine import ASYNC, repeated, watch
from accnp.engine.table import Walk
from accnp.ir import trace as traces
from accnp.pytree.structure import NODES, is_namedtuple
from accnp.runtime import threads
from accnp.runtime.records import Call, Objects

__all__ = ["arm"]

MOST = 4  # records of a function: each is looked at by calls that fit the ones behind it
ROOM = 4096  # leaves and results: machine code lists them on the stack


def arm(
    function: Any, entry: Any, args: Sequence[Any], kwargs: Mapping[str, Any], key: Any
) -> None:
    """Give a function a record for calls like this one, made under these switches."""
    now = epoch["now"]  # first: another thread may change them
    if all(e is not entry for e in list(function._cache.values())):
        return  # caches were cleared while this call ran: the program may be an old one
    plan = entry.plan
    if plan is None or plan.quick is None or plan.overwritten or plan.work >= ASYNC:
        return
    if entry.watched is not None or watch.on:
        return
    if scoped or key is not config.key:  # this thread may have other switches than the rest
        return
    words = _Words(Objects())
    try:
        for place in _order(function, args, kwargs):
            words.argument(place, function, args, kwargs)
    except LookupError:
        return
    inputs = entry.graph.inputs[len(entry.consts) :]
    if [x.aval for x in inputs] != words.avals:
        return  # another thread has changed a container since
    record = _record(now, entry, plan, words, len(args), list(kwargs))
    if record is None:
        return
    others = [r for r in function._records if r.keeps[0] is not entry]
    function._records = (record.record(), *others[: MOST - 1])


def _order(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[int]:
    """The places of the arguments in the order of their leaves."""
    names = list(kwargs)
    return [*range(len(args)), *[len(args) + names.index(k) for k in sorted(names)]]


class _Words:
    """What arguments must be, and what a result is, in the words of `calls.c`."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.words: list[int] = []
        self.leaves: list[bool] = []  # of the arguments: which are arrays
        self.avals: list[Any] = []  # of the arguments

    def argument(
        self, place: int, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """One argument; LookupError for what is left to Python."""
        self.words.append(place)
        count = len(args)
        if place < count:
            value, static = args[place], place in function._static_numbers
        else:
            name = list(kwargs)[place - count]
            value, static = kwargs[name], name in function._static_names
        self.same(value) if static else self.tree(value)

    def same(self, value: Any) -> None:
        """A static value that never changes: the same object is the same value."""
        kind = type(value)
        # Classes of their own may compare by what can change.
        found = [k for k in _STATIC if isinstance(value, k)]
        if not any(kind.__hash__ is k.__hash__ and kind.__eq__ is k.__eq__ for k in found):
            raise LookupError(value)
        self.words += [SAME, self.object(value)]

    def tree(self, value: Any) -> None:
        """An argument of arrays and numbers."""
        kind = type(value)
        if kind is Array:
            aval = value._node.aval
            self.words += [ARRAY, self.object(aval)]
            self.avals.append(aval)
            self.leaves.append(True)
        elif kind in (float, int, bool):
            aval = as_node(value).aval
            dtype = aval.dtype
            how = {"f": 1, "i": -1, "b": 0}.get(dtype.kind)
            if how is None or (how and dtype.itemsize not in (4, 8)):
                raise LookupError(value)
            self.words += [NUMBER, self.object(kind), how * dtype.itemsize]
            self.avals.append(aval)
            self.leaves.append(False)
        elif value is None:
            self.words += [SAME, self.object(None)]
        elif kind is dict:
            self.words += [DICT, len(value)]
            for k in sorted(value):
                self.words.append(self.key(k))
                self.tree(value[k])
        elif kind is list or kind is tuple or _is_plain_namedtuple(kind):
            self.words += [LIST if kind is list else TUPLE, self.object(kind), len(value)]
            for x in value:
                self.tree(x)
        else:
            raise LookupError(value)

    def result(self, node: Any, leaves: Iterator[tuple[int, Any]]) -> None:
        """A result of this structure; LookupError for what is left to Python."""
        if node is None:
            which, aval = next(leaves)
            self.words += [ARRAY, which, self.object(aval)]
            return
        kind, keys, inner = node
        if kind is type(None):
            self.words += [SAME, self.object(None)]
            return
        if kind not in _KINDS:
            raise LookupError(kind)
        self.words += [_KINDS[kind], len(inner)]
        for i, x in enumerate(inner):
            if kind is dict:
                self.words.append(self.key(keys[i]))
            self.result(x, leaves)

    def key(self, key: Any) -> int:
        """A key of a dictionary, which is looked up without calls of Python functions."""
        if type(key) not in (str, int):
            raise LookupError(key)
        return self.object(key)

    def object(self, x: Any) -> int:
        """The number of an object."""
        return self.objects.number(x)


def _is_plain_namedtuple(kind: type) -> bool:
    """Whether a class is a namedtuple whose children are its items."""
    return is_namedtuple(kind) and kind not in NODES and kind.__iter__ is tuple.__iter__


_KINDS = {tuple: TUPLE, list: LIST, dict: DICT}
_STATIC = (int, float, str, bytes, bool, type(None), type, FunctionType, np.dtype)


def _record(
    now: object, entry: Any, plan: Any, words: _Words, positional: int, names: Sequence[str]
) -> Call | None:
    walk: Walk = plan.walks
    empty, same = repeated.switches(now)
    team: tuple[int, ...] = ()
    if walk.helpers:
        team = threads.call_helpers(walk.helpers)
        same += [(vars(threads), name, vars(threads)[name]) for name in ("_team", "_limit")]
    closed, known = len(entry.consts), len(words.leaves) + len(entry.consts)
    results = []
    for which, aval in zip(walk.outputs, entry.out_avals, strict=True):
        if known <= which < known + len(plan.constants):
            return None
        if closed <= which < known and not words.leaves[which - closed]:
            return None  # a number: it has no buffer
        results.append((which - (which >= known) * len(plan.constants), aval))
    if known + len(plan.constants) + len(results) > ROOM:
        return None
    made, build = _Words(words.objects), None
    try:
        made.result(entry.out_spec._node, iter(results))
    except LookupError:
        made, build = _Words(words.objects), entry.out_spec.unflatten
        made.result((tuple, None, (None,) * len(results)), iter(results))
    return Call(
        positional=positional,
        names=names,
        objects=words.objects,
        arguments=words.words,
        leaves=len(words.leaves),
        nodes=entry.consts,
        fixed=[b.ptr for b in plan.constants],
        sizes=[*walk.results, *([walk.scratch] if walk.scratch else ())],
        result=made.words,
        build=build,
        table=walk.table,
        mode=walk.mode,
        team=team,
        empty=[traces.tracing, *empty],
        same=same,
        keeps=(entry, plan, walk),
    )
