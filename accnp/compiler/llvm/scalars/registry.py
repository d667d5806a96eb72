"""The scalar functions that are written as LLVM IR, by name.

A builder adds itself to a table with the decorator `define`. `compiler/llvm/mathlib.py` imports
all modules with builders; `compiler/llvm/intrinsics/scalars.py` makes intrinsics of the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from accnp.compiler.llvm.scalars.ir import V

    ScalarBuilder = Callable[..., V]
    ComplexBuilder = Callable[..., tuple[V, V]]

__all__ = ["BINARY", "COMPLEX", "COMPLEX64_BINARY", "COMPLEX_BINARY", "UNARY", "define"]

P = ParamSpec("P")
T = TypeVar("T")

# Functions of one or two floats. A builder takes and returns `ir.V`, and has no meaning for other
# types.
UNARY: dict[str, ScalarBuilder] = {}
BINARY: dict[str, ScalarBuilder] = {}
# Functions of complex numbers, as pairs of doubles.
COMPLEX: dict[str, ComplexBuilder] = {}
COMPLEX_BINARY: dict[str, ComplexBuilder] = {}
# Forms for complex64: squares of parts are in range, and doubles have digits to spare.
COMPLEX64_BINARY: dict[str, ComplexBuilder] = {}


def define(
    table: dict[str, Callable[..., T]], name: str = ""
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that adds a builder to a table, under its own name by default."""

    def add(build: Callable[P, T]) -> Callable[P, T]:
        table[name or build.__name__] = build
        return build

    return add
