"""The processor of this machine, as LLVM describes it."""

from __future__ import annotations

from llvmlite import binding

__all__ = ["host"]


def host() -> tuple[str, list[str]]:
    """Return LLVM's name for the processor of this machine, and its features in order."""
    features = binding.get_host_cpu_features()
    return binding.get_host_cpu_name(), sorted(name for name, on in features.items() if on)
