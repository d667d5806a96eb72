"""What a fold needs in a kernel: how to join two results, from what to start, in which dtype, and
whether its pass may be left out: sums of what is 0 wherever a condition fails.

In: the name of a fold ("sum", "max"...) and a dtype. Out: text, or the accumulator's dtype. In: the
emitter of a kernel, a pass. Out: its condition as text, and lines in the writer that make it known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.ir.kernel import Fold, Phase, Statement, dtype_code
from accnp.primitives.conversion import BESIDE, EXP_BELOW

__all__ = [
    "accumulator", "any_column", "combined", "condition", "guard", "identity", "is_product",
    "joined", "lanes",
]  # fmt: skip

_CONDITIONS = {text: BESIDE.replace("#", code) for code, text in EXP_BELOW.items()}
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


def is_product(f: Fold) -> bool:
    """Whether the lanes of a fold may overflow or vanish where the whole does not."""
    return f.combine == "prod" and f.dtype.kind in "fc"


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


def any_column(e: Any, phase: Phase, base: dict[int, str], d: int) -> str | None:
    """The same for a tile of columns: whether it holds in any of the m from j0 on, along axis d."""
    found = condition(phase, e.of_reduced)
    if found is None:
        return None
    text, args, loads = found
    e.w.add("some = 0")
    with e.w.block("for j in range(m):"):
        e.w.add("q = j0 + j")
        for s in loads:
            e.statement(s, base, {d: "q"})
        e.w.add(f"some = some | i8({text.format(*args)})")
    return "some != 0"


def condition(phase: Phase, reduced: range) -> tuple[str, tuple[str, ...], list[Statement]] | None:
    """The condition without which the one fold of a pass is a sum of zeros: its formula, the names
    of the operands, and the loads for it, which do not move along the reduced axes."""
    here = {s.name: s for s in phase.full}
    if phase.stores or len(phase.folds) != 1 or phase.folds[0].combine != "sum":
        return None
    source = here.get(phase.folds[0].source)
    if source is None or source.text not in _CONDITIONS:
        return None
    loads = [here[x] for x in source.args[1:] if x in here]
    for s in loads:
        if s.access is None or s.args or any(s.access.strides[d] for d in reduced):
            return None
    return _CONDITIONS[source.text], source.args, loads
