"""The types of values in the loop IR.

A `DType` is named by the token that kernels use for it: `f4` is a float of 4 bytes, as in NumPy.
Indices are `I8`, integers of 64 bits.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

__all__ = ["B1", "DTYPES", "F4", "F8", "I4", "I8", "DType", "dtype_of"]

Kind = Literal["bool", "int", "uint", "float"]


class DType(NamedTuple):
    """The type of a number: its token, its kind, and its bytes in memory."""

    token: str
    kind: Kind
    size: int

    @property
    def numpy(self) -> np.dtype:
        """The dtype of NumPy."""
        return np.dtype(bool if self.kind == "bool" else self.token)

    @property
    def signed(self) -> bool:
        """Whether integers of this type have a sign."""
        return self.kind == "int"


_KINDS: dict[str, Kind] = {"b": "bool", "i": "int", "u": "uint", "f": "float"}
# By token. The tokens of half precision and of complex numbers are not here yet.
DTYPES = {
    t: DType(t, _KINDS[t[0]], int(t[1:]))
    for t in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
}
B1, I4, I8, F4, F8 = (DTYPES[t] for t in ("b1", "i4", "i8", "f4", "f8"))
_OF_NUMPY = {d.numpy: d for d in DTYPES.values()}


def dtype_of(dtype: np.dtype) -> DType | None:
    """Return the type for a dtype of NumPy; None if the IR has none."""
    return _OF_NUMPY.get(dtype)
