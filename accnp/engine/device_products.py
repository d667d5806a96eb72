"""Matrix products on a GPU as steps that machine code executes: one call of cuBLAS each.

`product_step` takes a `dot_general` and the layouts of its operands, and returns a `ProductStep`
with the arguments of `cublasGemmStridedBatchedEx`. Operands whose strides cuBLAS cannot describe
are copied first. It returns None for types that cuBLAS lacks; the array library then computes the
product. CuPy does not call cuBLAS while a stream is captured, so products in loops without Python
call the function by its address instead of a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from accnp.compiler.fusion.program import Value
from accnp.compiler.library.copies import copy_in_order
from accnp.compiler.library.cupy.calls import allows_tf32
from accnp.compiler.library.writing.loop_nests import Axis
from accnp.engine.device_steps import AddressStep
from accnp.engine.steps import HostOperand
from accnp.ir.aval import Aval
from accnp.ir.kernel import OwnKernel, dtype_code, is_half
from accnp.runtime.driver import BLAS

if TYPE_CHECKING:
    from accnp.engine.device_steps import PlaceOf
    from accnp.engine.device_words import Calls, Place
    from accnp.ir.op_types import Params

__all__ = [
    "LIMIT", "Copy", "Gemm", "ProductStep", "TypeCodes", "copy_layout", "gemm_of", "matrix_layout",
    "merge_axes", "one_and_zero", "product_step", "type_codes",
]  # fmt: skip

LIMIT = 1 << 31  # sizes are C's int
# cudaDataType, cublasComputeType_t and the type of the factors, by the name of a dtype.
_TYPES = {
    "float32": (0, 68, np.float32),
    "float64": (1, 70, np.float64),
    "float16": (2, 68, np.float32),
    "complex64": (4, 68, np.complex64),
    "complex128": (5, 70, np.complex128),
    "bfloat16": (14, 68, np.float32),
}
_GEMM = "cublasGemmStridedBatchedEx"
_TF32 = 77  # CUBLAS_COMPUTE_32F_FAST_TF32
_PLAIN, _TRANSPOSED = 0, 1  # cublasOperation_t


class Gemm(NamedTuple):
    """Arguments of cuBLAS for a product. cuBLAS expects column-major matrices: it gets the operands
    in reverse order and computes the transposed result, which is the row-major result."""

    transposed: tuple[int, int]
    sizes: tuple[int, int, int]  # columns and rows of the result, and the number of terms
    types: tuple[int, int]  # of the operands and the result
    leading: tuple[int, int]
    strides: tuple[int, int]  # from one matrix of a batch to the next, in elements
    batch: int  # number of matrices
    compute: int
    out: tuple[int, int]  # leading dimension and stride of the result
    accumulate: bool = False  # whether to add to the previous values of the result


class ProductStep(AddressStep):
    """A product by a direct call of cuBLAS.

    If it is one of several steps that write a result, `start` is the offset in bytes from which it
    writes, and a result that an earlier step allocated is its third operand.
    """

    __slots__ = ("gemm", "start")

    def __init__(
        self, v: Value, operands: Sequence[HostOperand], gemm: Gemm, start: int = 0
    ) -> None:
        super().__init__(v)
        self.operands = list(operands)
        self.gemm, self.start = gemm, start

    @property
    def what(self) -> str:
        """Description of the step for `explain`."""
        return f"{'' if self.own_allocs is None else 'a part of it: '}product by the GPU's library"

    def words(self, place: PlaceOf, calls: Calls) -> tuple[str, int, int, list[Place]]:
        a, b = [place(o[0], o[4]) for o in self.operands[:2]]
        ((slot, _),) = self.results
        out, g, scalars = place(slot, self.start), self.gemm, one_and_zero(self.operands[0][2])
        calls.references.append(scalars)
        address, handle = calls.driver.blas()
        one = scalars.ctypes.data
        zero = one if g.accumulate else one + scalars.itemsize
        words = [
            handle, *g.transposed, *g.sizes, one, b, g.types[0], g.leading[0], g.strides[0],
            a, g.types[0], g.leading[1], g.strides[1], zero, out, g.types[1], *g.out,
            g.batch, g.compute, -1,
        ]  # fmt: skip
        return _GEMM, address, BLAS, [x if isinstance(x, tuple) else (0, x) for x in words]


def one_and_zero(dtype: np.dtype) -> np.ndarray:
    """Return the scalars one and zero of a product, which the caller keeps alive during calls."""
    return np.array([1, 0], _TYPES[np.dtype(dtype).name][2])


class Copy(NamedTuple):
    """A copy of an operand before a product: its index, the kernel, and the strides of the copy."""

    which: int
    kernel: OwnKernel
    code: str
    strides: tuple[int, ...]


def product_step(
    v: Value, operands: Sequence[HostOperand], place_of: Callable[[Copy], int]
) -> ProductStep | None:
    """Return the step of a product of operands as `HostStep` describes them.

    `place_of` plans a copy and returns its slot.
    """
    for copied in ((), (0,), (1,), (0, 1)):
        copies = [_copy(i, operands[i], v.params["dimension_numbers"]) for i in copied]
        layouts: list[_Layout] = [(o[1], o[2], o[3]) for o in operands]
        for copy in copies:
            layouts[copy.which] = (*layouts[copy.which][:2], copy.strides)
        gemm = _gemm(v.aval, v.params, *layouts)
        if gemm is None:
            continue
        arguments = [*operands]
        for copy in copies:
            _, shape, dtype, _, _, _ = operands[copy.which]
            arguments[copy.which] = (place_of(copy), shape, dtype, copy.strides, 0, prod(shape))
        return ProductStep(v, arguments, gemm)
    return None


def _copy(which: int, operand: HostOperand, dims: Sequence[Sequence[Sequence[int]]]) -> Copy:
    """Return a contiguous copy of an operand: batch axes first, contracted axes last."""
    contracted, stacked = [pair[which] for pair in dims]
    free = [d for d in range(len(operand[1])) if d not in (*contracted, *stacked)]
    return copy_layout(which, operand, [*stacked, *free, *contracted])


def copy_layout(
    which: int, operand: HostOperand, order: Sequence[int], conjugate: bool = False
) -> Copy:
    """Return a contiguous copy of an operand with its axes in this order."""
    _, shape, dtype, steps, _, _ = operand
    size, strides, step = dtype.itemsize, [0] * len(shape), 1
    for d in reversed(order):
        strides[d], step = step, step * shape[d]
    before = _row_major_strides(shape) if steps is None else [s // size for s in steps]
    axes = [Axis(shape[d], (before[d],)) for d in order]
    own = copy_in_order(axes, step, conjugate=conjugate)
    # Kernels convert halves when they read them, so halves are copied as integers.
    code = "i2" if size == 2 else dtype_code(dtype)
    return Copy(which, own, code, tuple([s * size for s in strides]))


# Shape, dtype, and strides in bytes of an operand (None: contiguous).
_Layout = tuple[tuple[int, ...], np.dtype, "Sequence[int] | None"]


def _gemm(out: Aval, params: Params, a: _Layout, b: _Layout) -> Gemm | None:
    types = type_codes(a[1], b[1], out.dtype, params["precision"])
    if types is None:
        return None
    (ac, bc), (ab, bb) = params["dimension_numbers"]
    groups: list[list[tuple[int, int]]] = []
    for (shape, dtype, steps), summed, stacked in ((a, ac, ab), (b, bc, bb)):
        strides = (
            [s // dtype.itemsize for s in steps] if steps is not None else _row_major_strides(shape)
        )
        free = [d for d in range(len(shape)) if d not in (*summed, *stacked)]
        merged = [
            merge_axes([(shape[d], strides[d]) for d in dims]) for dims in (stacked, free, summed)
        ]
        known = [pair for pair in merged if pair is not None]
        if len(known) < len(merged):
            return None
        groups.append(known)
    (count, a_stack), (m, a_free), (k, a_sum) = groups[0]
    (_, b_stack), (n, b_free), (_, b_sum) = groups[1]
    stacks = a_stack, b_stack, m * n
    return gemm_of(types, (m, n, k), (a_free, a_sum), (b_sum, b_free), n, stacks, count)


TypeCodes = tuple[int, int, int]  # of the operands, of the result, and of the computation


def type_codes(a: np.dtype, b: np.dtype, out: np.dtype, precision: object) -> TypeCodes | None:
    """Return the type codes of a product for cuBLAS; None if it does not support the types."""
    wide = is_half(a) and out.name == "float32"
    if a != b or a.name not in _TYPES or not (out == a or wide):
        return None
    kind, compute, _ = _TYPES[a.name]
    if a.name in ("float32", "complex64") and allows_tf32(precision):
        compute = _TF32
    return kind, _TYPES[out.name][0], compute


def gemm_of(
    types: TypeCodes, sizes: tuple[int, int, int], a: tuple[int, int], b: tuple[int, int], c: int,
    stacks: Sequence[int], count: int, accumulate: bool = False,
) -> Gemm | None:  # fmt: skip
    """Return a product for cuBLAS, or None if it does not support the layout.

    `sizes` are rows, columns and terms, `a` and `b` the strides of the operands from row to row and
    from column to column, `c` the stride between rows of the result, `stacks` the batch strides.
    """
    m, n, k = sizes
    left, right = matrix_layout(m, a[0], k, a[1]), matrix_layout(k, b[0], n, b[1])
    if left is None or right is None or not count * m * n * k:
        return None
    leading = c if m > 1 else n
    if max(m, n, k, count, left[1], right[1], leading) >= LIMIT or min(stacks) < 0:
        return None
    kind, out_kind, compute = types
    return Gemm(
        (right[0], left[0]), (n, m, k), (kind, out_kind), (right[1], left[1]),
        (stacks[1], stacks[0]), count, compute, (leading, stacks[2]), accumulate,
    )  # fmt: skip


def _row_major_strides(shape: Sequence[int]) -> list[int]:
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def merge_axes(axes: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Merge axes (length, stride) into one; return None if they are not evenly spaced."""
    count, step = 1, 0
    for size, stride in reversed([axis for axis in axes if axis[0] != 1]):
        if count == 1:
            step = stride
        elif stride != step * count:
            return None
        count *= size
    return count, step


def matrix_layout(rows: int, down: int, columns: int, along: int) -> tuple[int, int] | None:
    """Return whether a matrix is transposed for cuBLAS, and its leading dimension; None if its
    lines are not contiguous or overlap."""
    if columns == 1 or along == 1:
        step = down if rows > 1 else columns
        if step >= columns:
            return _PLAIN, step
    if rows == 1 or down == 1:
        step = along if columns > 1 else rows
        if step >= rows:
            return _TRANSPOSED, step
    return None
