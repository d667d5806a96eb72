"""The complete table of intrinsics: importing this module fills it."""

from __future__ import annotations

from accnp.compiler.llvm.intrinsics import (
    compaction,
    exponents,
    grid,
    interrupts,
    memory,
    messages,
    products,
    routines,
    scalars,
)
from accnp.compiler.llvm.intrinsics.table import TABLE, resolve

__all__ = [
    "TABLE", "compaction", "exponents", "grid", "interrupts", "memory", "messages", "products",
    "resolve", "routines", "scalars",
]  # fmt: skip
