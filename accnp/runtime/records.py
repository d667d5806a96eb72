"""The short way of a jitted call: machine code (`calls.py`) that checks arrays, launches and makes
arrays, where Python takes ten times as long.

In: the classes and where they keep what (`install`); for a traced signature what a call does
(`Record`). Out: `__call__` and `Buffer.__del__` in machine code, and the tuple that the first looks
for. A call whose arguments are others, or for which anything is not as a record says, goes on in
Python, which knows all cases.
"""

from __future__ import annotations

import ctypes
import struct
import sysconfig
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accnp.runtime import buffer as pool
from accnp.runtime.calls import CALL, TEXT
from accnp.runtime.compile import native_code, runner
from accnp.runtime.launch import method
from accnp.runtime.slots import DROP, LAYOUT, LEAVES, WORDS

__all__ = ["Record", "install"]


@dataclass
class Record:
    """What a call of one signature does. Objects are compared by identity."""

    avals: Sequence[Any]  # of the arguments
    nodes: Sequence[Any]  # closed over, before the arguments
    fixed: Sequence[int]  # addresses after the arguments
    sizes: Sequence[int]  # bytes of buffers to make, after those
    results: Sequence[tuple[int, Any]]  # number of a buffer without the fixed ones, and its aval
    build: Callable[[tuple], Any] | None  # makes the result of several arrays; None: it is one
    table: Any  # its words, see `engine/table.py`
    mode: int  # see `launch.py`
    team: Sequence[int]  # of threads, and helpers; or nothing
    empty: Sequence[Any]  # containers that must be empty
    same: Sequence[tuple[dict[str, Any], str, Any]]  # names that must stand for an object
    keeps: Sequence[Any] = field(default=())  # what lives as long

    def packed(self) -> tuple[Any, ...]:
        """The record as machine code reads it, with all that it refers to."""
        blocks = [pool.blocks(n) for n in self.sizes]
        made = [(free, n, size) for (free, size), n in zip(blocks, self.sizes, strict=True)]
        build = 0 if self.build is None else 1 if self.build is tuple else id(self.build)
        team = [*self.team, 0, 0][:2]
        counts = [self.avals, self.empty, self.same, self.nodes, self.fixed, made, self.results]
        words = [
            *map(len, counts),
            2 + len(self.team),
            self.mode,
            build,
            ctypes.addressof(self.table),
            *team,
            *map(id, self.empty),
            *[id(x) for triple in self.same for x in triple],
            *map(id, self.nodes),
            *map(id, self.avals),
            *self.fixed,
            *[id(x) for triple in made for x in triple],
            *[x for which, aval in self.results for x in (which, id(aval))],
        ]
        return struct.pack(f"{len(words)}q", *words), self, made


def install(
    caller: type,
    slow: Callable[..., Any],
    slots: Mapping[str, tuple[type, str]],
    new_node: Mapping[str, Any],
) -> Any:
    """Make `Buffer.__del__` machine code; returns `__call__` for a class, whose slot `fast` has
    the records of an object; None where objects do not lie as expected.

    `slots`: where the words of the layout that are offsets are found; `new_node`: slots of a leaf
    that are the same in all.
    """
    try:
        offsets = {word: _offset(*where) for word, where in slots.items()}
        leaves = [(_offset(slots["value"][0], name), value) for name, value in new_node.items()]
    except LookupError:
        return None
    assert len(leaves) == LEAVES
    symbols = (CALL, DROP, LAYOUT)
    addresses, code = native_code(("calls", TEXT), TEXT, symbols)
    found = dict(zip(symbols, addresses, strict=True))
    objects = {
        "array": slots["node_of"][0],
        "node": slots["value"][0],
        "buffer": pool.Buffer,
        "slow": slow,
        "pop": deque.pop,
        "append": deque.append,
        **pool.parts(),
    }
    numbers = {**offsets, **{k: id(x) for k, x in objects.items()}, "run": runner(), "reused": 0}
    words = [numbers[name] for name in WORDS]
    words += [x for at, value in leaves for x in (at, id(value))]
    layout = (ctypes.c_int64 * len(words)).from_address(found[LAYOUT])
    layout[:] = words
    # What machine code refers to, which may run as long as there are objects.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object((objects, leaves, code)))
    at = found[LAYOUT] + 8 * WORDS.index("reused")
    pool.count_reuses(ctypes.c_int64.from_address(at))
    pool.Buffer.__del__ = method(pool.Buffer, "__del__", found[DROP], bare=True)
    return method(caller, "__call__", found[CALL], bare=False)


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
