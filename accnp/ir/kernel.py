"""What code generation gets: a `KernelSpec`, a loop nest with statements in sections.

Everything in it is structure; sizes, strides and offsets are run-time arguments, so that a new
shape needs no new kernel.

Forms:
    map: every index of (outer x inner) on its own.
    row: for each outer index a few passes over the inner indices; folds over inner give row
        values, used by later passes.
    split: like row, but a row is cut into chunks of a fixed length; each chunk's fold is a
        partial result, folded by a second kernel.
    column: folds over the middle indices for a tile of inner ones: (outer x reduced x inner).
"""

from __future__ import annotations

from math import prod
from typing import Any

import ml_dtypes
import numpy as np

__all__ = [
    "BLOCK", "CHUNK", "CODES", "HALVES", "ROWS", "STRIDES", "Access", "Fold", "KernelSpec",
    "Operand", "OwnKernel", "Phase", "Statement", "code_dtype", "dtype_code",
    "is_half", "replace",
]  # fmt: skip

# The order of summation depends on these constants and on logical shapes only: never on layout,
# fusion or threads.
BLOCK = 1024  # elements folded by one block_* call
CHUNK = 32 * BLOCK  # elements of one partial result of a split fold
ROWS = 512  # rows folded one after the other into one partial result of a column fold

# Distances of loads along the innermost loop, besides 0 and 1, that the text of a kernel spells
# out: its vectors are loaded whole and shuffled (`compiler/llvm/accesses.py`).
STRIDES = (-1, 2, 3, 4)


class Access:
    """One array operand under one index map: element = offset + sum(index[d] * strides[d])."""

    __slots__ = ("dtype", "number", "offset", "store", "strides", "terms", "value")

    def __init__(
        self,
        value: Any,
        dtype: np.dtype,
        strides: tuple[int, ...],
        offset: int,
        store: bool = False,
        number: int = -1,
        terms: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self.value = value  # the program's Value, or a name of the plan for scratch
        self.dtype = dtype
        self.strides = strides
        self.offset = offset
        self.store = store
        self.number = number  # position among the kernel's pointer arguments
        # Of a computed place, (stride, largest index): the statement's args are their indices.
        self.terms = terms


class Statement:
    """name = text, with `{k}` in the text standing for args[k].

    Instead of a text it may have a load (`access`) or an index value (`index`).
    """

    __slots__ = ("access", "args", "dtype", "index", "name", "text")

    def __init__(
        self,
        name: str,
        dtype: np.dtype,
        text: str = "",
        args: tuple[str, ...] = (),
        access: Access | None = None,
        index: Access | None = None,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.text = text
        self.args = args
        self.access = access
        self.index = index  # iota: only strides and offset are used


class Fold:
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
        # The source is a plain load, perhaps widened to float64: fold straight from memory.
        self.direct = direct


class Phase:
    """One pass over the inner indices, then statements on row values."""

    __slots__ = ("folds", "full", "row", "row_stores", "stores")

    def __init__(self) -> None:
        self.full: list[Statement] = []
        self.folds: list[Fold] = []
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
        self.row_head = row_head  # row values known before the first pass
        self.phases = phases
        self.accesses = accesses
        self.fastmath = fastmath
        self.cost = cost


class Operand:
    """How an operand of an op's own kernel lies in memory; its pointer is its first element."""

    __slots__ = ("computed", "dtype", "fine", "shape", "strides")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: tuple[int, ...],
        fine: bool = False,
        computed: Any = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.strides = strides  # in elements
        self.fine = fine  # whether tasks are threads of a GPU: many small ones, rather than few
        # How the kernel computes its elements (`compiler.text.computed.Computed`); None: loads.
        self.computed = computed

    @property
    def one(self) -> bool:
        """Whether all of several elements are one, under strides of 0."""
        return prod(self.shape) > 1 and not any(self.strides)


class OwnKernel:
    """The kernel of one op, written by the op itself: `def kernel(lo, hi, *pointers, *ints)`.

    The pointers are those of the operands, then those of the results, in order. If the op `takes`
    an operand, the result starts with its values, and it has no pointer of its own: the planner
    hands over its buffer where it is not used later, else a copy. If that operand is `one`, the
    kernel writes its value by itself; the value's pointer is the last of all. The text must hold no
    size: these are `ints`. lo..hi is a part of 0..extent, each index of which is a task of its own;
    on a GPU so many threads may do a task together (`team`): `def kernel(*pointers, *ints)` then.
    """

    __slots__ = (
        "extent", "ints", "memory", "products", "source", "team", "then", "weight", "whiles",
    )  # fmt: skip

    def __init__(
        self,
        source: str,
        ints: tuple[int, ...] = (),
        extent: int = 1,
        weight: int = 1,
        memory: tuple[tuple[str, int], ...] = (),
        then: tuple[OwnKernel, ...] = (),
        team: int = 0,
        products: bool = False,
        whiles: bool = False,
    ) -> None:
        self.source = source
        self.ints = ints
        self.extent = extent
        self.weight = weight  # work of one index, in simple element operations
        # Memory for several steps, (code, number of elements) each, and the kernels of the steps
        # after this one. All steps have the pointers of operands, results, memory, in this order.
        self.memory = memory
        self.then = then
        self.team = team  # threads of the block that does a task on a GPU
        self.products, self.whiles = products, whiles  # as those of `Generated`


def replace(record: Any, **changes: Any) -> Any:
    """An operand or a kernel with some of its fields changed."""
    return type(record)(**{name: getattr(record, name) for name in record.__slots__} | changes)


# Of the dtypes that kernels compute with.
CODES = frozenset(
    ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "e2", "f4", "f8", "c8", "c16"]
)
# Of half precision: two bytes in memory, a float32 with such a value in registers. `f2(x)` rounds.
HALVES = frozenset(["f2", "e2"])
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def dtype_code(dtype: np.dtype) -> str:
    """Return the token of a dtype in generated source: f4, i8, u1, c8, b1, e2 for bfloat16..."""
    if dtype == _BFLOAT16:
        return "e2"
    return "b1" if dtype.kind == "b" else f"{dtype.kind}{dtype.itemsize}"


def is_half(dtype: np.dtype) -> bool:
    """Whether numbers are of half precision."""
    return dtype_code(dtype) in HALVES


def code_dtype(code: str) -> np.dtype:
    """Return the dtype of such a token."""
    if code == "e2":
        return _BFLOAT16
    return np.dtype(bool if code == "b1" else code)
