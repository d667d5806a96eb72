"""Registration of repeated calls of jitted functions for dispatch by the C extension.

`register_call` is called after a successful call with the function, its cache entry and the
arguments. It adds a dispatch entry (`runtime/dispatch_entries.py`) for calls with equal static
values and arguments of the same types, or none if only the general path handles them. The extension
runs plans of kernels by itself; for other plans it only matches arguments and calls `jit.rerun`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from accnp import _native
from accnp._native import ARRAY, CLASS, COMPILED, CONVERT, DICT, EQUAL, LIST, NUMBER, SAME, TUPLE
from accnp.api.arguments.convert import as_node, numpy_node
from accnp.api.jit.jit import Entry, JitFunction, is_outside_traces, rerun
from accnp.array_type import Array
from accnp.config import config, epoch, scoped
from accnp.engine import ASYNC, pending_dispatch, ready, watch
from accnp.ir import trace as traces
from accnp.ir.node import Node
from accnp.ir.op import static_key
from accnp.pytree.structure import INNER, NODES, Structure, is_namedtuple
from accnp.runtime import device as devices
from accnp.runtime import threads
from accnp.runtime.buffer import Buffer
from accnp.runtime.dispatch_entries import Call, Objects, Table

__all__ = ["register_call"]

MAX_ENTRIES = 32  # of a function; a call is compared with them one after the other
MAX_LEAVES = 4096  # leaves and results of a table; also the leaves that the Python fallback matches


class _UnsupportedError(Exception):
    """Only the general path handles a value."""


def register_call(
    function: JitFunction, entry: Entry, args: Sequence[Any], kwargs: Mapping[str, Any], key: Any
) -> None:
    """Add a dispatch entry for calls like this one, made under the current options."""
    now = epoch["now"]  # read first, since another thread may change options
    if all(e is not entry for e in list(function._cache.values())):
        return  # caches were cleared meanwhile: the program may be outdated
    if watch.on or key is not config.key:
        return
    encoded = _Encoder(Objects())
    try:
        for position in _order(function, args, kwargs):
            encoded.add_argument(position, function, args, kwargs)
    except _UnsupportedError:
        return
    if len(encoded.leaves) > MAX_LEAVES and not COMPILED:
        return  # its Python function would take long to compile
    inputs = entry.graph.inputs[len(entry.consts) :]
    if [x.aval for x in inputs] != encoded.avals:
        return  # another thread has changed a container
    # If this thread has thread-local option values, each call compares them.
    options = (key,) if scoped else scoped, functools.partial(_has_key, key)
    fastmath, owner = function._options.fastmath, function if entry.watched else None
    record = Call(
        positional=len(args),
        names=list(kwargs),
        objects=encoded.objects,
        arguments=encoded.words,
        leaves=len(encoded.leaves),
        nodes=entry.consts,
        conditions=[(traces.tracing, is_outside_traces), options],
        same=[(epoch, "now", now), (vars(watch), "on", False)],
        finish=functools.partial(rerun, entry, fastmath, owner),
        table=_table(entry, encoded),
        keeps=(now, entry, entry.plan, entry.plan and entry.plan.launch_table),
    )
    others = [r for r in function._records if r.keeps[0] is now]
    function._records = (record.record(), *others[: MAX_ENTRIES - 1])


def _has_key(key: tuple[Any, ...]) -> bool:
    """Return whether the options of this thread are those of an entry."""
    return config.key == key


def _order(function: JitFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[int]:
    """Return the positions of the arguments in the order of their leaves."""
    names = list(kwargs)
    return [*range(len(args)), *[len(args) + names.index(k) for k in sorted(names)]]


class _Encoder:
    """Encodes the expected arguments and the result structure as words for `calls.c`."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.words: list[int] = []
        self.leaves: list[bool] = []  # for each leaf of the arguments: whether it is an array
        self.avals: list[Any] = []  # of the leaves of the arguments

    def add_argument(
        self, position: int, function: JitFunction, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Encode one argument; raises _UnsupportedError if only the general path handles it."""
        self.words.append(position)
        numbers, names = function.static_parameters
        count = len(args)
        if position < count:
            value, static = args[position], position in numbers or position - count in numbers
        else:
            name = list(kwargs)[position - count]
            value, static = kwargs[name], name in names
        self.add_static(value) if static else self.add_tree(value)

    def add_static(self, value: Any) -> None:
        """Encode a static value, which must be equal as a part of a signature's key."""
        kind = type(value)
        if isinstance(value, tuple) and kind.__eq__ is tuple.__eq__:
            items = _items(value)
            self.words += [TUPLE, self.object(kind), len(items)]
            for x in items:
                self.add_static(x)
        elif static_key(value)[1] is value:
            self.add_equal(EQUAL, value)
        else:  # numbers that compare equal but have different keys
            self.words += [SAME, self.object(value)]

    def add_equal(self, first: int, value: Any) -> None:
        """Encode a value that is compared by hash and equality, after the word `first`."""
        try:
            hashed = hash(value)
        except TypeError as error:
            raise _UnsupportedError(value) from error
        self.words += [first, self.object(type(value)), self.object(value), hashed]

    def add_leaf(self, aval: Any, *words: int, is_array: bool = True) -> None:
        """Encode a leaf of the arguments."""
        self.words += words
        self.avals.append(aval)
        self.leaves.append(is_array)

    def add_tree(self, value: Any) -> None:
        """Encode a dynamic argument, or a part of one."""
        kind = type(value)
        if kind is Array:
            aval = value._node.aval
            self.add_leaf(aval, ARRAY, self.object(aval))
        elif kind in (float, int, bool):
            aval = as_node(value).aval
            dtype = aval.dtype
            sign = {"f": 1, "i": -1, "b": 0}.get(dtype.kind)
            if sign is None or (sign and dtype.itemsize not in (4, 8)):
                raise _UnsupportedError(value)
            size = sign * dtype.itemsize
            self.add_leaf(aval, NUMBER, self.object(kind), size, is_array=False)
        elif value is None:
            self.words += [SAME, self.object(None)]
        elif kind is dict:
            self.words += [DICT, len(value)]
            for k in sorted(value):
                self.words.append(self.object(k))
                self.add_tree(value[k])
        elif kind is list or kind is tuple or (is_namedtuple(kind) and kind not in NODES):
            items = value if kind is list else _items(value)
            self.words += [LIST if kind is list else TUPLE, self.object(kind), len(items)]
            for x in items:
                self.add_tree(x)
        elif (flatten := _flatten_of(kind)) is not None:
            self.add_node(value, flatten)
        elif kind is complex or issubclass(kind, np.ndarray | np.generic):
            self.add_converted(value)
        else:
            raise _UnsupportedError(value)

    def add_node(self, value: Any, flatten: Callable[[Any], tuple[Any, Any]]) -> None:
        """Encode an object of a registered pytree class."""
        pair = flatten(value)
        if type(pair) is not tuple or len(pair) != 2:
            raise _UnsupportedError(value)
        parts = tuple(pair[0])
        self.words += [CLASS, self.object(type(value))]
        self.add_equal(self.object(flatten), pair[1])
        self.words.append(len(parts))
        for x in parts:
            self.add_tree(x)

    def add_converted(self, value: Any) -> None:
        """Encode a NumPy scalar, a complex number or a NumPy array, which are converted."""
        kind = type(value)
        convert: Callable[[Any], Node] = _convert
        like: tuple[Any, Any] = (None, None)
        if isinstance(value, np.ndarray):
            if kind is not np.ndarray or value.dtype.fields:  # float0 has fields
                raise _UnsupportedError(value)
            convert, like = numpy_node, (value.dtype, value.shape)
        aval = convert(value).aval
        self.add_leaf(aval, CONVERT, *self.objects.numbers([kind, aval, convert, *like]))

    def add_result(self, node: Any, leaves: Iterator[tuple[int | Buffer, Any]]) -> None:
        """Encode a result structure; raises _UnsupportedError if only Python can build it.

        A leaf is the number of its buffer, or the buffer of a constant, and its type.
        """
        if node is None:
            which, aval = next(leaves)
            if isinstance(which, int):
                self.words += [ARRAY, which, self.object(aval)]
            else:
                self.words += [_native.BUFFER, self.object(which), self.object(aval)]
            return
        kind, keys, inner = node
        if kind is type(None):
            self.words += [SAME, self.object(None)]
            return
        if kind not in _KINDS:
            raise _UnsupportedError(kind)
        self.words += [_KINDS[kind], len(inner)]
        for i, x in enumerate(inner):
            if kind is dict:
                self.words.append(self.key(keys[i]))
            self.add_result(x, leaves)

    def key(self, key: Any) -> int:
        """Encode a key of a result dictionary, whose hash must not call Python code."""
        if type(key) not in (str, int):
            raise _UnsupportedError(key)
        return self.object(key)

    def object(self, x: Any) -> int:
        """Return the number of an object."""
        return self.objects.number(x)


def _flatten_of(kind: type) -> Callable[[Any], tuple[Any, Any]] | None:
    """Return the function that flattens values of a class, as `flatten_arrays` does."""
    if kind in NODES:
        return NODES[kind].flatten
    return functools.partial(_flatten_inner, INNER[kind].take) if kind in INNER else None


def _items(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the items of a tuple, even if its class defines its iteration or length anew."""
    return tuple.__getitem__(value, slice(None))


def _flatten_inner(
    take: Callable[[Any, Callable[[Any], None]], Structure], value: Any
) -> tuple[Any, Any]:
    """Flatten a leaf that contains an array, such as typed random keys."""
    leaves: list[Any] = []
    node = take(value, leaves.append)
    if node is None:  # also a leaf of programs
        raise _UnsupportedError(value)
    return leaves, node[1]


def _convert(value: Any) -> Node:
    """Return the node of a number, with its value computed."""
    node = as_node(value)
    ready(node)
    return node


_KINDS = {tuple: TUPLE, list: LIST, dict: DICT}


def _table(entry: Entry, encoded: _Encoder) -> Table | None:
    """Return the table by which the extension runs such a call; None if it cannot run the plan."""
    plan = entry.plan
    if plan is None or plan.quick is None or plan.overwritten or plan.work >= ASYNC:
        return None
    if entry.watched is not None or devices.gpu_possible:
        return None
    table = plan.launch_table
    assert table is not None  # `quick` runs it
    empty, same = pending_dispatch.idle_conditions()
    thread_pool: tuple[int, ...] = ()
    if table.helpers:  # as many as the process has worker threads
        thread_pool = threads.call_helpers(table.helpers)
        same += [(vars(threads), name, vars(threads)[name]) for name in ("_thread_pool", "_limit")]
        empty.append(scoped)
    closed, known = len(entry.consts), len(encoded.leaves) + len(entry.consts)
    results: list[tuple[int | Buffer, Any]] = []
    for which, aval in zip(table.outputs, entry.out_avals, strict=True):
        if known <= which < known + len(plan.constants):
            results.append((plan.constants[which - known], aval))
            continue
        if closed <= which < known and not encoded.leaves[which - closed]:
            return None  # a Python number, which has no buffer
        results.append((which - (which >= known) * len(plan.constants), aval))
    if known + len(plan.constants) + len(results) > MAX_LEAVES:
        return None
    encoder, build = _Encoder(encoded.objects), None
    try:
        encoder.add_result(entry.out_spec._node, iter(results))
    except _UnsupportedError:
        encoder, build = _Encoder(encoded.objects), entry.out_spec.unflatten
        encoder.add_result((tuple, None, (None,) * len(results)), iter(results))
    return Table(
        empty=empty,
        same=same,
        fixed=[b.ptr for b in plan.constants],
        sizes=[*table.results, *([table.scratch] if table.scratch else ())],
        result=encoder.words,
        build=build,
        words=table.table,
        mode=table.mode,
        thread_pool=thread_pool,
    )
