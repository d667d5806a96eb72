"""Conditions on the bodies of control flow that is compiled to one native function.

Input: the plan of a body. Output: the reason why the body cannot be part of a native function, its
kernels and their operands, and the kernels that worker threads share. `native.py` and `bailout.py`
use these functions before and while they write the text of a loop.
"""

from __future__ import annotations

from math import prod

from accnp.config import config
from accnp.engine.steps import LARGE, OTHERS_SHARED, SHARED, ControlStep, HostStep, KernelStep, Plan
from accnp.ir.kernel import LONG_STEP
from accnp.ir.mesh_axis import is_over_mesh
from accnp.lazy_imports import imported
from accnp.primitives.views import contiguous

__all__ = ["is_message", "kernels", "operands", "shared_kernels", "why_not_native"]


def why_not_native(body: Plan, messages: bool = False) -> str:
    """Return why a body cannot be part of a native loop, or "" if it can.

    `messages` says whether the loop can send messages to other processes.
    """
    for inner in body.steps:
        if isinstance(inner, HostStep) and not _is_empty(inner):
            if messages and is_message(inner):
                continue
            what = "calls a Python function" if inner.op.kind == "callback" else "is a library call"
            return f"{inner.op.name} {what}"
        if isinstance(inner, ControlStep):
            return f"{inner.op.name} in it is a loop on the host: {inner.reason}"
        if isinstance(inner, HostStep):
            continue
        if inner.work >= LARGE and inner.extent > inner.grain and config.threads > 1:
            return f"a kernel over 0..{inner.extent} is large enough for several threads"
        # Interrupts can end a kernel in a native loop only if threads share it.
        if inner.work >= LONG_STEP and inner.extent > inner.stretch:
            return (
                f"a kernel over 0..{inner.extent} takes long, and interrupts must be able to end it"
            )
    codes: dict[int, str] = {}
    for inner in kernels(body):
        for (slot, _), token in operands(inner):
            if codes.setdefault(slot, token) != token:
                return "a buffer is used under two types"
    return ""


def shared_kernels(body: Plan) -> set[int]:
    """Return the ids of the kernels of a body that threads share.

    If any kernel is large enough, all kernels above a lower limit are shared too: each thread then
    finds most of its operands in its own cache.
    """
    if config.threads == 1:
        return set()
    candidates = [k for k in kernels(body) if k.extent > 1 and k.work >= OTHERS_SHARED]
    return {id(k) for k in candidates} if any(k.work >= SHARED for k in candidates) else set()


def kernels(plan: Plan) -> list[KernelStep]:
    """Return the kernel steps of a plan."""
    return [s for s in plan.steps if isinstance(s, KernelStep)]


def is_message(step: HostStep) -> bool:
    """Return whether a step is a message to other processes that a native loop can send."""
    if len(step.operands) != 1 or not is_over_mesh(step.params):
        return False
    ((_, shape, dtype, strides, *_),) = step.operands
    sends = imported("accnp.runtime.compiled_messages").can_send  # loaded in programs of processes
    nbytes = prod(shape) * dtype.itemsize
    if strides is not None:  # a view, which may be one part of a buffer
        whole = zip(shape, strides, contiguous(shape), strict=True)
        if any([n > 1 and stride != k * dtype.itemsize for n, stride, k in whole]):
            return False
    return sends(step.op, step.params, nbytes, step.avals[0])


def _is_empty(step: HostStep) -> bool:
    """Return whether all results of a library call are empty; false for callbacks, which have
    effects."""
    if step.op.kind == "callback":
        return False
    return all(a.size == 0 for a in step.avals)


def operands(step: KernelStep) -> list[tuple[tuple[int, int], str]]:
    """Return the pointers of a kernel with their types.

    Pointers to the partial results of a reduction that is not split are omitted: they are
    placeholders that point to another buffer and are never written.
    """
    pairs = list(zip(step.pointers, step.text.signature, strict=False))
    partial = [
        isinstance(p, tuple) and step.pointers[i] == step.pointers[0]
        for i, p in enumerate(step.text.pointers)
    ]
    return [x for i, x in enumerate(pairs) if not (i < len(partial) and partial[i])]
