"""Cache blocking of elementwise loops.

A loop whose body is elementwise over one index space runs all its iterations on a block of a few
hundred elements, which stay in the first-level cache, before it starts the next block.

Input: a ControlStep with planned bodies. Output: a KernelStep, whose blocks several threads may
share, or None if the loop is not elementwise.

    def kernel(lo, hi, ...):           # scan or fori_loop; n0 steps over n1 elements
        c0 = stack_f4()
        t0 = stack_f4()
        for u in range(lo, hi):
            start = u * n2
            m = n1 - start
            m = m if m < n2 else n2
            move(c0, at(p0, start), m)
            for i in range(n0):
                k1c9f2e(0, m, t0, c0)
                s_f4 = c0
                c0 = t0
                t0 = s_f4
            move(at(r0, start), c0, m)

A `while` loop that `vmap` has batched has one condition per element. It runs on each block until
the condition of all its elements is false. Elements that have finished keep their values, so the
result is the same as without blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accnp.compiler.specs.control_flow import Spot
from accnp.engine.native import ControlFlowWriter
from accnp.engine.steps import ControlStep, KernelStep, Plan
from accnp.ir.aval import Aval
from accnp.ir.generated import GeneratedKernel
from accnp.ir.kernel import Access, dtype_code

__all__ = ["blocked_step"]

BLOCK = 512  # elements of a block; a stack buffer holds 1024
LEAST = 1024  # a carry with fewer elements stays in the cache without blocks


def blocked_step(
    step: ControlStep,
    new_slot: Callable[[], int],
    fastmath: bool,
    test: Plan | None = None,
    block: int = BLOCK,
    can_stop: bool = True,
) -> KernelStep | None:
    """Make the kernel of an elementwise loop, with blocks of `block` elements; or return None.

    `test` is the plan of the condition per element of a batched while loop, which runs while the
    condition of any element is true, and whose body keeps the values of the other elements.
    `can_stop` is that of `native_step`.
    """
    if step.op.control == "cond":
        return None
    driver = _Blocks(step, new_slot, test, block, can_stop)
    return driver.build(fastmath) if driver.fits() else None


class _Blocks(ControlFlowWriter):
    """Writes a loop inside a loop over blocks."""

    may_share = False  # threads share the blocks, not single kernels

    def __init__(
        self,
        step: ControlStep,
        new_slot: Callable[[], int],
        test: Plan | None = None,
        size: int = BLOCK,
        can_stop: bool = True,
    ) -> None:
        super().__init__(step, new_slot, can_stop)
        self.size = size
        self.per_element = test
        n_carry = len(step.avals) if step.op.control == "while" else step.params["num_carry"]
        sizes = {a.size for a in step.avals[:n_carry] if a.size != 1}
        self.total = sizes.pop() if len(sizes) == 1 else 0

    # --- conditions ---

    def fits(self) -> bool:
        if self.total < LEAST:
            return False
        step, p = self.step, self.step.params
        if step.op.control == "while":
            bodies = [self.per_element or step.bodies[0], step.bodies[1]]
            # Blocks run different numbers of iterations, so no scalar may be carried for all.
            if self.per_element is not None and any(a.size == 1 for a in step.avals):
                return False
            shared = step.inputs[: len(step.inputs) - len(step.avals)]
            rows: list[Any] = []
        else:
            bodies = step.bodies
            nc, nk, length = p["num_consts"], p["num_carry"], p["length"]
            shared = step.inputs[:nc]
            rows = [*step.inputs[nc + nk :], *step.avals[nk:]]
            if any(length == 0 or a.size // length not in (1, self.total) for a in rows):
                return False
            if any(a.size // length == 1 for a in step.avals[nk:]):
                return False  # every block would write the same element
        if any(a.size not in (1, self.total) for a in shared):
            return False
        return all(self.is_elementwise(b) for b in bodies)

    def is_elementwise(self, plan: Plan) -> bool:
        """Return whether each kernel computes one element, or each element from those at its
        index."""
        for inner in plan.steps:
            if not isinstance(inner, KernelStep) or inner.updated_slots or inner.text.callees:
                return False
            if len(inner.text.pointers) != len(inner.pointers):
                return False
            wide = inner.extent == self.total
            if inner.extent != 1 and not wide:
                return False
            if inner.text.ints:
                return False
            for a in inner.text.pointers:
                if not isinstance(a, Access) or a.offset or len(a.strides) != int(wide):
                    return False
                size = a.value.aval.size
                if wide and (a.strides[0], size) not in ((1, self.total), (0, 1)):
                    return False
                if not wide and size != 1:
                    return False
        return True

    # --- source text ---

    def build(self, fastmath: bool) -> KernelStep:
        with self.blocks(self.total, self.size):
            {"while": self.while_, "scan": self.scan}[self.step.op.control]()
        kernel_step = self.finish(fastmath)
        blocks = -(-self.total // self.size)
        kernel_step.resize(blocks, max(1, self.step.work // blocks))
        return kernel_step

    def work_of_iteration(self) -> int:
        blocks = -(-self.total // self.size)
        return max(1, super().work_of_iteration() // blocks)

    def length(self, count: int) -> str:
        return "1" if count == 1 else "m"

    def sized(self, inner: KernelStep) -> GeneratedKernel:
        return inner.text  # the extent of a call is that of a block, which varies

    def temporary(self, code: str, count: int, nbytes: int) -> Spot:
        if count == 1:
            return super().temporary(code, count, nbytes)
        return self.stack(code, count)

    def part(self, x: Spot) -> Spot:
        """Return the part of an array that belongs to the block."""
        if x.count == 1:
            return x
        return self.at(x, "start", x.count)

    def shared(self, slot: int, a: Aval) -> Spot:
        return self.part(super().shared(slot, a))

    def carries(self, first: int, count: int) -> list[Spot]:
        spots: list[Spot] = []
        for j, a in enumerate(self.step.inputs[first : first + count], first):
            c = self.temporary(dtype_code(a.dtype), a.size, a.nbytes)
            self.move(c, self.part(self.argument(self.step.operands[j], a)))
            spots.append(c)
        return spots

    def end(self, carry: Sequence[Spot], starts: dict[str, str]) -> None:
        for j, c in enumerate(carry):
            if j in self.result_slots:
                self.move(self.part(self.result(j)), c)

    def row(self, x: Spot, length: int) -> Spot:
        if x.count // length == 1:
            return super().row(x, length)
        return self.at(x, f"i * {self.integer(self.total)} + start", self.total)

    def while_(self) -> None:
        if self.per_element is not None:
            self.step.bodies = [self.per_element, self.step.bodies[1]]
        super().while_()

    def truth(self, flag: Spot) -> str:
        return self.any_truth(flag) if flag.count != 1 else super().truth(flag)
