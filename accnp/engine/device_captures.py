"""Library calls on a GPU as CUDA graphs: captured once, launched by machine code.

It takes a call of the array library in the body of a loop or a branch. It returns a `Capture`, a
step in the table of the loop (`device_table.py`), or a string that says why the call cannot be
captured; then each step of the loop runs from Python.

A graph contains the addresses of the call that was captured, so it reads and writes fixed memory of
its own. Operands are copied there before the launch (or written there by the preceding kernel), and
results are copied from there. Memory that the call allocates belongs to the graph, too.
"""

from __future__ import annotations

from typing import NamedTuple

from accnp.engine.device_steps import LibraryStep
from accnp.engine.steps import HostOperand
from accnp.runtime.device import Device
from accnp.runtime.device_buffer import DeviceBuffer, driver_of, wrap_foreign_array
from accnp.runtime.driver import NotCaptured

__all__ = ["Capture", "Span", "capture"]

# Bytes to copy up to which that costs less than a call from Python, some 30 us: a guess from the
# H200's 4.3 TB/s.
LARGEST = 1 << 26
# Bytes that a call may hold as long as the plan is.
HELD = 1 << 30


class Span(NamedTuple):
    """The bytes of an operand that a graph has in a place of its own."""

    first: int  # of the buffer
    nbytes: int
    address: int


class Capture:
    """A call as a graph."""

    __slots__ = ("handle", "references", "results", "spans")

    def __init__(
        self, handle: int, spans: list[Span], results: list[int], references: object
    ) -> None:
        self.handle = handle
        self.spans = spans  # of the operands
        self.results = results  # where they come about
        self.references = references  # the graph, and memory


def capture(step: LibraryStep, device: Device, inside: dict[int, int]) -> Capture | str:
    """The graph of a call, or why there is none; the call is made once on zeros, for what is loaded
    and planned by first calls. `inside` has the bytes of slots that the body makes for itself."""
    byte_ranges = [_bytes(operand) for operand in step.operands]
    parts = [(o[0], *span) for o, span in zip(step.operands, byte_ranges, strict=True)]
    parts += [(slot, 0, n) for slot, n in step.allocs]
    moved = sum([n for slot, first, n in parts if first or inside.get(slot) != n])
    if moved > LARGEST:
        return f"{step.op.name} moves {moved} bytes, too many to copy for a CUDA graph"
    nbytes = sum([n for _, _, n in parts])
    if nbytes > HELD:
        return f"{step.op.name} takes {nbytes} bytes, too many to hold for a CUDA graph"
    driver = driver_of(device)
    try:
        room = [_zeros(device, n) for _, n in byte_ranges]
        arrays = [
            buffer.array(shape, dtype, strides, offset - first)
            for buffer, (first, _), (_, shape, dtype, strides, offset, _) in zip(
                room, byte_ranges, step.operands, strict=True
            )
        ]
        graph = driver.capture(lambda: step.call(driver, arrays))
        if graph.value is None:
            return f"the GPU's library has no {step.op.name} of these operands"
        results = [wrap_foreign_array(device, value, made_by=step.op.name) for value in graph.value]
    except (NotCaptured, MemoryError) as error:
        return f"{step.op.name} cannot be captured as a CUDA graph ({error})"
    spans = [Span(first, n, b.ptr) for (first, n), b in zip(byte_ranges, room, strict=True)]
    return Capture(graph.handle, spans, [b.ptr for b in results], (graph, room, results))


def _zeros(device: Device, nbytes: int) -> DeviceBuffer:
    driver = driver_of(device)
    array = driver.call(driver.xp.zeros, max(1, nbytes), "u1")
    return wrap_foreign_array(device, array, made_by="a captured call")


def _bytes(operand: HostOperand) -> tuple[int, int]:
    """The first byte of its buffer that an operand has, and how many from there on."""
    _, shape, dtype, strides, offset, _ = operand
    if 0 in shape:
        return offset, 0
    if strides is None:
        size = dtype.itemsize
        for n in shape:
            size *= n
        return offset, size
    ends = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low, high = sum([e for e in ends if e < 0]), sum([e for e in ends if e > 0])
    return offset + low, high - low + dtype.itemsize
