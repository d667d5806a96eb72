"""Detection of leaked tracers (`checking_leaks`): arrays that outlive the trace they belong to.

Input: a trace that has just ended. Output: an exception that names the line where the leaked value
was created, or nothing. `trace_fn.trace` calls this module only while the option is enabled.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

from accnp.array import Array
from accnp.ir.node import site_text
from accnp.ir.trace import Trace

__all__ = ["check"]

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
            made = f", created on line {site_text(node)}" if node.site is not None else ""
            raise Exception(
                f"Leaked trace {info}: the program still holds a traced array of "
                f"{aval.dtype.name}{list(aval.shape)}{made}; return the value from the function "
                "instead of storing it outside"
            )
