"""Kernels of cumulative reductions.

There are two forms: one line after the other, and several columns at once if the elements after the
axis are contiguous. Both process the elements of a line in the same order, which depends only on
their positions, so that the bits are the same; `primitives/cumulative.py` defines this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from accnp.compiler.library.scans.lines import ColumnBlocks, element_of, split_axes
from accnp.compiler.library.writing.loop_nests import Axis, Nest, Text, merged, total
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code
from accnp.primitives.cumulative import GROUP, cumulative_dtype, cumulative_group
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum"]


class _Accumulation:
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


def _cumulative_kernel(x: Operand, axis: int, reverse: bool, combine: str) -> OwnKernel | None:
    """Return the kernel of cumsum, cumprod, cummax or cummin."""
    if x.dtype.kind == "c" and combine in ("max", "min"):  # kernels cannot order complex numbers
        return None
    text, accumulation = Text(2), _Accumulation(x.dtype, combine)
    n, strides = x.shape[axis], contiguous(x.shape)
    steps = [x.strides[axis], strides[axis]]
    ends: list[list[str]] = [[], []]
    if reverse:
        ends = [[text.integer((n - 1) * s)] for s in steps]
        steps = [-s for s in steps]
    before, after = split_axes(x.shape, axis, x.strides, strides)
    if len(after) == 1 and len(before) <= 1 and after[0].size >= GROUP:
        return _columns(text, accumulation, before, after[0], n, steps, ends)
    return _row_kernel(text, accumulation, merged([*before, *after]), n, steps, ends)


def _row_kernel(
    text: Text,
    accumulation: _Accumulation,
    axes: Sequence[Axis],
    n: int,
    steps: Sequence[int],
    ends: Sequence[list[str]],
) -> OwnKernel:
    nest = Nest(text, axes)
    for _ in axes:
        nest.open()
    text.add(*[f"{p} = {total([*nest.walk(k), *ends[k]])}" for k, p in enumerate("pq")])
    x, y = element_of(text, "a0", "p", steps[0]), element_of(text, "a1", "q", steps[1])
    whole, size = text.integer(n - n % accumulation.group), text.integer(n)
    # These assignments declare the types of the variables; their values are not used.
    text.add(f"acc = {accumulation.wide}(0)", f"t = {accumulation.wide}(0)")
    with text.block(f"for i in range(0, {whole}, {accumulation.group}):"):
        places = ["i", *[f"i + {k}" for k in range(1, accumulation.group)]]
        if accumulation.careful:
            _multiply_subnormal_group(text, accumulation, [x(i) for i in places])
            text.add(*[f"{y(i)} = {accumulation.store}(s{k})" for k, i in enumerate(places)])
        else:
            for k, i in enumerate(places):
                value = f"{accumulation.load}({x(i)})"
                text.add(f"t{k} = {accumulation.join(f't{k - 1}', value) if k else value}")
            for k, i in enumerate(places):
                text.add(f"s{k} = t{k} if i == 0 else {accumulation.join('acc', f't{k}')}")
                text.add(f"{y(i)} = {accumulation.store}(s{k})")
        text.add(f"acc = s{accumulation.group - 1}")
    if accumulation.careful:
        text.add("sequential = False", "s = acc")
    with text.block(f"for i in range({whole}, {size}):"):
        text.add(f"v = {accumulation.load}({x('i')})")
        text.add(f"t = v if i == {whole} else {accumulation.join('t', 'v')}")
        joined = accumulation.join("acc", "t")
        if accumulation.careful:
            text.add(f"sequential = sequential | ((i > {whole}) & not_normal(t))")
            joined = f"({accumulation.join('s', 'v')} if sequential else {joined})"
        text.add(f"s = t if {whole} == 0 else {joined}")
        text.add(f"{y('i')} = {accumulation.store}(s)")
    return nest.own(2 * n)


def _multiply_subnormal_group(text: Text, accumulation: _Accumulation, values: list[str]) -> None:
    """Write products of a group. From the first product of several elements on that is not a normal
    number, elements are multiplied one after the other with the previous prefix."""
    for k, value in enumerate(values):
        text.add(f"v{k} = {accumulation.load}({value})")
        text.add(f"t{k} = {accumulation.join(f't{k - 1}', f'v{k}') if k else 'v0'}")
    for k in range(GROUP):
        text.add(f"s{k} = t{k} if i == 0 else {accumulation.join('acc', f't{k}')}")
    tests = [f"not_normal(t{k})" for k in range(1, GROUP)]
    with text.block(f"if (i > 0) & ({' | '.join(tests)}):"):
        text.add("sequential = False")
        for k, test in enumerate(tests, 1):
            text.add(f"sequential = sequential | {test}")
            text.add(f"s{k} = {accumulation.join(f's{k - 1}', f'v{k}')} if sequential else s{k}")


def _columns(
    text: Text,
    accumulation: _Accumulation,
    before: Sequence[Axis],
    after: Axis,
    n: int,
    steps: Sequence[int],
    ends: Sequence[list[str]],
) -> OwnKernel:
    text.add(f"acc = stack_{accumulation.wide}()", f"part = stack_{accumulation.wide}()")
    if accumulation.careful:
        text.add(f"last = stack_{accumulation.wide}()")
    blocks = ColumnBlocks(text, before, after)
    text.add(*[f"{p} = {total([*blocks.place(k), *ends[k]])}" for k, p in enumerate("pq")])
    x, y = [
        element_of(text, a, " + ".join([p, *text.times("j", s)]), step)
        for a, p, s, step in zip(("a0", "a1"), "pq", after.steps, steps, strict=True)
    ]
    if accumulation.group == 1:
        with text.block(f"for i in range({text.integer(n)}):"), text.block("for j in range(m):"):
            text.add(f"v = {accumulation.load}({x('i')})")
            text.add(f"s = v if i == 0 else {accumulation.join('acc[j]', 'v')}", "acc[j] = s")
            text.add(f"{y('i')} = {accumulation.store}(s)")
        return text.own(blocks.extent, 2 * n * blocks.work)
    with text.block(f"for i in range({text.integer(n)}):"):
        text.add(f"fresh = (i & {GROUP - 1}) == 0")
        if accumulation.careful:
            text.add(f"late = (i > {GROUP}) & (not fresh)")
        with text.block("if fresh and i > 0:"), text.block("for j in range(m):"):
            joined = f"part[j] if i == {GROUP} else {accumulation.join('acc[j]', 'part[j]')}"
            text.add(f"acc[j] = {'last[j]' if accumulation.careful else joined}")
        with text.block("for j in range(m):"):
            text.add(f"v = {accumulation.load}({x('i')})")
            text.add(f"t = v if fresh else {accumulation.join('part[j]', 'v')}")
            joined = accumulation.join("acc[j]", "t")
            if accumulation.careful:  # infinity marks the rest of the group
                text.add("sequential = not_normal(t) & late")
                text.add(f"part[j] = {accumulation.wide}(1e999) if sequential else t")
                joined = f"({accumulation.join('last[j]', 'v')} if sequential else {joined})"
            else:
                text.add("part[j] = t")
            text.add(f"s = t if i < {GROUP} else {joined}")
            text.add(*["last[j] = s"] if accumulation.careful else [])
            text.add(f"{y('i')} = {accumulation.store}(s)")
    return text.own(blocks.extent, 2 * n * blocks.work)


def _logsumexp_kernel(x: Operand, axis: int, reverse: bool) -> OwnKernel | None:
    """Return the kernel of cumlogsumexp: a running maximum and the sum relative to it."""
    if x.dtype.kind != "f":
        return None
    text = Text(2)
    n, strides = x.shape[axis], contiguous(x.shape)
    before, after = split_axes(x.shape, axis, x.strides, strides)
    nest = Nest(text, merged([*before, *after]))
    for _ in nest.axes:
        nest.open()
    steps = (x.strides[axis], strides[axis])
    ends = [[text.integer((n - 1) * s)] if reverse else [] for s in steps]
    text.add(*[f"{p} = {total([*nest.walk(k), *ends[k]])}" for k, p in enumerate("pq")])
    read, write = [
        element_of(text, a, p, -s if reverse else s)
        for a, p, s in zip(("a0", "a1"), "pq", steps, strict=True)
    ]
    text.add("top = f8(-1e999)", "part = f8(0)")
    with text.block(f"for i in range({text.integer(n)}):"):
        text.add(f"v = f8({read('i')})")
        text.add("d = f8(0) if v == top else v - top", "e = exp(-abs(d))")
        text.add("part = part * e + f8(1) if d > 0 else part + e", "top = v if d > 0 else top")
        text.add(f"{write('i')} = {dtype_code(x.dtype)}(top + log(part))")
    return nest.own(40 * n)


# --- the ops -------------------------------------------------------------------------------------


def cumsum(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `cumsum`."""
    return _cumulative_kernel(operands[0], p["axis"], p.get("reverse", False), "sum")


def cumprod(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `cumprod`."""
    return _cumulative_kernel(operands[0], p["axis"], p.get("reverse", False), "prod")


def cummax(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `cummax`."""
    return _cumulative_kernel(operands[0], p["axis"], p.get("reverse", False), "max")


def cummin(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `cummin`."""
    return _cumulative_kernel(operands[0], p["axis"], p.get("reverse", False), "min")


def cumlogsumexp(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `cumlogsumexp`."""
    return _logsumexp_kernel(operands[0], p["axis"], p.get("reverse", False))
