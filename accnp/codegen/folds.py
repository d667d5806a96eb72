"""What a fold needs in a kernel: how to join two results, from what to start, in which dtype.

In: the name of a fold ("sum", "max"...) and a dtype. Out: text, or the accumulator's dtype.
"""

from __future__ import annotations

import numpy as np

from accnp.ir.kernel import dtype_code

__all__ = ["accumulator", "combined", "identity", "joined", "lanes"]

_COMBINE = {
    "sum": "{0} + {1}",
    "prod": "{0} * {1}",
    "max": "fmax({0}, {1})",
    "min": "fmin({0}, {1})",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
}
_BOOL_COMBINE = {
    "max": "{0} or {1}",
    "min": "{0} and {1}",
    "and": "{0} and {1}",
    "or": "{0} or {1}",
}


def accumulator(dtype: np.dtype, combine: str) -> np.dtype:
    """Return the dtype in which folds of whole blocks are gathered: float64 for float32 sums."""
    if combine == "sum" and dtype == np.float32:
        return np.dtype(np.float64)
    if combine == "sum" and dtype == np.complex64:
        return np.dtype(np.complex128)
    return dtype


def identity(dtype: np.dtype, combine: str) -> str:
    """Return the text of a fold's identity."""
    if dtype.kind == "b":
        return "True" if combine in ("and", "min", "prod") else "False"
    if combine in ("sum", "or"):
        return "0"
    if combine == "prod":
        return "1"
    if combine == "and":
        return str(np.iinfo(dtype).max) if dtype.kind == "u" else "-1"
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return str(info.min if combine == "max" else info.max)
    return "-1e999" if combine == "max" else "1e999"


def combined(combine: str, dtype: np.dtype, a: str, b: str) -> str:
    """Return the text that joins two results of a fold."""
    table = _BOOL_COMBINE if dtype.kind == "b" else _COMBINE
    return f"{dtype_code(dtype)}({table[combine].format(a, b)})"


def lanes(combine: str) -> int:
    """Return the lanes in which `block_*` folds a block."""
    return 64 if combine in ("max", "min") else 32


def joined(combine: str, dtype: np.dtype, a: str, b: str) -> str:
    """Return the text that joins an element to a lane, as `block_*` does."""
    if combine in ("max", "min") and dtype.kind != "b":
        return f"join_{combine}({a}, {b})"
    return combined(combine, dtype, a, b)
