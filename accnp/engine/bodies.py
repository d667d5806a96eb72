"""What is asked of the bodies of loops that are to be one native function.

In: the plan of a body. Out: the reason why it can be no part of one; its kernels, their operands,
and which of them threads share.
"""

from __future__ import annotations

from accnp.config import config
from accnp.engine.steps import BESIDE, LARGE, SHARED, ControlStep, HostStep, KernelStep, Plan

__all__ = ["kernels", "obstacle", "operands", "shared"]


def obstacle(body: Plan) -> str:
    """Why a body cannot be a part of a native loop; "" if it can."""
    for inner in body.steps:
        if isinstance(inner, HostStep) and not _nothing(inner):
            what = "calls a Python function" if inner.op.kind == "callback" else "is a library call"
            return f"{inner.op.name} {what}"
        if isinstance(inner, ControlStep):
            return f"{inner.op.name} in it is a loop on the host: {inner.reason}"
        if isinstance(inner, HostStep):
            continue
        if inner.work >= LARGE and inner.extent > inner.grain and config.threads > 1:
            return f"a kernel over 0..{inner.extent} is large enough for several threads"
    codes: dict[int, str] = {}
    for inner in kernels(body):
        for (slot, _), token in operands(inner):
            if codes.setdefault(slot, token) != token:
                return "a buffer is used under two types"
    return ""


def shared(body: Plan) -> set[int]:
    """The ids of those kernels of a body that threads share: none, or all of some size, since each
    thread then finds most of what it reads in its own cache."""
    if config.threads == 1:
        return set()
    found = [k for k in kernels(body) if k.extent > 1 and k.work >= BESIDE]
    return {id(k) for k in found} if any(k.work >= SHARED for k in found) else set()


def kernels(plan: Plan) -> list[KernelStep]:
    """The kernel steps of a plan."""
    return [s for s in plan.steps if isinstance(s, KernelStep)]


def _nothing(step: HostStep) -> bool:
    """Whether a library call computes no element at all, and is no callback."""
    if step.op.kind == "callback":
        return False
    avals = step.aval if isinstance(step.aval, tuple) else (step.aval,)
    return all(a.size == 0 for a in avals)


def operands(step: KernelStep) -> list[tuple[tuple[int, int], str]]:
    """The pointers of a kernel and their types, without those to partial results of a fold that
    has none: another buffer stands there, which is never written."""
    pairs = list(zip(step.pointers, step.text.signature, strict=False))
    partial = [
        isinstance(p, tuple) and step.pointers[i] == step.pointers[0]
        for i, p in enumerate(step.text.pointers)
    ]
    return [x for i, x in enumerate(pairs) if not (i < len(partial) and partial[i])]
