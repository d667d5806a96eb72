"""Loops that run natively until a branch would call Python.

Checks such as `equinox.error_if` put a callback into a branch that is almost never taken. A native
loop cannot call Python: without this module such a loop runs on the host, where each kernel of each
iteration is launched separately.

The input is the ControlStep of a `scan` or `while` whose callbacks are all in branches of its body,
and the plan of that body without them (`transforms/trapping.py`), whose last result is whether
Python would have been called. The output is a `Bailout`, a native loop over that plan. If the last
result is true, the loop stops before the carry changes; the host runs that iteration with the whole
body, and the native loop continues after it.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from accnp.compiler.specs.control_flow import Spot
from accnp.engine.bodies import why_not_native
from accnp.engine.execute import launch
from accnp.engine.native import ControlFlowWriter
from accnp.engine.steps import ControlStep, KernelStep, Plan
from accnp.ir.aval import make_aval
from accnp.ir.kernel import CODES, dtype_code
from accnp.runtime import buffer as pool
from accnp.runtime.buffer import Buffer

__all__ = ["Bailout", "make_bailout"]

_INT64 = np.dtype(np.int64)
# The largest carry, in bytes, for which a loop gets a native form. The native loop keeps the
# previous carry until an iteration is complete, because the host may have to repeat the iteration;
# so it cannot update the carry in place.
SMALL_CARRY = 1 << 16
# After this many consecutive iterations on the host the loop stays there: its branches are taken
# often.
MOST_IN_A_ROW = 8


class Bailout:
    """The native form of a loop, with the number of consecutive runs without progress."""

    __slots__ = ("carry", "fastmath", "idle", "kernel", "n_slots", "stopped")

    def __init__(
        self, kernel: KernelStep, carry: list[int], stopped: int, n_slots: int, fastmath: bool
    ) -> None:
        self.kernel = kernel
        self.carry = carry  # slots of the carry after the loop
        self.stopped = stopped  # slot of the index of the iteration for the host; see `Native`
        self.n_slots = n_slots
        self.fastmath = fastmath
        self.idle = 0

    def run(self, leaves: Sequence[Buffer], first: int) -> tuple[int, list[Buffer]]:
        """Run iterations from index `first` on; return the index of the iteration that the host
        must run, and the carry."""
        slots: list[Any] = [pool.from_scalar(first, _INT64), *leaves]
        slots += [None] * (self.n_slots - len(slots))
        launch(self.kernel, slots, self.fastmath)
        iteration = ctypes.c_int64.from_address(slots[self.stopped].ptr).value
        return iteration, [slots[s] for s in self.carry]

    def is_idle(self, progress: bool) -> bool:
        """Count consecutive runs without progress; return whether there were too many."""
        self.idle = 0 if progress else self.idle + 1
        return self.idle > MOST_IN_A_ROW


def make_bailout(step: ControlStep, body: Plan, fastmath: bool) -> Bailout | None:
    """Make the native form of a `scan` or `while` from the plan of its body without callbacks;
    return None if it has none."""
    first, count = _carry_of(step)
    plans = [*step.bodies[:-1], body]
    avals = [*step.inputs, *step.avals, *[a for b in plans for a in b.out_avals]]
    large = sum([a.nbytes for a in step.inputs[first : first + count]]) > SMALL_CARRY
    if (
        large
        or any(map(why_not_native, plans))
        or any(dtype_code(a.dtype) not in CODES for a in avals)
    ):
        return None
    return Native(step, plans, count).bailout(fastmath)


def _carry_of(step: ControlStep) -> tuple[int, int]:
    """Return the index of the first carried operand, and the number of carried operands."""
    p = step.params
    if step.op.control == "scan":
        return p["num_consts"], p["num_carry"]
    return p["cond_nconsts"] + p["body_nconsts"], len(step.avals)


class Native(ControlFlowWriter):
    """Writes a loop that stops at the first iteration in which the last result of the body is true.

    The first argument of the loop is the index of the first iteration. The caller provides the
    memory of stacked results, because several calls fill it. The result `stopped` is the index of
    the iteration for the host; if the loop ends without one, it is the length of a scan, or -1 for
    a while loop.
    """

    def __init__(self, step: ControlStep, plans: Sequence[Plan], n_carry: int) -> None:
        # Slots: index of the first iteration, operands, stacked results, then new buffers.
        inner = copy.copy(step)
        count = 1 + len(step.operands) + len(step.avals) - n_carry
        self.stacked_slots = [*range(1 + len(step.operands), count)]
        self.count = count

        def new_slot() -> int:
            self.count += 1
            return self.count - 1

        inner.operands = [*range(1, 1 + len(step.operands))]
        inner.bodies = [*plans]
        inner.results = [(new_slot(), j) for j in range(n_carry)]
        super().__init__(inner, new_slot)
        self.n_carry = n_carry
        self.carry_slots = [slot for slot, _ in inner.results]
        scalar = make_aval((), _INT64)
        self.first = self.argument(0, scalar, "f")
        self.stopped_slot = new_slot()
        self.allocs.append((self.stopped_slot, scalar.nbytes))
        self.stopped = self.argument(self.stopped_slot, scalar, "r")

    def bailout(self, fastmath: bool) -> Bailout:
        if self.step.op.control == "scan":
            self.initialize(self.stopped, self.step.params["length"])
            self.scan()
        else:
            self.initialize(self.stopped, -1)
            self.start_counter(self.first)
            self.while_()
        kernel = self.finish(fastmath)
        return Bailout(kernel, self.carry_slots, self.stopped_slot, self.count, fastmath)

    def result(self, i: int) -> Spot:
        if i < self.n_carry:
            return super().result(i)
        return self.argument(self.stacked_slots[i - self.n_carry], self.step.avals[i], "r")

    def extra_outputs(self) -> list[Callable[[], Spot] | None]:
        return [None]

    def iterations(self, length: str, count: int, reverse: bool) -> AbstractContextManager[None]:
        return self.open_remaining_rows(self.first, length, reverse, self.iterations_between())

    def end_iteration(self, outs: Sequence[Spot]) -> None:
        self.stop_if(outs[-1], self.stopped)
        if self.step.op.control == "while":
            self.increment_counter()
