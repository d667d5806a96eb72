"""Sizes that the library kernels, their intrinsics and their callers share.

`library.py` describes the order of summation that the first three determine. This module imports
nothing, so that code which writes kernels can use the sizes without loading the library kernels.
"""

from __future__ import annotations

__all__ = [
    "CHAIN_BYTES", "LANES_BYTES", "LISTS", "PANEL_VECTORS", "RUN", "STRIP_COLUMNS", "VECTOR_RUN",
]  # fmt: skip

RUN = 256  # steps of one chain of a matrix product
VECTOR_RUN = 4096  # steps of one run of a matrix times a vector
CHAIN_BYTES = 64  # bytes of the partial sums of these chains, one element for each chain
STRIP_COLUMNS = 2048  # columns whose partial sums stay in the cache
PANEL_VECTORS = 4 * RUN  # vectors of a buffer for packed columns, `panel_f4()`
LANES_BYTES = (CHAIN_BYTES + 8) * STRIP_COLUMNS + 64  # a buffer for partial sums, `lanes_f4()`
LISTS = 8  # lists to which the intrinsic `distribute` adds the keys of a sort
