"""Execution of plans on the CPU.

Input: a Plan and the buffers of its leaves. Output: the buffers of its outputs. The first run loads
all kernels of the plan. A plan that consists of kernels runs as one table (`table.py`); otherwise
`run` executes its steps one by one, with small kernels on the calling thread and large ones on
several threads. Plans for a GPU are passed on to `device_run.py`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Generator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp._native import PARALLEL_FOR
from accnp.blas_threads import follow
from accnp.compiler.kernel_cache import library_kernel
from accnp.compiler.worker_threads import in_parallel
from accnp.config import config
from accnp.engine.steps import PARALLEL, ControlStep, HostStep, KernelStep, Plan
from accnp.engine.table import Part, launch_table_of, parts_of
from accnp.engine.values import set_pending_task, set_values
from accnp.ir.aval import Aval
from accnp.ir.node import Node, line_of, site_text
from accnp.lazy_imports import imported
from accnp.runtime import buffer as pool
from accnp.runtime import device as devices
from accnp.runtime.buffer import Buffer
from accnp.runtime.device import Device
from accnp.runtime.stream import Stream, default_stream
from accnp.runtime.threads import call_helpers, parallel_calls, parallel_run

if TYPE_CHECKING:
    from collections.abc import Hashable


__all__ = [
    "add_error_note", "annotating_gpu_errors", "copy_between_devices", "copy_buffer", "launch",
    "move_leaves", "operand", "run", "run_callback", "run_host_step", "stream_of", "to_device",
]  # fmt: skip


_NONE: dict[int, Buffer] = {}


def run(
    plan: Plan,
    leaves: Sequence[Buffer],
    tell: Callable[..., None] | None = None,
    result_buffers: dict[int, Buffer] | None = None,
) -> list[Buffer]:
    """Run a plan and return the buffers of its outputs.

    `tell` is called after every step; for a GPU also with times, see `device_run.run`. Steps
    write to the `result_buffers` of slots instead of allocating new ones if they can.
    """
    if plan.device is not None:
        try:
            return _device_run().run(plan, leaves, tell)
        except RuntimeError as error:
            _device_run().add_failure_note(error)
            raise
    if not plan.loaded:
        preload(plan)
    if plan.quick is not None and tell is None and result_buffers is None:
        return plan.quick(leaves)
    slots: list[Any] = [*leaves, *[None] * (plan.n_slots - plan.n_leaves)]
    # While another thread is loading the plan, it has no parts yet and its steps are run instead.
    one_by_one = tell is not None or result_buffers is not None
    for step in plan.steps if one_by_one else plan.parts or plan.steps:
        if type(step) is Part:
            step.run(slots)
            continue
        if type(step) is KernelStep:
            launch(step, slots, plan.fastmath, result_buffers or {})
        elif type(step) is ControlStep:
            imported("accnp.engine.control").run_control(
                step, slots, run, result_buffers=result_buffers or {}
            )
        else:
            run_host_step(step, slots, result_buffers or {})
        if tell is not None:
            tell(step)
        for slot in step.frees:
            slots[slot] = None
    return [slots[s] for s in plan.output_slots]


def launch(
    step: KernelStep,
    slots: list[Any] | dict[int, Any],
    fastmath: bool,
    result_buffers: dict[int, Buffer] = _NONE,
) -> None:
    """Run the kernel of a step, and allocate its buffers unless they are given."""
    kernel = step.kernel or step.load(fastmath)
    for slot, nbytes in step.allocs:
        slots[slot] = result_buffers.get(slot) or pool.empty(nbytes)
    for slot, source, nbytes, over in step.updated_slots:
        if over:
            slots[slot] = slots[source]
        else:
            slots[slot] = fresh = result_buffers.get(slot) or pool.empty(nbytes)
            ctypes.memmove(fresh.ptr, slots[source].ptr, nbytes)
    arguments = [slots[s].ptr + offset for s, offset in step.pointers]
    # If MPI may use the buffers after an error, the extension gets these too.
    pointer_buffers = tuple([slots[s] for s, _ in step.pointers]) if step.text.sends else ()
    if step.text.shares:
        sharing = (PARALLEL_FOR, *call_helpers(step.text.shares - 1))
        ints = step.ints[: -len(sharing)]
        kernel.call(step.extent, step.extent, *arguments, *ints, *sharing, *pointer_buffers)
    elif step.keeps_gil:
        kernel.call_brief(step.extent, step.extent, *arguments, *step.ints)
    elif step.work < PARALLEL or step.extent <= step.grain:
        kernel.call(step.extent, step.stretch, *arguments, *step.ints, *pointer_buffers)
    else:
        parallel_run(kernel, [*arguments, *step.ints], step.extent, step.grain, step.nontemporal)


@functools.cache
def _device_run() -> ModuleType:
    return imported("accnp.engine.device_run")  # loaded with the first GPU


def move_leaves(plan: Plan, nodes: Sequence[Node], buffers: list[Any]) -> list[Any]:
    """Return the buffers of leaves, copied to the device of a plan if they are on another one.

    None, for a leaf that is not computed yet, stays None.
    """
    return (
        _device_run().move_leaves(plan.device, nodes, buffers) if devices.gpu_possible else buffers
    )


def to_device(value: Buffer, device: Device | None) -> Buffer:
    """Return a buffer, copied to a device (None: the CPU) if it is on another one."""
    return _device_run().move_leaves(device, (), [value])[0]


def copy_between_devices(node: Node, ready: Callable[[Node], Buffer]) -> None:
    """Copy the operand of a `device_put` between devices that share no memory.

    The copy is made at once if the operand has been computed, and otherwise by a task.
    """
    (x,) = node.inputs
    target = devices.gpu_among(node.aval.devices)

    def work() -> None:
        set_values([node], [to_device(ready(x), target)])

    if target is not None and isinstance(x.value, Buffer):
        work()
    else:
        set_pending_task([node], default_stream().submit(work))


def copy_buffer(value: Buffer) -> Buffer:
    """Return a copy of a buffer on the same device."""
    if type(value) is Buffer:
        return pool.copy_in(value.view((value.nbytes,), np.uint8))
    return _device_run().copy(value)


def stream_of(plan: Plan) -> Stream:
    """Return the stream to which a plan is submitted if it does not run at once."""
    return default_stream() if plan.device is None else _device_run().stream_of(plan.device)


def preload(plan: Plan) -> None:
    """Load the kernels of a plan in parallel, before its first run, and make its table."""
    plan.loaded = True
    steps: dict[Hashable, KernelStep] = {}
    for step in plan.steps:
        if type(step) is KernelStep and step.kernel is None:
            same = steps.setdefault((step.text.source, step.text.signature), step)
            # Of steps with the same kernel, load the one that needs optimized code most.
            if step.first_tier < same.first_tier:
                steps[step.text.source, step.text.signature] = step
    library = imported("accnp.compiler.library.addresses")
    calls: dict[int, set[str]] = {
        id(s): library.find_library_calls(s.text.source) for s in steps.values()
    }
    # The order of the tasks: library kernels first, because they take longest and other kernels
    # need them; then kernels by decreasing length, because a long one that starts last would leave
    # the other threads idle; last the kernels that wait for the library.
    order = sorted(steps.values(), key=lambda s: (bool(calls[id(s)]), -len(s.text.source)))
    names = sorted({name for called in calls.values() for name in called})
    tasks = [functools.partial(library_kernel, name) for name in names]
    two_tiers = config.background_compilation and config.threads > 1
    tasks += [functools.partial(s.load, plan.fastmath, two_tiers) for s in order]
    in_parallel(tasks)
    plan.launch_table = launch_table_of(plan)
    plan.quick = plan.launch_table and plan.launch_table.run
    plan.parts = [] if plan.launch_table else parts_of(plan)


def run_host_step(
    step: HostStep, slots: list[Any], result_buffers: dict[int, Buffer] = _NONE
) -> None:
    """Call the library function of an op, or its parallel rounds, and store the results.

    Rounds write to the buffer that is given for the result; library functions allocate theirs.
    """
    arrays = [operand(slots, *o) for o in step.operands]
    assert step.op.numpy is not None, step.op
    follow()
    try:
        if step.in_rounds:
            slot = step.results[0][0]
            slots[slot] = _compute_in_rounds(step, arrays, result_buffers.get(slot))
            return
        out = step.op.numpy(*arrays, **step.params)
    except Exception as error:
        if not hasattr(error, "accnp_step"):
            error.accnp_step = step  # type: ignore[attr-defined]  # `add_error_note` adds the user's line
        raise
    for slot, index in step.results:
        value = np.asarray(out if index < 0 else out[index])
        aval = step.avals[max(index, 0)]
        slots[slot] = own_buffer(value, aval, arrays)


def _compute_in_rounds(
    step: HostStep, arrays: Sequence[np.ndarray], result_buffer: Buffer | None
) -> Buffer:
    """Compute an op in rounds, each of which several threads share, and return its result."""
    (aval,) = step.avals
    assert step.op.rounds is not None
    buffer = result_buffer or pool.empty(aval.nbytes)
    out = buffer.view(aval.shape, aval.dtype, writeable=True)
    for work, n, chunk in step.op.rounds(out, *arrays, **step.params):
        parallel_calls(work, n, chunk)
    return buffer


def run_callback(node: Node, arrays: Sequence[np.ndarray]) -> list[Buffer]:
    """Call the function of a recorded callback and return its results as buffers."""
    assert node.op.numpy is not None, node.op
    try:
        out = node.op.numpy(*arrays, **node.params)
    except Exception as error:
        error.add_note(f"in {node.op.user_name}, recorded at {site_text(node)}")
        raise
    return [own_buffer(x, a, arrays) for x, a in zip(out, node.aval, strict=True)]


def add_error_note(error: BaseException, order: Sequence[Node] = ()) -> None:
    """Add a note to an error raised by a plan, with the failed operation and the user's line.

    `order` has the nodes of the pending graph in an eager run. The plan may have been made for
    other nodes of the same structure.
    """
    step: Any = error.__dict__.pop("accnp_step", None)
    if step is None:
        return
    node: Node | None = getattr(step, "node", None)  # kernel launches on the CPU have none
    place: int = getattr(step, "place", -1)
    if node is not None and 0 <= place < len(order) and order[place].op is node.op:
        node = order[place]
    if node is not None and node.site is not None:
        # For a message or a reduction that is part of a collective, the node is the collective.
        error.add_note(f"in {node.op.user_name}, recorded at {site_text(node)}")
        if hasattr(error, "report"):
            error.report(site_text(node))  # type: ignore[attr-defined]


@contextlib.contextmanager
def annotating_gpu_errors(node: Node) -> Generator[None]:
    """Add a note to an error of a GPU with the line that recorded the node that is waited for.

    A GPU reports errors late: the cause may be any work launched since the last wait.
    """
    try:
        yield
    except RuntimeError as error:
        # Results of jitted calls are nodes without a line; their buffers hold it.
        name_and_site = (
            (node.op.user_name, node.site)
            if node.site
            else getattr(node.value, "name_and_site", None)
        )
        name, site = name_and_site or (node.op.user_name, None)
        error.add_note(
            f"the error was reported while waiting for the value of {name}, recorded at "
            f"{line_of(site)}; it may have been caused by any work submitted to the GPU before"
        )
        _device_run().add_failure_note(error)
        raise


def operand(
    slots: list[Any],
    slot: int,
    shape: tuple[int, ...],
    dtype: np.dtype,
    strides: Sequence[int] | None,
    offset: int,
    size: int,
) -> np.ndarray:
    """Return a read-only NumPy view of the buffer of a slot."""
    if strides is None:
        return slots[slot].view(shape, dtype)
    flat = slots[slot].view((size,), dtype)
    return np.lib.stride_tricks.as_strided(
        flat[offset // dtype.itemsize :], shape, strides, writeable=False
    )


def own_buffer(value: np.ndarray, aval: Aval, inputs: Sequence[np.ndarray]) -> Buffer:
    """Return a buffer with the values of a NumPy result.

    The memory of the result is used if it owns it and is large enough, and copied otherwise.
    """
    if value.dtype != aval.dtype or value.shape != aval.shape:
        value = np.broadcast_to(value, aval.shape).astype(aval.dtype)
    fresh = value.flags.c_contiguous and value.flags.owndata and value.nbytes >= 4096
    return pool.wrap(value) if fresh else pool.copy_in(value)
