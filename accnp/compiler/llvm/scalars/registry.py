"""The scalar functions that are written as LLVM IR, by name.

A builder adds itself to a table with the decorator `define`. `compiler/llvm/mathlib.py` imports
all modules with builders; `compiler/llvm/intrinsics/scalars.py` makes intrinsics of the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["BINARY", "COMPLEX", "COMPLEX64_BINARY", "COMPLEX_BINARY", "UNARY", "define"]

ScalarBuilder = Callable[..., Any]
T = TypeVar("T", bound=ScalarBuilder)

# Functions of one or two floats. A builder takes and returns `ir.V`, and has no meaning for other
# types.
UNARY: dict[str, ScalarBuilder] = {}
BINARY: dict[str, ScalarBuilder] = {}
# Functions of complex numbers, as pairs of doubles.
COMPLEX: dict[str, ScalarBuilder] = {}
COMPLEX_BINARY: dict[str, ScalarBuilder] = {}
# Forms for complex64: squares of parts are in range, and doubles have digits to spare.
COMPLEX64_BINARY: dict[str, ScalarBuilder] = {}


def define(table: dict[str, ScalarBuilder], name: str = "") -> Callable[[T], T]:
    """Return a decorator that adds a builder to a table, under its own name by default."""

    def add(build: T) -> T:
        table[name or build.__name__] = build
        return build

    return add
