"""The types and sizes of stack memory, by the name of the function that returns it."""

from __future__ import annotations

import functools

from accnp.compiler.library.sizes import LANES_BYTES, PANEL_VECTORS
from accnp.compiler.llvm.processor import VECTOR_BYTES
from accnp.compiler.loops.stack_lengths import STACK_LENGTHS
from accnp.compiler.loops.types import DTYPES, DType

__all__ = ["length_of"]

_BYTES = {"panel": PANEL_VECTORS * VECTOR_BYTES, "lanes": LANES_BYTES}


@functools.cache
def length_of(function: str) -> tuple[DType, int, bool] | None:
    """Return the type and the number of elements of stack memory, and whether only the requested
    elements may be written; None for the name of another function."""
    kind, _, token = function.rpartition("_")
    if token not in DTYPES:
        return None
    of = DTYPES[token]
    if kind in STACK_LENGTHS:
        return of, STACK_LENGTHS[kind], kind != "stack"
    return (of, _BYTES[kind] // of.size, True) if kind in _BYTES else None
