"""The features of the processor on which generated code depends: those of this machine, or of the
level of x86-64 for which kernels are compiled (`compiler/processor.py`).

Import this module before any module that generates code.
"""

from __future__ import annotations

from collections.abc import Set

from accnp.compiler.llvm.scalars import cold, ir
from accnp.compiler.processor import TARGET, host

__all__ = ["VECTOR_BYTES", "set_features"]


def set_features(on: Set[str]) -> None:
    """Generate code for processors with these features (LLVM's names) from now on."""
    global VECTOR_BYTES  # of a vector register
    VECTOR_BYTES = cold.vector_bytes = 64 if "avx512f" in on else 32
    cold.permutes = "avx2" in on
    cold.shuffles = {"ssse3", "sse4.1"} <= on
    cold.halves = "f16c" in on
    cold.neon = "neon" in on
    ir.fuses = "sse" not in on or "fma" in on


set_features(frozenset(host()[1]) if TARGET is None else TARGET.features)
