"""Kernels of argmax and argmin.

Lines are searched one after the other; for short lines, and if the elements after the axis are
contiguous, many lines at once. The result is the first index of the extreme value or of a NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from accnp.compiler.library.scans.lines import ColumnBlocks, element_of, split_axes
from accnp.compiler.library.writing.loop_nests import Axis, Nest, Text, merged, total
from accnp.ir.aval import Aval
from accnp.ir.kernel import BLOCK, CHUNK, Operand, OwnKernel, dtype_code
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["argmax", "argmin"]

FEW_COLUMNS = 4  # minimum number of columns that are processed at once
PART = 64  # maximum length of lines that are searched element by element
DEEP, WIDE = 16, 256  # positions and lines of a tile in which short lines are transposed
FEW_LINES = 8  # if there are fewer long lines, they are split into parts


def argmax(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `argmax`."""
    return _arg_kernel(operands[0], results[0], p["axes"][0], True)


def argmin(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `argmin`."""
    return _arg_kernel(operands[0], results[0], p["axes"][0], False)


def _arg_kernel(x: Operand, out: Aval, axis: int, largest: bool) -> OwnKernel | None:
    """Return the kernel of argmax or argmin: the first index of the extreme value or of a NaN."""
    if x.dtype.kind == "c":
        return None
    n = x.shape[axis]
    out_strides = list(contiguous(out.shape))
    out_strides.insert(axis, 0)
    before, after = split_axes(x.shape, axis, x.strides, out_strides)
    text = Text(2)
    if len(after) == 1 and len(before) <= 1 and after[0].size >= FEW_COLUMNS:
        return _arg_columns(text, x, out, before, after[0], axis, largest)
    nest = Nest(text, merged([*before, *after]))
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
    at, size = element_of(text, "a0", "p", x.strides[axis]), text.integer(n)
    if x.strides[axis] == 1 and n > PART:
        _arg_blocks(text, x.dtype, size, largest)
    else:
        text.add("k = 0", "best = a0[p]")
        with text.block(f"for i in range(1, {size}):"):
            text.add(f"v = {at('i')}")
            text.add(f"better = {_precedes(x.dtype, 'v', 'best', largest)}")
            text.add("best = v if better else best", "k = i if better else k")
    text.add(f"a1[{total(nest.walk(1))}] = {dtype_code(out.dtype)}(k)")
    return nest.own(2 * n)


def _precedes(dtype: np.dtype, a: str, b: str, largest: bool) -> str:
    """Return the expression for whether a precedes b in the order of argmax or argmin."""
    if dtype.kind == "b":
        return f"{a} & (not {b})" if largest else f"{b} & (not {a})"
    test = f"({a} {'>' if largest else '<'} {b})"
    return f"{test} | (({a} != {a}) & ({b} == {b}))" if dtype.kind == "f" else test


def _arg_blocks(text: Text, dtype: np.dtype, size: str, largest: bool) -> None:
    """Write a reduction of whole blocks and a search in the first block with the extreme value."""
    text.add("best = a0[p]", "k = 0")
    _best_block(text, dtype, "0", size, largest)
    _search_block(text, size)


def _best_block(text: Text, dtype: np.dtype, start: str, stop: str, largest: bool) -> None:
    """Write a reduction of blocks: `best`, and the start `k` of the first block that has it."""
    with text.block(f"for b in range({start}, {stop}, {BLOCK}):"):
        text.add(f"m = {stop} - b", f"m = m if m < {BLOCK} else {BLOCK}")
        text.add(f"v = block_{'max' if largest else 'min'}(at(a0, p + b), m)")
        text.add(f"better = {_precedes(dtype, 'v', 'best', largest)}")
        text.add("best = v if better else best", "k = b if better else k")


def _search_block(text: Text, size: str) -> None:
    """Write a search for `best` in the block at `k`."""
    text.add(f"m = {size} - k", f"m = m if m < {BLOCK} else {BLOCK}")
    text.add("k += block_find(at(a0, p + k), m, best)")


def _arg_long(text: Text, x: Operand, out: Aval, nest: Nest, n: int, largest: bool) -> OwnKernel:
    """For few long lines: reduce parts of lines in parallel, then the parts of a line in order."""
    parts, lines = -(-n // CHUNK), prod([a.size for a in nest.axes])
    count, size = text.integer(parts), text.integer(n)
    better = _precedes(x.dtype, "v", "best", largest)

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
        _search_block(text, size)
        text.add(f"a1[{line(text, 1)}] = {dtype_code(out.dtype)}(k)")
    first.memory = ((dtype_code(x.dtype), lines * parts), ("i8", lines * parts))
    first.then = (text.own(lines, lines * (BLOCK + parts)),)
    return first


def _arg_short(text: Text, x: Operand, out: Aval, lines: Axis, n: int, largest: bool) -> OwnKernel:
    """For short lines: transpose tiles, so that each vector holds one position of many lines."""
    code = dtype_code(out.dtype)
    kinds = [("best", "stack", x.dtype), ("place", "stack", out.dtype), ("tile", "tile", x.dtype)]
    text.add(*[f"{name} = {kind}_{dtype_code(dtype)}()" for name, kind, dtype in kinds])
    blocks = ColumnBlocks(text, [], lines)
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
    text.add(f"better = {_precedes(dtype, 'v', 'b', largest)}")
    text.add("best[j] = select(better, v, b)", "place[j] = select(better, at_i, place[j])")


def _arg_columns(
    text: Text,
    x: Operand,
    out: Aval,
    before: Sequence[Axis],
    after: Axis,
    axis: int,
    largest: bool,
) -> OwnKernel:
    code = dtype_code(out.dtype)
    text.add(f"best = stack_{dtype_code(x.dtype)}()", f"place = stack_{code}()")
    blocks = ColumnBlocks(text, before, after)
    text.add(*[f"{p} = {total(blocks.place(k))}" for k, p in enumerate("pq")])
    read = element_of(
        text, "a0", " + ".join(["p", *text.times("j", after.steps[0])]), x.strides[axis]
    )
    with text.block("for j in range(m):"):
        text.add(f"best[j] = {read('0')}", f"place[j] = {code}(0)")
    with text.block(f"for i in range(1, {text.integer(x.shape[axis])}):"):
        text.add(f"at_i = {code}(i)")
        with text.block("for j in range(m):"):
            text.add(f"v = {read('i')}", "b = best[j]")
            _replace(text, x.dtype, largest)
    with text.block("for j in range(m):"):
        text.add(f"a1[{total(['q', *text.times('j', after.steps[1])])}] = place[j]")
    return text.own(blocks.extent, 2 * x.shape[axis] * blocks.work)
