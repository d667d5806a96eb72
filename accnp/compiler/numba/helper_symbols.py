"""Addresses of the C functions that machine code from Numba calls.

In: the name of a function without Numba's prefix. Out: its address. The ELF loader imports this
module by name, when an object file refers to such a function: users' functions that Numba compiles.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["address_of"]

_HELPERS: Any = importlib.import_module("numba._helperlib")


def address_of(name: str) -> int | None:
    """Return the address of one of Numba's helper functions; None if there is no such function."""
    return _HELPERS.c_helpers.get(name)
