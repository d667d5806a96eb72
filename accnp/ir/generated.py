"""A kernel as the compiler hands it to plans, and how to call it: `Generated`, the kernels that it
calls (`Called`), and memory that it needs (`Room`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from accnp.ir.kernel import Access, Fold, OwnKernel

__all__ = ["Called", "Generated", "Room"]


class Room:
    """Memory that a kernel needs while it runs."""

    __slots__ = ("count", "dtype", "name")

    def __init__(self, name: str, dtype: np.dtype, count: int) -> None:
        self.name = name
        self.dtype = dtype
        self.count = count


class Called(NamedTuple):
    """A kernel that another one calls."""

    name: str
    signature: tuple[str, ...]
    source: str
    kernel: Any = None  # in the loop IR, of which the source is a print; None: text alone


class Generated:
    """The text of a kernel and how to call it."""

    __slots__ = (
        "blocks",
        "callees",
        "extent",
        "form",
        "ints",
        "kernel",
        "once",
        "partials",
        "pointers",
        "products",
        "shares",
        "signature",
        "source",
        "tasks",
        "then",
        "threads",
        "tiles",
        "tiny",
        "weight",
        "whiles",
    )

    def __init__(self) -> None:
        self.source = ""
        self.kernel: Any = None  # in the loop IR, of which the source is a print; None: text alone
        self.form = ""  # of the spec it was made from
        self.signature: tuple[str, ...] = ()
        self.pointers: list[Access | Room | tuple[str, int, np.dtype]] = []
        self.ints: list[int] = []
        self.callees: tuple[Called, ...] = ()  # kernels in the source that this one calls
        # Among how many threads the kernels that it calls can be shared; 0: none is. Its last three
        # integers are then what shares, the team of threads and its helpers, given at each launch.
        self.shares = 0
        self.extent = 1  # the parallel index runs from 0 to extent
        self.tiles = False  # its steps are tiles, not rows, or elements, in order
        self.weight = 1  # work of one step of it, in simple element operations
        self.whiles = False  # whether there is a loop as long as no range says: work says little
        self.tiny: Callable[[], Generated] | None = None  # makes the one for a few elements
        self.products = False  # whether it multiplies matrices: work is no estimate from above
        # Of split folds: partial results still to be folded.
        self.partials: list[tuple[Fold, Access, int]] = []
        # Of kernels for GPUs: threads of a block and blocks that make use of the whole work,
        # whether the text is one for the processor, and what is launched after it.
        self.threads, self.blocks, self.tasks = 256, 1, False
        self.once = False  # whether all blocks must be launched: none does two pieces
        self.then: tuple[Generated, ...] = ()

    @classmethod
    def of(cls, own: OwnKernel, codes: Sequence[str]) -> Generated:
        """The kernel that an op brings itself, with the types of its pointers."""
        text = cls()
        text.source, text.extent, text.weight = own.source, own.extent, own.weight
        text.ints, text.tasks = list(own.ints), not own.team
        text.threads, text.blocks = own.team or text.threads, own.extent
        text.signature = (*[f"{c}*" for c in codes], *["i8"] * len(own.ints))
        text.whiles, text.products = own.whiles, own.products
        return text
