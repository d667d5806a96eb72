"""What the processor has that the code of functions depends on; this machine's, if none is chosen.

Import it before anything that uses it.
"""

from __future__ import annotations

from llvmlite import binding

from accnp.kernels.math import cold

__all__ = ["VECTOR_BYTES", "choose"]

_features = binding.get_host_cpu_features()
cold.permutes = bool(_features.get("avx2"))
cold.halves = bool(_features.get("f16c"))
if _features.get("avx512f"):
    cold.vector_bytes = 64
VECTOR_BYTES = cold.vector_bytes  # of a vector register


def choose(vector_bytes: int) -> None:
    """Make code for another x86-64 processor, with AVX2 and vectors of so many bytes."""
    global VECTOR_BYTES
    VECTOR_BYTES = cold.vector_bytes = vector_bytes
    cold.permutes = cold.halves = True
