"""Input of code generation: a `KernelSpec`, a loop nest with statements in sections.

`compiler/fusion/` produces specs; `compiler/specs/` turns them into kernels. A
spec contains only structure: sizes, strides and offsets are run-time arguments, so that a new shape
needs no new kernel. The module also defines `OwnKernel`, a kernel that an op provides itself.

Forms:
    map: computes each index of (outer x inner) independently.
    row: makes a few passes over the inner indices for each outer index; reductions over inner give
        row values, which later passes use.
    split: like row, but each row is cut into chunks of a fixed length; the reduction of a chunk is
        a partial result, and a second kernel reduces these.
    column: reduces over the middle indices for a tile of inner ones: (outer x reduced x inner).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from accnp.ir.aval import Aval

__all__ = [
    "BLOCK", "CHUNK", "CODES", "HALVES", "LONG_STEP", "ROWS", "STRETCH", "STRIDES", "Access",
    "KernelSpec", "Operand", "OwnKernel", "Phase", "RowReduction", "Statement", "code_dtype",
    "dtype_code", "is_half", "replace",
]  # fmt: skip

# The order of summation depends only on these constants and on logical shapes, never on layout,
# fusion or the number of threads.
BLOCK = 1024  # elements that one call of a block_* function reduces
CHUNK = 32 * BLOCK  # elements per partial result of a split reduction
ROWS = 512  # rows that are added one after the other into one partial result of a column reduction

# Limits on work, in simple operations on one element (see `engine/steps.py`). Signal handlers run
# between parts of STRETCH, 1.4 ms at most. A step of LONG_STEP, 90 ms at most, must be
# interruptible.
STRETCH, LONG_STEP = 1 << 22, 1 << 28

# Strides of loads along the innermost loop, besides 0 and 1, that kernels treat as constants: the
# vectors are then loaded contiguously and shuffled (`compiler/llvm/accesses.py`).
STRIDES = (-1, 2, 3, 4)


if TYPE_CHECKING:

    class StoredValue(Protocol):
        """A value of a program that lies in memory: the planner's `Value`."""

        @property
        def aval(self) -> Aval: ...

    class ComputedOperand(Protocol):
        """An operand whose elements the kernel computes instead of loading them."""

        @property
        def light(self) -> bool: ...

        @property
        def more(self) -> int: ...


