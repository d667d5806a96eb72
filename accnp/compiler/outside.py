"""Addresses of what kernels call outside of their own code: library kernels, LAPACK, NumPy's sorts,
and users' functions that Numba has compiled.

In: the name of a symbol. Out: its address. `kernel_cache`, which finds and loads what is called,
installs the function that looks up addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["address_of", "install"]

# From a symbol to its address, None if it is unknown, and what keeps the code.
_find: Callable[[str], tuple[int | None, Any]] | None = None
_kept: list[Any] = []  # code that is called is never given back


def install(find: Callable[[str], tuple[int | None, Any]]) -> None:
    """Set the function that finds addresses."""
    global _find
    _find = find


def address_of(symbol: str) -> int | None:
    """Return the address of a symbol; None if it is unknown."""
    if _find is None:
        return None
    found, kept = _find(symbol)
    _kept.append(kept)
    return found
