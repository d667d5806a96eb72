"""A plan for a GPU as one table that machine code executes: all launches in a single call.

It takes a plan whose steps are all launches, or loops and branches over such plans. It returns a
function from the leaves' buffers to output buffers, like `device_run.run`. The Python overhead of a
launch is paid once, and a loop runs on the host without Python: its trip count, the rows that
advance, the carries that swap buffers and the reading of a condition are words of the table
(`runtime/device_calls.py`).

Words are as in `engine/table.py`: base 0 is zero, base 1 the address of the bases (in a loop, of
its record), then the buffers follow. Memory that is needed only during the call is one block, the
last base, which values with disjoint lifetimes share.

A carry of a loop has two buffers in addition to that of its operand, which is never written: a step
writes the next value to one while it reads the other. If the body updates a carry in place, it has
one buffer, which starts as a copy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from operator import attrgetter
from typing import Any

from accnp._native import RELEASE_GIL, walker
from accnp.engine.device_slots import is_table, producers_of, root_slots, rounded_size, slot_sizes
from accnp.engine.device_speculation import NEVER, early_start_words
from accnp.engine.device_steps import (
    AddressStep,
    DeviceStep,
    LibraryStep,
    TableStep,
    find_name_and_site,
)
from accnp.engine.device_words import Calls, Guard, Place, graph_of
from accnp.engine.steps import ControlStep, Plan, used_slots
from accnp.forks import renewed
from accnp.runtime.device import Device
from accnp.runtime.device_buffer import copy, empty
from accnp.runtime.device_calls import CHOICE, LOOP

__all__ = ["Walk", "operand_slots", "walk_of", "walk_of_step"]

# The maximum number of bytes that a table of several steps may hold at once. Above this, the steps
# run one by one, so that each buffer is freed after its last use.
LARGE = 1 << 28
ZERO = (0, 0)
LEAST, MOST = -(1 << 63), (1 << 63) - 1  # indices beyond the ends select the first or last branch

Walk = Callable[[Sequence[Any]], list[Any]]

# Walks that launch graphs or start iterations early run one after the other, because they share the
# memory of the graph and the word for the result of the test.
_one = renewed(threading.Lock())


def walk_of(plan: Plan) -> Walk | None:
    """Return the function that runs a plan as a table, or None if the plan is not a table."""
    assert plan.device is not None
    if not plan.steps or not is_table(plan.steps):
        return None
    table = _Table(plan.device, plan.steps, range(plan.n_leaves), plan.output_slots, plan.fastmath)
    return None if len(plan.steps) > 1 and table.nbytes > LARGE else table.run


def walk_of_step(step: ControlStep | AddressStep, device: Device, fastmath: bool) -> Walk:
    """Return a function that runs a single loop, branch or product. It takes the buffers of the
    operands and returns those of the results."""
    operands = operand_slots(step)
    slots = dict.fromkeys(operands)  # an operand may occur twice
    outputs = [slot for slot, _ in step.results]
    run = _Table(device, [step], slots, outputs, fastmath).run
    if len(slots) == len(operands):
        return run
    first = [operands.index(slot) for slot in slots]
    return lambda buffers: run([buffers[i] for i in first])


def operand_slots(step: ControlStep | AddressStep) -> list[int]:
    """Return the slots that such a step reads."""
    return [o[0] for o in step.operands] if isinstance(step, AddressStep) else step.operands


class _Steps:
    """The words of a sequence of steps. Some slots have known places; the others get memory in the
    block, from the byte `start` on."""

    def __init__(
        self,
        calls: Calls,
        steps: Sequence[TableStep],
        known_places: dict[int, Place],
        block: int,
        start: int = 0,
        ends: Sequence[int] = (),
        guard: Guard | None = None,
    ) -> None:
        self.calls, self.block, self.start = calls, block, start
        self.guard = guard
        self.known_places = known_places
        self.root = root_slots(steps)
        self.sizes = slot_sizes(steps)
        self.captured(steps)
        self.offsets: dict[int, int] = {}
        self.room = start  # the end of the used part of the block, in bytes
        self.words: list[int] = []
        self.count = 0  # the number of steps
        self.widest = 8
        last: dict[int, int] = {}
        for i, step in enumerate(steps):
            for slot in used_slots(step):
                last[self.rooted(slot)] = i
        for slot in ends:
            last[self.rooted(slot)] = len(steps)
        self.live_spans: list[tuple[int, int, int]] = []  # from, to, last use
        for i, step in enumerate(steps):
            self.live_spans = [h for h in self.live_spans if h[2] >= i]
            self.step(step, i, last)

    def captured(self, steps: Sequence[TableStep]) -> None:
        """Place what is not visible outside where graphs write and read."""
        calls = [s for s in steps if type(s) is LibraryStep]
        for step in calls:
            for (slot, _), address in zip(step.allocs, graph_of(step).results, strict=True):
                self.known_places.setdefault(self.rooted(slot), (0, address))
        for step in calls:
            for (slot, *_), (first, nbytes, address) in zip(
                step.operands, graph_of(step).spans, strict=True
            ):
                slot = self.rooted(slot)
                if not first and nbytes == self.sizes.get(slot):
                    self.known_places.setdefault(slot, (0, address))

    def rooted(self, slot: int) -> int:
        return self.root.get(slot, slot)

    def place(self, slot: int, offset: int = 0) -> Place:
        slot = self.rooted(slot)
        base, at = self.known_places.get(slot) or (self.block, self.offsets[slot])
        return base, at + offset

    def make(self, slot: int, last: int) -> None:
        """Allocate memory for a slot that has none, until its last use."""
        if slot not in self.known_places and slot not in self.offsets:
            self.offsets[slot] = self.memory(self.sizes[slot], last)

    def memory(self, nbytes: int, last: int) -> int:
        at, size = self.start, rounded_size(nbytes)
        for begin, stop, _ in sorted(self.live_spans):
            if at + size <= begin:
                break
            at = max(at, stop)
        self.live_spans.append((at, at + size, last))
        self.room = max(self.room, at + size)
        return at

    def add(self, words: list[int]) -> None:
        self.words += words
        self.count += 1
        self.widest = max(self.widest, words[3])

    def step(self, step: TableStep, i: int, last: dict[int, int]) -> None:
        if isinstance(step, ControlStep):
            for slot, _ in step.results:
                self.make(slot, last.get(slot, i))
            # The memory of the body begins after all memory that is in use now.
            free_start = max([stop for _, stop, _ in self.live_spans], default=self.start)
            inside = _KINDS[step.op.control](self, step, free_start)
            self.room = max(self.room, inside)
            return
        for slot, _ in step.allocs:
            self.make(slot, last.get(slot, i))
        for slot, source, nbytes, over in step.updated_slots:
            if not over:
                self.make(slot, last.get(slot, i))
                self.copy(self.place(slot), self.place(source), nbytes)
        if type(step) is LibraryStep:
            for words in self.calls.graph(step, self.place):
                self.add(words)
            return
        if isinstance(step, AddressStep):
            self.add(self.calls.call(step, self.place))
        elif isinstance(step, DeviceStep):
            self.add(self.calls.launch(step, self.place, self.guard))

    def copy(self, to: Place, source: Place, nbytes: int) -> None:
        if nbytes:
            self.add(self.calls.copy(to, source, nbytes, self.guard))


# --- loops and branches --------------------------------------------------------------------------


class _BodyBases:
    """The bases of the steps in a loop or a branch, which the step around them gives: zero and the
    address of a record come first."""

    def __init__(self, outer: _Steps, step: ControlStep, free_start: int) -> None:
        self.outer, self.calls, self.op = outer, outer.calls, step
        self.bases: list[Place] = [ZERO, ZERO]
        self.free_start = free_start  # where the unused memory of the block begins
        self.results = {i: slot for slot, i in step.results}
        # The block is the same inside, and begins where it does outside.
        self.block = self.base((outer.block, 0))
        self.widest = 8

    def base(self, place: Place) -> int:
        self.bases.append(place)
        return len(self.bases) - 1

    def operand(self, k: int) -> int:
        return self.base(self.outer.place(self.op.operands[k]))

    def memory(self, nbytes: int) -> Place:
        """Allocate memory in the block until the end of the step."""
        at = self.free_start
        self.free_start += rounded_size(nbytes)
        return self.outer.block, at

    def result(self, i: int) -> Place:
        """Return the place of a result. A result that is not used gets temporary memory."""
        slot = self.results.get(i)
        if slot is None:
            return self.memory(self.op.avals[i].nbytes)
        return self.outer.place(slot)

    def steps(
        self, plan: Plan, leaves: Sequence[int], outputs: Sequence[tuple[int | None, int]]
    ) -> _Steps:
        """Return the words of a body. `leaves` are the bases of its leaves. `outputs` are the base
        of each output, or None if it may be anywhere, and its number of bytes."""
        places = [(None if base is None else (base, 0), n) for base, n in outputs]
        leaf_places = [(base, 0) for base in leaves]
        body_steps = _body(self.calls, plan, leaf_places, places, self.block, self.free_start)
        self.widest = max(self.widest, body_steps.widest)
        return body_steps

    def finish(self, entry: str, n: int, record: list[int], room: int) -> int:
        self.bases[1] = 0, self.calls.words(record)
        self.outer.add(self.calls.step(entry, n, self.bases))
        return room


def _body(
    calls: Calls,
    plan: Plan,
    leaves: Sequence[Place],
    output_places: Sequence[tuple[Place | None, int]],
    block: int,
    free_start: int,
    guard: Guard | None = None,
) -> _Steps:
    """Return the words of a body. `output_places` are the required place of each output, or None if
    it may be anywhere, and its number of bytes. Outputs that are computed elsewhere are copied."""
    places: dict[int, Place] = dict(enumerate(leaves))
    for slot, buffer in enumerate(plan.constants, len(leaves)):
        places[slot] = 0, buffer.ptr
    calls.references.append(plan)
    root = root_slots(plan.steps)
    copies: list[tuple[int, tuple[int, int], int]] = []
    for slot, (to, nbytes) in zip(plan.output_slots, output_places, strict=True):
        if to is None:
            continue
        slot = root.get(slot, slot)
        if slot in places:
            copies.append((slot, to, nbytes))
        else:
            places[slot] = to
    body_steps = _Steps(calls, plan.steps, places, block, free_start, plan.output_slots, guard)
    for slot, to, nbytes in copies:
        body_steps.copy(to, body_steps.place(slot), nbytes)
    return body_steps


class _Carry:
    """The places of a carry of a loop: of the current value, the next one, the one after that,
    and of the final result. `next` is None where the body updates the carry in place."""

    def __init__(
        self, inside: _BodyBases, k: int, result: int, overwritten: bool, stays: bool, even: bool
    ) -> None:
        self.nbytes = nbytes = inside.op.inputs[k].nbytes
        target = inside.result(result)
        now = operand = inside.outer.place(inside.op.operands[k])
        self.next: int | None = None
        pair = [target, target] if stays else [target, inside.memory(nbytes)]
        if even:  # so that the last step writes to the buffer of the result
            pair.reverse()
        if stays or overwritten:  # the operand itself must not be written
            now = pair[1]
            if nbytes:
                inside.outer.add(inside.calls.copy(now, operand, nbytes))
        self.now = inside.base(now)
        if not stays:
            self.next, self.after = inside.base(pair[0]), inside.base(pair[1])
            self.final = inside.base(target)


def _find_carries(
    inside: _BodyBases, body: Plan, first: int, leaf: int, count: int, even: bool = False
) -> list[_Carry]:
    """Return the carries of a loop. `first` is the operand of the first carry, and `leaf` its leaf
    in the body; `even` tells whether the loop has an even number of steps."""
    root = root_slots(body.steps)
    carries: list[_Carry] = []
    for i in range(count):
        out = body.output_slots[i]
        stays = root.get(out, out) == leaf + i
        overwritten = leaf + i in body.overwritten
        carries.append(_Carry(inside, first + i, i, overwritten, stays, even))
    return carries


def _exchange_words(carry: Sequence[_Carry]) -> list[int]:
    """Return the words of the carries whose buffers are exchanged after a step."""
    words: list[int] = []
    for c in carry:
        if c.next is not None:
            words += [c.now, c.next, c.after, c.final, c.nbytes]
    return words


def _record(inside: _BodyBases, *rest: int) -> list[int]:
    calls, e = inside.calls, inside.calls.entries
    return [inside.widest, e.fetch, e.wait, e.copy, calls.stream, calls.error_address, *rest]


def _scan(outer: _Steps, step: ControlStep, behind: int) -> int:
    inside, p = _BodyBases(outer, step, behind), step.params
    (body,) = step.bodies
    n_consts, n_carry, length = p["num_consts"], p["num_carry"], p["length"]
    consts = [inside.operand(k) for k in range(n_consts)]
    carry = _find_carries(inside, body, n_consts, n_consts, n_carry, length % 2 == 0)
    moves: list[int] = []

    def row(place: Place, nbytes: int) -> int:
        each = nbytes // length if length else 0
        base, at = place
        k = inside.base((base, at + each * (length - 1) if p["reverse"] else at))
        if each:
            moves.extend([k, -each if p["reverse"] else each])
        return k

    xs = [
        row(outer.place(step.operands[k]), step.inputs[k].nbytes)
        for k in range(n_consts + n_carry, len(step.operands))
    ]
    ys = [
        (row(inside.result(i), step.avals[i].nbytes), step.avals[i].nbytes // max(1, length))
        for i in range(n_carry, len(step.avals))
    ]
    outputs = [*[(c.next, c.nbytes) for c in carry], *ys]
    body_steps = inside.steps(body, [*consts, *[c.now for c in carry], *xs], outputs)
    turns = _exchange_words(carry)
    record = _record(inside, len(moves) // 2, len(turns) // 5, 0, body_steps.count, -1, 0, *NEVER)
    record += [*moves, *turns, *body_steps.words]
    return inside.finish(LOOP, length, record, body_steps.room)


def _while(outer: _Steps, step: ControlStep, behind: int) -> int:
    inside, p = _BodyBases(outer, step, behind), step.params
    test, body = step.bodies
    n_test, n_body = p["cond_nconsts"], p["body_nconsts"]
    consts = [inside.operand(k) for k in range(n_test + n_body)]
    carry = _find_carries(inside, body, n_test + n_body, n_body, len(step.avals))
    now = [c.now for c in carry]
    test_steps = inside.steps(test, [*consts[:n_test], *now], [(None, 0)])
    body_steps = inside.steps(
        body, [*consts[n_test:], *now], [(c.next, c.nbytes) for c in carry]
    )  # fmt: skip
    turns = _exchange_words(carry)
    flag = test_steps.place(test.output_slots[0])
    twice = all([c.next is not None for c in carry])
    flag = *flag, *(early_start_words(inside.calls, body) if twice else NEVER)
    record = _record(inside, 0, len(turns) // 5, test_steps.count, body_steps.count, *flag)
    record += [*turns, *test_steps.words, *body_steps.words]
    return inside.finish(LOOP, 0, record, max(test_steps.room, body_steps.room))


def _cond(outer: _Steps, step: ControlStep, behind: int) -> int:
    inside = _BodyBases(outer, step, behind)
    if step.guard:
        return _launch_all_branches(inside)
    index = inside.operand(0)
    operands = [inside.operand(k) for k in range(1, len(step.operands))]
    results = [(inside.base(inside.result(i)), a.nbytes) for i, a in enumerate(step.avals)]
    ways = [inside.steps(body, operands, results) for body in step.bodies]
    calls, e = inside.calls, inside.calls.entries
    record = [inside.widest, e.fetch, e.wait, calls.stream, calls.error_address]
    record += [step.inputs[0].dtype.itemsize, index, 0, len(ways)]
    for way in ways:
        record += [way.count, calls.words(way.words)]
    return inside.finish(CHOICE, 0, record, max(way.room for way in ways))


def _launch_all_branches(inside: _BodyBases) -> int:
    """Launch all branches: each kernel looks at the index by itself, and the host waits for
    nothing."""
    outer, step = inside.outer, inside.op
    index, *operands = [outer.place(slot) for slot in step.operands]
    results = [(inside.result(i), a.nbytes) for i, a in enumerate(step.avals)]
    last, room = len(step.bodies) - 1, inside.free_start
    for k, body in enumerate(step.bodies):
        first, end = LEAST if k == 0 else k, MOST if k == last else k
        guard = Guard(step.guard, index, first, end)
        way = _body(inside.calls, body, operands, results, outer.block, inside.free_start, guard)
        outer.words += way.words
        outer.count += way.count
        outer.widest = max(outer.widest, way.widest)
        room = max(room, way.room)
    return room


_KINDS = {"cond": _cond, "while": _while, "scan": _scan}


# --- the table -----------------------------------------------------------------------------------


class _Table:
    """A table, and the buffers that an execution of it needs."""

    def __init__(
        self,
        device: Device,
        steps: Sequence[TableStep],
        leaves: Iterable[int],
        outputs: Sequence[int],
        fastmath: bool,
    ) -> None:
        self.device = device
        self.calls = Calls(device, fastmath)
        slot_places: dict[int, Place] = {slot: (i, 0) for i, slot in enumerate(leaves, 2)}
        root, sizes, producers = root_slots(steps), slot_sizes(steps), producers_of(steps)
        # The leaves that steps overwrite.
        places = {slot: i for i, slot in enumerate(leaves)}
        self.overwritten = sorted({places[s] for s in root.values() if s in places})
        self.fresh: list[
            tuple[int, TableStep]
        ] = []  # bytes of new results, the steps that make them
        for slot in outputs:
            slot = root.get(slot, slot)
            if slot not in slot_places:
                slot_places[slot] = len(slot_places) + 2, 0
                self.fresh.append((sizes[slot], producers[slot]))
        self.outputs = [slot_places[root.get(slot, slot)][0] - 2 for slot in outputs]
        table_steps = _Steps(self.calls, steps, slot_places, len(slot_places) + 2, 0, outputs)
        if table_steps.room:
            self.fresh.append((table_steps.room, steps[0]))
        self.nbytes = sum(n for n, _ in self.fresh)
        self.names_and_sites = [find_name_and_site(step) for _, step in self.fresh]
        self.table = self.calls.words(
            [table_steps.widest, table_steps.count, table_steps.count, *table_steps.words]
        )
        self.walk = walker(RELEASE_GIL, self.table)

    def run(self, leaves: Sequence[Any]) -> list[Any]:
        """Launch all steps, and return the buffers of the outputs."""
        driver = self.calls.driver
        buffers = [*leaves]
        for i in self.overwritten:
            if buffers[i].pooled:
                buffers[i].mark_written()
            else:  # others have it, too
                buffers[i] = copy(buffers[i], "an update")
        for (nbytes, step), name_and_site in zip(self.fresh, self.names_and_sites, strict=True):
            try:
                buffers.append(empty(self.device, nbytes, _label(step)))
                buffers[-1].name_and_site = name_and_site
            except MemoryError as error:
                error.accnp_step = step  # type: ignore[attr-defined]
                raise
        driver.enter()
        with _one if self.calls.exclusive else nullcontext():
            self.walk(*map(_address, buffers))
        if self.calls.error.value:
            code, self.calls.error.value = self.calls.error.value, 0
            raise driver.failure(code)
        event = driver.event()
        outputs = [buffers[i] for i in self.outputs]
        for buffer in outputs:
            buffer.event = event
        return outputs


_address = attrgetter("ptr")


def _label(step: TableStep) -> str:
    return step.op.name if isinstance(step, ControlStep) else step.label
