"""Matrix products on a GPU as steps that machine code can take: one call of cuBLAS each.

In: a `dot_general` and how its operands lie in memory. Out: a `ProductStep` with the numbers that
`cublasGemmStridedBatchedEx` takes, and kernels that lay operands out anew where their strides
cannot say it; None where the types are others: then it is a call of the array library. CuPy refuses
cuBLAS while a stream is captured, so CUDA graphs of its calls are no way to loops without Python; a
function's address is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

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

__all__ = [
    "LIMIT", "Copy", "Gemm", "Kinds", "ProductStep", "copy_layout", "factors", "gemm_of",
    "kinds_of", "matrix_layout", "merge_axes", "product_step",
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
_PLAIN, _TURNED = 0, 1  # cublasOperation_t


class Gemm(NamedTuple):
    """What cuBLAS is told of a product: matrices are in its order, by columns, so that the second
    operand is its first, and the transpose of the result comes out, which is the result by rows."""

    turned: tuple[int, int]
    sizes: tuple[int, int, int]  # columns and rows of the result, and what is summed
    types: tuple[int, int]  # of operands, of the result
    leading: tuple[int, int]
    strides: tuple[int, int]  # from one matrix of a stack to the next, in elements
    number: int  # of matrices in a stack
    compute: int
    out: tuple[int, int]  # leading dimension and stride of the result
    more: bool = False  # whether it is added to what is there


class ProductStep(AddressStep):
    """A product by cuBLAS itself. Where it is one of several steps that make a result, it begins at
    a byte of that, which is its third operand if it is there already."""

    __slots__ = ("gemm", "start")

    def __init__(
        self, v: Value, operands: Sequence[HostOperand], gemm: Gemm, start: int = 0
    ) -> None:
        super().__init__(v)
        self.operands = list(operands)
        self.gemm, self.start = gemm, start

    @property
    def what(self) -> str:
        """What kind of step it is."""
        return f"{'' if self.own_allocs is None else 'a part of it: '}product by the GPU's library"

    def words(self, place: PlaceOf, calls: Calls) -> tuple[str, int, int, list[Place]]:
        a, b = [place(o[0], o[4]) for o in self.operands[:2]]
        ((slot, _),) = self.results
        out, g, held = place(slot, self.start), self.gemm, factors(self.operands[0][2])
        calls.referenced.append(held)
        address, handle = calls.driver.blas()
        one = held.ctypes.data
        zero = one if g.more else one + held.itemsize
        given = [
            handle, *g.turned, *g.sizes, one, b, g.types[0], g.leading[0], g.strides[0],
            a, g.types[0], g.leading[1], g.strides[1], zero, out, g.types[1], *g.out,
            g.number, g.compute, -1,
        ]  # fmt: skip
        return _GEMM, address, BLAS, [x if isinstance(x, tuple) else (0, x) for x in given]


def factors(dtype: np.dtype) -> np.ndarray:
    """One and zero, in memory that lives as long as the array does."""
    return np.array([1, 0], _TYPES[np.dtype(dtype).name][2])


class Copy(NamedTuple):
    """An operand that is laid out anew first: which, by what kernel, and its strides then."""

    which: int
    kernel: OwnKernel
    code: str
    strides: tuple[int, ...]


def product_step(
    v: Value, operands: Sequence[HostOperand], place_of: Callable[[Copy], int]
) -> ProductStep | None:
    """The step of a product of operands as `HostStep` describes them. `place_of` makes a copy
    before it, and gives the slot of that."""
    for copied in ((), (0,), (1,), (0, 1)):
        copies = [_copy(i, operands[i], v.params["dimension_numbers"]) for i in copied]
        given: list[_Layout] = [(o[1], o[2], o[3]) for o in operands]
        for copy in copies:
            given[copy.which] = (*given[copy.which][:2], copy.strides)
        gemm = _gemm(v.aval, v.params, *given)
        if gemm is None:
            continue
        made = [*operands]
        for copy in copies:
            _, shape, dtype, _, _, _ = operands[copy.which]
            made[copy.which] = (place_of(copy), shape, dtype, copy.strides, 0, prod(shape))
        return ProductStep(v, made, gemm)
    return None


def _copy(which: int, operand: HostOperand, dims: Sequence[Sequence[Sequence[int]]]) -> Copy:
    """How to lay out an operand: stacks first, what is summed last, without gaps."""
    contracted, stacked = [pair[which] for pair in dims]
    free = [d for d in range(len(operand[1])) if d not in (*contracted, *stacked)]
    return copy_layout(which, operand, [*stacked, *free, *contracted])


def copy_layout(
    which: int, operand: HostOperand, order: Sequence[int], conjugate: bool = False
) -> Copy:
    """How to lay out an operand without gaps, its axes in an order."""
    _, shape, dtype, steps, _, _ = operand
    size, strides, step = dtype.itemsize, [0] * len(shape), 1
    for d in reversed(order):
        strides[d], step = step, step * shape[d]
    before = _row_major_strides(shape) if steps is None else [s // size for s in steps]
    axes = [Axis(shape[d], (before[d],)) for d in order]
    own = copy_in_order(axes, step, conjugate=conjugate)
    # Halves are converted where they are read: they are copied as what they are in memory.
    code = "i2" if size == 2 else dtype_code(dtype)
    return Copy(which, own, code, tuple([s * size for s in strides]))


# Shape, dtype, and strides in bytes of an operand; None: contiguous.
_Layout = tuple[tuple[int, ...], np.dtype, "Sequence[int] | None"]


def _gemm(out: Aval, params: dict[str, Any], a: _Layout, b: _Layout) -> Gemm | None:
    kinds = kinds_of(a[1], b[1], out.dtype, params["precision"])
    if kinds is None:
        return None
    (ac, bc), (ab, bb) = params["dimension_numbers"]
    groups: list[list[tuple[int, int]]] = []
    for (shape, dtype, steps), summed, stacked in ((a, ac, ab), (b, bc, bb)):
        strides = (
            [s // dtype.itemsize for s in steps] if steps is not None else _row_major_strides(shape)
        )
        free = [d for d in range(len(shape)) if d not in (*summed, *stacked)]
        found = [
            merge_axes([(shape[d], strides[d]) for d in dims]) for dims in (stacked, free, summed)
        ]
        known = [pair for pair in found if pair is not None]
        if len(known) < len(found):
            return None
        groups.append(known)
    (count, a_stack), (m, a_free), (k, a_sum) = groups[0]
    (_, b_stack), (n, b_free), (_, b_sum) = groups[1]
    stacks = a_stack, b_stack, m * n
    return gemm_of(kinds, (m, n, k), (a_free, a_sum), (b_sum, b_free), n, stacks, count)


Kinds = tuple[int, int, int]  # types of operands and of the result, and how it is computed


def kinds_of(a: np.dtype, b: np.dtype, out: np.dtype, precision: object) -> Kinds | None:
    """What cuBLAS calls the types of a product; None if it has none of these."""
    wide = is_half(a) and out.name == "float32"
    if a != b or a.name not in _TYPES or not (out == a or wide):
        return None
    kind, compute, _ = _TYPES[a.name]
    if a.name in ("float32", "complex64") and allows_tf32(precision):
        compute = _TF32
    return kind, _TYPES[out.name][0], compute


def gemm_of(
    kinds: Kinds, sizes: tuple[int, int, int], a: tuple[int, int], b: tuple[int, int], c: int,
    stacks: Sequence[int], count: int, more: bool = False,
) -> Gemm | None:  # fmt: skip
    """A product of (rows, columns, terms) by the strides of both matrices, down and along, by how
    far apart rows of the result are, and the strides of stacks; None where cuBLAS cannot do it."""
    m, n, k = sizes
    left, right = matrix_layout(m, a[0], k, a[1]), matrix_layout(k, b[0], n, b[1])
    if left is None or right is None or not count * m * n * k:
        return None
    leading = c if m > 1 else n
    if max(m, n, k, count, left[1], right[1], leading) >= LIMIT or min(stacks) < 0:
        return None
    kind, made, compute = kinds
    return Gemm(
        (right[0], left[0]), (n, m, k), (kind, made), (right[1], left[1]),
        (stacks[1], stacks[0]), count, compute, (leading, stacks[2]), more,
    )  # fmt: skip


def _row_major_strides(shape: Sequence[int]) -> list[int]:
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def merge_axes(axes: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Axes, lengths and strides, as one; None if they are not evenly spaced."""
    count, step = 1, 0
    for size, stride in reversed([axis for axis in axes if axis[0] != 1]):
        if count == 1:
            step = stride
        elif stride != step * count:
            return None
        count *= size
    return count, step


def matrix_layout(rows: int, down: int, columns: int, along: int) -> tuple[int, int] | None:
    """Whether a matrix lies turned for cuBLAS, and from one of its lines to the next: lines must
    be contiguous, and must not overlap."""
    if columns == 1 or along == 1:
        step = down if rows > 1 else columns
        if step >= columns:
            return _PLAIN, step
    if rows == 1 or down == 1:
        step = along if columns > 1 else rows
        if step >= rows:
            return _TURNED, step
    return None
