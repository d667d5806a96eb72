"""Dispatch entries of jitted calls and of pending graphs.

The extension reads them (`_native/calls.c`, `_native/pending_dispatch.c`).

Input: a description of what a call with a traced signature does, or of how a pending graph is
computed. Output: a `Record`, which consists of the words and objects that the C extension reads. If
a later call or graph does not match its record, Python handles it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accnp._native import Record
from accnp.runtime import buffer as pool

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["Call", "Objects", "PendingGraphEntry", "Table"]


class Objects:
    """The objects to which words refer by number."""

    def __init__(self) -> None:
        self.all: list[object] = []

    def number(self, x: object) -> int:
        """Return the number of an object, which then lives as long as the record."""
        self.all.append(x)
        return len(self.all) - 1

    def numbers(self, xs: Sequence[object]) -> list[int]:
        """Return the numbers of several objects."""
        return [self.number(x) for x in xs]

    def triples(self, xs: Sequence[tuple[object, object, object]]) -> list[int]:
        """Return the numbers of dictionaries, of names, and of the values of these names."""
        return [self.number(x) for triple in xs for x in triple]

    def spaces(self, sizes: Sequence[int]) -> list[int]:
        """Return the number of the pool's free blocks, and the bytes, of each buffer to make."""
        return [word for n in sizes for word in (self.number(pool.blocks(n)), n)]


@dataclass
class Table:
    """The table with which the extension computes a call without Python."""

    empty: Sequence[object]  # containers that must be empty
    same: Sequence[tuple[object, str, object]]  # names that must have these values
    fixed: Sequence[int]  # addresses after the arguments
    sizes: Sequence[int]  # bytes of buffers to make, after those
    result: Sequence[int]  # words: the result in terms of the buffers, without the fixed ones
    # Builds the result from the results of kernels; None if those are the result.
    build: Callable[[tuple[Any, ...]], object] | None
    words: ctypes.Array[ctypes.c_int64]  # see `engine/table.py`
    mode: int  # see `_native`
    thread_pool: Sequence[int]  # the thread pool and the number of helpers, or empty


@dataclass
class Call:
    """The actions of a call with one signature."""

    positional: int  # number of positional arguments
    names: Sequence[str]  # of the keyword arguments, compared by identity
    objects: Objects  # of the words below
    arguments: Sequence[int]  # words: what each argument must be, see `calls.c`
    leaves: int  # number of array leaves in the arguments
    nodes: Sequence[object]  # closed over, before the arguments
    # Containers, and functions that return whether the record may be used while they are not empty.
    conditions: Sequence[tuple[object, Callable[[], bool]]]
    same: Sequence[tuple[object, str, object]]  # names that must have these values
    finish: Callable[[tuple[Any, ...]], object]  # leaves (nodes, and Python numbers) to the result
    table: Table | None  # computes the result instead of `finish`, if allowed
    keeps: Sequence[object] = field(default=())  # objects that live as long as the record

    def record(self) -> Record:
        """The record that the extension reads."""
        to, t = self.objects, self.table
        counts: list[int] = [0] * 10
        if t is not None:
            counts = [
                *map(len, [t.empty, t.same, t.fixed, t.sizes]),
                2 + len(t.thread_pool),
                t.mode,
                -1 if t.build is None else to.number(t.build),
                ctypes.addressof(t.words),
                *[*t.thread_pool, 0, 0][:2],
            ]
        words = [
            self.positional,
            *map(len, [self.names, self.nodes]),
            self.leaves,
            *map(len, [self.conditions, self.same]),
            *counts,
            to.number(self.finish),
            *to.numbers(self.names),
            *to.numbers(self.nodes),
            *self.arguments,
            *[to.number(x) for pair in self.conditions for x in pair],
            *to.triples(self.same),
        ]
        if t is not None:
            words += [
                *to.numbers(t.empty),
                *to.triples(t.same),
                *t.fixed,
                *to.spaces(t.sizes),
                *t.result,
            ]
        return Record(words, tuple(to.all), self.keeps)


@dataclass
class PendingGraphEntry:
    """The execution of pending graphs with one structure."""

    # For each node: form, how it is referenced, uses, inputs; see `pending_dispatch.c`.
    nodes: Sequence[tuple[object, int, int, Sequence[int]]]
    leaves: int
    fixed: Sequence[int]  # as in Table, also `sizes`, `empty`, `same`
    sizes: Sequence[int]
    places: Sequence[tuple[int, Params]]  # leaf with indices of an update; parameters
    results: Sequence[tuple[int, int]]  # numbers of the buffer and of its node
    depth: int
    table: Any
    empty: Sequence[object]
    same: Sequence[tuple[object, str, object]]
    keeps: Sequence[object] = field(default=())

    def record(self) -> Record:
        """The record that the extension reads."""
        to = Objects()
        words = [
            len(self.nodes),
            self.leaves,
            *map(len, [self.empty, self.same, self.fixed, self.sizes, self.places, self.results]),
            self.depth,
            ctypes.addressof(self.table),
            *to.numbers(self.empty),
            *to.triples(self.same),
            *self.fixed,
            *to.spaces(self.sizes),
            *[x for form, *n, ins in self.nodes for x in (to.number(form), *n, len(ins), *ins)],
            *[x for leaf, params in self.places for x in (leaf, to.number(params))],
            *[x for pair in self.results for x in pair],
        ]
        return Record(words, tuple(to.all), self.keeps)
