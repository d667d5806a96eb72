"""Compilation of structured control flow to one native function.

Input: a ControlStep with planned bodies. Output: a KernelStep whose text consists of loops and
branches that call the kernels of the bodies, or the reason why the step runs on the host
(`control.py`).

Buffers are allocated once. A carry of one element is kept in a register. Any other carry has two
buffers, which are swapped after each iteration, or one if the body updates it in place. Rows of
scanned operands and of stacked results are accessed in place. A nested loop is one more kernel to
call. `compiler/specs/control_flow.py` writes the text and shows an example.

An interrupt can end a loop that takes more than milliseconds: such a loop asks from time to time
whether it is to stop (`_native/interrupts.c`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from math import prod

from accnp.compiler.specs.control_flow import SIZES, ControlText, Spot
from accnp.compiler.specs.launches import specialize_layout, specialize_sizes
from accnp.engine.bodies import (
    is_message,
    kernels,
    operands,
    shared_kernels,
    why_not_native,
)
from accnp.engine.steps import BRIEF, ControlStep, HostStep, KernelStep, Plan
from accnp.ir.aval import Aval, make_aval
from accnp.ir.generated import GeneratedKernel
from accnp.ir.kernel import CODES, STRETCH, dtype_code
from accnp.lazy_imports import imported
from accnp.runtime.buffer import Buffer

__all__ = ["ControlFlowWriter", "native_step"]


# Work between two checks whether a loop is to stop. Costs are upper estimates: this takes 35 to
# 350 us. A scan with less work than STRETCH makes no checks. With 2^18, the checks and the shorter
# inner loops took 2 % of the time of 2000 steps over 4096 elements (Zen 5, 2026-11).
WORK_BETWEEN_CHECKS = 1 << 20


def native_step(
    step: ControlStep, new_slot: Callable[[], int], fastmath: bool, can_stop: bool = True
) -> KernelStep | str:
    """Turn a control-flow step into one kernel step, or return why it must run on the host.

    `can_stop` says whether interrupts can end its loops, which they cannot on a GPU.
    """
    for body in step.bodies:
        reason = why_not_native(body, messages=can_stop)
        if reason:
            return reason
    for a in (*step.inputs, *step.avals, *[a for b in step.bodies for a in b.out_avals]):
        if dtype_code(a.dtype) not in CODES:
            return f"kernels do not compute with {a.dtype.name}"
    driver = ControlFlowWriter(step, new_slot, can_stop)
    {"cond": driver.cond, "while": driver.while_, "scan": driver.scan}[step.op.control]()
    return driver.finish(fastmath)


class ControlFlowWriter(ControlText):
    """Plans the memory of one control-flow step, and writes the text around its kernels."""

    may_share = True  # whether threads share each large kernel

    def __init__(
        self, step: ControlStep, new_slot: Callable[[], int], can_stop: bool = True
    ) -> None:
        super().__init__()
        self.step = step
        self.new_slot = new_slot
        self.can_stop = can_stop
        self.pointers: list[tuple[int, int]] = []  # the values of `arguments`
        self.constants: list[tuple[str, str, Buffer]] = []
        self.allocs: list[tuple[int, int]] = []
        self.updated_slots: list[tuple[int, int, int, bool]] = []
        bodies = step.bodies if self.may_share else []
        self.shared_kernels = {number for body in bodies for number in shared_kernels(body)}
        self.result_slots = {i: slot for slot, i in step.results}

    # --- memory ---

    def argument(self, slot: int, a: Aval, letter: str = "p") -> Spot:
        self.pointers.append((slot, 0))
        return self.pointer(letter, dtype_code(a.dtype), a.size)

    def constant(self, buffer: Buffer, code: str, count: int) -> Spot:
        name = self.fresh("q")
        self.constants.append((name, code, buffer))
        return Spot(name, code, count)

    def operands(self) -> list[Spot]:
        return [
            self.argument(s, a) for s, a in zip(self.step.operands, self.step.inputs, strict=True)
        ]

    def result(self, i: int) -> Spot:
        """Return the memory of a result of the step, whether or not the result is used."""
        a = self.step.avals[i]
        slot = self.result_slot(i)
        self.allocs.append((slot, a.nbytes))
        return self.argument(slot, a, "r")

    def result_slot(self, i: int) -> int:
        slot = self.result_slots.get(i)
        return self.new_slot() if slot is None else slot

    def temporary(self, code: str, count: int, nbytes: int) -> Spot:
        """Return memory for the duration of the call: a register, or a buffer of the plan."""
        if count == 1:
            return self.cell(code)
        slot = self.new_slot()
        self.allocs.append((slot, nbytes))
        self.pointers.append((slot, 0))
        return self.pointer("t", code, count)

    def like(self, x: Spot, nbytes: int) -> Spot:
        return self.temporary(x.code, x.count, nbytes)

    # --- a body ---

    def body(self, plan: Plan, leaves: Sequence[Spot], targets: dict[int, Spot]) -> list[Spot]:  # noqa: C901
        """Write the calls of the kernels of a plan, and return the locations of its outputs.

        `targets` has the locations that were chosen for slots, including the slots that reuse the
        buffer of another one in place.
        """
        spots: dict[int, Spot] = dict(enumerate(leaves))
        codes: dict[int, str] = {}
        for inner in kernels(plan):
            for (slot, _), token in operands(inner):
                codes[slot] = token.removesuffix("*")
        constants = plan.program.leaves[len(leaves) :] if plan.program else []
        for i, (buffer, v) in enumerate(zip(plan.constants, constants, strict=True), len(leaves)):
            spots[i] = self.constant(buffer, dtype_code(v.aval.dtype), v.aval.size)
        free: dict[tuple[str, int], list[Spot]] = {}
        mine: dict[int, Spot] = {}  # slots whose memory can be reused after their last use

        def make(slot: int, nbytes: int) -> None:
            if slot in targets:
                spots[slot] = targets[slot]
                return
            code = codes[slot]
            count = nbytes // SIZES[code]
            waiting = free.get((code, count))
            spots[slot] = mine[slot] = (
                waiting.pop() if waiting else self.temporary(code, count, nbytes)
            )

        def release(slots: Sequence[int]) -> None:
            for slot in slots:
                spot = mine.pop(slot, None)
                if spot is not None:
                    free.setdefault((spot.code, spot.count), []).append(spot)

        for inner in plan.steps:
            if isinstance(inner, HostStep) and is_message(inner):
                ((slot, _),), (aval,) = inner.results, inner.avals
                codes.setdefault(slot, dtype_code(aval.dtype))
                make(slot, aval.nbytes)
                self.send(inner, spots, spots[slot])
                release(inner.frees)
                continue
            if isinstance(inner, HostStep):  # empty results: the address is never read
                for slot, _ in inner.results:
                    spots[slot] = self.temporary(codes.get(slot, "u1"), 1, 1)
                continue
            for slot, nbytes in inner.allocs:
                make(slot, nbytes)
            for slot, source, nbytes, over in inner.updated_slots:
                if over:
                    spots[slot] = spots[source]
                    if source in mine:
                        mine[slot] = mine.pop(source)
                else:
                    codes.setdefault(slot, spots[source].code)
                    make(slot, nbytes)
                    self.move(spots[slot], spots[source])
            self.launch(inner, spots)
            release(inner.frees)
        return [spots[s] for s in plan.output_slots]

    def send(self, inner: HostStep, spots: dict[int, Spot], out: Spot) -> None:
        """Write a message of a body to other processes."""
        ((slot, shape, dtype, _, offset, _),) = inner.operands
        nbytes = max(prod(shape) * dtype.itemsize, 0)
        messages = imported("accnp.runtime.compiled_messages")
        aval = make_aval(shape, dtype)
        address = messages.address_of(inner.op, inner.params, aval, inner.node)
        self.message(address, self.offset(spots[slot], offset), out, nbytes)

    def launch(self, inner: KernelStep, spots: dict[int, Spot]) -> None:
        """Write the call of a kernel of a body."""
        text = self.sized(inner)
        arguments: list[str] = []
        for (slot, offset), token in zip(inner.pointers, text.signature, strict=False):
            spot = spots[slot]
            code = token.removesuffix("*")
            if code != spot.code:  # a placeholder that is never written; see `bodies.operands`
                arguments.append(self.temporary(code, 1, 0).name)
            else:
                arguments.append(self.offset(spot, offset))
        tokens = text.signature[len(inner.pointers) :]
        for buffer, token in zip(inner.constants, tokens, strict=False):
            arguments.append(self.constant(buffer, token.removesuffix("*"), 0).name)
        self.call(text, arguments, inner.extent, id(inner) in self.shared_kernels)

    def sized(self, inner: KernelStep) -> GeneratedKernel:
        """Return the text of a kernel that knows which of its operands are parts of one array; the
        text of a tiny one contains its sizes as constants."""
        return specialize_layout(specialize_sizes(inner.text, inner.extent), inner.pointers)

    # --- control flow ---

    def roots(self, plan: Plan) -> dict[int, int]:
        """For each slot that reuses a buffer, return the slot that the buffer was made for."""
        root_of: dict[int, int] = {}
        for inner in kernels(plan):
            for slot, source, _, over in inner.updated_slots:
                if over:
                    before = root_of.get(source)
                    root_of[slot] = source if before is None else before
        return root_of

    def choose_targets(
        self,
        plan: Plan,
        allocators: Sequence[Callable[[], Spot] | None],
        stays: Sequence[int | None],
    ) -> tuple[dict[int, Spot], list[Spot | None]]:
        """Choose where outputs are computed: directly in their final memory, if possible.

        Returns the targets, and for each output the memory that must hold it after the body. That
        is None for an output that is not used, and for one that is already in its final memory
        because it is the leaf that `stays` names.
        """
        roots = self.roots(plan)
        targets: dict[int, Spot] = {}
        places: list[Spot | None] = []
        for slot, allocate, leaf in zip(plan.output_slots, allocators, stays, strict=True):
            root = roots.get(slot, slot)
            if allocate is None or root == leaf:
                places.append(None)
                continue
            spot = allocate()
            places.append(spot)
            if root >= plan.n_leaves and root not in targets:
                targets[root] = spot
        for slot, root in roots.items():
            if root in targets:
                targets[slot] = targets[root]
        return targets, places

    def move_results(self, outs: Sequence[Spot], places: Sequence[Spot | None]) -> None:
        for spot, place in zip(outs, places, strict=True):
            if place is not None:
                self.move(place, spot)

    def shared(self, slot: int, a: Aval) -> Spot:
        """Return the location of an operand that all iterations of a loop read."""
        return self.argument(slot, a)

    def carries(self, first: int, count: int) -> list[Spot]:
        """Return the memory of the carry, initialized with its operands.

        A single element is kept in a register. Any other carry is in the memory of a result, which
        reuses the buffer of its operand or a copy of it.
        """
        spots: list[Spot] = []
        step = self.step
        for j, a in enumerate(step.inputs[first : first + count]):
            if a.size == 1:
                cell = self.temporary(dtype_code(a.dtype), 1, a.nbytes)
                self.move(cell, self.argument(step.operands[first + j], a))
            else:
                slot = self.result_slot(j)
                self.updated_slots.append((slot, step.operands[first + j], a.nbytes, False))
                cell = self.argument(slot, a, "c")
            spots.append(cell)
        return spots

    def exchange_carries(
        self, carry: list[Spot], places: Sequence[Spot | None], starts: dict[str, str]
    ) -> None:
        """Make the new values the carry, after an iteration."""
        for c, new in zip(carry, places, strict=True):
            if new is None:
                continue
            if c.is_cell:
                self.move(c, new)
            else:
                starts.setdefault(c.name, self.fresh("s"))
                self.exchange(c, new)

    def end(self, carry: Sequence[Spot], starts: dict[str, str]) -> None:
        """Move the final carry into the memory of the results."""
        for j, c in enumerate(carry):
            if c.is_cell:
                if j in self.result_slots:
                    self.move(self.result(j), c)
            elif c.name in starts:
                self.move(self.name_initial_buffer(c, starts[c.name]), c)

    def scan(self) -> None:
        step, p = self.step, self.step.params
        n_consts, n_carry = p["num_consts"], p["num_carry"]
        (plan,) = step.bodies
        length = self.integer(p["length"])
        consts = [
            self.shared(s, a) for s, a in zip(step.operands[:n_consts], step.inputs, strict=False)
        ]
        carry = self.carries(n_consts, n_carry)
        xs = [
            self.argument(s, a)
            for s, a in zip(
                step.operands[n_consts + n_carry :], step.inputs[n_consts + n_carry :], strict=True
            )
        ]
        ys = [self.result(n_carry + k) for k in range(len(step.avals) - n_carry)]
        starts: dict[str, str] = {}
        with self.iterations(length, p["length"], p["reverse"]):
            rows = [self.row(x, p["length"]) for x in xs]
            y_rows = [self.row(y, p["length"]) for y in ys]
            allocators = [
                *[self.next_of(c, a.nbytes) for c, a in zip(carry, step.avals, strict=False)],
                *[(lambda y=y: y) for y in y_rows],
            ]
            extra = self.extra_outputs()
            stays = [*range(n_consts, n_consts + n_carry), *[None] * (len(ys) + len(extra))]
            targets, places = self.choose_targets(plan, [*allocators, *extra], stays)
            outs = self.body(plan, [*consts, *carry, *rows], targets)
            self.move_results(outs, places)
            self.end_iteration(outs)
            self.exchange_carries(carry, places[:n_carry], starts)
        self.end(carry, starts)

    def extra_outputs(self) -> list[Callable[[], Spot] | None]:
        """Return the locations of additional results of a body; see `bailout.py`."""
        return []

    def work_of_iteration(self) -> int:
        """Return the work of one iteration of the loop."""
        return max(1, sum([plan.work for plan in self.step.bodies]))

    def iterations_between(self) -> int:
        """Return the number of iterations between two checks, a power of two."""
        return 1 << max(0, (WORK_BETWEEN_CHECKS // self.work_of_iteration()).bit_length() - 1)

    def iterations(self, length: str, count: int, reverse: bool) -> AbstractContextManager[None]:
        """Open the loop of a scan of `count` iterations; `i` is the index of the row."""
        if not self.can_stop or count * self.work_of_iteration() <= STRETCH:
            return self.rows(length, reverse)
        return self.strips_of_rows(length, reverse, count, self.iterations_between())

    def end_iteration(self, outs: Sequence[Spot]) -> None:
        """Write statements after a body, before the carry changes."""

    def next_of(self, c: Spot, nbytes: int) -> Callable[[], Spot]:
        return lambda: self.like(c, nbytes)

    def row(self, x: Spot, length: int) -> Spot:
        """Return one row of a stacked array, at the index of the loop."""
        count = x.count // length if length else 0
        return self.at(x, "i" if count == 1 else f"i * {self.integer(count)}", count)

    def while_(self) -> None:
        step, p = self.step, self.step.params
        n_test, n_body = p["cond_nconsts"], p["body_nconsts"]
        test, plan = step.bodies
        first = n_test + n_body
        consts = [
            self.shared(s, a) for s, a in zip(step.operands[:first], step.inputs, strict=False)
        ]
        carry = self.carries(first, len(step.avals))
        starts: dict[str, str] = {}
        with self.endless(self.iterations_between() if self.can_stop else 0):
            (flag,) = self.body(test, [*consts[:n_test], *carry], {})
            self.stop_unless(self.truth(flag))
            allocators = [self.next_of(c, a.nbytes) for c, a in zip(carry, step.avals, strict=True)]
            extra = self.extra_outputs()
            stays = [*range(n_body, n_body + len(step.avals)), *[None] * len(extra)]
            targets, places = self.choose_targets(plan, [*allocators, *extra], stays)
            outs = self.body(plan, [*consts[n_test:], *carry], targets)
            self.move_results(outs, places)
            self.end_iteration(outs)
            self.exchange_carries(carry, places[: len(carry)], starts)
        self.end(carry, starts)

    def cond(self) -> None:
        step = self.step
        index, *operands = self.operands()
        results = [self.result(i) for i in range(len(step.avals))]
        last = len(step.bodies) - 1
        for i, plan in enumerate(step.bodies):
            with self.branch(index, i, last):
                allocators = [(lambda r=r: r) for r in results]
                targets, places = self.choose_targets(plan, allocators, [None] * len(results))
                self.move_results(self.body(plan, operands, targets), places)

    # --- the step ---

    def finish(self, fastmath: bool) -> KernelStep:
        constants = [(name, code) for name, code, _ in self.constants]
        # Waiting for other processes takes long enough to release the interpreter lock.
        text = self.generated(
            constants, max(self.step.work, BRIEF) if self.sends else self.step.work
        )
        kernel_step = KernelStep(text, fastmath)
        kernel_step.pointers = self.pointers
        kernel_step.constants = [b for *_, b in self.constants]
        kernel_step.ints = [*[b.ptr for b in kernel_step.constants], *self.ints]
        kernel_step.allocs = self.allocs
        kernel_step.bodies = self.step.bodies
        kernel_step.updated_slots = self.updated_slots
        return kernel_step
