"""Launch tables: run all kernels of a plan with a single call of the C extension.

Input: a plan that consists of kernels, which are loaded. Output: a function that takes the buffers
of the leaves and returns those of the outputs, as `execute.run` does. The cost of a step in Python
(2 us) is then paid once per plan.

A table is an array of 64-bit words. It starts with the maximum number of arguments of a step, the
number of steps, and the number of launches among them (the other steps copy memory). Each step has
the address of its entry point, its extent, the chunk that a thread takes at a time, the number of
its arguments, and for each argument the number of a base and an offset that is added to it. Base 0
is zero, and base 1 is the address of the bases. If steps are shared, the thread pool and the number
of its worker threads follow. The other bases are the leaves, the results, and one block of scratch
memory for all buffers that live only within the table.

Consecutive small steps that do not depend on each other (such as the updates of fifty parameters)
form a group: one launch whose steps are distributed among threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from accnp._native import (
    COPY,
    GROUP,
    KEEP_GIL,
    PARALLEL_FOR,
    RELEASE_GIL,
    WITH_AWAKE_HELPERS,
    WITH_HELPERS,
    walker,
)
from accnp.compiler.kernel_cache import Kernel
from accnp.engine.steps import (
    AWAKE_THREADS_WORK,
    BRIEF,
    PARALLEL,
    KernelStep,
    Plan,
    Step,
    used_slots,
)
from accnp.runtime import buffer as pool
from accnp.runtime.buffer import ALIGN, Buffer
from accnp.runtime.nontemporal import Pieces
from accnp.runtime.threads import call_helpers, launch_form

__all__ = ["LaunchTable", "Part", "groups_of", "launch_table_of", "parts_of"]

LARGE = 1 << 25  # the maximum bytes of scratch memory and results of a table with several steps


Words = ctypes.Array[ctypes.c_int64]


class LaunchTable(NamedTuple):
    """A table and how it is run. `_native` defines the modes."""

    run: Callable[[Sequence[Buffer]], list[Buffer]]  # buffers of leaves to buffers of outputs
    table: Words
    mode: int
    helpers: int  # worker threads that may take part; if 0, the bases contain no thread pool
    results: list[int]  # sizes in bytes of the buffers to allocate, which follow the leaves
    outputs: list[int]  # the indices of the outputs among leaves and results
    scratch: int  # bytes of scratch memory, which is the last base


class Section(NamedTuple):
    """Consecutive kernels that can be one table: a plan, or a part of one between other steps."""

    steps: Sequence[KernelStep]
    leaves: Sequence[int]  # slots that have buffers before
    outputs: Sequence[int]  # slots whose buffers are used afterwards
    n_slots: int  # of the plan
    fastmath: bool
    work: int


class Part(NamedTuple):
    """A table for a section of a plan that also has other steps."""

    table: LaunchTable
    leaves: Sequence[int]
    outputs: Sequence[int]
    frees: Sequence[int]

    def run(self, slots: list[Any]) -> None:
        """Run the steps and put their results into their slots."""
        results = self.table.run([slots[s] for s in self.leaves])
        for slot, buffer in zip(self.outputs, results, strict=True):
            slots[slot] = buffer
        for slot in self.frees:
            slots[slot] = None


def parts_of(plan: Plan) -> list[Any]:
    """Return the steps of a plan in order, with consecutive kernels as one `Part` if they can be a
    table. A loop body with library calls then costs one call per section instead of one per kernel.
    """
    parts: list[Any] = []
    runs = [[*steps] for _, steps in groupby(plan.steps, _is_kernel)]
    after = len(plan.steps)
    last = {s: after for s in plan.output_slots}
    for i, step in enumerate(plan.steps):
        for s in used_slots(step):
            last[s] = max(i, last.get(s, 0))
    i = 0
    for run in runs:
        i += len(run)
        part = _make_part(plan, run, last, i) if len(run) > 1 and _is_kernel(run[0]) else None
        parts += run if part is None else [part]
    return parts


def _is_kernel(step: Step) -> bool:
    return isinstance(step, KernelStep)


def _make_part(plan: Plan, steps: list[KernelStep], last: dict[int, int], end: int) -> Part | None:
    """Return a `Part` of steps that end before step `end` of the plan, or None.

    `last` has the index of the step that uses each slot last.
    """
    new_slots: dict[int, None] = {}
    leaves: dict[int, None] = {}
    for step in steps:
        own = [*[s for s, _ in step.allocs], *[take[0] for take in step.updated_slots]]
        leaves.update({s: None for s in used_slots(step) if s not in new_slots and s not in own})
        new_slots.update(dict.fromkeys(own))
    outputs = [s for s in new_slots if last.get(s, 0) >= end]
    work = sum([step.work for step in steps])
    section = Section(steps, [*leaves], outputs, plan.n_slots, plan.fastmath, work)
    table = _launch_table(section)
    if table is None:
        return None
    frees = [s for step in steps for s in step.frees if s not in new_slots or s in outputs]
    return Part(table, section.leaves, outputs, frees)


def launch_table_of(plan: Plan) -> LaunchTable | None:
    """Return the table of a plan that consists of kernels; None for other plans."""
    section = _make_section(plan)
    return section and _launch_table(section)


def _make_section(plan: Plan) -> Section | None:
    if not all(map(_is_kernel, plan.steps)):
        return None
    leaves = range(plan.n_leaves)
    return Section(plan.steps, leaves, plan.output_slots, plan.n_slots, plan.fastmath, plan.work)


def _launch_table(plan: Section) -> LaunchTable | None:
    groups = _table_groups(plan)
    if groups is None:
        return None
    is_brief = len(groups) == 1 == len(groups[0]) and groups[0][0].is_brief
    helpers = max([_chunks(group) - 1 for group in groups], default=0)
    places = _Places(plan, groups, 3 if helpers else 1)
    results, outputs, scratch = places.results, places.outputs, places.scratch
    table = _Table(plan, groups, places, helpers)
    address = ctypes.addressof(table.words)
    keeps_gil = plan.work < BRIEF and all([step.keeps_gil for group in groups for step in group])
    if helpers:
        mode = WITH_AWAKE_HELPERS if is_brief else WITH_HELPERS
    else:
        mode = KEEP_GIL if keeps_gil else RELEASE_GIL
    walk = walker(mode, address)
    empty = pool.empty
    single = len(results) == 1 and outputs == [len(plan.leaves)] and not scratch
    if any([step.text.sends for group in groups for step in group]):

        def run_with_messages(leaves: Sequence[Buffer], _: _Table = table) -> list[Buffer]:
            # The extension gets the buffers themselves, since MPI may use them after an error.
            buffers = [*leaves, *map(empty, results)]
            team = call_helpers(helpers) if helpers else ()
            walk(*team, *buffers, empty(scratch))
            return [buffers[i] for i in outputs]

        return LaunchTable(run_with_messages, table.words, mode, helpers, results, outputs, scratch)
    if helpers:

        def run_together(leaves: Sequence[Buffer], _: _Table = table) -> list[Buffer]:
            buffers = [*leaves, *map(empty, results)]
            inner = empty(scratch)
            walk(*call_helpers(helpers), *map(_address, buffers), inner.ptr)
            return [buffers[i] for i in outputs]

        def run_one_together(leaves: Sequence[Buffer], _: _Table = table) -> list[Buffer]:
            out = empty(results[0])
            walk(*call_helpers(helpers), *map(_address, leaves), out.ptr)
            return [out]

        run = run_one_together if single else run_together
        return LaunchTable(run, table.words, mode, helpers, results, outputs, scratch)
    if single:
        (size,) = results

        def run_one(leaves: Sequence[Buffer], _: _Table = table) -> list[Buffer]:
            out = empty(size)
            walk(*map(_address, leaves), out.ptr)
            return [out]

        return LaunchTable(run_one, table.words, mode, 0, results, outputs, scratch)

    def run_without_scratch(leaves: Sequence[Buffer], _: _Table = table) -> list[Buffer]:
        buffers = [*leaves, *map(empty, results)]
        walk(*map(_address, buffers))
        return [buffers[i] for i in outputs]

    def run_all(leaves: Sequence[Buffer], _: _Table = table) -> list[Buffer]:
        buffers = [*leaves, *map(empty, results)]
        inner = empty(scratch)
        walk(*map(_address, buffers), inner.ptr)
        return [buffers[i] for i in outputs]

    run = run_all if scratch else run_without_scratch
    return LaunchTable(run, table.words, mode, 0, results, outputs, scratch)


def groups_of(plan: Plan) -> list[list[KernelStep]] | None:
    """Return the launches of a plan that is a table, each with its steps.

    Returns None if a step is not a kernel, and for plans with much memory, whose buffers should be
    allocated and freed step by step.
    """
    section = _make_section(plan)
    return section and _table_groups(section)


def _table_groups(plan: Section) -> list[list[KernelStep]] | None:
    groups = _groups(plan.steps)
    places = _Places(plan, groups, 1)
    large = len(plan.steps) > 1 and places.scratch + sum(places.results) > LARGE
    return None if large else groups


def _groups(steps: Sequence[KernelStep]) -> list[list[KernelStep]]:
    """Group consecutive steps that do not depend on each other.

    A step that sends messages has no others beside it: processes must send them in one order, and
    only the thread that launches may wait for them.
    """
    groups: list[list[KernelStep]] = []
    touched: set[int] = set()  # by the last group
    written: set[int] = set()
    for step in steps:
        slots = set(used_slots(step))
        writes = step.writes
        alone = (
            step.updated_slots
            or step.text.shares
            or step.text.sends
            or (step.work >= PARALLEL and step.extent > step.grain)
        )
        after = bool(groups) and groups[-1][-1].text.sends
        if alone or after or not groups or slots & written or writes & touched:
            groups.append([])
            touched, written = set(), set()
        groups[-1].append(step)
        touched |= slots
        written |= slots if alone else writes
    return groups


def _chunks(group: list[KernelStep], least: int = PARALLEL) -> int:
    """Return the number of chunks that threads can share in a group; 1 if its work is too small."""
    # The work of matrix products is not an upper estimate (see `KernelStep.is_brief`).
    if sum([step.work << step.text.products for step in group]) < least:
        return 1
    if len(group) > 1:
        return len(group)
    return max(group[0].text.shares, -(-group[0].extent // group[0].grain))


class _Table:
    """The words of a table, and those of the steps in its groups."""

    def __init__(
        self, plan: Section, groups: Sequence[list[KernelStep]], places: _Places, helpers: int
    ) -> None:
        self.fastmath = plan.fastmath
        self.places = places
        self.widest = 3
        self.kernels: list[Kernel] = []  # whose addresses are in the table
        count = len(groups)
        words: list[int] = []
        self.parts: list[Words] = []
        for group in groups:
            for slot, source, nbytes, over in group[0].updated_slots:
                if not over:
                    words += [COPY, 1, 1, 3, *places.of(slot, 0), *places.of(source, 0), 0, nbytes]
                    count += 1
            several = helpers and _chunks(group, AWAKE_THREADS_WORK) > 1
            if len(group) == 1:
                (step,) = group
                words += self.step(step, step.grain if several else step.stretch, step.nontemporal)
                continue
            records = [_make_words(self.step(step, step.extent)) for step in group]
            index = _make_words([ctypes.addressof(record) for record in records])
            self.parts += [*records, index]
            widest = max([record[3] for record in records])
            words += [GROUP, len(group), 1 if several else len(group), 3]
            words += [1, 0, 0, ctypes.addressof(index), 0, widest]
        self.words = _make_words([self.widest, count, len(groups), *words])

    def step(
        self, step: KernelStep, chunk: int, nontemporal: tuple[Pieces, Pieces] = ((), ())
    ) -> list[int]:
        count = len(step.pointers) + len(step.ints)
        kernel = step.load(self.fastmath)
        self.kernels.append(kernel)
        entry, before, chunk = launch_form(kernel.address, count, chunk, nontemporal)
        count += len(before)
        self.widest = max(self.widest, count)
        words = [entry, step.extent, chunk, count]
        for number in before:
            words += [0, number]
        for slot, offset in step.pointers:
            words += self.places.of(slot, offset)
        shares = step.text.shares
        for number in step.ints[:-3] if shares else step.ints:
            words += [0, number]
        return [*words, 0, PARALLEL_FOR, 2, 0, 3, 0] if shares else words


def _make_words(values: Sequence[int]) -> Words:
    return (ctypes.c_int64 * len(values))(*values)


_address = attrgetter("ptr")


class _Places:
    """The location of each slot of a plan: the number of a base, and an offset.

    The base of the first leaf is `start + 1`.
    """

    def __init__(self, plan: Section, groups: Sequence[list[KernelStep]], start: int) -> None:
        # The slot whose memory a slot uses: itself, or the one whose buffer it reuses.
        self.root: dict[int, int] = {s: s for s in range(plan.n_slots)}
        sizes: dict[int, int] = {}
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        # No memory is reused within a group, because its steps run concurrently.
        for i, step in [(i, step) for i, group in enumerate(groups) for step in group]:
            allocations = list(step.allocs)
            for slot, source, nbytes, over in step.updated_slots:
                if over:
                    self.root[slot] = self.root[source]
                else:
                    allocations.append((slot, nbytes))
            for slot, nbytes in allocations:
                sizes[slot], first[slot] = nbytes, i
            for slot in used_slots(step):
                last[self.root[slot]] = i
        leaves = len(plan.leaves)
        self.base = {s: start + i + 1 for i, s in enumerate(plan.leaves)}
        self.results: list[int] = []
        for slot in plan.outputs:
            root = self.root[slot]
            if root not in self.base:
                self.base[root] = start + leaves + len(self.results) + 1
                self.results.append(sizes[root])
        self.offset: dict[int, int] = {}
        self.scratch = 0
        block = start + leaves + len(self.results) + 1
        live_ranges: list[tuple[int, int, int]] = []  # start, end, last use
        for slot, nbytes in sizes.items():
            if slot in self.base:
                continue
            live_ranges = sorted(h for h in live_ranges if h[2] >= first[slot])
            at, size = 0, -(-max(nbytes, 1) // ALIGN) * ALIGN
            for begin, stop, _ in live_ranges:
                if at + size <= begin:
                    break
                at = max(at, stop)
            live_ranges.append((at, at + size, last[slot]))
            self.base[slot], self.offset[slot] = block, at
            self.scratch = max(self.scratch, at + size)
        self.outputs = [self.base[self.root[s]] - start - 1 for s in plan.outputs]

    def of(self, slot: int, offset: int) -> tuple[int, int]:
        root = self.root[slot]
        return self.base[root], self.offset.get(root, 0) + offset
