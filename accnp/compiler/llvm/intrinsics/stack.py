"""The types and sizes of stack memory, by the name of the function that returns it."""

from __future__ import annotations

import functools

from accnp.compiler.library.library import CHAIN_BYTES, RUN, STRIP_COLUMNS
from accnp.compiler.llvm.intrinsics.memory import SLAB, STACK, TILE
from accnp.compiler.llvm.processor import VECTOR_BYTES
from accnp.compiler.loops.types import DTYPES, DType

__all__ = ["length_of"]

_LENGTHS = {"stack": STACK, "tile": TILE, "slab": SLAB, "cell": 1}
_BYTES = {"panel": RUN * 4 * VECTOR_BYTES, "lanes": (CHAIN_BYTES + 8) * STRIP_COLUMNS + 64}


@functools.cache
def length_of(function: str) -> tuple[DType, int, bool] | None:
    """Return the type and the number of elements of stack memory, and whether only the requested
    elements may be written; None for the name of another function."""
    kind, _, token = function.rpartition("_")
    if token not in DTYPES:
        return None
    of = DTYPES[token]
    if kind in _LENGTHS:
        return of, _LENGTHS[kind], kind != "stack"
    return (of, _BYTES[kind] // of.size, True) if kind in _BYTES else None
