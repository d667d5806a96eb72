"""Abstract values. In: shape, dtype, weak_type. Out: one interned `Aval` per distinct triple.

Interning makes `is` the equality test and the id the hash, which keeps the recorder's memo lookups
cheap.
"""

from __future__ import annotations

from math import prod

import numpy as np

__all__ = ["Aval", "make_aval"]


class Aval:
    """Shape, dtype and weak_type of a value; interned, so compare with `is`."""

    __slots__ = ("dtype", "nbytes", "ndim", "shape", "size", "weak_type")

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    ndim: int
    size: int
    nbytes: int

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        dims = ",".join(map(str, self.shape))
        return f"ShapedArray({self.dtype.name}[{dims}]{weak})"

    def __reduce__(self):
        return make_aval, (self.shape, self.dtype, self.weak_type)


_INTERNED: dict[tuple, Aval] = {}


def make_aval(shape: tuple[int, ...], dtype: np.dtype, weak_type: bool = False) -> Aval:
    """Return the interned aval of this shape, dtype and weak_type."""
    key = (shape, dtype, weak_type)
    found = _INTERNED.get(key)
    if found is not None:
        return found
    self = Aval()
    self.shape = tuple(int(n) for n in shape)
    self.dtype = np.dtype(dtype)
    self.weak_type = bool(weak_type)
    self.ndim = len(self.shape)
    self.size = prod(self.shape)
    self.nbytes = self.size * self.dtype.itemsize
    return _INTERNED.setdefault((self.shape, self.dtype, self.weak_type), self)
