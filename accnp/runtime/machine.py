"""What kernels are compiled for: the processor as its kernel of the operating system tells it.

In: nothing. Out: ``STAMP``, which differs where machine code may, and the width of vectors. LLVM,
which knows the same, is asked only where there is no such file: loading it takes 50 ms, which a
process whose kernels all are on disk saves.
"""

from __future__ import annotations

import os

from accnp.forks import imported

__all__ = ["STAMP", "VECTOR_BYTES", "WIDE"]


def _flags() -> tuple[str, ...]:
    """Name and features of the first processor."""
    found = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if not line.strip() and found:
                    break
                name, _, text = line.partition(":")
                found[name.strip()] = text.strip()
    except OSError:
        pass
    if "flags" in found:
        parts = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
        return tuple([found.get(part, "") for part in parts])
    llvm = imported("llvmlite.binding")
    features = llvm.get_host_cpu_features()
    return llvm.get_host_cpu_name(), " ".join(sorted(k for k, on in features.items() if on))


_FLAGS = _flags()
WIDE = "avx512f" in _FLAGS[-1].split()
VECTOR_BYTES = 64 if WIDE else 32
STAMP = "\n".join([*os.uname()[::4], *_FLAGS] if hasattr(os, "uname") else [os.name, *_FLAGS])
