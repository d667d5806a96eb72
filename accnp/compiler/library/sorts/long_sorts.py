"""Kernels for sorting long lines with NumPy's vectorized sort; each line is a task.

`long_sort` takes the memory layouts of the operands and the axis, and returns an `OwnKernel` for
`lowering.py`. Short lines use `short_sorts.py`; few long lines, which several threads share, use
`shared_sorts.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from accnp.compiler.library.sorts.shared_sorts import (
    Keys,
    Lines,
    first_zero,
    shared_sort,
    sort_list,
    write_signs,
)
from accnp.compiler.library.writing.loop_nests import Text, total
from accnp.config import config
from accnp.ir.kernel import Operand, OwnKernel

__all__ = ["long_sort"]

TILE = 16  # neighboring lines of one task: a cache line of 32-bit elements
SHARED = 1 << 15  # minimum length of lines that several threads sort together


def _scaled_index(text: Text, index: str, step: int) -> str:
    return total(text.times(index, step))


def _count_negative_zeros(keys: Keys, text: Text) -> None:
    """Write code that counts negative zeros in `negative`; NumPy's sorts do not preserve them."""
    if keys.signed_zeros:
        bits = f"bitcast_i{keys.source[1]}(v)"
        text.add(f"minus = v == {keys.source}(0) and {bits} < 0")
        text.add("negative = negative + 1 if minus else negative")


def _sort_lines(keys: Keys, axis: int) -> OwnKernel:
    """Return the kernel for values of many lines; each task sorts a line in the output."""
    lines = Lines(keys, axis)
    text, n, code = lines.text, lines.size, keys.source
    axes, size = lines.outer(), text.integer(n)
    count = prod([x.size for x in axes])
    with text.block("for t in range(lo, hi):"):
        lines.begin(axes, "t")
        text.add("negative = 0")
        with text.block(f"for i in range({size}):"):
            text.add(f"v = {lines.element(0, 'i')}", "a1[p1 + i] = v")
            _count_negative_zeros(keys, text)
        text.add(f"sort_{code}(at(a1, p1), {size})")
        if keys.signed_zeros:
            with text.block("if negative > 0:"):
                first_zero(text, f"a1[p1 + mid] < {code}(0)", size)
                write_signs(lines, "z")
    return text.own(count, 2 * n * max(1, n.bit_length()) * count)


def _sort_strided_lines(keys: Keys, axis: int) -> OwnKernel:
    """Return the kernel for values of strided lines: TILE neighboring lines are transposed, sorted,
    and transposed back."""
    lines = Lines(keys, axis)
    text, n, shape, code = lines.text, lines.size, lines.shape, keys.source
    inner = len(shape) - 1
    axes, tiles = lines.outer(inner), -(-shape[inner] // TILE)
    count = prod([x.size for x in axes]) * tiles
    beside = lines.strides[0][inner]
    size, width, many = text.integer(n), text.integer(shape[inner]), text.integer(tiles)
    long = text.integer(-(-n // TILE) * TILE)
    text.add(f"f = heap_{code}({long} * {TILE})", f"g = heap_{code}({long} * {TILE})")
    with text.block("for t in range(lo, hi):"):
        text.add(f"g0 = t // {many}", f"j0 = (t - g0 * {many}) * {TILE}")
        text.add(f"w = fmin({width} - j0, {TILE})")
        lines.begin(axes, "g0")
        text.add(f"p0 = p0 + {_scaled_index(text, 'j0', beside)}", "p1 = p1 + j0")
        if beside == 1:
            step = text.integer(lines.strides[0][axis])
            text.add(f"transpose(f, {long}, at(a0, p0), {step}, w, {size})")
        else:
            with text.block("for j in range(w):"), text.block(f"for i in range({size}):"):
                text.add(f"f[j * {long} + i] = {lines.element(0, 'i', beside)}")
        text.add("negative = 0")
        if keys.signed_zeros:
            with text.block("for j in range(w):"), text.block(f"for i in range({size}):"):
                text.add(f"v = f[j * {long} + i]")
                _count_negative_zeros(keys, text)
        with text.block("for j in range(w):"):
            text.add(f"sort_{code}(at(f, j * {long}), {size})")
        text.add(f"transpose(g, {TILE}, f, {long}, {size}, w)")
        with text.block(f"for i in range({size}):"), text.block("for j in range(w):"):
            text.add(f"{lines.element(1, 'i', 1)} = g[i * {TILE} + j]")
        if keys.signed_zeros:
            with text.block("if negative > 0:"), text.block("for j in range(w):"):
                first_zero(text, f"f[j * {long} + mid] < {code}(0)", size)
                write_signs(lines, "z", beside, 1)
    text.add("release(f)", "release(g)")
    work = 2 * n * max(1, n.bit_length()) * shape[inner]
    return text.own(count, work * count // tiles)


def _sort_operands(keys: Keys, axis: int) -> OwnKernel:
    """Return the kernel for many lines of several operands; each task sorts encoded keys."""
    lines = Lines(keys, axis)
    text, n = lines.text, lines.size
    axes, size = lines.outer(), text.integer(n)
    count = prod([x.size for x in axes])
    text.add(f"f = heap_i8({size})")
    with text.block("for t in range(lo, hi):"):
        lines.begin(axes, "t")
        with text.block(f"for i in range({size}):"):
            text.add(f"v = {lines.element(0, 'i')}")
            text.add(f"f[i] = {keys.encode(text, 'v', 'i')}")
        sort_list(text, "i8", "f", size)
        with text.block(f"for i in range({size}):"):
            text.add("key = f[i]")
            keys.write(text, "key", lines.target("i"), lines.operand())
    text.add("release(f)")
    return text.own(count, 2 * n * max(1, n.bit_length()) * count)


def _drop_unit_axes(operands: Sequence[Operand], axis: int) -> tuple[list[Operand], int]:
    """Remove other axes of length 1 from the operands, so that the last axis shows whether lines
    are contiguous."""
    keep = [d for d, n in enumerate(operands[0].shape) if n != 1 or d == axis]
    packed = [
        Operand(
            tuple([x.shape[d] for d in keep]), x.dtype, tuple([x.strides[d] for d in keep]), x.fine
        )
        for x in operands
    ]
    return packed, keep.index(axis)


def long_sort(operands: Sequence[Operand], axis: int) -> OwnKernel | None:
    """Return the kernel of a sort by the first operand, with which the others are permuted; None if
    key and position do not fit into 64 bits."""
    operands, axis = _drop_unit_axes(operands, axis)
    keys = Keys(operands)
    shape = operands[0].shape
    if not keys.possible or not prod(shape) or shape[axis] >= 1 << 31:
        return None
    threads = config.threads
    if threads > 1 and prod(shape) // shape[axis] < threads and shape[axis] >= SHARED:
        return shared_sort(keys, axis)
    if keys.words:
        return _sort_operands(keys, axis)
    return (_sort_strided_lines if axis != len(shape) - 1 and shape[-1] > 1 else _sort_lines)(
        keys, axis
    )
