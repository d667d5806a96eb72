"""Several steps of a GPU in the place of one operation.

In: a planner, and the operation whose call is planned. Out: launches and calls by address, with the
slots that each makes.
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

__all__ = ["Series", "SeriesStep"]

SeriesStep = KernelStep | AddressStep


class Series:
    """The steps so far."""

    def __init__(self, planner: DevicePlanner, v: Value, call: HostStep) -> None:
        self.planner, self.v, self.operands = planner, v, call.operands
        # The slots of the results that are wanted, by their numbers; -1 is an only one.
        self.results: dict[int, int] = {index: slot for slot, index in call.results}
        self.steps: list[SeriesStep] = []
        self.begun: set[int] = set()  # slots that steps have made

    def fresh(self, slot: int, nbytes: int) -> list[tuple[int, int]]:
        """What a step that writes to a slot makes: that, if no step before it has."""
        there = slot in self.begun
        self.begun.add(slot)
        return [] if there else [(slot, nbytes)]

    def launch(
        self,
        own: OwnKernel,
        codes: Sequence[str],
        pointers: Sequence[tuple[int, int]],
        made: Sequence[tuple[int, int]],
        label: str,
        moved: int = 0,
    ) -> None:
        """A kernel: types of its pointers, slots and bytes from their beginnings; what it writes
        to, slots and their bytes."""
        step = self.planner.own_step(own, list(codes), self.v)
        step.pointers, step.label, step.moved = list(pointers), label, moved
        step.allocs = [pair for slot, nbytes in made for pair in self.fresh(slot, nbytes)]
        step.stores = {slot for slot, _ in made}
        step.load(self.planner.plan.fastmath)
        self.steps.append(step)
