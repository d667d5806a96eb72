"""Properties of steps that a launch table for a GPU needs.

For a sequence of steps, the functions tell whether it can be a table, which slots share a buffer,
how large the buffers are, and which step produces each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accnp.engine.device_captures import Capture
from accnp.engine.device_steps import DeviceStep, LibraryStep
from accnp.engine.steps import ControlStep, KernelStep

if TYPE_CHECKING:
    from accnp.engine.device_steps import TableStep
    from accnp.engine.steps import Step


__all__ = ["is_table", "producers_of", "root_slots", "rounded_size", "slot_sizes", "why_not_table"]

ALIGN = 256  # the alignment of GPU memory in bytes


def is_table(steps: Sequence[Step]) -> bool:
    """Return whether steps are launches, products, captured calls, and loops and branches over
    such."""
    return not why_not_table(steps)


def why_not_table(steps: Sequence[Step]) -> str:
    """Why steps cannot be a table; empty if they can."""
    for s in steps:
        if type(s) is ControlStep:
            why = next(filter(None, [why_not_table(body.steps) for body in s.bodies]), "")
        elif type(s) is LibraryStep and not isinstance(s.captured, Capture):
            why = s.captured or f"{s.op.name} is a call of the GPU's library"
        elif isinstance(s, DeviceStep | LibraryStep):
            why = ""
        else:
            why = f"{s.label if isinstance(s, KernelStep) else s.op.name} is done by the processor"
        if why:
            return why
    return ""


def rounded_size(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGN) * ALIGN


def root_slots(steps: Sequence[TableStep]) -> dict[int, int]:
    """Of slots that take over a buffer, the slot that it was made for."""
    roots: dict[int, int] = {}
    for step in steps:
        for slot, source, _, over in getattr(step, "updated_slots", ()):
            if over:
                before = roots.get(source)
                roots[slot] = source if before is None else before
    return roots


def slot_sizes(steps: Sequence[TableStep]) -> dict[int, int]:
    """Bytes of the slots that steps make."""
    sizes: dict[int, int] = {}
    for step in steps:
        if isinstance(step, ControlStep):
            sizes |= {slot: step.avals[i].nbytes for slot, i in step.results}
        else:
            sizes |= dict(step.allocs)
            sizes |= {slot: nbytes for slot, _, nbytes, over in step.updated_slots if not over}
    return sizes


def producers_of(steps: Sequence[TableStep]) -> dict[int, TableStep]:
    """The steps that make slots."""
    return {slot: step for step in steps for slot in slot_sizes([step])}
