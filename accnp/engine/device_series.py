"""Several steps for a GPU that together compute one operation.

A call of a GPU library may need kernels before or after it, for example to change the memory layout
of an operand. `device_products.py`, `device_factors.py` and `device_convolutions.py` create a
`StepSequence` from the planner and the operation, and add launches and library calls to it in
order. For each step, the series records the slots that it allocates. The planner puts the steps
into the plan in place of the library call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accnp.compiler.fusion.program import Value
from accnp.engine.device_steps import AddressStep
from accnp.engine.steps import HostStep, KernelStep
from accnp.ir.kernel import OwnKernel

if TYPE_CHECKING:
    from accnp.engine.device_plan import DevicePlanner

__all__ = ["SeriesStep", "StepSequence"]

SeriesStep = KernelStep | AddressStep


class StepSequence:
    """The steps of one operation, in order."""

    def __init__(self, planner: DevicePlanner, v: Value, call: HostStep) -> None:
        self.planner, self.v, self.operands = planner, v, call.operands
        # Slots of the results that are used, by index; a single result has index -1.
        self.results: dict[int, int] = {index: slot for slot, index in call.results}
        self.steps: list[SeriesStep] = []
        self.allocated: set[int] = set()  # slots that steps have allocated

    def allocate(self, slot: int, nbytes: int) -> list[tuple[int, int]]:
        """Return the allocations of a step that writes to a slot: none if an earlier step has
        allocated the slot."""
        if slot in self.allocated:
            return []
        self.allocated.add(slot)
        return [(slot, nbytes)]

    def launch(
        self,
        own: OwnKernel,
        codes: Sequence[str],
        pointers: Sequence[tuple[int, int]],
        outputs: Sequence[tuple[int, int]],
        label: str,
        moved: int = 0,
    ) -> None:
        """A kernel: types of its pointers, slots and bytes from their beginnings; what it writes
        to, slots and their bytes."""
        step = self.planner.own_step(own, list(codes), self.v)
        step.pointers, step.label, step.moved = list(pointers), label, moved
        step.allocs = [pair for slot, nbytes in outputs for pair in self.allocate(slot, nbytes)]
        step.stores = {slot for slot, _ in outputs}
        step.load(self.planner.plan.fastmath)
        self.steps.append(step)
