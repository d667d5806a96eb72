"""Records of jitted calls (`_native/calls.c`) and of pending graphs (`_native/repeats.c`) that were
seen before, in the words and objects that the extension reads.

In: for a traced signature what a call does, for a pending graph how it is computed. Out: a
`Record`. Where anything is not as a record says, Python goes on, which knows all cases.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from accnp._native import Record
from accnp.runtime import buffer as pool

__all__ = ["Call", "Objects", "Repeat", "Table"]


class Objects:
    """Objects that words refer to by number."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def number(self, x: Any) -> int:
        """The number of an object, which lives as long as the record."""
        self.all.append(x)
        return len(self.all) - 1

    def numbers(self, xs: Sequence[Any]) -> list[int]:
        """Those of several."""
        return [self.number(x) for x in xs]

    def triples(self, xs: Sequence[tuple[Any, Any, Any]]) -> list[int]:
        """Those of dictionaries, names and what these stand for."""
        return [self.number(x) for triple in xs for x in triple]

    def spaces(self, sizes: Sequence[int]) -> list[int]:
        """For each buffer to make the free blocks of the pool, and its bytes."""
        return [word for n in sizes for word in (self.number(pool.blocks(n)), n)]


@dataclass
class Table:
    """How the extension alone computes a call."""

    empty: Sequence[Any]  # containers that must be empty for that
    same: Sequence[tuple[Any, str, Any]]  # names that must stand for an object
    fixed: Sequence[int]  # addresses after the arguments
    sizes: Sequence[int]  # bytes of buffers to make, after those
    result: Sequence[int]  # words: what it is, of buffers without the fixed ones
    build: Callable[[tuple], Any] | None  # makes the result of that; None: it is that
    words: ctypes.Array  # see `engine/table.py`
    mode: int  # see `_native`
    team: Sequence[int]  # of threads, and helpers; or nothing


@dataclass
class Call:
    """What a call of one signature does."""

    positional: int  # arguments
    names: Sequence[str]  # of the others, compared by identity
    objects: Objects  # of the words below
    arguments: Sequence[int]  # words: what each must be, see `calls.c`
    leaves: int  # among them
    nodes: Sequence[Any]  # closed over, before the arguments
    # Containers, and what says whether the record may be used while they are not empty.
    conditions: Sequence[tuple[Any, Callable[[], bool]]]
    same: Sequence[tuple[Any, str, Any]]  # names that must stand for an object
    finish: Callable[[tuple], Any]  # leaves (nodes, and Python numbers) to the result
    table: Table | None  # what computes the result in its place, where it may
    keeps: Sequence[Any] = field(default=())  # what lives as long

    def record(self) -> Record:
        """The record that the extension reads."""
        to, t = self.objects, self.table
        counts: list[int] = [0] * 10
        if t is not None:
            counts = [
                *map(len, [t.empty, t.same, t.fixed, t.sizes]),
                2 + len(t.team),
                t.mode,
                -1 if t.build is None else to.number(t.build),
                ctypes.addressof(t.words),
                *[*t.team, 0, 0][:2],
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
class Repeat:
    """How pending graphs of one structure are computed."""

    # Of each: form, how it is held, uses, inputs; see `repeats.c`.
    nodes: Sequence[tuple[Any, int, int, Sequence[int]]]
    leaves: int
    fixed: Sequence[int]  # as above, from here on
    sizes: Sequence[int]
    results: Sequence[tuple[int, int]]  # number of a buffer to make, and of the node it is for
    depth: int
    table: Any
    empty: Sequence[Any]
    same: Sequence[tuple[Any, str, Any]]
    keeps: Sequence[Any] = field(default=())

    def record(self) -> Record:
        """The record that the extension reads."""
        to = Objects()
        words = [
            len(self.nodes),
            self.leaves,
            *map(len, [self.empty, self.same, self.fixed, self.sizes, self.results]),
            self.depth,
            ctypes.addressof(self.table),
            *to.numbers(self.empty),
            *to.triples(self.same),
            *self.fixed,
            *to.spaces(self.sizes),
            *[x for form, *n, ins in self.nodes for x in (to.number(form), *n, len(ins), *ins)],
            *[x for pair in self.results for x in pair],
        ]
        return Record(words, tuple(to.all), self.keeps)
