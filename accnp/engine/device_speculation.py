"""Loops on a GPU that start an iteration before the host knows whether the loop continues.

It takes the body of a `while`, and returns words for the loop's record (`runtime/device_calls.py`).
The host requests the result of the test, launches the body, and waits for the result while the GPU
is busy with the body. The last iteration is discarded: carries have two buffers, so the previous
value is still available. The body must terminate for any carry, and be short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accnp.engine.device_steps import LibraryStep
from accnp.engine.device_words import Calls
from accnp.engine.steps import ControlStep, Plan

if TYPE_CHECKING:
    from accnp.engine.device_steps import TableStep

__all__ = ["NEVER", "early_start_words"]

# Work of a body up to which it is launched ahead: waiting for an answer takes some 10 us, in which
# an H200 does this much (a guess).
AHEAD = 1 << 23
NEVER = (0, 0, 0, 0)


def early_start_words(calls: Calls, body: Plan) -> tuple[int, int, int, int]:
    """Return the address of the result of the test, an event, and the functions that record the
    event and wait for it; zeros if the body must not begin before the result is known."""
    if body.work > AHEAD or not all(map(_surely_terminates, body.steps)):
        return NEVER
    word, event, references = calls.driver.flag()
    calls.references.append(references)
    calls.exclusive = True
    return word, event, calls.entries.mark, calls.entries.passed


def _surely_terminates(step: TableStep) -> bool:
    """Return whether a step surely ends: it contains no `while` loop and calls no user function."""
    if isinstance(step, ControlStep):
        return step.op.control != "while" and all(
            _surely_terminates(s) for b in step.bodies for s in b.steps
        )
    if isinstance(step, LibraryStep):
        return not step.op.user_function
    cluster = step.cluster
    values = [] if cluster is None else [*cluster.roots, *cluster.members]
    return not step.whole_loop and not any(v.op.user_function for v in values)
