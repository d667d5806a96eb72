"""Detection of leaked tracers: arrays that outlive the trace they belong to.

Input: a trace that has just ended. Output: an exception that names the line where the leaked value
was created or assigned, or nothing. `trace_fn.trace` calls `check` only while the option
`checking_leaks` is enabled, and `check_assigned` only after item assignments to arrays that may
come from outside of the trace.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Any

from accnp.array_type import Array
from accnp.errors import UnexpectedTracerError
from accnp.ir.node import site_text
from accnp.ir.trace import Rebinding, Trace, line_of

__all__ = ["check", "check_assigned"]

_TAKEN = ("grad", "escaped")


def check(trace: Trace, info: Any, own: Sequence[Any] = ()) -> None:
    """Raise an exception if the program still holds an array of a trace that has ended; `own` are
    arrays that the transformation itself holds."""
    known = set(map(id, own))
    gc.collect()  # arrays in reference cycles are not held by the program
    for x in gc.get_objects():
        if type(x) is not Array or (node := getattr(x, "_node", None)) is None:
            continue
        owner = node.trace
        while owner is not None and owner.kind in _TAKEN and not owner.active:
            owner = owner.parent  # a derivative that was taken within the trace
        if owner is trace and id(x) not in known:
            aval = node.aval
            created = f", created on line {site_text(node)}" if node.site is not None else ""
            raise Exception(
                f"Leaked trace {info}: the program still holds a traced array of "
                f"{aval.dtype.name}{list(aval.shape)}{created}; return the value from the function "
                "instead of storing it outside"
            )


def check_assigned(entries: Sequence[Rebinding], info: Any) -> None:
    """Raise UnexpectedTracerError if the program still holds an array to which a traced function
    assigned, and which had values before. The arrays have these values again."""
    if not any(map(_is_held, entries)):
        return
    gc.collect()  # arrays in reference cycles are not held by the program
    for entry in entries:
        if _is_held(entry):
            raise UnexpectedTracerError(
                "x[...] = y: Encountered an unexpected tracer: a traced function assigned to an "
                f"array from outside of it; got {entry.array.aval.str_short()} on line "
                f"{line_of(entry.site)} while tracing {info}; return the new values from the "
                "function, assign to a copy, or use a reference (jax.new_ref)"
            )


def _is_held(entry: Rebinding) -> bool:
    """Return whether there are other references to the array than those of the entry and of the
    call."""
    return sys.getrefcount(entry.array) > 2
