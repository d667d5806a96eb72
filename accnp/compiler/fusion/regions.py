"""Assembled values (concatenate, pad, stack, roll) inside of kernels: where the index space of a
kernel is cut, and which operand an assembled value is in a cell between the cuts.

In: a value of kind "assemble", the views through which a kernel reads it. Out: cuts along the axes
of the kernel's index space, and views (`Placed`) that show an operand where it lies in the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple

from accnp.compiler.fusion.spaces import apply_views
from accnp.primitives.views import contiguous

__all__ = ["Cell", "Cuts", "Placed", "cells_of", "count_cells", "cuts_of", "joined", "placed"]

# For each axis of an index space the places where it is cut, in order.
Cuts = tuple[tuple[int, ...], ...]


class Cell(NamedTuple):
    """A box of an index space."""

    origin: tuple[int, ...]
    shape: tuple[int, ...]


class Placed:
    """A view that shows an operand in the index space of the value that is assembled from it.

    It means something inside the operand's region only: `start` is where that begins, `first` which
    element of the operand stands there.
    """

    __slots__ = (
        "aval", "demands", "first", "inputs", "name", "op", "params", "size", "start", "stored",
    )  # fmt: skip

    outside = True  # nothing is computed for more than its region

    def __init__(self, whole: Any, k: int, start: Any, size: Any, first: Any) -> None:
        self.inputs = (whole.inputs[k],)
        self.aval = whole.aval
        self.start, self.size, self.first = start, size, first
        self.op, self.name = self, whole.op.name
        self.params: dict[str, Any] = {}
        self.demands: list[Any] = []
        self.stored = False

    def strides(self, shape: Any, strides: Any, offset: int) -> Any:
        """Strides of the operand as those of the whole (the rule of a view op)."""
        if len(shape) != len(self.start):  # one element for all of the region
            return self.aval.shape, (0,) * len(self.start), offset
        moved = zip(self.first, self.start, strides, strict=True)
        return self.aval.shape, tuple(strides), offset + sum([(f - s) * t for f, s, t in moved])

    def holds(self, index: tuple[int, ...]) -> bool:
        """Whether an element of the whole lies in this region."""
        return all([s <= i < s + n for i, s, n in zip(index, self.start, self.size, strict=True)])


def _unravel(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    at = []
    for step in contiguous(shape):
        at.append(place // step)
        place %= step
    return tuple(at)


def placed(v: Any) -> tuple[Placed, ...] | None:
    """The operands of an assembled value where they lie in it, later ones over earlier ones; None
    where a region has gaps."""
    found = []
    for k, (_, steps, first), (size, strides, offset) in v.op.parts(
        [x.aval for x in v.inputs], v.params
    ):
        if prod(size) == 0:
            continue
        wide = [d for d, n in enumerate(size) if n != 1]
        if any(strides[d] != contiguous(v.aval.shape)[d] for d in wide):
            return None
        shape = v.inputs[k].aval.shape
        here = _unravel(first, shape) if any(steps) else (0,) * len(size)
        found.append(Placed(v, k, _unravel(offset, v.aval.shape), size, here))
    return tuple(found)


def _index(shape: tuple[int, ...], d: int, chain: Any) -> Any:
    """The index along axis d of an array, as a strided function of the indices above its views."""
    return apply_views(chain, shape, tuple([int(a == d) for a in range(len(shape))]), 0)


def cuts_of(v: Any, parts: tuple[Placed, ...], chain: Any, space: tuple[int, ...]) -> Cuts | None:
    """Where an index space is to be cut so that each cell sees one operand of an assembled value;
    None where cuts along axes do not do it."""
    shape = v.aval.shape
    cuts: list[set[int]] = [set() for _ in space]
    for d, n in enumerate(shape):
        edges = {p.start[d] for p in parts} | {p.start[d] + p.size[d] for p in parts}
        edges -= {0, n}
        if not edges:
            continue
        seen = _index(shape, d, chain)
        if seen is None or seen[0] != space:
            return None
        _, steps, offset = seen
        moving = [a for a, step in enumerate(steps) if step and space[a] != 1]
        if len(moving) > 1:
            return None
        for a in moving:
            step = steps[a]
            for edge in edges:
                # The first index whose element lies on the other side of the edge.
                at = -((offset - edge) // step) if step > 0 else (offset - edge) // -step + 1
                if 0 < at < space[a]:
                    cuts[a].add(at)
    return tuple([tuple(sorted(c)) for c in cuts])


def joined(a: Cuts, b: Cuts) -> Cuts:
    """The cuts of both; those of one may be missing."""
    if not a or not b:
        return a or b
    return tuple([tuple(sorted({*x, *y})) for x, y in zip(a, b, strict=True)])


def count_cells(cuts: Cuts) -> int:
    return prod([len(c) + 1 for c in cuts])


def cells_of(space: tuple[int, ...], cuts: Cuts) -> Iterator[list[Cell]]:
    """The cells of an index space: lists of those that differ along its last long axis only."""
    cuts = cuts or ((),) * len(space)
    if not space:
        yield [Cell((), ())]
        return
    runs = [list(pairwise((0, *at, n))) for n, at in zip(space, cuts, strict=True)]
    last = max([d for d, n in enumerate(space) if n != 1], default=0)
    alone = len([n for n in space if n != 1]) <= 1  # nothing outside of the last axis: no rows
    heads = [[(0, n)] if d == last else run for d, (n, run) in enumerate(zip(space, runs))]
    for head in product(*heads):
        cells = []
        for run in runs[last] if runs else ():
            box = [*head[:last], run, *head[last + 1 :]]
            cells.append(Cell(tuple([a for a, _ in box]), tuple([b - a for a, b in box])))
        if alone:
            yield from ([cell] for cell in cells)
        else:
            yield cells


def operand(v: Any, parts: tuple[Placed, ...], chain: Any, origin: tuple[int, ...]) -> Placed:
    """The operand that an assembled value is in the cell that begins at this index."""
    index = []
    for d in range(v.aval.ndim):
        seen = _index(v.aval.shape, d, chain)
        if seen is None:  # an axis without edges (`cuts_of`): every operand has all of it
            index.append(0)
            continue
        index.append(seen[2] + sum([i * s for i, s in zip(origin, seen[1], strict=True)]))
    at = tuple(index)
    return next(p for p in reversed(parts) if p.holds(at))
