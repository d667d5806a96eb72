"""The short way of a jitted call (`calls.py`), and of pending graphs that were met before
(`repeats.py`): machine code that checks, launches and delivers, where Python takes ten times as
long.

In: the classes and where they keep what (`install`); for a traced signature what a call does
(`Record`), for a pending graph how it is computed (`Repeat`). Out: functions in machine code, and
the tuples that they read. Where anything is not as a record says, Python goes on, which knows all
cases.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sysconfig
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accnp.runtime import buffer as pool
from accnp.runtime import calls, repeats, slots
from accnp.runtime.compile import native_code, runner
from accnp.runtime.launch import builtin, method

__all__ = ["Record", "Repeat", "install", "install_calls"]


@dataclass
class Record:
    """What a call of one signature does. Objects are compared by identity."""

    positional: int  # arguments
    names: Sequence[str]  # of the others
    arguments: Sequence[int]  # words: what each must be, see `calls.py`
    leaves: int  # among them
    nodes: Sequence[Any]  # closed over, before the arguments
    fixed: Sequence[int]  # addresses after the arguments
    sizes: Sequence[int]  # bytes of buffers to make, after those
    result: Sequence[int]  # words: what it is, of buffers without the fixed ones
    build: Callable[[tuple], Any] | None  # makes the result of that; None: it is that
    table: Any  # its words, see `engine/table.py`
    mode: int  # see `launch.py`
    team: Sequence[int]  # of threads, and helpers; or nothing
    empty: Sequence[Any]  # containers that must be empty
    same: Sequence[tuple[Any, str, Any]]  # names that must stand for an object
    keeps: Sequence[Any] = field(default=())  # what lives as long

    def packed(self) -> tuple[Any, ...]:
        """The record as machine code reads it, with all that it refers to."""
        made = _spaces(self.sizes)
        team = [*self.team, 0, 0][:2]
        words = [
            self.positional,
            *map(len, [self.names, self.empty, self.same, self.nodes]),
            self.leaves,
            *map(len, [self.fixed, made]),
            2 + len(self.team),
            self.mode,
            0 if self.build is None else id(self.build),
            ctypes.addressof(self.table),
            *team,
            *map(id, self.names),
            *map(id, self.empty),
            *_ids(self.same),
            *map(id, self.nodes),
            *self.arguments,
            *self.fixed,
            *_ids(made),
            *self.result,
        ]
        return struct.pack(f"{len(words)}q", *words), self, made


@dataclass
class Repeat:
    """How a pending graph of one structure is computed, whoever recorded it."""

    nodes: Sequence[tuple[Any, int, int, Sequence[int]]]  # form, how held, uses, inputs: `repeats`
    leaves: int
    fixed: Sequence[int]  # as above, from here on
    sizes: Sequence[int]
    results: Sequence[tuple[int, int]]  # number of a buffer to make, and of the node it is for
    depth: int
    table: Any
    empty: Sequence[Any]
    same: Sequence[tuple[Any, str, Any]]
    keeps: Sequence[Any] = field(default=())

    def packed(self) -> tuple[Any, ...]:
        """The record as machine code reads it, with all that it refers to."""
        made = _spaces(self.sizes)
        words = [
            len(self.nodes),
            self.leaves,
            *map(len, [self.empty, self.same, self.fixed, made, self.results]),
            id(self.depth),
            ctypes.addressof(self.table),
            *map(id, self.empty),
            *_ids(self.same),
            *self.fixed,
            *_ids(made),
            *[x for form, *n, ins in self.nodes for x in (id(form), *n, len(ins), *ins)],
            *[x for pair in self.results for x in pair],
        ]
        return struct.pack(f"{len(words)}q", *words), self, made


def _spaces(sizes: Sequence[int]) -> list[tuple[Any, int, int]]:
    """For each buffer to make the free blocks of the pool, bytes and class."""
    blocks = [pool.blocks(n) for n in sizes]
    return [(free, n, size) for (free, size), n in zip(blocks, sizes, strict=True)]


def _ids(triples: Sequence[tuple[Any, Any, Any]]) -> list[int]:
    return [id(x) for triple in triples for x in triple]


@functools.cache
def _code() -> dict[str, int]:
    """Addresses of what the text defines. Buffers are dropped by it from now on."""
    text = slots.TEXT + calls.TEXT + repeats.TEXT
    symbols = (calls.CALL, repeats.REPEAT, slots.DROP, slots.LAYOUT)
    addresses, code = native_code(("calls", text), text, symbols)
    _keep(code)
    found: dict[str, int] = dict(zip(symbols, addresses, strict=True))
    at = found[slots.LAYOUT] + 8 * slots.WORDS.index("reused")
    pool.count_reuses(ctypes.c_int64.from_address(at))
    return found


def _keep(x: Any) -> None:
    """Machine code refers to it, which may run as long as there are objects."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))


