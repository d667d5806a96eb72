"""The complete table of intrinsics: importing this module fills it."""

from __future__ import annotations

from accnp.compiler.llvm.intrinsics import (
    buckets,
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
    "TABLE", "buckets", "exponents", "grid", "interrupts", "memory", "messages", "products",
    "resolve", "routines", "scalars",
]  # fmt: skip
