"""Assembled values (concatenate, pad, stack, roll) inside of kernels.

The index space of a kernel is cut into cells, so that an assembled value consists of a single
operand in each cell. Input: a value of kind "assemble", and the views through which a kernel reads
it. Output: the cuts along the axes of the index space, and views (`Placed`) that show an operand at
its position in the assembled value. Fusion and lowering use both.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from accnp.compiler.fusion.spaces import apply_views
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.compiler.fusion.clusters import Demand
    from accnp.compiler.fusion.program import Value
    from accnp.compiler.fusion.spaces import Strided, View
    from accnp.ir.op_types import Params

__all__ = [
    "Cell", "Cuts", "Placed", "cells_of", "count_cells", "cuts_of", "placed", "union_of_cuts",
]  # fmt: skip

# For each axis of an index space, the indices at which it is cut, in order.
Cuts = tuple[tuple[int, ...], ...]


class Cell(NamedTuple):
    """A box of an index space."""

    start: tuple[int, ...]
    shape: tuple[int, ...]


class Placed:
    """A view of an operand in the index space of the value that is assembled from it.

    It is defined only inside the region of the operand. `start` is the first index of the region,
    and `first` is the index of the operand's element there.
    """

    __slots__ = (
        "aval", "demands", "first", "inputs", "name", "op", "params", "size", "start", "stored",
    )  # fmt: skip

    outside = True  # only elements of its region are computed

    def __init__(
        self,
        whole: Value,
        k: int,
        start: tuple[int, ...],
        size: tuple[int, ...],
        first: tuple[int, ...],
    ) -> None:
        self.inputs = (whole.inputs[k],)
        self.aval = whole.aval
        self.start, self.size, self.first = start, size, first
        self.op, self.name = self, whole.op.name
        self.params: Params = {}
        self.demands: list[Demand] = []
        self.stored = False

    def strides(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Strided:
        """Convert strides of the operand to strides of the assembled value, as the rule of a view
        op does."""
        if len(shape) != len(self.start):  # one element fills the region
            return self.aval.shape, (0,) * len(self.start), offset
        moved = zip(self.first, self.start, strides, strict=True)
        return self.aval.shape, tuple(strides), offset + sum([(f - s) * t for f, s, t in moved])

    def holds(self, index: tuple[int, ...]) -> bool:
        """Return whether an index of the assembled value is in this region."""
        return all([s <= i < s + n for i, s, n in zip(index, self.start, self.size, strict=True)])


def _unravel(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    at: list[int] = []
    for step in contiguous(shape):
        at.append(place // step)
        place %= step
    return tuple(at)


def placed(v: Value) -> tuple[Placed, ...] | None:
    """Return the operands of an assembled value with their positions; None if a region has gaps.

    Later operands hide earlier ones.
    """
    placements: list[Placed] = []
    assert v.op.parts is not None
    for k, (_, steps, first), (size, strides, offset) in v.op.parts(
        [x.aval for x in v.inputs], v.params
    ):
        if prod(size) == 0:
            continue
        wide = [d for d, n in enumerate(size) if n != 1]
        if any(strides[d] != contiguous(v.aval.shape)[d] for d in wide):
            return None
        shape: tuple[int, ...] = v.inputs[k].aval.shape
        here = _unravel(first, shape) if any(steps) else (0,) * len(size)
        placements.append(Placed(v, k, _unravel(offset, v.aval.shape), size, here))
    return tuple(placements)


def _index(shape: tuple[int, ...], d: int, chain: tuple[View, ...]) -> Strided | None:
    """Return the index along axis d as a strided function of the indices above views."""
    return apply_views(chain, shape, tuple([int(a == d) for a in range(len(shape))]), 0)


def cuts_of(
    v: Value, parts: tuple[Placed, ...], chain: tuple[View, ...], space: tuple[int, ...]
) -> Cuts | None:
    """Return the cuts after which each cell contains one operand of an assembled value; None if
    cuts along axes cannot achieve this."""
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
                # The first index whose element is on the other side of the edge.
                at = -((offset - edge) // step) if step > 0 else (offset - edge) // -step + 1
                if 0 < at < space[a]:
                    cuts[a].add(at)
    return tuple([tuple(sorted(c)) for c in cuts])


def union_of_cuts(a: Cuts, b: Cuts) -> Cuts:
    """Return the union of cuts; either may be empty."""
    if not a or not b:
        return a or b
    return tuple([tuple(sorted({*x, *y})) for x, y in zip(a, b, strict=True)])


def count_cells(cuts: Cuts) -> int:
    return prod([len(c) + 1 for c in cuts])


def cells_of(space: tuple[int, ...], cuts: Cuts) -> Iterator[list[Cell]]:
    """Yield the cells of an index space, in lists that differ only along its last long axis."""
    cuts = cuts or ((),) * len(space)
    if not space:
        yield [Cell((), ())]
        return
    runs = [list(pairwise((0, *at, n))) for n, at in zip(space, cuts, strict=True)]
    last = max([d for d, n in enumerate(space) if n != 1], default=0)
    alone = len([n for n in space if n != 1]) <= 1  # there are no rows, only one long axis
    heads = [[(0, n)] if d == last else run for d, (n, run) in enumerate(zip(space, runs))]
    for head in product(*heads):
        cells: list[Cell] = []
        for run in runs[last] if runs else ():
            box = [*head[:last], run, *head[last + 1 :]]
            cells.append(Cell(tuple([a for a, _ in box]), tuple([b - a for a, b in box])))
        if alone:
            yield from ([cell] for cell in cells)
        else:
            yield cells


def operand(
    v: Value, parts: tuple[Placed, ...], chain: tuple[View, ...], start: tuple[int, ...]
) -> Placed:
    """Return the operand that an assembled value consists of in the cell with this first index."""
    index: list[int] = []
    for d in range(v.aval.ndim):
        seen = _index(v.aval.shape, d, chain)
        if seen is None:  # an axis without edges (`cuts_of`): every operand spans all of it
            index.append(0)
            continue
        index.append(seen[2] + sum([i * s for i, s in zip(start, seen[1], strict=True)]))
    at = tuple(index)
    return next(p for p in reversed(parts) if p.holds(at))
