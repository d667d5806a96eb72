"""Encode steps for a GPU as words of a table that machine code executes.

A plan whose steps are launches, copies, library calls, loops and branches runs without Python: its
steps are written once as 64-bit words, and `_native/launch.c` executes this table. `Calls` encodes
one step. It gets the step and the places of its operands, which `device_table.py` assigns, and
returns the words for one of the entries that `runtime/device_calls.py` defines.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import NamedTuple

from accnp.engine.device_captures import Capture
from accnp.engine.device_steps import AddressStep, DeviceStep, LibraryStep
from accnp.ir.generated import GeneratedKernel
from accnp.runtime.device import Device
from accnp.runtime.device_buffer import driver_of
from accnp.runtime.device_calls import COPY, GRAPH, LAUNCH, addresses, call_of
from accnp.runtime.driver import CALLS

__all__ = ["Calls", "Guard", "Place", "graph_of"]

Place = tuple[int, int]  # the number of a base address, and an offset in bytes


class Guard(NamedTuple):
    """The condition for the launches of a branch: an index is one of first..last."""

    code: str  # the type of the index
    place: Place
    first: int
    last: int


class Calls:
    """Encodes steps for one device. The memory that words point to lives as long as this object."""

    def __init__(self, device: Device, fastmath: bool) -> None:
        self.device, self.fastmath = device, fastmath
        self.driver = driver_of(device)
        self.entries = self.driver.entries()
        self.code = addresses()
        self.stream = self.driver.stream
        self.error = ctypes.c_int64(0)  # the first error that a function returned
        self.error_address = ctypes.addressof(self.error)
        self.references: list[object] = []  # objects whose memory words point to
        self.exclusive = False  # whether no two threads may execute the table at the same time

    def words(self, values: Sequence[int]) -> int:
        """Store words, and return their address."""
        array = (ctypes.c_int64 * len(values))(*values)
        self.references.append(array)
        return ctypes.addressof(array)

    def step(self, entry: str, n: int, arguments: Sequence[Place]) -> list[int]:
        """Return the words of a step: an entry, whose arguments end with `n` of the kernel's."""
        words = [self.code[entry], n, n, len(arguments)]  # all at once, by one thread
        for place in arguments:
            words += place
        return words

    def launch(
        self, step: DeviceStep, place: Callable[[int, int], Place], guard: Guard | None = None
    ) -> list[int]:
        handle = self.driver.handle(step.function or step.load(self.fastmath))
        head = [
            self.entries.launch,
            handle,
            step.blocks,
            step.threads,
            self.stream,
            self.error_address,
        ]
        arguments = [place(slot, offset) for slot, offset in step.pointers]
        arguments += [(0, buffer.ptr) for buffer in step.constants]
        arguments += [(0, word) for word in step.words]
        if guard is not None:
            arguments += [guard.place, (0, guard.first), (0, guard.last)]
        self.references.append(step)
        return self.step(LAUNCH, len(arguments), [*[(0, word) for word in head], *arguments])

    def call(self, step: AddressStep, place: Callable[[int, int], Place]) -> list[int]:
        name, address, bit, arguments = step.words(place, self)
        self.references.append(step)
        head = [(0, address), (0, self.error_address), (0, bit)]
        return self.step(call_of(CALLS[name]), 0, [*head, *arguments])

    def copy(self, to: Place, source: Place, nbytes: int, guard: Guard | None = None) -> list[int]:
        if guard is not None:
            step = _move(self.device, nbytes, guard.code)
            return self.launch(step, lambda slot, _: (to, source)[slot], guard)
        last = [(0, nbytes), (0, self.stream), (0, self.error_address)]
        return self.step(COPY, 0, [(0, self.entries.copy), to, source, *last])

    def graph(self, step: LibraryStep, place: Callable[[int, int], Place]) -> list[list[int]]:
        """Return the steps of a captured call: copies of operands to the addresses that the graph
        reads, the launch of the graph, and copies of results from the addresses that it writes.
        Operands and results that are there already are not copied."""
        capture = graph_of(step)
        steps: list[list[int]] = []
        for (slot, *_), span in zip(step.operands, capture.spans, strict=True):
            source, to = place(slot, span.first), (0, span.address)
            if span.nbytes and source != to:
                steps.append(self.copy(to, source, span.nbytes))
        steps.append(self.step(GRAPH, 0, [(0, word) for word in (
            self.entries.graph, capture.handle, self.stream, self.error_address,
        )]))  # fmt: skip
        for (slot, nbytes), address in zip(step.allocs, capture.results, strict=True):
            to, source = place(slot, 0), (0, address)
            if nbytes and source != to:
                steps.append(self.copy(to, source, nbytes))
        self.references.append(capture)
        self.exclusive = True
        return steps


def graph_of(step: LibraryStep) -> Capture:
    """Return the CUDA graph of a step that has been captured."""
    assert isinstance(step.captured, Capture)
    return step.captured


def _move(device: Device, nbytes: int, guard: str) -> DeviceStep:
    """Return a launch that copies bytes from slot 1 to slot 0 if a branch is taken."""
    text, size = GeneratedKernel(), 4 if nbytes % 4 == 0 else 1
    text.source = "def kernel(lo, hi, x, y):\n    for i in range(lo, hi):\n        x[i] = y[i]\n"
    text.signature = ("i4*", "i4*") if size == 4 else ("u1*", "u1*")
    text.extent, text.tasks = nbytes // size, True
    step = DeviceStep(text, False, device)
    step.guard, step.pointers, step.label = guard, [(0, 0), (1, 0)], "copy"
    return step
