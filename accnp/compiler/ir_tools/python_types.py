"""Types of the values that kernels work with when they run as plain Python.

The annotations of `python_functions.py`, `python_gemm.py` and `python_lapack.py` use them. No
module imports this one when a program runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, overload

import numpy as np

__all__ = ["ArrayPointer", "Functions", "Integer", "MultiplyAdd", "Number", "Places", "Pointer"]


class _Flags(Protocol):
    """One flag for each element: whether it has been written."""

    def __setitem__(self, k: slice, value: bool, /) -> None: ...


class ArrayPointer(Protocol):
    """An address within an array, which checks accesses; tests define such a class."""

    data: np.ndarray
    at: int
    seen: _Flags

    @overload
    def __getitem__(self, k: Integer, /) -> Number: ...
    @overload
    def __getitem__(self, k: slice, /) -> np.ndarray: ...
    def __setitem__(self, k: Integer | slice, value: np.ndarray | Number | int, /) -> None: ...
    def moved(self, k: int) -> ArrayPointer: ...


class Places(Protocol):
    """A table of indices: an array of integers, or a pointer to one."""

    def __getitem__(self, k: Integer, /) -> Integer: ...


Integer: TypeAlias = int  # or an integer of NumPy, for which the same operators exist
Number: TypeAlias = np.number
Pointer: TypeAlias = np.ndarray | ArrayPointer
# That kernels call, by name: they return a number, a pointer or nothing.
Functions: TypeAlias = dict[str, Callable[..., object]]
MultiplyAdd: TypeAlias = Callable[[Number, Number, Number], Number]  # x * y + z
