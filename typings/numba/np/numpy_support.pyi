"""Dtypes of NumPy as types of Numba."""

from typing import Any

from numba.core.types import Type
from numpy import dtype

def as_dtype(nbtype: Type) -> dtype[Any]: ...
def from_dtype(dtype: dtype[Any]) -> Type: ...
