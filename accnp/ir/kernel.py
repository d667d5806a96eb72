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

from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["BLOCK", "CHUNK", "ROWS", "Access", "Fold", "KernelSpec", "Phase", "Statement"]

# The order of summation depends on these constants and on logical shapes only: never on layout,
# fusion or threads.
BLOCK = 1024  # elements folded by one block_* call
CHUNK = 32 * BLOCK  # elements of one partial result of a split fold
ROWS = 512  # rows folded one after the other into one partial result of a column fold


@dataclass(eq=False, slots=True)
class Access:
    """One array operand under one index map: element = offset + sum(index[d] * strides[d])."""

    value: Any  # the program's Value, or a name of the plan for scratch
    dtype: np.dtype
    strides: tuple[int, ...]
    offset: int
    store: bool = False
    number: int = -1  # position among the kernel's pointer arguments


@dataclass(eq=False, slots=True)
class Statement:
    """name = text, with `{k}` in the text standing for args[k].

    Instead of a text it may have a load (`access`) or an index value (`index`).
    """

    name: str
    dtype: np.dtype
    text: str = ""
    args: tuple[str, ...] = ()
    access: Access | None = None
    index: Access | None = None  # iota: only strides and offset are used


@dataclass(eq=False, slots=True)
class Fold:
    """result = combine over the reduced indices of source."""

    name: str
    source: str
    combine: str
    dtype: np.dtype
    direct: Access | None = None  # the source is a plain load: fold straight from memory


@dataclass(eq=False, slots=True)
class Phase:
    """One pass over the inner indices, then statements on row values."""

    full: list[Statement] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    stores: list[tuple[Access, str]] = field(default_factory=list)
    row: list[Statement] = field(default_factory=list)
    row_stores: list[tuple[Access, str]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class KernelSpec:
    """A kernel: form, sizes (outer, reduced, inner), statements, pointer arguments in order."""

    form: str
    outer: tuple[int, ...]
    reduced: tuple[int, ...]
    inner: tuple[int, ...]
    scalars: list[Statement]
    row_head: list[Statement]  # row values known before the first pass
    phases: list[Phase]
    accesses: list[Access]
    fastmath: bool = False
    cost: int = 1
