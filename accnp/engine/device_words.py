"""Words of a table for a GPU: steps come in, lists of numbers that machine code takes go out.

The entries and their arguments are those of `runtime/device_calls.py`; `device_table.py` puts the
words together and says where slots lie.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from accnp.engine.device_captures import Capture
from accnp.engine.device_steps import AddressStep, DeviceStep, LibraryStep
from accnp.ir.generated import Generated
from accnp.runtime.device import Device
from accnp.runtime.device_buffer import driver_of
from accnp.runtime.device_calls import COPY, GRAPH, LAUNCH, addresses, call_of
from accnp.runtime.driver import CALLS

__all__ = ["Calls", "Guard", "Place", "graph_of"]

Place = tuple[int, int]  # a base, and what is added to it


class Guard(NamedTuple):
    """When the launches of a branch are meant: an index is one of first..last."""

    code: str  # its type
    place: Place
    first: int
    last: int


class Calls:
    """What the words of a table need of a device."""

    def __init__(self, device: Device, fastmath: bool) -> None:
        self.device, self.fastmath = device, fastmath
        self.driver = driver_of(device)
        self.entries = self.driver.entries()
        self.code = addresses()
        self.stream = self.driver.stream
        self.error = ctypes.c_int64(0)  # the first that a function gave
        self.where = ctypes.addressof(self.error)
        self.kept: list[Any] = []  # memory that words point to
        self.alone = False  # whether walks must not mix

    def words(self, values: Sequence[int]) -> int:
        """The address of words that stay."""
        array = (ctypes.c_int64 * len(values))(*values)
        self.kept.append(array)
        return ctypes.addressof(array)

    def step(self, entry: str, n: int, arguments: Sequence[Place]) -> list[int]:
        found = [self.code[entry], n, n, len(arguments)]  # all at once, by one thread
        for place in arguments:
            found += place
        return found

    def launch(
        self, step: DeviceStep, place: Callable[[int, int], Place], guard: Guard | None = None
    ) -> list[int]:
        handle = self.driver.handle(step.function or step.load(self.fastmath))
        head = [self.entries.launch, handle, step.blocks, step.threads, self.stream, self.where]
        given = [place(slot, offset) for slot, offset in step.pointers]
        given += [(0, buffer.ptr) for buffer in step.constants]
        given += [(0, word) for word in step.words]
        if guard is not None:
            given += [guard.place, (0, guard.first), (0, guard.last)]
        self.kept.append(step)
        return self.step(LAUNCH, len(given), [*[(0, word) for word in head], *given])

    def call(self, step: AddressStep, place: Callable[[int, int], Place]) -> list[int]:
        name, address, bit, arguments = step.words(place, self)
        self.kept.append(step)
        head = [(0, address), (0, self.where), (0, bit)]
        return self.step(call_of(CALLS[name]), 0, [*head, *arguments])

    def copy(self, to: Place, source: Place, nbytes: int, guard: Guard | None = None) -> list[int]:
        if guard is not None:
            step = _move(self.device, nbytes, guard.code)
            return self.launch(step, lambda slot, _: (to, source)[slot], guard)
        last = [(0, nbytes), (0, self.stream), (0, self.where)]
        return self.step(COPY, 0, [(0, self.entries.copy), to, source, *last])

    def graph(self, step: LibraryStep, place: Callable[[int, int], Place]) -> list[list[int]]:
        """The steps of a captured call: what is not there is copied to where the graph reads, what
        is wanted elsewhere from where it writes."""
        made = graph_of(step)
        found: list[list[int]] = []
        for (slot, *_), span in zip(step.operands, made.spans, strict=True):
            source, to = place(slot, span.first), (0, span.address)
            if span.nbytes and source != to:
                found.append(self.copy(to, source, span.nbytes))
        found.append(self.step(GRAPH, 0, [(0, word) for word in (
            self.entries.graph, made.handle, self.stream, self.where,
        )]))  # fmt: skip
        for (slot, nbytes), address in zip(step.allocs, made.results, strict=True):
            to, source = place(slot, 0), (0, address)
            if nbytes and source != to:
                found.append(self.copy(to, source, nbytes))
        self.kept.append(made)
        self.alone = True
        return found


def graph_of(step: LibraryStep) -> Capture:
    """Return the CUDA graph of a step that has been captured."""
    assert isinstance(step.captured, Capture)
    return step.captured


def _move(device: Device, nbytes: int, guard: str) -> DeviceStep:
    """The launch that copies bytes from slot 1 to slot 0, where a branch is meant."""
    text, size = Generated(), 4 if nbytes % 4 == 0 else 1
    text.source = "def kernel(lo, hi, x, y):\n    for i in range(lo, hi):\n        x[i] = y[i]\n"
    text.signature = ("i4*", "i4*") if size == 4 else ("u1*", "u1*")
    text.extent, text.tasks = nbytes // size, True
    step = DeviceStep(text, False, device)
    step.guard, step.pointers, step.label = guard, [(0, 0), (1, 0)], "copy"
    return step
