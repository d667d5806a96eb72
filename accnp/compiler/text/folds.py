"""Folds as text: how to join two results, from what to start, and what must hold for a pass to add
up anything but zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.compiler.specs.accumulators import condition
from accnp.ir.kernel import Phase, dtype_code

__all__ = ["combined", "guard", "identity", "joined"]

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


def joined(combine: str, dtype: np.dtype, a: str, b: str) -> str:
    """Return the text that joins an element to a lane, as `block_*` does."""
    if combine in ("max", "min") and dtype.kind != "b":
        return f"join_{combine}({a}, {b})"
    return combined(combine, dtype, a, b)


def guard(e: Any, phase: Phase, base: dict[int, str]) -> str | None:
    """What must hold for a pass over a row to add up anything but zeros; None if it has to be done
    in any case."""
    found = condition(phase, e.of_reduced)
    if found is None:
        return None
    text, args, loads = found
    for s in loads:
        e.statement(s, base, {})
    return text.format(*args)
