"""Kernels of gather, the scatter family and dynamic slices.

In: how operands and results lie in memory, dimension numbers. Out: their `OwnKernel`s.

Each is one nest of loops: over the windows (axes of the start indices, kinds "row" and "free") and
within a window (kinds "whole" and "part": whether it covers that axis of the operand). Coordinates
are read where the last loop over windows has begun, and clamped; so whatever the mode, nothing
outside the operand is read or written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from accnp.config import config
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code
from accnp.primitives.nests import Axis, Nest, Text, merged, total
from accnp.primitives.views import contiguous

__all__ = ["gather_kernel", "scatter_kernel", "slice_kernel", "update_kernel"]

COLUMNS = 64  # of a wide window: one task of a scatter that must keep the order of its rows
MANY = 1 << 16  # updates from which on threads share them
FEW = 8  # at least as many updates for each place: there are copies of the places
COPIES = 8
SIFTED = 2048  # updates whose places are sifted at once: these lists stay in the first-level cache
PARTS = 8  # of the places at most, each of which looks at all updates
PAD = 16  # a vector of places
# The same for the threads of a GPU: updates of a run, runs, and elements of all copies at most.
RUN, RUNS, ROOM = 32, 1024, 1 << 24


class _Windows(Nest):
    """The loops over some axes, with what is to be read about a window at its place in them."""

    def __init__(self, text: Text, axes: Sequence[Axis], drop: bool = False) -> None:
        super().__init__(text, axes)
        self.drop = drop  # whether windows that do not lie inside are left out
        self.inside = False  # whether there is anything to test for that
        self.base: list[str] = []  # terms of the place where a window begins

    def coordinates(self, loads: Sequence[tuple[str, np.dtype, int, int]]) -> None:
        """Read coordinates of a window: (text, dtype, largest one inside, stride) of each."""
        t, tests, places = self.text, [], []
        for load, dtype, top, stride in loads:
            if not (top or self.drop):  # the window covers the axis
                continue
            c, n = f"k{len(tests)}", t.integer(top)
            t.add(f"{c} = {load if dtype_code(dtype) == 'i8' else f'i8({load})'}")
            if dtype_code(dtype) == "u8":  # beyond all int64: beyond the end
                t.add(f"{c} = {c} if {c} >= 0 else {n} + 1")
            tests.append(f"({c} >= 0) & ({c} <= {n})")
            if self.drop:
                t.add(f"inside = {'inside & ' if self.inside else ''}{tests[-1]}")
                self.inside = True
            t.add(f"{c} = {c} if {c} < {n} else {n}", f"{c} = {c} if {c} > 0 else 0")
            places += t.times(c, stride)
        if len(places) > 1:
            t.add(f"base = {total(places)}")
            places = ["base"]
        self.base = places


# --- dynamic slices ------------------------------------------------------------------------------


def _window(
    starts: Sequence[Operand],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    sizes: tuple[int, ...],
    other: tuple[int, ...],
    store: Callable[[str, str, str], str],
) -> OwnKernel:
    """One window of an array of this shape, element by element with an array of its own size."""
    text = Text(len(starts) + 2)
    axes = [Axis(n, (s, w)) for n, s, w in zip(sizes, strides, other, strict=True)]
    nest = _Windows(text, merged(axes))
    nest.coordinates(
        [(f"a{k + 1}[0]", starts[k].dtype, shape[k] - n, strides[k]) for k, n in enumerate(sizes)]
    )
    for _ in nest.axes:
        nest.open()
    text.add(store(total([*nest.base, *nest.walk(0)]), total(nest.walk(1)), text.pointers[-1]))
    text.depth = 1
    return nest.own(1)


def slice_kernel(operands: Sequence[Operand], sizes: tuple[int, ...]) -> OwnKernel:
    """The kernel of `dynamic_slice`: (operand, starts...) -> window."""
    x, *starts = operands
    return _window(
        starts, x.shape, x.strides, sizes, contiguous(sizes),
        lambda window, place, out: f"{out}[{place}] = a0[{window}]",
    )  # fmt: skip


def update_kernel(operands: Sequence[Operand]) -> OwnKernel:
    """The kernel of `dynamic_update_slice`: (operand, update, starts...) -> operand, in place."""
    x, update, *starts = operands
    return _window(
        starts, x.shape, contiguous(x.shape), update.shape, update.strides,
        lambda window, place, out: f"{out}[{window}] = a0[{place}]",
    )  # fmt: skip


# --- gather, scatter -----------------------------------------------------------------------------


def _loads(
    nest: _Windows, starts: Operand, pointer: str, dims: Any, shape: Any, sizes: Any, strides: Any
) -> list[tuple[str, np.dtype, int, int]]:
    """What `coordinates` reads: one element of the last axis of the starts for each mapped axis."""
    at, step = nest.walk(0), starts.strides[-1]
    loads = []
    for k, d in enumerate(dims[2]):
        place = total([*at, *(nest.text.times(str(k), step) if k else ())])
        loads.append((f"{pointer}[{place}]", starts.dtype, shape[d] - sizes[d], strides[d]))
    return loads


def _axes(
    shape: tuple[int, ...],
    own: tuple[int, ...],
    starts: Operand,
    dims: Any,
    within: tuple[int, ...],
    strides: tuple[int, ...],
    free: bool,
) -> list[Axis]:
    """The axes of the gathered array, or of the updates, of this shape and these strides.

    `within` and `strides` are the shape and the strides of the array with the windows. Rows are
    free of each other where no two windows overlap. Steps: starts, array with the windows, own.
    """
    window_dims, dropped, _, batching, starts_batching = dims
    kept = [d for d in range(len(within)) if d not in dropped and d not in batching]
    windows = dict(zip(window_dims, kept, strict=True))
    rows = iter(range(len(starts.shape) - 1))
    axes = []
    for i, (n, step) in enumerate(zip(shape, own, strict=True)):
        if i in windows:
            d = windows[i]
            kind = "whole" if n == within[d] else "part"
            axes.append(Axis(n, (0, strides[d], step), kind))
        else:
            k = next(rows)
            shared = [d for d, a in zip(batching, starts_batching, strict=True) if a == k]
            kind = "free" if free or shared else "row"
            moved = strides[shared[0]] if shared else 0
            axes.append(Axis(n, (starts.strides[k], moved, step), kind))
    return merged(axes)


def _last_row(axes: Sequence[Axis]) -> int:
    return max([k for k, a in enumerate(axes) if a.kind in ("row", "free")], default=-1)


def gather_kernel(
    operands: Sequence[Operand], out: Aval, dims: Any, sizes: tuple[int, ...], fill: Any
) -> OwnKernel | None:
    """The kernel of `gather`; `fill` is the value outside, None where windows are moved inside."""
    x, starts = operands
    if 0 in x.shape:
        return None
    text = Text(3)
    if fill is not None:
        text.add(f"fill = {text.constant(fill)}")
    axes = _axes(out.shape, contiguous(out.shape), starts, dims, x.shape, x.strides, True)
    nest = _Windows(text, axes, fill is not None)
    last = _last_row(axes)
    for k in range(len(axes) + 1):
        if k == last + 1:
            nest.coordinates(_loads(nest, starts, "a1", dims, x.shape, sizes, x.strides))
        if k < len(axes):
            nest.open()
    value = f"a0[{total([*nest.base, *nest.walk(1)])}]"
    value = f"select(inside, {value}, fill)" if nest.inside else value
    text.add(f"a2[{total(nest.walk(2))}] = {value}")
    return nest.own(2)


_COMBINE = {
    "set": "{1}", "add": "{0} + {1}", "mul": "{0} * {1}",
    "min": "fmin({0}, {1})", "max": "fmax({0}, {1})",
}  # fmt: skip
_COMBINE_BOOL = {
    "set": "{1}", "add": "{0} or {1}", "mul": "{0} and {1}",
    "min": "{0} and {1}", "max": "{0} or {1}",
}  # fmt: skip


def _combined(x: Operand, combine: str, old: str, new: str) -> str:
    """The text of an element and an update of it, put together."""
    value = (_COMBINE_BOOL if x.dtype.kind == "b" else _COMBINE)[combine].format(old, new)
    whole = combine != "set" and x.dtype.kind in "iu"
    return f"{dtype_code(x.dtype)}({value})" if whole else value


def scatter_kernel(
    operands: Sequence[Operand],
    dims: Any,
    sizes: tuple[int, ...],
    combine: str,
    drop: bool,
    unique: bool,
) -> OwnKernel:
    """The kernel of a scatter: (operand, starts, updates) -> operand, in place.

    Rows come one after the other, in the order of the updates: the last one wins, and sums do not
    depend on threads. What is shared out is what lies apart: examples, and parts of windows along
    an axis that they cover; or, where there are many more rows than places, runs of the rows.
    """
    x, starts, updates = operands
    text = Text(3)
    if 0 in x.shape:
        text.add("pass")
        return text.own(0)
    strides = contiguous(x.shape)
    # Moved inside, windows may overlap that did not.
    axes = _axes(
        updates.shape, updates.strides, starts, dims, x.shape, strides, unique and drop
    )  # fmt: skip
    if combine != "set" and _many(axes, prod(x.shape), x.fine):
        return _Copies(x, starts, axes, dims, sizes, combine, drop).kernel()
    if _apart(axes, prod(x.shape)) and not x.fine:
        return _sifted(x, starts, axes, dims, sizes, combine, drop)
    last = _last_row(axes)
    if any(a.kind == "row" for a in axes):  # parts of windows can overlap: rows come first
        early = [a for a in axes[: last + 1] if a.kind == "part"]
        axes = [a for a in axes[: last + 1] if a.kind != "part"] + early + axes[last + 1 :]
        last -= len(early)
    nest = _Windows(text, axes, drop)
    ordered = bool(axes) and axes[0].kind == "row"
    share = 1 if x.fine else COLUMNS  # a thread of a GPU has a column, and neighbours lie together
    wide = ordered and axes[-1].kind == "whole" and axes[-1].size >= 2 * share
    columns = text.integer(axes[-1].size) if wide else ""
    if wide:
        text.add("for t in range(lo, hi):")
        text.depth += 1
        text.add(f"stop = t * {share} + {share}")
        text.add(f"stop = stop if stop < {columns} else {columns}")
    for k in range(len(axes) + 1):
        if k == last + 1:
            nest.coordinates(_loads(nest, starts, "a0", dims, x.shape, sizes, strides))
            if nest.inside:
                text.add("if inside:")
                text.depth += 1
        if k < len(axes):
            head = ""
            if wide and k == len(axes) - 1:
                head = f"for j{k} in range(t * {share}, stop):"
            elif ordered and k == 0:
                head = f"for j0 in range({text.integer(axes[0].size)}):"
            nest.open(head)
    place = f"a2[{total([*nest.base, *nest.walk(1)])}]"
    text.add(f"{place} = {_combined(x, combine, place, f'a1[{total(nest.walk(2))}]')}")
    if not ordered:
        return nest.own(2)
    work = 2 * prod([a.size for a in axes])
    return text.own(-(-axes[-1].size // share) if wide else 1, work)


def _many(axes: Sequence[Axis], places: int, fine: bool) -> bool:
    """Whether there are many more rows (or elements) than places for them."""
    if not axes or [a.kind for a in axes] not in (["row"], ["row", "whole"]):
        return False
    width = axes[1].size if len(axes) == 2 else 1
    updates = axes[0].size * width
    if fine:
        return width < 2 * COLUMNS and updates >= max(2 * RUN, FEW * places)
    return width < 2 * COLUMNS and updates >= max(MANY, FEW * places)


def _apart(axes: Sequence[Axis], places: int) -> bool:
    """Whether threads share out the places: many rows, too narrow to share out their columns."""
    if config.threads == 1 or [a.kind for a in axes] not in (["row"], ["row", "whole"]):
        return False
    narrow = len(axes) == 1 or axes[1].size < 2 * COLUMNS
    return narrow and axes[0].size >= MANY and places < 1 << 31


def _sifted(
    x: Operand, starts: Operand, axes: Sequence[Axis], dims: Any,
    sizes: tuple[int, ...], combine: str, drop: bool,
) -> OwnKernel:  # fmt: skip
    """Each task has a part of the places, and looks for updates of it among all, in their order:
    their places are compressed to a list by vectors, and no result depends on the parts."""
    text, parts = Text(3), min(config.threads, PARTS)
    strides = contiguous(x.shape)
    mapped, step = dims[2], axes[0].steps[0]
    # Places are sifted as they are, or computed before.
    plain = drop and len(mapped) == 1 and starts.dtype == np.int32 and step == 1
    scale = strides[mapped[0]] if plain else 1
    # Windows that cover all axes but those of the coordinates lie apart, or are the same.
    span = 1 + sum([(x.shape[d] - sizes[d]) * strides[d] for d in mapped]) // scale
    count, end, part = map(text.integer, (axes[0].size, span, -(-span // parts)))
    lists = ("g", "r") if plain else ("f", "g", "r")
    text.add(*[f"{name} = heap_i4({SIFTED + PAD})" for name in lists])
    with text.block("for t in range(lo, hi):"):
        text.add(f"first = t * {part}", f"stop = fmin(first + {part}, {end})")
        with text.block(f"for s in range(0, {count}, {SIFTED}):"):
            text.add(f"m = fmin({count} - s, {SIFTED})")
            nest, depth = _Windows(text, axes, drop), text.depth
            nest.opened = 1
            if not plain:
                text.add("for j0 in range(s, s + m):")
                text.depth += 1
                nest.coordinates(_loads(nest, starts, "a0", dims, x.shape, sizes, strides))
                value = total(nest.base)
                value = f"select(inside, {value}, -1)" if nest.inside else value
                text.add(f"f[j0 - s] = i4({value})")
                text.depth = depth
            text.add(f"c = sift(g, r, {'at(a0, s)' if plain else 'f'}, m, 0, i4(first), i4(stop))")
            with text.block("for k in range(c):"):
                text.add(f"p = {total(text.times('i8(g[k])', scale))}", "j0 = s + r[k]")
                if len(axes) > 1:
                    nest.open()
                place = f"a2[{total(['p', *nest.walk(1)])}]"
                update = f"a1[{total(nest.walk(2))}]"
                text.add(f"{place} = {_combined(x, combine, place, update)}")
            text.depth = depth
    text.add(*[f"release({name})" for name in lists])
    return text.own(parts, 4 * prod([a.size for a in axes]))


class _Copies:
    """Many updates of few places: runs of the updates go to copies of their own, which are joined
    in order. How many runs there are is a matter of shapes, not of threads, and so the result is.
    """

    def __init__(
        self, x: Operand, starts: Operand, axes: Sequence[Axis], dims: Any,
        sizes: tuple[int, ...], combine: str, drop: bool,
    ) -> None:  # fmt: skip
        self.x, self.starts, self.axes = x, starts, axes
        self.dims, self.sizes, self.drop = dims, sizes, drop
        self.combine = combine

    def combined(self, old: str, new: str) -> str:
        return _combined(self.x, self.combine, old, new)

    def walk(self, text: Text, bounds: str) -> _Windows:
        """Open the loop over updates; what comes next is inside of it, at the base of a row."""
        nest = _Windows(text, self.axes, self.drop)
        nest.open(f"for j0 in range({bounds}):")
        strides = contiguous(self.x.shape)
        nest.coordinates(
            _loads(nest, self.starts, "a0", self.dims, self.x.shape, self.sizes, strides)
        )
        return nest

    def kernel(self) -> OwnKernel:
        """The kernel of the runs, then that which joins the copies."""
        size, count = prod(self.x.shape), self.axes[0].size
        updates = prod([a.size for a in self.axes])
        copies = min(COPIES, 2 * updates // MANY)
        if self.x.fine:
            copies = max(1, min(RUNS, updates // RUN, ROOM // size, count))
        text = Text(4)
        n, run, end = text.integer(size), text.integer(-(-count // copies)), text.integer(count)
        with text.block("for c in range(lo, hi):"):
            text.add(f"unit = {text.constant(_unit(self.x.dtype, self.combine))}")
            with text.block(f"for q in range({n}):"):
                text.add(f"a3[c * {n} + q] = unit")
            text.add(f"stop = c * {run} + {run}", f"stop = stop if stop < {end} else {end}")
            nest = self.walk(text, f"c * {run}, stop")
            if nest.inside:
                text.add("if inside:")
                text.depth += 1
            if len(self.axes) > 1:
                nest.open()
            text.add(f"p = {total([f'c * {n}', *nest.base, *nest.walk(1)])}")
            text.add(f"a3[p] = {self.combined('a3[p]', f'a1[{total(nest.walk(2))}]')}")
        text.depth = 1
        first = text.own(copies, 4 * prod([a.size for a in self.axes]))
        text = Text(4)
        n = text.integer(size)
        with (
            text.block(f"for c in range({text.integer(copies)}):"),
            text.block("for q in range(lo, hi):"),
        ):
            text.add(f"a2[q] = {self.combined('a2[q]', f'a3[c * {n} + q]')}")
        then = text.own(size, copies * size)
        first.memory, first.then = ((dtype_code(self.x.dtype), copies * size),), (then,)
        return first


def _unit(dtype: np.dtype, combine: str) -> Any:
    """What changes nothing when it is combined."""
    if combine == "add":
        return -np.zeros((), dtype)[()] if dtype.kind in "fc" else dtype.type(0)
    if combine == "mul":
        return dtype.type(1)
    if dtype.kind == "b":
        return dtype.type(combine == "min")
    low = combine == "max"
    if dtype.kind == "f":
        return dtype.type(-np.inf if low else np.inf)
    info = np.iinfo(dtype)
    return dtype.type(info.min if low else info.max)
