"""Kernels that other kernels call: from an object file to those it asks for, ready to be called.

The texts are in `accnp.kernels.library`, loaded by name on first use.
"""

from __future__ import annotations

import importlib

from accnp.runtime.compile import Kernel, get_kernel


def called_in(data: bytes, vector_bytes: int) -> dict[str, Kernel]:
    """The library kernels that an object file refers to, by symbol."""
    library = importlib.import_module("accnp.kernels.library")
    if library.PREFIX.encode() not in data:
        return {}
    found = {}
    for name, signature in library.SIGNATURES.items():
        symbol = library.PREFIX + name
        if symbol.encode() + b"\0" in data:  # as the table of symbols has it
            found[symbol] = get_kernel(library.source(name, vector_bytes), name, signature)
    return found
