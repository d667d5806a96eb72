"""Versions in Python of routines of LAPACK, sorts and compaction, for kernels that run as Python.

`python_functions.py` adds this namespace to that of the other functions that kernels call. Routines
of LAPACK are called by ctypes, as compiled kernels do. The procedures of
`llvm/intrinsics/compaction.py` are loops over elements.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, SupportsInt, cast

import numpy as np

from accnp.compiler.library.routines import (
    BLAS_THREAD_CALLS,
    CODES,
    ROUTINES,
    SORT_LIMITS,
    SORTS,
    address,
    has_info,
    kinds,
    symbol,
)
from accnp.compiler.library.sizes import LISTS

if TYPE_CHECKING:
    from accnp.compiler.ir_tools.python_types import Functions, Integer, Number, Places, Pointer

_CELLS = {"c": ctypes.c_char, "i": ctypes.c_int32}


def _routine(routine: str, code: str) -> Callable[..., int]:
    letters = kinds(routine, code)

    def call(*args: Pointer | Integer) -> int:
        keep: list[ctypes.c_char | ctypes.c_int32] = []
        places: list[int] = []
        for arg, letter in zip(args, letters, strict=True):
            if letter in _CELLS:
                keep.append(_CELLS[letter](int(cast("SupportsInt", arg))))
                places.append(ctypes.addressof(keep[-1]))
            else:
                places.append(_address(cast("Pointer", arg)))
        info = ctypes.c_int32(0)
        if has_info(routine):
            places.append(ctypes.addressof(info))
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(places))
        kind(address(symbol(routine, code)))(*places)
        return info.value

    return call


def _address(p: Pointer) -> int:
    """Return the address of an array, or of an object in place of a pointer, whose elements count
    as written from there on."""
    if isinstance(p, np.ndarray):
        return p.ctypes.data
    p.seen[p.at :] = True
    return p.data.ctypes.data + p.at * p.data.itemsize


def _sort(p: Pointer, n: Integer) -> None:
    if isinstance(p, np.ndarray):
        p[: int(n)].sort()
    else:
        p.data[p.at : p.at + int(n)].sort()
        p.seen[p.at : p.at + int(n)] = True


def _distribute(
    to: Pointer, room: Integer, src: Pointer, n: Integer, limits: Pointer, counts: Pointer
) -> None:
    lists: list[list[Number]] = [[] for _ in range(LISTS)]
    for i in range(int(n)):
        lists[sum(int(src[i] >= limits[j]) for j in range(LISTS - 1))].append(src[i])
    for k, elements in enumerate(lists):
        counts[k] = len(elements)
        for i, key in enumerate(elements):
            to[k * room + i] = key


def _collect_at_least(
    values: Pointer, places: Pointer, src: Pointer, n: Integer, first: Integer, limit: Number
) -> int:
    indices = [i for i in range(int(n)) if not src[i] < limit]
    for k, i in enumerate(indices):
        values[k], places[k] = src[i], np.int32(first + i)
    return len(indices)


def _collect_between(
    values: Pointer, places: Pointer, src: Pointer, n: Integer, first: Integer, limit: Number,
    end: Number,
) -> int:  # fmt: skip
    indices = [i for i in range(int(n)) if limit <= src[i] < end]
    for k, i in enumerate(indices):
        values[k], places[k] = src[i], np.int32(first + i)
    return len(indices)


def _permute(to: Pointer, src: Pointer, size: Integer, n: Integer, places: Places) -> None:
    for k in range(n):
        assert 0 <= places[k] < size
        to[k] = src[places[k]]


def _constant(value: int) -> Callable[[], int]:
    return lambda: value


def namespace() -> Functions:
    """Return the functions by name."""
    functions: Functions = {
        "distribute": _distribute,
        "permute": _permute,
        "collect_at_least": _collect_at_least,
        "collect_between": _collect_between,
    }
    functions |= {f"{name}_{code}": _routine(name, code) for name in ROUTINES for code in CODES}
    functions |= {f"sort_limit_{code}": _constant(most) for code, most in SORT_LIMITS.items()}
    functions |= {name: lambda: None for name in BLAS_THREAD_CALLS}
    return {**functions, **{f"sort_{code}": _sort for code in SORTS}}
