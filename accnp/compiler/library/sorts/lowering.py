"""The kernels of `sort`: short and few lines are merged by positions (`short_sorts.py`), all others
are sorted by NumPy's vectorized sort (`long_sorts.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accnp.compiler.library.sorts.long_sorts import long_sort
from accnp.compiler.library.sorts.short_sorts import sort_kernel
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["sort"]


def sort(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `sort`."""
    axis, keys = p["dimension"], p["num_keys"]
    short = sort_kernel(operands, axis, keys)
    return short or (long_sort(operands, axis) if keys == 1 else None)
