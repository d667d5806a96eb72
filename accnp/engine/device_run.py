"""Execution of plans on a GPU.

Like `execute.run`, `run` takes the buffers of the leaves and returns those of the outputs.

The host launches the kernels one after the other without waiting for them, except where it has to
execute a step itself or to decide which step is next. An event after the last launch signals when
the results are complete.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from accnp.compiler.cache_state import counters
from accnp.engine import control, execute
from accnp.engine.device_slots import is_table
from accnp.engine.device_steps import AddressStep, DeviceStep, LibraryStep, find_name_and_site
from accnp.engine.device_table import operand_slots, walk_of, walk_of_step
from accnp.engine.steps import ControlStep, HostStep, KernelStep, Plan, Step, used_slots
from accnp.forks import renewed
from accnp.ir.node import LITERAL, Node
from accnp.runtime.buffer import Buffer
from accnp.runtime.device import Device
from accnp.runtime.device_buffer import (
    DeviceBuffer,
    copy,
    driver_of,
    empty,
    move,
    retry_after_freeing,
    wrap_foreign_array,
)  # fmt: skip
from accnp.runtime.driver import Driver, add_failure_note
from accnp.runtime.stream import Stream

__all__ = ["add_failure_note", "copy", "move_leaves", "run", "stream_of"]

_streams: dict[Device, Stream] = {}
_lock = renewed(threading.Lock())


def stream_of(device: Device) -> Stream:
    """Return the queue of plans for a GPU that the calling thread does not launch itself, because
    their operands are not computed yet or some of their steps run on the CPU."""
    stream = _streams.get(device)
    if stream is None:
        with _lock:
            stream = _streams.setdefault(device, Stream(str(device)))
    return stream


def move_leaves(device: Device | None, nodes: Sequence[Node], buffers: Sequence[Any]) -> list[Any]:
    """Return the buffers of leaves on a device (None is the memory of the host). Entries that are
    None stay None. A leaf keeps the buffer that was copied to a GPU, so that it is copied once."""
    moved_buffers = list(buffers)
    for i, buffer in enumerate(moved_buffers):
        if device is None:
            if isinstance(buffer, DeviceBuffer):
                moved_buffers[i] = buffer.host()
        elif type(buffer) is Buffer or (
            isinstance(buffer, DeviceBuffer) and buffer.device != device
        ):
            moved_buffers[i] = move(buffer, device)
            if i < len(nodes) and nodes[i].value is buffer and nodes[i].op is not LITERAL:
                nodes[i].value = moved_buffers[i]
    return moved_buffers


def run(
    plan: Plan,
    leaves: Sequence[Any],
    tell: Callable[..., None] | None = None,
    mark: bool = True,
) -> list[Any]:
    """Launch a plan and return the buffers of its outputs.

    When all steps have run, `tell` is called with each step and the seconds on the GPU from the
    beginning of the first step to the beginning and to the end of this one. `mark` tells whether
    other streams may wait for the outputs.
    """
    device = plan.device
    assert device is not None
    if not plan.loaded:
        plan.loaded, plan.walk = True, walk_of(plan)
    if plan.walk is not None and tell is None:
        return plan.walk(leaves)
    driver = driver_of(device)
    slots: list[Any] = [*leaves, *[None] * (plan.n_slots - plan.n_leaves)]
    times: list[tuple[Any, Any, Any]] = []
    for step in plan.steps:
        begin = driver.event(True) if tell is not None else None
        try:
            _run_step(step, slots, plan, device, driver)
        except (RuntimeError, MemoryError) as error:
            if not hasattr(error, "accnp_step"):
                error.accnp_step = step  # type: ignore[union-attr]
            raise
        if tell is not None:
            times.append((step, begin, driver.event(True)))
        for slot in step.frees:
            slots[slot] = None
    if tell is not None:
        driver.synchronize()
        first = times[0][1] if times else None
        for step, begin, end in times:
            tell(step, (driver.elapsed(first, begin), driver.elapsed(first, end)))
    outputs = [slots[s] for s in plan.output_slots]
    if mark:
        event = driver.event()
        for buffer in outputs:
            buffer.event = event
    return outputs


def _run_step(step: Step, slots: list[Any], plan: Plan, device: Device, driver: Driver) -> None:
    if type(step) is DeviceStep:
        _launch(step, slots, plan.fastmath, device, driver)
    elif type(step) is LibraryStep:
        if not _library(step, slots, device, driver):
            _reference(step, slots, device)
    elif type(step) is ControlStep and not is_table([step]):
        control.run_control(step, slots, functools.partial(run, mark=False), _Memory(device))
    elif isinstance(step, ControlStep | AddressStep):
        if step.walk is None:
            step.walk = walk_of_step(step, device, plan.fastmath)
        buffers = step.walk([slots[s] for s in operand_slots(step)])
        for (slot, _), buffer in zip(step.results, buffers, strict=True):
            slots[slot] = buffer
    elif isinstance(step, KernelStep):
        _run_kernel_on_host(step, slots, plan.fastmath, device)
    else:
        _reference(step, slots, device)


def _launch(
    step: DeviceStep, slots: list[Any], fastmath: bool, device: Device, driver: Driver
) -> None:
    function = step.function or step.load(fastmath)
    for slot, nbytes in step.allocs:
        slots[slot] = empty(device, nbytes, step.label)
        slots[slot].name_and_site = find_name_and_site(step)
    for slot, source, _, over in step.updated_slots:
        if over and slots[source].pooled:  # not memory of another library
            slots[slot] = slots[source]
            slots[slot].mark_written()
        else:
            slots[slot] = copy(slots[source], step.label)
    arguments = [slots[s].ptr + offset for s, offset in step.pointers]
    arguments += [buffer.ptr for buffer in step.constants]
    counters.launched()
    driver.launch(function, step.blocks, step.threads, [*arguments, *step.words])


def _library(step: LibraryStep, slots: list[Any], device: Device, driver: Driver) -> bool:
    """Call a function of the array library; False if it does not support these operands."""
    arrays = [
        slots[slot].array(shape, dtype, strides, offset)
        for slot, shape, dtype, strides, offset, _ in step.operands
    ]

    outputs = retry_after_freeing(
        device, lambda: driver.call(lambda: step.call(driver, arrays)), who=step.op.name
    )
    if outputs is None:
        return False
    for (slot, _), value in zip(step.results, outputs, strict=True):
        slots[slot] = wrap_foreign_array(device, value, made_by=step.op.name)
        slots[slot].name_and_site = find_name_and_site(step)
    return True


def _reference(step: HostStep, slots: list[Any], device: Device) -> None:
    """Call the reference function of an operation on copies in the host's memory."""
    execute.run_host_step(step, slots)
    for slot, _ in step.results:
        slots[slot] = move(slots[slot], device, step.op.name)


def _run_kernel_on_host(step: KernelStep, slots: list[Any], fastmath: bool, device: Device) -> None:
    """Run a kernel that the GPU cannot run on copies in the host's memory."""
    written = step.writes
    host: dict[int, Any] = {}
    for slot in set(used_slots(step)):
        if slots[slot] is not None:
            there = slots[slot].host()
            host[slot] = control.Memory().copy(there) if slot in written else there
    execute.launch(step, host, fastmath)
    for slot in written:
        slots[slot] = move(host[slot], device, step.label)


class _Memory(control.Memory):
    """The operations on GPU buffers that loops on the host use."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def empty(self, nbytes: int) -> DeviceBuffer:
        return empty(self.device, nbytes, "a loop")

    def put(self, to: Buffer, at: int, source: Buffer, nbytes: int) -> None:
        if nbytes:
            driver_of(self.device).copy(to.ptr + at, source.ptr, nbytes)

    def parts(self, x: Buffer, nbytes: int) -> Callable[[int], Buffer]:
        assert isinstance(x, DeviceBuffer)
        return lambda i: x.part(i * nbytes, nbytes)
