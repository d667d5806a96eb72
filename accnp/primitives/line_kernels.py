"""Kernels along one axis: cumulative reductions, and argmax and argmin.

Each function takes the memory layout of the operand and the axis, and returns an `OwnKernel` for
the ops of `cumulative.py` and `reduce.py`. There are two forms: one line after the other, and
several columns at once if the elements after the axis are contiguous. Both process the elements of
a line in the same order, which depends only on their positions, so that the bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from accnp.ir.aval import Aval
from accnp.ir.kernel import BLOCK, CHUNK, Operand, OwnKernel, dtype_code
from accnp.primitives.nests import Axis, Nest, Text, merged, total
from accnp.primitives.views import contiguous

__all__ = [
    "GROUP",
    "arg_kernel",
    "cumulative_dtype",
    "cumulative_group",
    "cumulative_kernel",
    "logsumexp_kernel",
]

GROUP = 4  # elements reduced separately, then joined: shortens the dependency chain by this factor
COLUMNS = 128
PART = 64  # maximum length of lines that are searched element by element
DEEP, WIDE = 16, 256  # positions and lines of a tile in which short lines are transposed
FEW_LINES = 8  # if there are fewer long lines, they are split into parts


def _around(
    shape: tuple[int, ...], axis: int, *strides: Sequence[int]
) -> tuple[list[Axis], list[Axis]]:
    """Return the axes before and after one axis, with the strides of several arrays."""
    axes = [Axis(n, tuple([s[d] for s in strides])) for d, n in enumerate(shape)]
    return merged(axes[:axis]), merged(axes[axis + 1 :])


def _along(text: Text, pointer: str, base: str, step: int) -> Callable[[str], str]:
    """Return a function that writes element i of a line, which starts at `base`."""
    factor = "" if step == 1 else f" * {text.integer(step)}"

    def at(i: str) -> str:
        return f"{pointer}[{base} + {f'({i})' if factor and '+' in i else i}{factor}]"

    return at


class _Blocks:
    """The loop over blocks of columns: `m` columns from `start` on, in example `o` of the axes
    before.

    Steps have one entry for each array, like those of axes.
    """

    def __init__(self, text: Text, before: Sequence[Axis], behind: Axis) -> None:
        self.text, self.before, self.behind = text, before, behind
        count = -(-behind.size // COLUMNS)
        self.extent = count * (before[0].size if before else 1)
        self.work = behind.size * (before[0].size if before else 1)
        size = text.integer(behind.size)
        text.add("for u in range(lo, hi):")
        text.depth += 1
        if before:
            name = text.integer(count)
            text.add(f"o = u // {name}", f"start = (u - o * {name}) * {COLUMNS}")
        else:
            text.add(f"start = u * {COLUMNS}")
        text.add(f"m = {size} - start", f"m = m if m < {COLUMNS} else {COLUMNS}")

    def place(self, which: int) -> list[str]:
        """Return the terms of the index at which a block begins in one of the arrays."""
        first = self.text.times("o", self.before[0].steps[which]) if self.before else []
        return [*first, *self.text.times("start", self.behind.steps[which])]


# --- cumulative reductions -----------------------------------------------------------------------


def cumulative_dtype(dtype: np.dtype, combine: str) -> np.dtype:
    """Return the dtype in which a cumulative reduction computes; at least float64 for sums."""
    if dtype.kind == "c":
        return np.dtype(np.complex128)
    if dtype.kind in "biu":
        return dtype
    wide = combine in ("sum", "prod") or dtype.itemsize > 4
    return np.dtype(np.float64 if wide else np.float32)


def cumulative_group(dtype: np.dtype, combine: str) -> int:
    """Return how many elements are reduced separately. It is 1 for complex128 products: their
    groups may overflow, and there is no vectorized check for that."""
    return 1 if combine == "prod" and dtype == np.complex128 else GROUP


class _Fold:
    """Source fragments of a cumulative reduction over elements of a dtype."""

    def __init__(self, dtype: np.dtype, combine: str) -> None:
        self.combine, self.kind = combine, dtype.kind
        wide = cumulative_dtype(dtype, combine)
        self.wide = dtype_code(wide)
        self.load = self.wide if wide != dtype else ""  # casts
        self.store = dtype_code(dtype) if wide != dtype else ""
        # Whether products of a group may over- or underflow although the prefixes do not.
        self.careful = combine == "prod" and dtype == np.float64
        self.group = cumulative_group(dtype, combine)

    def join(self, a: str, b: str) -> str:
        """Return the expression that combines two values."""
        if self.combine in ("max", "min"):
            return f"f{self.combine}({a}, {b})"
        text = f"{a} {'+' if self.combine == 'sum' else '*'} {b}"
        return f"{self.wide}({text})" if self.kind in "iu" else text


def cumulative_kernel(x: Operand, axis: int, reverse: bool, combine: str) -> OwnKernel | None:
    """Return the kernel of cumsum, cumprod, cummax or cummin."""
    if x.dtype.kind == "c" and combine in ("max", "min"):  # kernels cannot order complex numbers
        return None
    text, fold = Text(2), _Fold(x.dtype, combine)
    n, strides = x.shape[axis], contiguous(x.shape)
    steps = [x.strides[axis], strides[axis]]
    ends: list[list[str]] = [[], []]
    if reverse:
        ends = [[text.integer((n - 1) * s)] for s in steps]
        steps = [-s for s in steps]
    before, behind = _around(x.shape, axis, x.strides, strides)
    if len(behind) == 1 and len(before) <= 1 and behind[0].size >= GROUP:
        return _columns(text, fold, before, behind[0], n, steps, ends)
    return _rows(text, fold, merged([*before, *behind]), n, steps, ends)


def _rows(
    text: Text,
    fold: _Fold,
    axes: Sequence[Axis],
    n: int,
    steps: Sequence[int],
    ends: Sequence[list[str]],
) -> OwnKernel:
    nest = Nest(text, axes)
    for _ in axes:
        nest.open()
    text.add(*[f"{p} = {total([*nest.walk(k), *ends[k]])}" for k, p in enumerate("pq")])
    x, y = _along(text, "a0", "p", steps[0]), _along(text, "a1", "q", steps[1])
    whole, size = text.integer(n - n % fold.group), text.integer(n)
    text.add(f"acc = {fold.wide}(0)", f"t = {fold.wide}(0)")  # declares types; not used as values
    with text.block(f"for i in range(0, {whole}, {fold.group}):"):
        places = ["i", *[f"i + {k}" for k in range(1, fold.group)]]
        if fold.careful:
            _careful_group(text, fold, [x(i) for i in places])
            text.add(*[f"{y(i)} = {fold.store}(s{k})" for k, i in enumerate(places)])
        else:
            for k, i in enumerate(places):
                value = f"{fold.load}({x(i)})"
                text.add(f"t{k} = {fold.join(f't{k - 1}', value) if k else value}")
            for k, i in enumerate(places):
                text.add(f"s{k} = t{k} if i == 0 else {fold.join('acc', f't{k}')}")
                text.add(f"{y(i)} = {fold.store}(s{k})")
        text.add(f"acc = s{fold.group - 1}")
    if fold.careful:
        text.add("lost = False", "s = acc")
    with text.block(f"for i in range({whole}, {size}):"):
        text.add(f"v = {fold.load}({x('i')})")
        text.add(f"t = v if i == {whole} else {fold.join('t', 'v')}")
        joined = fold.join("acc", "t")
        if fold.careful:
            text.add(f"lost = lost | ((i > {whole}) & odd(t))")
            joined = f"({fold.join('s', 'v')} if lost else {joined})"
        text.add(f"s = t if {whole} == 0 else {joined}")
        text.add(f"{y('i')} = {fold.store}(s)")
    return nest.own(2 * n)


def _careful_group(text: Text, fold: _Fold, values: list[str]) -> None:
    """Write products of a group. From the first product of several elements on that is not a normal
    number, elements are multiplied one after the other with the previous prefix."""
    for k, value in enumerate(values):
        text.add(f"v{k} = {fold.load}({value})")
        text.add(f"t{k} = {fold.join(f't{k - 1}', f'v{k}') if k else 'v0'}")
    for k in range(GROUP):
        text.add(f"s{k} = t{k} if i == 0 else {fold.join('acc', f't{k}')}")
    lost = [f"odd(t{k})" for k in range(1, GROUP)]
    with text.block(f"if (i > 0) & ({' | '.join(lost)}):"):
        text.add("lost = False")
        for k, odd in enumerate(lost, 1):
            text.add(f"lost = lost | {odd}")
            text.add(f"s{k} = {fold.join(f's{k - 1}', f'v{k}')} if lost else s{k}")


def _columns(
    text: Text,
    fold: _Fold,
    before: Sequence[Axis],
    behind: Axis,
    n: int,
    steps: Sequence[int],
    ends: Sequence[list[str]],
) -> OwnKernel:
    text.add(f"acc = stack_{fold.wide}()", f"part = stack_{fold.wide}()")
    if fold.careful:
        text.add(f"last = stack_{fold.wide}()")
    blocks = _Blocks(text, before, behind)
    text.add(*[f"{p} = {total([*blocks.place(k), *ends[k]])}" for k, p in enumerate("pq")])
    x, y = [
        _along(text, a, " + ".join([p, *text.times("j", s)]), step)
        for a, p, s, step in zip(("a0", "a1"), "pq", behind.steps, steps, strict=True)
    ]
    if fold.group == 1:
        with text.block(f"for i in range({text.integer(n)}):"), text.block("for j in range(m):"):
            text.add(f"v = {fold.load}({x('i')})")
            text.add(f"s = v if i == 0 else {fold.join('acc[j]', 'v')}", "acc[j] = s")
            text.add(f"{y('i')} = {fold.store}(s)")
        return text.own(blocks.extent, 2 * n * blocks.work)
    with text.block(f"for i in range({text.integer(n)}):"):
        text.add(f"fresh = (i & {GROUP - 1}) == 0")
        if fold.careful:
            text.add(f"late = (i > {GROUP}) & (not fresh)")
        with text.block("if fresh and i > 0:"), text.block("for j in range(m):"):
            joined = f"part[j] if i == {GROUP} else {fold.join('acc[j]', 'part[j]')}"
            text.add(f"acc[j] = {'last[j]' if fold.careful else joined}")
        with text.block("for j in range(m):"):
            text.add(f"v = {fold.load}({x('i')})")
            text.add(f"t = v if fresh else {fold.join('part[j]', 'v')}")
            joined = fold.join("acc[j]", "t")
            if fold.careful:  # infinity marks the rest of the group
                text.add("lost = odd(t) & late", f"part[j] = {fold.wide}(1e999) if lost else t")
                joined = f"({fold.join('last[j]', 'v')} if lost else {joined})"
            else:
                text.add("part[j] = t")
            text.add(f"s = t if i < {GROUP} else {joined}")
            text.add(*["last[j] = s"] if fold.careful else [])
            text.add(f"{y('i')} = {fold.store}(s)")
    return text.own(blocks.extent, 2 * n * blocks.work)


def logsumexp_kernel(x: Operand, axis: int, reverse: bool) -> OwnKernel | None:
    """Return the kernel of cumlogsumexp: a running maximum and the sum relative to it."""
    if x.dtype.kind != "f":
        return None
    text = Text(2)
    n, strides = x.shape[axis], contiguous(x.shape)
    before, behind = _around(x.shape, axis, x.strides, strides)
    nest = Nest(text, merged([*before, *behind]))
    for _ in nest.axes:
        nest.open()
    steps = (x.strides[axis], strides[axis])
    ends = [[text.integer((n - 1) * s)] if reverse else [] for s in steps]
    text.add(*[f"{p} = {total([*nest.walk(k), *ends[k]])}" for k, p in enumerate("pq")])
    read, write = [
        _along(text, a, p, -s if reverse else s)
        for a, p, s in zip(("a0", "a1"), "pq", steps, strict=True)
    ]
    text.add("top = f8(-1e999)", "part = f8(0)")
    with text.block(f"for i in range({text.integer(n)}):"):
        text.add(f"v = f8({read('i')})")
        text.add("d = f8(0) if v == top else v - top", "e = exp(-abs(d))")
        text.add("part = part * e + f8(1) if d > 0 else part + e", "top = v if d > 0 else top")
        text.add(f"{write('i')} = {dtype_code(x.dtype)}(top + log(part))")
    return nest.own(40 * n)


# --- argmax and argmin ---------------------------------------------------------------------------


def arg_kernel(x: Operand, out: Aval, axis: int, largest: bool) -> OwnKernel | None:
    """Return the kernel of argmax or argmin: the first index of the extreme value or of a NaN."""
    if x.dtype.kind == "c":
        return None
    n = x.shape[axis]
    kept = list(contiguous(out.shape))
    kept.insert(axis, 0)
    before, behind = _around(x.shape, axis, x.strides, kept)
    text = Text(2)
    if len(behind) == 1 and len(before) <= 1 and behind[0].size >= GROUP:
        return _arg_columns(text, x, out, before, behind[0], axis, largest)
    nest = Nest(text, merged([*before, *behind]))
    few = len(nest.axes) < 2 and prod([a.size for a in nest.axes]) < FEW_LINES
    if few and x.strides[axis] == 1 and n > 2 * CHUNK:
        return _arg_long(Text(4), x, out, nest, n, largest)
    lines = nest.axes[0] if len(nest.axes) == 1 else None
    least = 3 if x.dtype.kind == "f" else 5  # shorter lines are faster without transposition
    if lines and lines.size >= DEEP and x.strides[axis] == 1 and least <= n <= PART and not x.fine:
        return _arg_short(text, x, out, lines, n, largest)
    for _ in nest.axes:
        nest.open()
    text.add(f"p = {total(nest.walk(0))}")
    at, size = _along(text, "a0", "p", x.strides[axis]), text.integer(n)
    if x.strides[axis] == 1 and n > PART:
        _arg_blocks(text, x.dtype, size, largest)
    else:
        text.add("k = 0", "best = a0[p]")
        with text.block(f"for i in range(1, {size}):"):
            text.add(f"v = {at('i')}")
            text.add(f"better = {_better(x.dtype, 'v', 'best', largest)}")
            text.add("best = v if better else best", "k = i if better else k")
    text.add(f"a1[{total(nest.walk(1))}] = {dtype_code(out.dtype)}(k)")
    return nest.own(2 * n)


def _better(dtype: np.dtype, a: str, b: str, largest: bool) -> str:
    """Return the expression for whether a precedes b in the order of argmax or argmin."""
    if dtype.kind == "b":
        return f"{a} & (not {b})" if largest else f"{b} & (not {a})"
    test = f"({a} {'>' if largest else '<'} {b})"
    return f"{test} | (({a} != {a}) & ({b} == {b}))" if dtype.kind == "f" else test


def _arg_blocks(text: Text, dtype: np.dtype, size: str, largest: bool) -> None:
    """Write a reduction of whole blocks and a search in the first block with the extreme value."""
    text.add("best = a0[p]", "k = 0")
    _best_block(text, dtype, "0", size, largest)
    _in_block(text, size)


def _best_block(text: Text, dtype: np.dtype, start: str, stop: str, largest: bool) -> None:
    """Write a reduction of blocks: `best`, and the start `k` of the first block that has it."""
    with text.block(f"for b in range({start}, {stop}, {BLOCK}):"):
        text.add(f"m = {stop} - b", f"m = m if m < {BLOCK} else {BLOCK}")
        text.add(f"v = block_{'max' if largest else 'min'}(at(a0, p + b), m)")
        text.add(f"better = {_better(dtype, 'v', 'best', largest)}")
        text.add("best = v if better else best", "k = b if better else k")


def _in_block(text: Text, size: str) -> None:
    """Write a search for `best` in the block at `k`."""
    text.add(f"m = {size} - k", f"m = m if m < {BLOCK} else {BLOCK}")
    text.add("k += block_find(at(a0, p + k), m, best)")


def _arg_long(text: Text, x: Operand, out: Aval, nest: Nest, n: int, largest: bool) -> OwnKernel:
    """For few long lines: reduce parts of lines in parallel, then the parts of a line in order."""
    parts, lines = -(-n // CHUNK), prod([a.size for a in nest.axes])
    count, size = text.integer(parts), text.integer(n)
    better = _better(x.dtype, "v", "best", largest)

    def line(text: Text, k: int) -> str:
        """Return the index at which a line begins in an array."""
        return total([t for a in nest.axes for t in text.times("o", a.steps[k])])

    with text.block("for u in range(lo, hi):"):
        text.add(f"o = u // {count}", f"start = (u - o * {count}) * {CHUNK}")
        text.add(f"p = {line(text, 0)}", f"stop = start + {CHUNK}")
        text.add(f"stop = stop if stop < {size} else {size}", "best = a0[p + start]", "k = start")
        _best_block(text, x.dtype, "start", "stop", largest)
        text.add("a2[u] = best", "a3[u] = k")
    first = text.own(lines * parts, n * lines)
    text = Text(4)
    count, size = text.integer(parts), text.integer(n)
    with text.block("for o in range(lo, hi):"):
        text.add(f"first = o * {count}", "best = a2[first]", "k = a3[first]")
        with text.block(f"for u in range(first + 1, first + {count}):"):
            text.add("v = a2[u]", f"better = {better}")
            text.add("best = v if better else best", "k = a3[u] if better else k")
        text.add(f"p = {line(text, 0)}")
        _in_block(text, size)
        text.add(f"a1[{line(text, 1)}] = {dtype_code(out.dtype)}(k)")
    first.memory = ((dtype_code(x.dtype), lines * parts), ("i8", lines * parts))
    first.then = (text.own(lines, lines * (BLOCK + parts)),)
    return first


def _arg_short(text: Text, x: Operand, out: Aval, lines: Axis, n: int, largest: bool) -> OwnKernel:
    """For short lines: transpose tiles, so that each vector holds one position of many lines."""
    code = dtype_code(out.dtype)
    kinds = [("best", "stack", x.dtype), ("place", "stack", out.dtype), ("tile", "tile", x.dtype)]
    text.add(*[f"{name} = {kind}_{dtype_code(dtype)}()" for name, kind, dtype in kinds])
    blocks = _Blocks(text, [], lines)
    text.add(*[f"{p} = {total(blocks.place(k))}" for k, p in enumerate("pq")])
    size, step = text.integer(n), text.integer(lines.steps[0])
    with text.block(f"for first in range(0, {size}, {DEEP}):"):
        text.add(f"rows = {size} - first", f"rows = rows if rows < {DEEP} else {DEEP}")
        text.add(f"transpose(tile, {WIDE}, at(a0, p + first), {step}, rows, m)")
        with text.block("if first == 0:"), text.block("for j in range(m):"):
            text.add("best[j] = tile[j]", f"place[j] = {code}(0)")
        with text.block("for r in range(rows):"):
            text.add(f"at_i = {code}(first + r)", f"t = r * {WIDE}")
            with text.block("for j in range(m):"):
                text.add("v = tile[t + j]", "b = best[j]")
                _replace(text, x.dtype, largest)
    with text.block("for j in range(m):"):
        text.add(f"a1[{total(['q', *text.times('j', lines.steps[1])])}] = place[j]")
    return text.own(blocks.extent, 2 * n * blocks.work)


def _replace(text: Text, dtype: np.dtype, largest: bool) -> None:
    """Write a step of many lines: `v` at index `at_i` replaces `b` if it is better."""
    text.add(f"better = {_better(dtype, 'v', 'b', largest)}")
    text.add("best[j] = select(better, v, b)", "place[j] = select(better, at_i, place[j])")


def _arg_columns(
    text: Text,
    x: Operand,
    out: Aval,
    before: Sequence[Axis],
    behind: Axis,
    axis: int,
    largest: bool,
) -> OwnKernel:
    code = dtype_code(out.dtype)
    text.add(f"best = stack_{dtype_code(x.dtype)}()", f"place = stack_{code}()")
    blocks = _Blocks(text, before, behind)
    text.add(*[f"{p} = {total(blocks.place(k))}" for k, p in enumerate("pq")])
    read = _along(text, "a0", " + ".join(["p", *text.times("j", behind.steps[0])]), x.strides[axis])
    with text.block("for j in range(m):"):
        text.add(f"best[j] = {read('0')}", f"place[j] = {code}(0)")
    with text.block(f"for i in range(1, {text.integer(x.shape[axis])}):"):
        text.add(f"at_i = {code}(i)")
        with text.block("for j in range(m):"):
            text.add(f"v = {read('i')}", "b = best[j]")
            _replace(text, x.dtype, largest)
    with text.block("for j in range(m):"):
        text.add(f"a1[{total(['q', *text.times('j', behind.steps[1])])}] = place[j]")
    return text.own(blocks.extent, 2 * x.shape[axis] * blocks.work)
