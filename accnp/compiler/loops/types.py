"""The types of values in the loop IR.

A `DType` is named by the token that kernels use for it: `f4` is a float of 4 bytes, as in NumPy,
and `e2` is bfloat16. Indices are `I8`, integers of 64 bits. A `Pointer` is the address of an
element.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import ml_dtypes
import numpy as np

__all__ = [
    "B1", "C8", "C16", "DTYPES", "F4", "F8", "I4", "I8", "U1", "U4", "U8",
    "DType", "Pointer", "Type", "dtype_of", "part_of",
]  # fmt: skip

Kind = Literal["bool", "int", "uint", "half", "float", "complex"]


class DType(NamedTuple):
    """The type of a number: its token, its kind, and its bytes in memory.

    Half-precision numbers are stored as float32 in registers, rounded to half precision.
    """

    token: str
    kind: Kind
    size: int

    @property
    def numpy(self) -> np.dtype:
        """The dtype of NumPy."""
        if self.token == "e2":
            return np.dtype(ml_dtypes.bfloat16)
        return np.dtype(bool if self.kind == "bool" else self.token)

    @property
    def signed(self) -> bool:
        """Return whether integers of this type have a sign."""
        return self.kind == "int"


class Pointer(NamedTuple):
    """The address of an element of a type."""

    of: DType

    @property
    def token(self) -> str:
        """The token in signatures: that of the element and a star."""
        return f"{self.of.token}*"

    @property
    def kind(self) -> Literal["pointer"]:
        """The kind of an address."""
        return "pointer"

    @property
    def size(self) -> int:
        """The bytes of an address."""
        return 8


Type = DType | Pointer

_KINDS: dict[str, Kind] = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
_HALVES = ("f2", "e2")
_TOKENS = "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 e2 f4 f8 c8 c16"
# By token.
DTYPES = {
    t: DType(t, "half" if t in _HALVES else _KINDS[t[0]], int(t[1:])) for t in _TOKENS.split()
}
B1, I4, I8, U1, U4, U8, F4, F8, C8, C16 = (
    DTYPES[t] for t in ("b1", "i4", "i8", "u1", "u4", "u8", "f4", "f8", "c8", "c16")
)
_OF_NUMPY = {d.numpy: d for d in DTYPES.values()}


def dtype_of(dtype: np.dtype) -> DType | None:
    """Return the type for a dtype of NumPy; None if kernels do not support the dtype."""
    return _OF_NUMPY.get(dtype)


def part_of(of: DType) -> DType:
    """Return the type of the real and of the imaginary part of complex numbers."""
    return F4 if of == C8 else F8