def _know(numbers: Mapping[str, int]) -> None:
    """Fill in words of the layout."""
    for word, number in numbers.items():
        at = _code()[slots.LAYOUT] + 8 * slots.WORDS.index(word)
        ctypes.c_int64.from_address(at).value = number


def install(
    where: Mapping[str, tuple[type, str]],
    leaf: Mapping[str, Any],
) -> Callable[[tuple, Any], bool] | None:
    """Make `Buffer.__del__` machine code; returns the function that computes a pending node by
    records, None where objects do not lie as expected.

    `where`: slots of nodes, traces and buffers by the words of the layout; `leaf`: slots of a leaf
    that are the same in all.
    """
    try:
        offsets = {word: _offset(*place) for word, place in where.items()}
        leaves = [(_offset(where["value"][0], name), value) for name, value in leaf.items()]
    except LookupError:
        return None
    assert len(leaves) == slots.LEAVES
    objects = {
        "node": where["value"][0],
        "buffer": pool.Buffer,
        "pop": deque.pop,
        "append": deque.append,
        "nothing": (),
        "zero": 0,
        **pool.parts(),
    }
    _keep((objects, leaves))
    _know({**offsets, **{k: id(x) for k, x in objects.items()}, "run": runner()})
    words = [x for at, value in leaves for x in (at, id(value))]
    last = _code()[slots.LAYOUT] + 8 * len(slots.WORDS)
    (ctypes.c_int64 * len(words)).from_address(last)[:] = words
    pool.Buffer.__del__ = method(pool.Buffer, "__del__", _code()[slots.DROP], bare=True)
    return builtin("repeat", _code()[repeats.REPEAT])  # type: ignore[return-value]


def install_calls(
    caller: type, slow: Callable[..., Any], where: Mapping[str, tuple[type, str]]
) -> Any:
    """Returns `__call__` for a class, whose slot `fast` has the records of an object; None where
    objects do not lie as expected. After `install`; `where`: slots of arrays and of the class."""
    try:
        offsets = {word: _offset(*place) for word, place in where.items()}
    except LookupError:
        return None
    _keep(slow)
    _know({**offsets, "array": id(where["node_of"][0]), "slow": id(slow)})
    return method(caller, "__call__", _code()[calls.CALL], bare=False)


_HEAD = object.__basicsize__
_TYPE = _HEAD - ctypes.sizeof(ctypes.c_void_p)


def _offset(kind: type, name: str) -> int:
    """Where objects of a class keep a slot, by looking; LookupError if it is not seen."""
    if sysconfig.get_config_var("Py_GIL_DISABLED") or _TYPE != 8:
        raise LookupError("objects lie otherwise, or others change them meanwhile")
    there = pool.Buffer(0, 0, None, 0) if kind is pool.Buffer else object.__new__(kind)
    before, mark = getattr(there, name, None), object()
    if ctypes.c_size_t.from_address(id(there) + _TYPE).value != id(kind):
        raise LookupError(kind.__name__)
    setattr(there, name, mark)
    try:
        for at in range(_HEAD, kind.__basicsize__, 8):
            if ctypes.c_size_t.from_address(id(there) + at).value == id(mark):
                return at
    finally:
        setattr(there, name, before)
    raise LookupError(name)
