"""Large convolutions on a GPU as steps that machine code executes: accnp's own kernels copy
windows, and cuBLAS multiplies them by the weights.

`convolution_steps` takes a `conv_general_dilated` and the layouts of its operands, and returns
launches and `ProductStep`s, or no steps where accnp's convolution kernels are used instead: for
small convolutions, few features, and types that cuBLAS lacks.

Windows form a matrix of rows (examples and output positions) by terms (input features and taps). It
may not fit into memory, and caches are small, so it is written and multiplied in chunks that reuse
the same buffer. If strides of the array can describe the matrix, nothing is copied.
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
    ProductStep,
    TypeCodes,
    copy_layout,
    gemm_of,
    matrix_layout,
    merge_axes,
    type_codes,
)  # fmt: skip
from accnp.engine.device_series import SeriesStep, StepSequence
from accnp.engine.steps import HostOperand, HostStep
from accnp.ir.kernel import Operand, dtype_code, is_half
from accnp.primitives.convolution import windows_of
from accnp.primitives.views import contiguous
from accnp.primitives.windows import Window, dilated_length

if TYPE_CHECKING:
    from accnp.engine.device_plan import DevicePlanner

__all__ = ["convolution_steps"]

# The number of multiplications from which cuBLAS is used (an eighth of it where TF32 is allowed):
# about a millisecond of GPU time. Estimated, not measured.
LARGE = 1 << 34
BUFFER_BYTES = 1 << 27  # bytes of the buffer for windows
ROWS = 1 << 12  # rows of a chunk, if the buffer has space for some of their terms
NARROW = 64  # rows from which matrices are multiplied separately, not transposed afterwards


def convolution_steps(planner: DevicePlanner, v: Value, call: HostStep) -> list[SeriesStep]:
    """Return the steps of a convolution in place of its library call; none if cuBLAS is not
    used."""
    operands: list[Operand] = []
    for _, shape, dtype, strides, *_ in call.operands:
        steps = contiguous(shape) if strides is None else [s // dtype.itemsize for s in strides]
        operands.append(Operand(shape, dtype, tuple(steps)))
    lhs, rhs = operands
    types = type_codes(lhs.dtype, rhs.dtype, v.aval.dtype, v.params["precision"])
    if types is None or not (v.aval.size and prod(lhs.shape) and prod(rhs.shape)):
        return []
    if max(v.aval.size, prod(lhs.shape), prod(rhs.shape)) >= LIMIT:
        return []
    case = case_of(lhs, rhs, v.aval, windows_of(lhs.shape, rhs.shape, v.params), v.params)
    work = v.aval.size * case.inputs * prod([w.taps for w in case.windows])
    fast = lhs.dtype.name in ("float32", "complex64") and allows_tf32(v.params["precision"])
    fast = fast or is_half(lhs.dtype)
    if case.features < FEATURES or work < (LARGE // 8 if fast else LARGE):
        return []
    return _Convolution(planner, v, call, case, types).run()


class _Matrix(NamedTuple):
    """A matrix of a product: its operand, and strides in elements between rows (`down`), columns
    (`along`), groups and stacks of rows."""

    operand: HostOperand
    down: int
    along: int
    group: int
    stack: int = 0


class _Convolution(StepSequence):
    """The steps of one convolution. The axes of rows are n (examples) and p0, p1, ... (output
    positions); the axes of terms are c (input features) and k0, k1, ... (taps)."""

    def __init__(
        self, planner: DevicePlanner, v: Value, call: HostStep, case: Case, types: TypeCodes
    ) -> None:
        super().__init__(planner, v, call)
        self.case, self.types, self.dtype = case, types, call.operands[0][2]
        self.slot = self.results[-1]
        self.out_dtype: np.dtype = v.aval.dtype
        # For each axis: its size, and its strides in the array and in the result (rows) or weights
        # (terms).
        self.rows = {"n": (case.examples, *case.example)}
        self.terms = {"c": (case.inputs, *case.input)}
        for d, w in enumerate(case.windows):
            self.rows[f"p{d}"] = w.places, case.lhs[d] * w.stride, case.out[d]
            self.terms[f"k{d}"] = w.taps, case.lhs[d] * w.dilation, case.rhs[d]
        self.n_rows = prod([n for n, *_ in self.rows.values()])
        self.n_terms = prod([n for n, *_ in self.terms.values()])
        # Rows in the order of the result; `each` of them are consecutive for one feature.
        self.order = sorted(self.rows, key=lambda name: -self.rows[name][2])
        after_features = [name for name in self.order if self.rows[name][2] < case.feature[1]]
        self.each = prod([self.rows[name][0] for name in after_features])

    def run(self) -> list[SeriesStep]:
        """Plan and return the steps."""
        groups, features, each = self.case.groups, self.case.features, self.each
        # If few positions are consecutive, the result is transposed at the end.
        turned = 1 < each < min(NARROW, self.n_rows)
        if turned or each == 1:
            self.each = self.n_rows
        row_count, terms = self.chunk_sizes()
        array = self.strided_windows()
        # Partial sums are accumulated in float32.
        partial = is_half(self.out_dtype) and array is None and terms < self.n_terms
        code = "f4" if partial else _code(self.out_dtype)
        if partial:
            self.out_dtype, self.types = np.dtype(np.float32), (self.types[0], 0, self.types[2])
        if partial or turned:
            self.slot = self.planner.new_slot()
        result = self.slot, (), self.out_dtype, None, 0, self.v.aval.size
        if self.each > each:
            into = _Matrix(result, groups * features, 1, features)
        else:
            into = _Matrix(result, 1, each, features * each, groups * features * each)
        if array is None:
            self.copied_windows(row_count, terms, into)
        else:
            x, rows, names = array
            if rows < self.each:
                into = into._replace(stack=rows * into.down)
            self.product(x, self.weights(names), into, (rows, self.n_terms), self.n_rows // rows)
        if partial or turned:
            self.finish(code, each if turned else 0)
        return self.steps

    def chunk_sizes(self) -> tuple[int, int]:
        """Return the number of rows and terms of a chunk of windows."""
        capacity = max(1, BUFFER_BYTES // self.dtype.itemsize // self.case.groups)
        least = min(self.n_rows, -(-ROWS // self.case.groups))
        several = max(least, capacity // self.n_terms)
        terms = _even_part_size(self.n_terms, max(1, capacity // several))
        if several >= self.each:
            return min(self.n_rows, several - several % self.each), terms
        return _even_part_size(self.each, several), terms

    # --- operands ---

    def strided_windows(self) -> tuple[_Matrix, int, list[str]] | None:
        """Return the array as a strided matrix of windows, the rows of each stack, and its terms in
        order; None if strides cannot describe it."""
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
            # If features precede rows in the result, a matrix ends there.
            whole = self.each in (self.n_rows, rows)
            if rows and stack >= 0 and whole and matrix_layout(rows, down, self.n_terms, across):
                return _Matrix(operand, down, across, group, stack), rows, names
        return None

    def weights(self, names: Sequence[str]) -> _Matrix:
        """Return the weights with terms in this order, copied if strides cannot describe it."""
        step, operand = self.case.feature[0], self.operands[1]
        merged = merge_axes([(self.terms[name][0], self.terms[name][2]) for name in names])
        if merged is None or not matrix_layout(self.n_terms, merged[1], self.case.features, step):
            spec = self.v.params["dimension_numbers"].rhs_spec
            order = [spec[1] if name == "c" else spec[2 + int(name[1:])] for name in names]
            copy = copy_layout(1, operand, [spec[0], *order])
            slot = self.planner.plan_copy(self.v, self.operands, copy)
            operand, step = (slot, operand[1], self.dtype, None, 0, operand[5]), self.n_terms
            return _Matrix(operand, 1, step, self.case.features * step)
        return _Matrix(operand, merged[1], step, self.case.group[1])

    # --- steps ---

    def copied_windows(self, several: int, terms: int, into: _Matrix) -> None:
        """Append copies of chunks of windows and their products."""
        along_terms = self.contiguous_length(self.terms) > self.contiguous_length(self.rows)
        names = sorted(self.terms, key=lambda name: -self.terms[name][1 if along_terms else 2])
        weights, slot = self.weights(names), self.planner.new_slot()
        axes = [[(name, x[name][0]) for name in order]
                for x, order in ((self.rows, self.order), (self.terms, names))]  # fmt: skip
        code = _code(self.dtype)
        for first, rows, stacks in self.row_chunks(several):
            for start in range(0, self.n_terms, terms):
                count, n = rows * stacks, min(terms, self.n_terms - start)
                parts = Part(axes[0], first, count), Part(axes[1], start, n)
                along, over = parts[::-1] if along_terms else parts
                size = self.case.groups * count * n
                own, nbytes = window_copy(self.case, code, along, over), size * self.dtype.itemsize
                array = self.operands[0][0], self.operands[0][4]
                pointers = [array, (slot, 0)]
                self.launch(own, [code] * 2, pointers, [(slot, nbytes)], "windows", 2 * nbytes)
                windows = slot, (), self.dtype, None, 0, size
                if along_terms:
                    x = _Matrix(windows, n, 1, count * n, rows * n)
                else:
                    x = _Matrix(windows, 1, count, count * n, rows)
                w = weights._replace(operand=_offset_operand(weights.operand, start * weights.down))
                stack, row = divmod(first, self.each)
                at = _offset_operand(into.operand, stack * into.stack + row * into.down)
                self.product(x, w, into._replace(operand=at), (rows, n), stacks, start > 0)

    def contiguous_length(self, axes: dict[str, tuple[int, int, int]]) -> int:
        """Return the largest number of elements of the array that are contiguous along one axis."""
        spread = [f"{x}{d}" for d, w in enumerate(self.case.windows) if w.base > 1 for x in "pk"]
        return max([n for name, (n, x, _) in axes.items() if x == 1 and name not in spread] or [0])

    def row_chunks(self, several: int) -> Iterator[tuple[int, int, int]]:
        """Yield chunks of rows: the first row, the rows of each stack, and the number of stacks."""
        for first in range(0, self.n_rows, max(several, self.each)):
            stacks = min(several, self.n_rows - first) // self.each
            if stacks:
                yield first, self.each, stacks
                continue
            for row in range(0, self.each, several):
                yield first + row, min(several, self.each - row), 1

    def product(
        self, x: _Matrix, w: _Matrix, into: _Matrix, sizes: tuple[int, int], stacks: int,
        accumulate: bool = False,
    ) -> None:  # fmt: skip
        """Append the products of all groups and stacks. The more numerous of both form the batch of
        a call; there is one call for each of the others."""
        (rows, terms), columns = sizes, self.case.features
        several = (self.case.groups, x.group, w.group, into.group), (stacks, x.stack, 0, into.stack)
        (calls, *moves), (count, *strides) = sorted(several, key=lambda pair: pair[0])
        if into.along != 1:  # the transposed result is row-major
            rows, columns = columns, rows
            x, w = (m._replace(down=m.along, along=m.down) for m in (w, x))
            moves, strides = ([y[1], y[0], y[2]] for y in (moves, strides))
        for k in range(calls):
            gemm = gemm_of(
                self.types, (rows, columns, terms), (x.down, x.along), (w.down, w.along),
                max(into.down, into.along), strides, count, accumulate,
            )  # fmt: skip
            assert gemm is not None, "the layout was checked"
            a, b, out = (
                _offset_operand(m.operand, k * move)
                for m, move in zip((x, w, into), moves, strict=True)
            )
            step = ProductStep(self.v, [a, b], gemm, out[4])
            step.results = [(self.slot, -1)]
            step.own_allocs = self.allocate(self.slot, self.v.aval.size * self.out_dtype.itemsize)
            step.operands += [] if step.own_allocs else [(self.slot, *out[1:])]
            step.work = count * rows * columns * terms
            moved = rows * terms + columns * (rows + terms)
            step.nbytes = count * moved * self.dtype.itemsize
            self.steps.append(step)

    def finish(self, code: str, each: int) -> None:
        """Append the conversion of an intermediate result to the final dtype and layout."""
        aval = self.v.aval
        to = _code(aval.dtype) if code != "f4" else dtype_code(aval.dtype)
        width = self.case.groups * self.case.features
        axes = [Axis(aval.size, (1,))]
        if each:
            steps = (each * width, 1, width)
            sizes = (self.n_rows // each, width, each)
            axes = [Axis(n, (step,)) for n, step in zip(sizes, steps, strict=True)]
        own = copy_in_order(axes, aval.size, to)
        pointers = [(self.slot, 0), (self.results[-1], 0)]
        outputs = [(self.results[-1], aval.nbytes)]
        label = "turned" if each else "rounded"
        self.launch(own, [code, to], pointers, outputs, label, 2 * aval.nbytes)


def _code(dtype: np.dtype) -> str:
    """Return the type with which numbers are copied: halves as integers."""
    return "i2" if dtype.itemsize == 2 else dtype_code(dtype)


def _even_part_size(n: int, most: int) -> int:
    """Return the size of parts of n that are equally large and at most `most`."""
    return -(-n // -(-n // most))


def _offset_operand(operand: HostOperand, elements: int) -> HostOperand:
    """Return an operand that starts at an element."""
    slot, shape, dtype, strides, offset, size = operand
    return slot, shape, dtype, strides, offset + elements * dtype.itemsize, size


def _needs_no_padding(w: Window) -> bool:
    """Return whether no position of a window reaches into padding."""
    last = dilated_length(w.places, w.stride) + dilated_length(w.taps, w.dilation) - 1
    return w.base == 1 and w.low <= 0 and last - w.low <= w.size
