"""Functions of many operations, whose small calls in eager code are one compiled program.

In: a function of arrays and static values, and the arguments of one call. Out: its results.
Recording an operation costs 2 to 5 us, and control flow more, so for small arrays a function of
many operations is faster as a program that was traced before. Large arrays are recorded, so that
the operations fuse with those around them. Traces record the operations, since a call would only
be looked through again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import NoneType
from typing import Any, TypeVar

import numpy as np

from accnp.api.compiled.jit import JitFunction, jit
from accnp.array import Array
from accnp.config import config
from accnp.ir.trace import state

__all__ = ["run_small"]

# Elements of all operands: to store them takes as long as to record about 30 operations
# (development machine, 2026-11).
SMALL = 1 << 16
INT32 = 1 << 31
R = TypeVar("R")
_STATIC = (int, bool, str, NoneType)


def run_small(function: Callable[..., R], arrays: tuple[Any, ...], static: tuple[Any, ...]) -> R:
    """Return `function(*arrays, *static)`, as a call of a compiled program if that is faster.

    The function must be defined once, in a module, and read nothing but its arguments.
    """
    if state.abstract is None and not state.named and _is_small(arrays, static):
        return _compiled(function, len(arrays), len(static))(*arrays, *static)
    return function(*arrays, *static)


def _is_small(arrays: tuple[Any, ...], static: tuple[Any, ...]) -> bool:
    size = 0
    for x in arrays:
        if type(x) is Array or type(x) is np.ndarray:
            size += x.size
        elif type(x) is not float and not (type(x) is int and abs(x) < INT32):
            return False  # lists, keys, and large numbers: the function refuses or converts them
    return size <= SMALL and all(type(x) in _STATIC for x in static) and not config.no_execution


@cache
def _compiled(function: Callable[..., Any], arrays: int, static: int) -> JitFunction[..., Any]:
    return jit(function, static_argnums=tuple(range(arrays, arrays + static)))
