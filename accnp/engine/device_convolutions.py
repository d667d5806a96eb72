"""Large convolutions on a GPU as steps that machine code can take: kernels of ours lay windows out,
cuBLAS multiplies them.

In: a `conv_general_dilated` and how its operands lie in memory. Out: launches and `ProductStep`s;
none where kernels of ours do it without windows: small ones, few features, other types. Windows are
a matrix of rows (examples and places) by terms (input features and taps). There may be no room for
all of it, and caches hold little: it comes about part by part, in the same memory. Where strides
say that matrix, nothing is laid out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from accnp.compiler.fusion.program import Value
from accnp.compiler.library.copies import copy_in_order
from accnp.compiler.library.cupy.calls import allows_tf32
from accnp.compiler.library.windows.block_convolutions import FEATURES
from accnp.compiler.library.windows.convolutions import Case, case_of
from accnp.compiler.library.windows.window_copies import Part, window_copy
from accnp.compiler.library.writing.loop_nests import Axis
from accnp.engine.device_products import (
    LIMIT,
    Kinds,
    ProductStep,
    copy_layout,
    gemm_of,
    kinds_of,
    matrix_layout,
    merge_axes,
)  # fmt: skip
from accnp.engine.device_series import Series, SeriesStep
from accnp.engine.steps import HostOperand, HostStep
from accnp.ir.kernel import Operand, dtype_code, is_half
from accnp.primitives.convolution import windows_of
from accnp.primitives.views import contiguous
from accnp.primitives.windows import Window, dilated_length

if TYPE_CHECKING:
    from accnp.engine.device_plan import DevicePlanner

__all__ = ["convolution_steps"]

# Multiplications from which cuBLAS is better, an eighth of them where it may use TF32: a
# millisecond of a GPU's time (guesses).
LARGE = 1 << 34
ROOM = 1 << 27  # bytes of windows that are there at once
ROWS = 1 << 12  # rows at once, as long as there is room for some of their terms
NARROW = 64  # rows from which matrices are multiplied one by one, rather than turned afterwards


def convolution_steps(planner: DevicePlanner, v: Value, call: HostStep) -> list[SeriesStep]:
    """The steps of a convolution whose call is planned; none if it is not one of products."""
    given: list[Operand] = []
    for _, shape, dtype, strides, *_ in call.operands:
        steps = contiguous(shape) if strides is None else [s // dtype.itemsize for s in strides]
        given.append(Operand(shape, dtype, tuple(steps)))
    lhs, rhs = given
    kinds = kinds_of(lhs.dtype, rhs.dtype, v.aval.dtype, v.params["precision"])
    if kinds is None or not (v.aval.size and prod(lhs.shape) and prod(rhs.shape)):
        return []
    if max(v.aval.size, prod(lhs.shape), prod(rhs.shape)) >= LIMIT:
        return []
    case = case_of(lhs, rhs, v.aval, windows_of(lhs.shape, rhs.shape, v.params), v.params)
    work = v.aval.size * case.inputs * prod([w.taps for w in case.windows])
    fast = lhs.dtype.name in ("float32", "complex64") and allows_tf32(v.params["precision"])
    fast = fast or is_half(lhs.dtype)
    if case.features < FEATURES or work < (LARGE // 8 if fast else LARGE):
        return []
    return _Convolution(planner, v, call, case, kinds).run()


class _Matrix(NamedTuple):
    """What is multiplied: where it lies, and its strides in elements: down, along, from group to
    group and from stack to stack of rows."""

    operand: HostOperand
    down: int
    along: int
    group: int
    stack: int = 0


class _Convolution(Series):
    """One that is planned. Axes of rows are n (examples), p0, p1... (places), those of terms c
    (input features), k0, k1... (taps)."""

    def __init__(
        self, planner: DevicePlanner, v: Value, call: HostStep, case: Case, kinds: Kinds
    ) -> None:
        super().__init__(planner, v, call)
        self.case, self.kinds, self.dtype = case, kinds, call.operands[0][2]
        self.slot = self.results[-1]
        self.made: np.dtype = v.aval.dtype
        # Sizes and strides of the array, of the weights or the result.
        self.rows = {"n": (case.examples, *case.example)}
        self.terms = {"c": (case.inputs, *case.input)}
        for d, w in enumerate(case.windows):
            self.rows[f"p{d}"] = w.places, case.lhs[d] * w.stride, case.out[d]
            self.terms[f"k{d}"] = w.taps, case.lhs[d] * w.dilation, case.rhs[d]
        self.n_rows = prod([n for n, *_ in self.rows.values()])
        self.n_terms = prod([n for n, *_ in self.terms.values()])
        # Rows in the order of the result: `each` of them follow each other for each feature.
        self.order = sorted(self.rows, key=lambda name: -self.rows[name][2])
        behind = [name for name in self.order if self.rows[name][2] < case.feature[1]]
        self.each = prod([self.rows[name][0] for name in behind])

    def run(self) -> list[SeriesStep]:
        """Plan it; returns the steps."""
        groups, features, each = self.case.groups, self.case.features, self.each
        # Rows of a few places are turned when they are done.
        turned = 1 < each < min(NARROW, self.n_rows)
        if turned or each == 1:
            self.each = self.n_rows
        several, terms = self.pieces()
        array = self.strided()
        # Sums of parts are in float32.
        parted = is_half(self.made) and array is None and terms < self.n_terms
        code = "f4" if parted else _code(self.made)
        if parted:
            self.made, self.kinds = np.dtype(np.float32), (self.kinds[0], 0, self.kinds[2])
        if parted or turned:
            self.slot = self.planner.new_slot()
        given = self.slot, (), self.made, None, 0, self.v.aval.size
        if self.each > each:
            into = _Matrix(given, groups * features, 1, features)
        else:
            into = _Matrix(given, 1, each, features * each, groups * features * each)
        if array is None:
            self.laid(several, terms, into)
        else:
            x, rows, names = array
            if rows < self.each:
                into = into._replace(stack=rows * into.down)
            self.product(x, self.weights(names), into, (rows, self.n_terms), self.n_rows // rows)
        if parted or turned:
            self.finish(code, each if turned else 0)
        return self.steps

    def pieces(self) -> tuple[int, int]:
        """How many rows and terms of windows are there at once."""
        room = max(1, ROOM // self.dtype.itemsize // self.case.groups)
        least = min(self.n_rows, -(-ROWS // self.case.groups))
        several = max(least, room // self.n_terms)
        terms = _even_part_size(self.n_terms, max(1, room // several))
        if several >= self.each:
            return min(self.n_rows, several - several % self.each), terms
        return _even_part_size(self.each, several), terms

    # --- operands ---

    def strided(self) -> tuple[_Matrix, int, list[str]] | None:
        """The array as a matrix of windows by its strides alone, how many rows it has for each of a
        stack, and its terms in their order."""
        group = self.case.group[0] if self.case.groups > 1 else 0
        if group < 0 or not all(map(_needs_no_padding, self.case.windows)):
            return None
        names = sorted(self.terms, key=lambda name: -self.terms[name][1])
        _, across = merge_axes([self.terms[name][:2] for name in names]) or (0, 0)
        steps = zip(self.case.windows, self.case.lhs, strict=True)
        operand = _offset_operand(self.operands[0], -sum([w.low * step for w, step in steps]))
        for k in range(len(self.order) + 1 if across else 0):
            outer, inner = ([self.rows[x][:2] for x in y] for y in (self.order[:k], self.order[k:]))
            (rows, down), (_, stack) = merge_axes(inner) or (0, 0), merge_axes(outer) or (0, -1)
            # Where features come before them, rows are a matrix up to there.
            whole = self.each in (self.n_rows, rows)
            if rows and stack >= 0 and whole and matrix_layout(rows, down, self.n_terms, across):
                return _Matrix(operand, down, across, group, stack), rows, names
        return None

    def weights(self, names: Sequence[str]) -> _Matrix:
        """The weights with terms in an order, laid out anew where strides cannot say it."""
        step, operand = self.case.feature[0], self.operands[1]
        found = merge_axes([(self.terms[name][0], self.terms[name][2]) for name in names])
        if found is None or not matrix_layout(self.n_terms, found[1], self.case.features, step):
            spec = self.v.params["dimension_numbers"].rhs_spec
            order = [spec[1] if name == "c" else spec[2 + int(name[1:])] for name in names]
            copy = copy_layout(1, operand, [spec[0], *order])
            slot = self.planner.copied(self.v, self.operands, copy)
            operand, step = (slot, operand[1], self.dtype, None, 0, operand[5]), self.n_terms
            return _Matrix(operand, 1, step, self.case.features * step)
        return _Matrix(operand, found[1], step, self.case.group[1])

    # --- steps ---

    def laid(self, several: int, terms: int, into: _Matrix) -> None:
        """Windows part by part, and what is made of them."""
        along_terms = self.near(self.terms) > self.near(self.rows)
        names = sorted(self.terms, key=lambda name: -self.terms[name][1 if along_terms else 2])
        weights, slot = self.weights(names), self.planner.new_slot()
        axes = [[(name, x[name][0]) for name in order]
                for x, order in ((self.rows, self.order), (self.terms, names))]  # fmt: skip
        code = _code(self.dtype)
        for first, rows, stacks in self.ranges(several):
            for start in range(0, self.n_terms, terms):
                count, n = rows * stacks, min(terms, self.n_terms - start)
                parts = Part(axes[0], first, count), Part(axes[1], start, n)
                along, over = parts[::-1] if along_terms else parts
                size = self.case.groups * count * n
                own, nbytes = window_copy(self.case, code, along, over), size * self.dtype.itemsize
                array = self.operands[0][0], self.operands[0][4]
                pointers = [array, (slot, 0)]
                self.launch(own, [code] * 2, pointers, [(slot, nbytes)], "windows", 2 * nbytes)
                given = slot, (), self.dtype, None, 0, size
                if along_terms:
                    x = _Matrix(given, n, 1, count * n, rows * n)
                else:
                    x = _Matrix(given, 1, count, count * n, rows)
                w = weights._replace(operand=_offset_operand(weights.operand, start * weights.down))
                stack, row = divmod(first, self.each)
                at = _offset_operand(into.operand, stack * into.stack + row * into.down)
                self.product(x, w, into._replace(operand=at), (rows, n), stacks, start > 0)

    def near(self, axes: dict[str, tuple[int, int, int]]) -> int:
        """How many elements of the array lie side by side along one of some axes."""
        spread = [f"{x}{d}" for d, w in enumerate(self.case.windows) if w.base > 1 for x in "pk"]
        return max([n for name, (n, x, _) in axes.items() if x == 1 and name not in spread] or [0])

    def ranges(self, several: int) -> Iterator[tuple[int, int, int]]:
        """Parts of the rows: the first one, how many for each of a stack, how many of these."""
        for first in range(0, self.n_rows, max(several, self.each)):
            stacks = min(several, self.n_rows - first) // self.each
            if stacks:
                yield first, self.each, stacks
                continue
            for row in range(0, self.each, several):
                yield first + row, min(several, self.each - row), 1

    def product(
        self, x: _Matrix, w: _Matrix, into: _Matrix, sizes: tuple[int, int], stacks: int,
        more: bool = False,
    ) -> None:  # fmt: skip
        """Products of all groups and stacks: the more of both are one call's."""
        (rows, terms), columns = sizes, self.case.features
        several = (self.case.groups, x.group, w.group, into.group), (stacks, x.stack, 0, into.stack)
        (calls, *moves), (count, *strides) = sorted(several, key=lambda pair: pair[0])
        if into.along != 1:  # its transpose is by rows
            rows, columns = columns, rows
            x, w = (m._replace(down=m.along, along=m.down) for m in (w, x))
            moves, strides = ([y[1], y[0], y[2]] for y in (moves, strides))
        for k in range(calls):
            gemm = gemm_of(
                self.kinds, (rows, columns, terms), (x.down, x.along), (w.down, w.along),
                max(into.down, into.along), strides, count, more,
            )  # fmt: skip
            assert gemm is not None, "strides that were looked at"
            a, b, out = (
                _offset_operand(m.operand, k * move)
                for m, move in zip((x, w, into), moves, strict=True)
            )
            step = ProductStep(self.v, [a, b], gemm, out[4])
            step.results = [(self.slot, -1)]
            step.own_allocs = self.allocate(self.slot, self.v.aval.size * self.made.itemsize)
            step.operands += [] if step.own_allocs else [(self.slot, *out[1:])]
            step.work = count * rows * columns * terms
            moved = rows * terms + columns * (rows + terms)
            step.nbytes = count * moved * self.dtype.itemsize
            self.steps.append(step)

    def finish(self, code: str, each: int) -> None:
        """The result of what was made beside it: in its type, places behind features."""
        aval = self.v.aval
        to = _code(aval.dtype) if code != "f4" else dtype_code(aval.dtype)
        width = self.case.groups * self.case.features
        axes = [Axis(aval.size, (1,))]
        if each:
            steps = (each * width, 1, width)
            sizes = (self.n_rows // each, width, each)
            axes = [Axis(n, (step,)) for n, step in zip(sizes, steps, strict=True)]
        own = copy_in_order(axes, aval.size, to)
        pointers, made = [(self.slot, 0), (self.results[-1], 0)], [(self.results[-1], aval.nbytes)]
        label = "turned" if each else "rounded"
        self.launch(own, [code, to], pointers, made, label, 2 * aval.nbytes)


def _code(dtype: np.dtype) -> str:
    """What a number is moved as: halves as what they are in memory."""
    return "i2" if dtype.itemsize == 2 else dtype_code(dtype)


def _even_part_size(n: int, most: int) -> int:
    """The size of parts of n that are all as large, at most so many."""
    return -(-n // -(-n // most))


def _offset_operand(operand: HostOperand, elements: int) -> HostOperand:
    """An operand from an element on."""
    slot, shape, dtype, strides, offset, size = operand
    return slot, shape, dtype, strides, offset + elements * dtype.itemsize, size


def _needs_no_padding(w: Window) -> bool:
    """Whether a window sees elements alone, wherever it is."""
    last = dilated_length(w.places, w.stride) + dilated_length(w.taps, w.dilation) - 1
    return w.base == 1 and w.low <= 0 and last - w.low <= w.size
