"""The features of the processor on which generated code depends: those of this machine, unless
`set_vector_bytes` is called.

Import this module before any module that generates code.
"""

from __future__ import annotations

from llvmlite import binding

from accnp.compiler.llvm.scalars import cold

__all__ = ["VECTOR_BYTES", "host", "set_vector_bytes"]

_features = binding.get_host_cpu_features()
cold.permutes = bool(_features.get("avx2"))
cold.halves = bool(_features.get("f16c"))
if _features.get("avx512f"):
    cold.vector_bytes = 64
VECTOR_BYTES = cold.vector_bytes  # of a vector register


def host() -> tuple[str, list[str]]:
    """Return LLVM's name for the processor of this machine, and its features in order."""
    return binding.get_host_cpu_name(), sorted(name for name, on in _features.items() if on)


def set_vector_bytes(vector_bytes: int) -> None:
    """Generate code for x86-64 processors with AVX2 and vectors of this many bytes from now on."""
    global VECTOR_BYTES
    VECTOR_BYTES = cold.vector_bytes = vector_bytes
    cold.permutes = cold.halves = True
