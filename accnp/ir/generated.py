"""The interface between code generation and plans: `GeneratedKernel`, a kernel and how to call it.

The compiler returns a `GeneratedKernel` for each `KernelSpec` and for each op with a kernel of its
own; `engine/` allocates what it needs, compiles it, and launches it. `CalledKernel` is a kernel
that another one calls, and `ScratchBuffer` is scratch memory that a kernel needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from accnp.ir.kernel import Access, OwnKernel, RowReduction

__all__ = ["CalledKernel", "GeneratedKernel", "ScratchBuffer"]


class ScratchBuffer:
    """Scratch memory that a kernel needs while it runs: `count` elements of a dtype."""

    __slots__ = ("count", "dtype", "name")

    def __init__(self, name: str, dtype: np.dtype, count: int) -> None:
        self.name = name
        self.dtype = dtype
        self.count = count


class CalledKernel(NamedTuple):
    """A kernel that another one calls."""

    name: str
    signature: tuple[str, ...]
    source: str
    kernel: Any = None  # loop IR from which the source was printed; None: only source exists


class GeneratedKernel:
    """The source of a kernel and everything needed to call it."""

    __slots__ = (
        "_source", "blocks", "callees", "extent", "form", "ints", "kernel", "once", "partials",
        "pointers", "products", "sends", "shares", "signature", "tasks", "then", "threads", "tiles",
        "tiny", "weight", "whiles",
    )  # fmt: skip

    def __init__(self) -> None:
        self._source: str | Callable[[], str] = ""
        self.kernel: Any = None  # loop IR from which the source was printed; None: only source
        self.form = ""  # form of the spec from which it was generated
        self.signature: tuple[str, ...] = ()
        self.pointers: list[Access | ScratchBuffer | tuple[str, int, np.dtype]] = []
        self.ints: list[int] = []
        self.callees: tuple[CalledKernel, ...] = ()  # kernels that the source calls
        # Maximum number of threads that can share the kernels it calls; 0: they cannot be shared.
        # If it is positive, the last three integer arguments, filled in at each launch, are the
        # address of the function that distributes work, the thread pool, and the number of its
        # helpers.
        self.shares = 0
        self.sends = False  # whether it sends messages to other processes
        self.extent = 1  # the parallel index runs from 0 to extent
        self.tiles = False  # steps of the parallel index are tiles, not rows or elements in order
        self.weight = 1  # work of one step of the parallel index, in simple element operations
        self.whiles = False  # whether it has loops without a known count; weight is then unreliable
        # Generates a variant for few elements.
        self.tiny: Callable[[], GeneratedKernel] | None = None
        self.products = False  # whether it multiplies matrices; weight is then no upper bound
        # For split reductions: partial results that another kernel must still reduce.
        self.partials: list[tuple[RowReduction, Access, int]] = []
        # For kernels on GPUs: threads per block, the number of blocks that covers all work, whether
        # the source has the signature of a CPU kernel, and kernels to launch afterwards.
        self.threads, self.blocks, self.tasks = 256, 1, False
        self.once = False  # whether each block does exactly one piece, so all must be launched
        self.then: tuple[GeneratedKernel, ...] = ()

    @property
    def source(self) -> str:
        """The text of the kernel, which is printed when it is first read: the kernels of loops are
        specialized before."""
        if not isinstance(self._source, str):
            self._source = self._source()
        return self._source

    @source.setter
    def source(self, text: str | Callable[[], str]) -> None:
        self._source = text

    @classmethod
    def of(cls, own: OwnKernel, codes: Sequence[str]) -> GeneratedKernel:
        """Wrap the kernel that an op provides itself; `codes` are the dtypes of its pointers."""
        text = cls()
        text.source, text.extent, text.weight = own.source, own.extent, own.weight
        text.ints, text.tasks = list(own.ints), not own.block_threads
        text.threads, text.blocks = own.block_threads or text.threads, own.extent
        text.signature = (*[f"{c}*" for c in codes], *["i8"] * len(own.ints))
        text.whiles, text.products = own.whiles, own.products
        return text
