"""Tells the code of functions what this machine's processor has, when it is imported."""

from __future__ import annotations

from llvmlite import binding

from accnp.kernels.math import cold

__all__ = ["VECTOR_BYTES"]

_features = binding.get_host_cpu_features()
cold.permutes = bool(_features.get("avx2"))
cold.halves = bool(_features.get("f16c"))
if _features.get("avx512f"):
    cold.vector_bytes = 64
VECTOR_BYTES = cold.vector_bytes  # of a vector register
