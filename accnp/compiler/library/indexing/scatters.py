"""Kernels that write to indexed positions: the scatter ops and dynamic slice updates.

The functions take the memory layout of operands and results and the dimension numbers, and return
an `OwnKernel`, a loop nest like those of `gathers.py`. An operand whose elements are all
equal (mostly zeros) is not stored as an array: each task writes its value to the part of the result
on which the task works, while that part is in the cache. `scatter.py` and `index.py` declare the
ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, cast

import numpy as np

from accnp.compiler.library.indexing.gathers import (
    Load,
    Windows,
    axes_of,
    find_last_row_axis,
    firsts,
    single_window_kernel,
    start_loads,
)
from accnp.compiler.library.writing.loop_nests import Axis, Nest, Text, merged, total
from accnp.config import config
from accnp.ir.aval import Aval
from accnp.ir.kernel import BLOCK as BLOCK_OF_STACK
from accnp.ir.kernel import Operand, OwnKernel, dtype_code, is_half
from accnp.primitives.index import DROP, ScatterDimensionNumbers
from accnp.primitives.scatter import window_sizes
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = [
    "dynamic_update_slice", "scatter_add", "scatter_max", "scatter_min", "scatter_mul",
    "scatter_set", "update_slice",
]  # fmt: skip

COLUMNS = 64  # columns of a wide window per task, if rows must be processed in order
MANY = 1 << 16  # minimum number of updates that threads share
FEW = 8  # minimum number of updates per position for which copies of the result are used
COPIES = 8  # maximum number of such copies
CHAIN = BLOCK_OF_STACK  # updates that are computed at a time
SIFTED = 2048  # updates that are sifted at a time, so that the lists stay in the L1 cache
PARTS = 8  # maximum number of parts of the positions; each part reads all updates
PAD = 16  # a vector of positions
BLOCK = 1 << 16  # elements of a result that a task writes and then updates, in the cache
# The same for GPU threads: updates of a run, number of runs, and elements of all copies, at most.
RUN, RUNS, ROOM = 32, 1024, 1 << 24
NARROW = 8  # minimum number of columns for which each has a thread
OWNERS = 1 << 14  # parts of the positions if each thread reads all updates


# --- operands whose elements are all equal -------------------------------------------------------


def _value(text: Text, x: Operand) -> None:
    """Write code that reads the initial value of the result, if it is a single value."""
    if x.one:
        text.add(f"value = {text.pointers[-1]}[0]")


def _fill(text: Text, out: str, first: str, stop: str) -> None:
    """Write code that stores this value to a part of the result."""
    with text.block(f"for q in range({first}, {stop}):"):
        text.add(f"{out}[q] = value")


def _fill_before(x: Operand, pointers: int, out: str, then: OwnKernel) -> OwnKernel:
    """Return a kernel that stores this value everywhere, followed by another kernel."""
    text = Text(pointers)
    _value(text, x)
    _fill(text, out, "lo", "hi")
    own = text.own(prod(x.shape), prod(x.shape))
    own.then = (then,)
    return own


def _blocks(
    text: Text, x: Operand, sizes: tuple[int, ...], other: tuple[int, ...], axes: Sequence[int],
    loads: Sequence[Load], drop: bool, out: str,
    store: Callable[[str, str], str],
) -> OwnKernel:  # fmt: skip
    """Return a kernel that writes one window to a result with a single initial value. Tasks are
    blocks of the result along its first axis. `axes` are the axes of the loaded coordinates, and
    `store` receives the indices in the result and in the update."""
    strides = contiguous(x.shape)
    d = next(k for k, n in enumerate(x.shape) if n > 1)
    rows, step = x.shape[d], max(1, BLOCK // strides[d])
    within = [Axis(sizes[k], (strides[k], other[k])) for k in range(d, len(sizes))]
    nest = Windows(text, [within[0], *merged(within[1:])], drop)
    _value(text, x)
    many, end, row = map(text.integer, (step, rows, strides[d]))
    text.add("for t in range(lo, hi):")
    text.depth += 1
    text.add(f"first = t * {many}", f"stop = fmin(first + {many}, {end})")
    _fill(text, out, f"first * {row}", f"stop * {row}")
    names = dict(zip(axes, nest.coordinates(loads), strict=True))
    if nest.inside:
        text.add("if inside:")
        text.depth += 1
    at, size = names.get(d, "0"), text.integer(sizes[d] if prod(sizes) else 0)
    nest.open(f"for j0 in range(fmax(first - {at}, 0), fmin(stop - {at}, {size})):")
    for _ in nest.axes[1:]:
        nest.open()
    text.add(store(total([*nest.base, *nest.walk(0)]), total(nest.walk(1))))
    return text.own(-(-rows // step), prod(x.shape) + prod(sizes))


# --- dynamic updates -----------------------------------------------------------------------------


def dynamic_update_slice(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel:
    """Return the kernel of `dynamic_update_slice`: (operand, update, starts...) -> operand, in
    place."""
    x, update, *starts = operands
    text, sizes, strides = Text(len(starts) + 2 + x.one), update.shape, contiguous(x.shape)
    loads = firsts(starts, x.shape, sizes, strides)
    out = f"a{len(starts) + 1}"

    def store(window: str, place: str) -> str:
        return f"{out}[{window}] = a0[{place}]"

    if x.one and not x.fine:
        axes = range(len(starts))
        return _blocks(text, x, sizes, update.strides, axes, loads, False, out, store)
    own = single_window_kernel(text, sizes, strides, update.strides, loads, store)
    return _fill_before(x, len(text.pointers), out, own) if x.one else own


def update_slice(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel:
    """Return the kernel of `update_slice`: (operand, update) -> operand, in place."""
    (x, update), region = operands, p["region"]
    text = Text(2 + x.one)
    steps = zip(update.shape, region.strides(x.shape), update.strides, strict=True)
    nest = Nest(text, merged([Axis(n, (s, t)) for n, s, t in steps]) or [Axis(1, (0, 0))])
    first = text.integer(region.offset(x.shape))
    for _ in nest.axes:
        nest.open()
    text.add(f"a1[{total([first, *nest.walk(0)])}] = a0[{total(nest.walk(1))}]")
    own = nest.own(1)
    return _fill_before(x, len(text.pointers), "a1", own) if x.one else own


# --- scatters ------------------------------------------------------------------------------------


_COMBINE = {
    "set": "{1}", "add": "{0} + {1}", "mul": "{0} * {1}",
    "min": "fmin({0}, {1})", "max": "fmax({0}, {1})",
}  # fmt: skip
_COMBINE_BOOL = {
    "set": "{1}", "add": "{0} or {1}", "mul": "{0} and {1}",
    "min": "{0} and {1}", "max": "{0} or {1}",
}  # fmt: skip


def _text(pointers: int, x: Operand, updates: Operand, begin: bool = True) -> Text:
    """Return a `Text` with this number of pointers, those from which updates are computed, and that
    of the initial value, if it is a single one."""
    computed = updates.computed
    text = Text(pointers + (computed.more if computed else 0) + x.one)
    if computed and begin:
        computed.begin(text, "a1", pointers)
    return text


def _update(text: Text, updates: Operand, place: str) -> str:
    """Return the expression of an update; it may write statements first."""
    return updates.computed.element(text, place) if updates.computed else f"a1[{place}]"


def _is_chain(updates: Operand, axes: Sequence[Axis]) -> bool:
    """Return whether updates are computed single elements that are processed in order."""
    single = len(axes) == 1 and axes[0].kind == "row" and axes[0].steps[2] == 1
    return updates.computed is not None and single


def _can_compute(updates: Operand, axes: Sequence[Axis]) -> bool:
    """Return whether computing updates in place is as fast as loading them."""
    if updates.computed is None or updates.computed.light or not axes or _is_chain(updates, axes):
        return True
    last = axes[-1]  # vectorized, if the innermost loop is contiguous
    return last.kind in ("whole", "part") and last.steps[1] == last.steps[2] == 1


def _open_chain(text: Text, nest: Nest, updates: Operand, first: str, stop: str) -> str:
    """Open the loop over a chain of updates, which are computed before in vectorized blocks; return
    the expression of the current update."""
    text.add(f"for s in range({first}, {stop}, {CHAIN}):")
    text.depth += 1
    text.add(f"m = fmin({stop} - s, {CHAIN})")
    updates.computed.block(text, "s", "m")
    nest.open("for j0 in range(s, s + m):")
    return f"{updates.computed.buffer}[j0 - s]"


def _combine_expression(x: Operand, combine: str, old: str, new: str) -> str:
    """Return the expression that combines an element with an update."""
    value = (_COMBINE_BOOL if x.dtype.kind == "b" else _COMBINE)[combine].format(old, new)
    whole = combine != "set" and x.dtype.kind in "iu"
    return f"{dtype_code(x.dtype)}({value})" if whole else value


def scatter_kernel(  # noqa: C901
    operands: Sequence[Operand],
    dims: ScatterDimensionNumbers,
    sizes: tuple[int, ...],
    combine: str,
    drop: bool,
    unique: bool,
) -> OwnKernel | None:
    """Return the kernel of a scatter, (operand, starts, updates) -> operand, in place; None if the
    updates should be computed by a separate kernel.

    Rows are processed in the order of the updates: the last one wins, and sums do not depend on the
    number of threads. Only independent work is distributed: examples, and parts of windows along
    an axis that they cover. If there are many more rows than positions, runs of rows are
    distributed.
    """
    x, starts, updates = operands
    text, size, strides = _text(3, x, updates), prod(x.shape), contiguous(x.shape)
    if 0 in x.shape:
        text.add("pass")
        return text.own(0)
    # Clamped windows may overlap even if the original ones do not.
    free = unique and drop
    if x.one and not x.fine and prod(starts.shape[:-1]) == 1:
        return _single(x, starts, updates, dims, sizes, combine, drop)
    axes = axes_of(
        updates.shape, updates.strides, starts, dims, x.shape, strides, free and not x.one
    )
    if not _can_compute(updates, axes):
        return None
    # On a CPU, sums in half precision, which round each time, are computed in order.
    joined = combine != "set" and (x.fine or not is_half(x.dtype))
    if joined and _has_many_rows_per_position(axes, size, x.fine):
        return _Copies(x, starts, updates, axes, dims, sizes, combine, drop).kernel()
    parts = 0 if x.fine else _count_position_parts(axes, size, x.one)
    if parts and updates.computed is not None and not updates.computed.light:
        return None  # each part would compute all updates, or one by one without vectors
    if parts:
        return _position_parts_kernel(x, starts, updates, axes, dims, sizes, combine, drop, parts)
    if x.one and free:
        axes = axes_of(updates.shape, updates.strides, starts, dims, x.shape, strides, True)
    if x.fine and _has_few_columns(axes):
        return _narrow_row_kernel(x, starts, axes, dims, sizes, combine, drop)
    last = find_last_row_axis(axes)
    if any(a.kind == "row" for a in axes):  # parts of windows can overlap, so rows come first
        early = [a for a in axes[: last + 1] if a.kind == "part"]
        axes = [a for a in axes[: last + 1] if a.kind != "part"] + early + axes[last + 1 :]
        last -= len(early)
    nest = Windows(text, axes, drop)
    ordered = bool(axes) and axes[0].kind == "row"
    share = 1 if x.fine else COLUMNS  # on a GPU, each thread has a column, so neighbors coalesce
    wide = ordered and axes[-1].kind == "whole" and axes[-1].size >= 2 * share
    columns = text.integer(axes[-1].size) if wide else ""
    # Whether a task has a part of the result to itself: columns, all of it, or the elements at one
    # index of the first axis.
    alone = last >= 0 and axes[0].kind != "part" and axes[0].steps[1] * axes[0].size == size
    mine = x.one and not x.fine and (wide or size <= BLOCK if ordered else alone)
    if mine:
        _value(text, x)
    if wide:
        text.add("for t in range(lo, hi):")
        text.depth += 1
        text.add(f"stop = t * {share} + {share}")
        text.add(f"stop = stop if stop < {columns} else {columns}")
    if mine and wide:
        step, turn = axes[-1].steps[1], text.integer(axes[-1].steps[1] * axes[-1].size)
        with text.block(f"for p in range(0, {text.integer(size)}, {turn}):"):
            first = total(["p", *text.times(f"(t * {share})", step)])
            _fill(text, "a2", first, total(["p", *text.times("stop", step)]))
    elif mine and ordered:
        _fill(text, "a2", "0", text.integer(size))
    update = ""
    for k in range(len(axes) + 1):
        if k == last + 1:
            nest.coordinates(start_loads(nest, starts, "a0", dims, x.shape, sizes, strides))
            if nest.inside:
                text.add("if inside:")
                text.depth += 1
        if k == 0 and _is_chain(updates, axes):
            update = _open_chain(text, nest, updates, "0", text.integer(axes[0].size))
        elif k < len(axes):
            head = ""
            if wide and k == len(axes) - 1:
                head = f"for j{k} in range(t * {share}, stop):"
            elif ordered and k == 0:
                head = f"for j0 in range({text.integer(axes[0].size)}):"
            nest.open(head)
        if k == 0 and mine and not ordered:
            row = text.integer(axes[0].steps[1])
            _fill(text, "a2", f"j0 * {row}", f"(j0 + 1) * {row}")
    place = f"a2[{total([*nest.base, *nest.walk(1)])}]"
    update = update or _update(text, updates, total(nest.walk(2)))
    text.add(f"{place} = {_combine_expression(x, combine, place, update)}")
    work = (2 if ordered else 1) * prod([a.size for a in axes]) + (size if mine else 0)
    extent = 1 if ordered or not axes else axes[0].size
    if wide:
        extent = -(-axes[-1].size // share)
    own = text.own(extent, work)
    return _fill_before(x, len(text.pointers), "a2", own) if x.one and not mine else own


def _single(
    x: Operand, starts: Operand, updates: Operand, dims: ScatterDimensionNumbers,
    sizes: tuple[int, ...], combine: str, drop: bool,
) -> OwnKernel:  # fmt: skip
    """Return the kernel of a scatter of one window into a single initial value."""
    steps = iter([updates.strides[d] for d in dims.update_window_dims])
    gone = {*dims.inserted_window_dims, *dims.operand_batching_dims}
    other = tuple([0 if d in gone else next(steps) for d in range(len(sizes))])
    text = _text(3, x, updates)
    nest = Windows(text, [])
    loads = start_loads(nest, starts, "a0", dims, x.shape, sizes, contiguous(x.shape))

    def store(window: str, place: str) -> str:
        new = _combine_expression(x, combine, f"a2[{window}]", _update(text, updates, place))
        return f"a2[{window}] = {new}"

    return _blocks(text, x, sizes, other, dims[2], loads, drop, "a2", store)


def _has_many_rows_per_position(axes: Sequence[Axis], places: int, fine: bool) -> bool:
    """Return whether there are many more rows (or elements) than positions."""
    if not axes or [a.kind for a in axes] not in (["row"], ["row", "whole"]):
        return False
    width = axes[1].size if len(axes) == 2 else 1
    updates = axes[0].size * width
    if fine:
        return width < 2 * COLUMNS and updates >= max(2 * RUN, FEW * places)
    return width < 2 * COLUMNS and updates >= max(MANY, FEW * places)


def _has_few_columns(axes: Sequence[Axis]) -> bool:
    """Return whether there are many rows, but too few columns for one thread for each."""
    if [a.kind for a in axes] not in (["row"], ["row", "whole"]):
        return False
    return axes[0].size >= RUN and (len(axes) == 1 or axes[1].size < NARROW)


def _narrow_row_kernel(
    x: Operand, starts: Operand, axes: Sequence[Axis], dims: ScatterDimensionNumbers,
    sizes: tuple[int, ...], combine: str, drop: bool,
) -> OwnKernel:  # fmt: skip
    """Return a kernel that processes narrow rows with many threads of a GPU. For integers, whose
    result does not depend on the order, each thread adds a row with atomics. Otherwise each thread
    has a part of the positions and searches all rows for it in order, so that the bits are those of
    sequential processing."""
    text, size, strides = Text(3 + x.one), prod(x.shape), contiguous(x.shape)
    nest = Windows(text, axes, drop)
    atomic = combine in ("add", "min", "max") and x.dtype.kind in "iu" and x.dtype.itemsize >= 4
    rows, part = axes[0].size, -(-size // OWNERS)
    head = ""
    if not atomic:
        step, count = text.integer(part), text.integer(rows)
        head = f"for j0 in range({count}):"
        text.add("for t in range(lo, hi):")
        text.depth += 1
        text.add(f"first = t * {step}", f"stop = first + {step}")
    nest.open(head)
    nest.coordinates(start_loads(nest, starts, "a0", dims, x.shape, sizes, strides))
    tests = ["inside"] if nest.inside else []
    if not atomic:
        text.add(f"from_ = {total(nest.base)}")
        tests.append("(from_ >= first) & (from_ < stop)")
    if tests:
        text.add(f"if {' & '.join(tests)}:")
        text.depth += 1
    for _ in axes[1:]:
        nest.open()
    place, new = total([*nest.base, *nest.walk(1)]), f"a1[{total(nest.walk(2))}]"
    if atomic:
        text.add(f"atomic_{combine}(a2, {place}, {new})")
    else:
        text.add(f"a2[{place}] = {_combine_expression(x, combine, f'a2[{place}]', new)}")
    work = prod([a.size for a in axes])
    own = text.own(rows, work) if atomic else text.own(-(-size // part), work + rows * OWNERS)
    return _fill_before(x, len(text.pointers), "a2", own) if x.one else own


def _count_position_parts(axes: Sequence[Axis], size: int, one: bool) -> int:
    """Return the number of parts of the positions, each of which reads all updates. It is 0 if
    there are too few updates, or if columns of windows can be distributed instead."""
    if [a.kind for a in axes] not in (["row"], ["row", "whole"]) or size >= 1 << 31:
        return 0
    count, width = axes[0].size, axes[1].size if len(axes) > 1 else 1
    narrow = width < 2 * COLUMNS
    parts = min(config.threads, PARTS) if narrow and count >= MANY else 0
    if one and size >= 2 * BLOCK and (width == 1 or axes[1].steps[1] == 1):
        # Each part is written and updated while it is in the cache, provided that reading indices
        # takes at most an eighth of that time. Rows of an embedding: 0.19 -> 0.14 ms.
        if narrow or size >= count * width:
            small = min(size // BLOCK, (size + 4 * count * width) // (8 * count))
            parts = max(small, min(config.threads, PARTS))
    elif one:
        parts = 0
    return parts if parts > 1 else 0


def _position_parts_kernel(
    x: Operand, starts: Operand, updates: Operand, axes: Sequence[Axis],
    dims: ScatterDimensionNumbers, sizes: tuple[int, ...], combine: str, drop: bool, parts: int,
) -> OwnKernel:  # fmt: skip
    """Return a kernel in which each task has a part of the positions and searches all updates for
    it in order. Vector instructions compress the matching positions to a list. The result does not
    depend on the number of parts."""
    text, size = _text(3, x, updates), prod(x.shape)
    strides = contiguous(x.shape)
    mapped, step = dims[2], axes[0].steps[0]
    width = axes[1].size if len(axes) > 1 else 1
    # Positions are sifted directly if they are equal to the indices, or are computed before.
    plain = drop and len(mapped) == 1 and starts.dtype == np.int32 and step == 1
    scale = strides[mapped[0]] if plain else 1
    # Windows that cover all axes except those of the coordinates are disjoint or identical.
    span = 1 + sum([(x.shape[d] - sizes[d]) * strides[d] for d in mapped]) // scale
    part = -(-span // parts)
    if x.one:
        span = size // scale
        part = -(-span // parts)
        part += 0 if plain else -part % width  # only whole windows
    count, end, step = map(text.integer, (axes[0].size, span, part))
    lists = ("g", "r") if plain else ("f", "g", "r")
    _value(text, x)
    text.add(*[f"{name} = heap_i4({SIFTED + PAD})" for name in lists])
    with text.block("for t in range(lo, hi):"):
        text.add(f"first = t * {step}", f"stop = fmin(first + {step}, {end})")
        if x.one:
            _fill(text, "a2", *[total(text.times(edge, scale)) for edge in ("first", "stop")])
        with text.block(f"for s in range(0, {count}, {SIFTED}):"):
            text.add(f"m = fmin({count} - s, {SIFTED})")
            nest, depth = Windows(text, axes, drop), text.depth
            nest.opened = 1
            if not plain:
                text.add("for j0 in range(s, s + m):")
                text.depth += 1
                nest.coordinates(start_loads(nest, starts, "a0", dims, x.shape, sizes, strides))
                value = total(nest.base)
                value = f"select(inside, {value}, -1)" if nest.inside else value
                text.add(f"f[j0 - s] = i4({value})")
                text.depth = depth
            indices = "at(a0, s)" if plain else "f"
            text.add(f"c = collect_between(g, r, {indices}, m, 0, i4(first), i4(stop))")
            with text.block("for k in range(c):"):
                text.add(f"p = {total(text.times('i8(g[k])', scale))}", "j0 = s + r[k]")
                if len(axes) > 1:
                    nest.open()
                place = f"a2[{total(['p', *nest.walk(1)])}]"
                update = _update(text, updates, total(nest.walk(2)))
                text.add(f"{place} = {_combine_expression(x, combine, place, update)}")
            text.depth = depth
    text.add(*[f"release({name})" for name in lists])
    return text.own(parts, 4 * prod([a.size for a in axes]) + (size if x.one else 0))


class _Copies:
    """Many updates of few positions: each run of updates has its own copy of the result, and the
    copies are combined in order. The number of runs, and therefore the result, depends on shapes
    and not on the number of threads.
    """

    def __init__(
        self, x: Operand, starts: Operand, updates: Operand, axes: Sequence[Axis],
        dims: ScatterDimensionNumbers, sizes: tuple[int, ...], combine: str, drop: bool,
    ) -> None:  # fmt: skip
        self.x, self.starts, self.updates, self.axes = x, starts, updates, axes
        self.dims, self.sizes, self.drop = dims, sizes, drop
        self.combine = combine

    def combined(self, old: str, new: str) -> str:
        return _combine_expression(self.x, self.combine, old, new)

    def walk(self, text: Text, first: str, stop: str) -> tuple[Windows, str]:
        """Open the loop over updates and read the coordinates of a row. Return the nest, and the
        expression of the update if it has been computed already."""
        nest, update = Windows(text, self.axes, self.drop), ""
        if _is_chain(self.updates, self.axes):
            update = _open_chain(text, nest, self.updates, first, stop)
        else:
            nest.open(f"for j0 in range({first}, {stop}):")
        strides = contiguous(self.x.shape)
        nest.coordinates(
            start_loads(nest, self.starts, "a0", self.dims, self.x.shape, self.sizes, strides)
        )
        return nest, update

    def kernel(self) -> OwnKernel:
        """Return the kernel of the runs, followed by the kernel that combines the copies."""
        size, count = prod(self.x.shape), self.axes[0].size
        updates = prod([a.size for a in self.axes])
        copies = min(COPIES, 2 * updates // MANY)
        if self.x.fine:
            copies = max(1, min(RUNS, updates // RUN, ROOM // size, count))
        text = _text(4, self.x, self.updates)
        n, run, end = text.integer(size), text.integer(-(-count // copies)), text.integer(count)
        with text.block("for c in range(lo, hi):"):
            text.add(f"unit = {text.constant(_unit(self.x.dtype, self.combine))}")
            with text.block(f"for q in range({n}):"):
                text.add(f"a3[c * {n} + q] = unit")
            text.add(f"stop = c * {run} + {run}", f"stop = stop if stop < {end} else {end}")
            nest, update = self.walk(text, f"c * {run}", "stop")
            if nest.inside:
                text.add("if inside:")
                text.depth += 1
            if len(self.axes) > 1:
                nest.open()
            text.add(f"p = {total([f'c * {n}', *nest.base, *nest.walk(1)])}")
            update = update or _update(text, self.updates, total(nest.walk(2)))
            text.add(f"a3[p] = {self.combined('a3[p]', update)}")
        text.depth = 1
        first = text.own(copies, 4 * prod([a.size for a in self.axes]))
        text = _text(4, self.x, self.updates, begin=False)
        n = text.integer(size)
        _value(text, self.x)
        if self.x.one:
            _fill(text, "a2", "lo", "hi")
        with (
            text.block(f"for c in range({text.integer(copies)}):"),
            text.block("for q in range(lo, hi):"),
        ):
            text.add(f"a2[q] = {self.combined('a2[q]', f'a3[c * {n} + q]')}")
        then = text.own(size, copies * size)
        first.memory, first.then = ((dtype_code(self.x.dtype), copies * size),), (then,)
        return first


def _unit(dtype: np.dtype, combine: str) -> np.generic:
    """Return the identity element of a combination."""
    if combine == "add":
        if dtype.kind in "fcV":
            return cast("np.generic", -np.zeros((), dtype)[()])
        return dtype.type(0)
    if combine == "mul":
        return dtype.type(1)
    if dtype.kind == "b":
        return dtype.type(combine == "min")
    low = combine == "max"
    if dtype.kind in "fV":
        return dtype.type(-np.inf if low else np.inf)
    info = np.iinfo(dtype)
    return dtype.type(info.min if low else info.max)


# --- the ops -------------------------------------------------------------------------------------


def _scatter(operands: Sequence[Operand], p: Params, combine: str) -> OwnKernel | None:
    dims: ScatterDimensionNumbers = p["dimension_numbers"]
    sizes = window_sizes(operands[0].shape, operands[2].shape, dims)
    return scatter_kernel(operands, dims, sizes, combine, p["mode"] is DROP, p["unique_indices"])


def scatter_set(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `scatter`."""
    return _scatter(operands, p, "set")


def scatter_add(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `scatter_add`."""
    return _scatter(operands, p, "add")


def scatter_mul(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `scatter_mul`."""
    return _scatter(operands, p, "mul")


def scatter_min(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `scatter_min`."""
    return _scatter(operands, p, "min")


def scatter_max(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `scatter_max`."""
    return _scatter(operands, p, "max")
