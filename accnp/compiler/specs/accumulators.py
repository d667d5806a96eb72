"""Accumulators of reductions, and sums whose pass can be skipped.

The functions take reductions and passes of a `KernelSpec`. They return the dtype of accumulators,
whether lanes may overflow, and the condition without which a pass would only add zeros. The modules
of this folder that write loops use them.
"""

from __future__ import annotations

import numpy as np

from accnp.ir.kernel import Phase, RowReduction, Statement

__all__ = ["accumulator", "condition", "is_product"]


def accumulator(dtype: np.dtype, combine: str) -> np.dtype:
    """Return the dtype in which the results of blocks are accumulated: float64 for float32 sums."""
    if combine == "sum" and dtype == np.float32:
        return np.dtype(np.float64)
    if combine == "sum" and dtype == np.complex64:
        return np.dtype(np.complex128)
    return dtype


def is_product(f: RowReduction) -> bool:
    """Return whether lanes of a reduction may over- or underflow although the result does not."""
    return f.combine == "prod" and f.dtype.kind in "fc"


def condition(phase: Phase, reduced: range) -> tuple[str, tuple[str, ...], list[Statement]] | None:
    """Return the condition without which the only reduction of a pass is a sum of zeros, or None.

    It consists of a formula, the names of the operands, and their loads, which do not depend on the
    reduced axes.
    """
    here = {s.name: s for s in phase.full}
    if phase.stores or len(phase.reductions) != 1 or phase.reductions[0].combine != "sum":
        return None
    source = here.get(phase.reductions[0].source)
    if source is None or not source.nonzero:
        return None
    loads = [here[x] for x in source.args[1:] if x in here]
    for s in loads:
        if s.access is None or s.args or any(s.access.strides[d] for d in reduced):
            return None
    return source.nonzero, source.args, loads