class Access:
    """One array operand under one index map: element = offset + sum(index[d] * strides[d])."""

    __slots__ = ("dtype", "number", "offset", "store", "strides", "terms", "value")

    def __init__(
        self,
        value: StoredValue | None,
        dtype: np.dtype,
        strides: tuple[int, ...],
        offset: int,
        store: bool = False,
        number: int = -1,
        terms: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self.value: Any = value  # the program's `Value`; None for scratch memory
        self.dtype = dtype
        self.strides = strides
        self.offset = offset
        self.store = store
        self.number = number  # position among the kernel's pointer arguments
        # For computed places: (stride, largest index) per index; the statement's args are indices.
        self.terms = terms


class Statement:
    """name = text, with `{k}` in the text standing for args[k].

    Instead of a text it may have a load (`access`) or an index value (`index`). `nonzero` is the
    formula of a condition without which the result is 0, "" if none is known.
    """

    __slots__ = ("access", "args", "dtype", "index", "name", "nonzero", "text")

    def __init__(
        self,
        name: str,
        dtype: np.dtype,
        text: str = "",
        args: tuple[str, ...] = (),
        access: Access | None = None,
        index: Access | None = None,
        nonzero: str = "",
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.text = text
        self.nonzero = nonzero
        self.args = args
        self.access = access
        self.index = index  # iota: only strides and offset are used


class RowReduction:
    """result = combine over the reduced indices of source."""

    __slots__ = ("combine", "direct", "dtype", "name", "source")

    def __init__(
        self,
        name: str,
        source: str,
        combine: str,
        dtype: np.dtype,
        direct: Access | None = None,
    ) -> None:
        self.name = name
        self.source = source
        self.combine = combine
        self.dtype = dtype
        # If the source is a plain load, perhaps widened to float64: reduce directly from memory.
        self.direct = direct


class Phase:
    """One pass over the inner indices, then statements on row values."""

    __slots__ = ("full", "reductions", "row", "row_stores", "stores")

    def __init__(self) -> None:
        self.full: list[Statement] = []
        self.reductions: list[RowReduction] = []
        self.stores: list[tuple[Access, str]] = []
        self.row: list[Statement] = []
        self.row_stores: list[tuple[Access, str]] = []


class KernelSpec:
    """A kernel: form, sizes (outer, reduced, inner), statements, pointer arguments in order."""

    __slots__ = (
        "accesses", "cost", "fastmath", "form", "inner", "outer", "phases", "reduced", "row_head",
        "scalars",
    )  # fmt: skip

    def __init__(
        self,
        form: str,
        outer: tuple[int, ...],
        reduced: tuple[int, ...],
        inner: tuple[int, ...],
        scalars: list[Statement],
        row_head: list[Statement],
        phases: list[Phase],
        accesses: list[Access],
        fastmath: bool = False,
        cost: int = 1,
    ) -> None:
        self.form = form
        self.outer = outer
        self.reduced = reduced
        self.inner = inner
        self.scalars = scalars
        self.row_head = row_head  # statements for row values that the first pass needs
        self.phases = phases
        self.accesses = accesses
        self.fastmath = fastmath
        self.cost = cost


class Operand:
    """Memory layout of an operand of an op's own kernel; its pointer is that of element 0."""

    __slots__ = ("computed", "dtype", "fine", "shape", "strides")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: tuple[int, ...],
        fine: bool = False,
        computed: ComputedOperand | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.strides = strides  # in elements
        self.fine = fine  # whether tasks are GPU threads: many small ones, not few large ones
        # How the kernel computes the elements (`compiler.library.indexing`); None: it loads.
        self.computed: Any = computed

    @property
    def one(self) -> bool:
        """Whether several logical elements share one memory location (all strides are 0)."""
        return prod(self.shape) > 1 and not any(self.strides)


class OwnKernel:
    """A kernel that the op itself provides: `def kernel(lo, hi, *pointers, *ints)`.

    The pointers are those of the operands, then those of the results, in order. If the op
    has an `updated_operand`, the result starts with its values and has no pointer of its own: the
    planner donates the operand's buffer if it is not used later, and otherwise a copy. If all
    elements of that operand are `one`, the kernel writes the value itself, and the pointer to the
    value comes last.
    The source must not contain sizes: these are `ints`. lo..hi is a part of 0..extent, and each
    index is an independent task. On a GPU a block of `block_threads` threads may do each task; the
    signature is then `def kernel(*pointers, *ints)`.
    """

    __slots__ = (
        "block_threads", "extent", "ints", "memory", "products", "source", "then", "weight",
        "whiles",
    )  # fmt: skip

    def __init__(
        self,
        source: str,
        ints: tuple[int, ...] = (),
        extent: int = 1,
        weight: int = 1,
        memory: tuple[tuple[str, int], ...] = (),
        then: tuple[OwnKernel, ...] = (),
        block_threads: int = 0,
        products: bool = False,
        whiles: bool = False,
    ) -> None:
        self.source = source
        self.ints = ints
        self.extent = extent
        self.weight = weight  # work of one index, in simple element operations
        # Scratch memory for several steps, as (code, number of elements) each, and the kernels of
        # the steps after this one. Every step receives the pointers of operands, results and
        # memory, in this order.
        self.memory = memory
        self.then = then
        # Threads of the block that does a task on a GPU; 0: CPU signature.
        self.block_threads = block_threads
        self.products, self.whiles = products, whiles  # as in `GeneratedKernel`


_Record = TypeVar("_Record", Operand, OwnKernel)


def replace(record: _Record, **changes: Any) -> _Record:
    """Return a copy of an operand or kernel with some fields changed."""
    old: dict[str, Any] = {name: getattr(record, name) for name in record.__slots__}
    return type(record)(**{**old, **changes})


# Codes of the dtypes with which kernels compute.
CODES = frozenset(
    ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "e2", "f4", "f8", "c8", "c16"]
)
# Half precision: two bytes in memory, a float32 of the same value in registers. `f2(x)` rounds.
HALVES = frozenset(["f2", "e2"])
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def dtype_code(dtype: np.dtype) -> str:
    """Return the token of a dtype in generated source: f4, i8, u1, c8, b1, e2 for bfloat16..."""
    if dtype == _BFLOAT16:
        return "e2"
    return "b1" if dtype.kind == "b" else f"{dtype.kind}{dtype.itemsize}"


def is_half(dtype: np.dtype) -> bool:
    """Return whether a dtype has half precision."""
    return dtype_code(dtype) in HALVES


def code_dtype(code: str) -> np.dtype:
    """Return the dtype of a token that `dtype_code` returned."""
    if code == "e2":
        return _BFLOAT16
    return np.dtype(bool if code == "b1" else code)
