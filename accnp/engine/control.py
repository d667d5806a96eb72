"""Control flow on the host: run `cond`, `while` and `scan` as Python loops over planned bodies.

This is the fallback for control flow that has no native form (`native.py`), for example because a
body calls Python. Input: a ControlStep and the slots of the enclosing plan. Output: the buffers of
its results. Rows of scanned operands are read in place; rows of stacked results are copied into the
stacked array.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.engine.steps import ControlStep, KernelStep, Plan
from accnp.runtime import buffer as pool
from accnp.runtime.buffer import Buffer

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["Memory", "carried_inputs", "run_control"]

Run = Callable[[Plan, Sequence[Buffer]], list[Buffer]]


def carried_inputs(control: str, params: Params, body: int) -> range:
    """Return the inputs of body number `body` that are carried. The loop owns their buffers."""
    if control == "scan":
        return range(params["num_consts"], params["num_consts"] + params["num_carry"])
    if control == "while" and body == 1:
        first = params["body_nconsts"]
        return range(first, len(params["body_jaxpr"].inputs))
    return range(0)


class _CarryCopier:
    """Copies carried buffers that a body updates in place and that may be visible elsewhere."""

    def __init__(self, body: Plan, first: int, memory: Memory) -> None:
        self.memory = memory
        self.overwritten = [i - first for i in sorted(body.overwritten)]
        fresh = _fresh_slots(body)
        slots = body.output_slots
        self.fresh = [s in fresh and slots.count(s) == 1 for s in slots]
        self.started = False

    def safe(self, carry: Sequence[Buffer]) -> list[Buffer]:
        """Return the carry, with copies of those buffers that may be visible elsewhere."""
        result = list(carry)
        for i in self.overwritten:
            if not (self.started and self.fresh[i]):
                result[i] = self.memory.copy(result[i])
        self.started = True
        return result


def _fresh_slots(plan: Plan) -> set[int]:
    """Return the slots whose buffers kernels of a plan allocate: nothing else refers to them."""
    return {
        s
        for step in plan.steps
        if isinstance(step, KernelStep)
        for s in (*[s for s, _ in step.allocs], *[t[0] for t in step.updated_slots])
    }


class Memory:
    """Operations of loops on buffers of the host. `device_run.py` has those for a GPU."""

    def empty(self, nbytes: int) -> Buffer:
        return pool.empty(nbytes)

    def copy(self, x: Buffer) -> Buffer:
        fresh = self.empty(x.nbytes)
        self.put(fresh, 0, x, x.nbytes)
        return fresh

    def put(self, to: Buffer, at: int, source: Buffer, nbytes: int) -> None:
        """Copy a buffer into another one, to the byte offset `at`."""
        ctypes.memmove(to.ptr + at, source.ptr, nbytes)

    def parts(self, x: Buffer, nbytes: int) -> Callable[[int], Buffer]:
        """Return a function that returns the i-th part of `nbytes` bytes of a buffer."""
        # Each part is a slice of one array over all bytes, which keeps the whole buffer alive.
        whole = x.view((x.nbytes,), np.uint8)
        return lambda i: Buffer(x.ptr + i * nbytes, nbytes, whole[i * nbytes : (i + 1) * nbytes])


_HOST_MEMORY = Memory()


def run_control(
    step: ControlStep,
    slots: list[Any],
    run: Run,
    memory: Memory = _HOST_MEMORY,
    result_buffers: dict[int, Buffer] | None = None,
) -> None:
    """Run one step and put its results into their slots.

    The stacked results of a scan are written to the `result_buffers` of their slots.
    """
    operands = [slots[s] for s in step.operands]
    if step.op.control == "scan":
        outs = _run_scan(step, operands, run, memory, result_buffers)
    else:
        outs = _RUNNERS[step.op.control](step, operands, run, memory)
    for slot, i in step.results:
        slots[slot] = outs[i]


def _run_cond(step: ControlStep, operands: list[Buffer], run: Run, memory: Memory) -> list[Buffer]:
    index = int(operands[0].view((), step.inputs[0].dtype))
    index = min(max(index, 0), len(step.bodies) - 1)
    return _run_body(step.bodies[index], operands[1:], run)


def _run_body(plan: Plan, leaves: Sequence[Buffer], run: Run) -> list[Buffer]:
    return run(plan, [*leaves, *plan.constants])


def _run_while(step: ControlStep, operands: list[Buffer], run: Run, memory: Memory) -> list[Buffer]:
    test, body = step.bodies
    keep = _CarryCopier(body, step.params["body_nconsts"], memory)
    n_test, n_body = step.params["cond_nconsts"], step.params["body_nconsts"]
    test_consts = operands[:n_test]
    body_consts = operands[n_test : n_test + n_body]
    carry = operands[n_test + n_body :]
    flag = np.dtype(bool)
    native = step.bailout if memory is _HOST_MEMORY else None
    while True:
        if native is not None:
            done, carry = native.run([*test_consts, *body_consts, *carry], 0)
            if done < 0:
                return list(carry)
            native = None if native.is_idle(done > 0) else native
            keep.started = False
        elif not _run_body(test, [*test_consts, *carry], run)[0].view((), flag):
            return list(carry)
        carry = keep.safe(carry)
        carry = _run_body(body, [*body_consts, *carry], run)


def _run_scan(
    step: ControlStep,
    operands: list[Buffer],
    run: Run,
    memory: Memory,
    result_buffers: dict[int, Buffer] | None,
) -> list[Buffer]:
    p = step.params
    body = step.bodies[0]
    n_consts, n_carry, length = p["num_consts"], p["num_carry"], p["length"]
    consts = operands[:n_consts]
    carry = operands[n_consts : n_consts + n_carry]
    xs = operands[n_consts + n_carry :]
    sizes = [a.nbytes // length if length else 0 for a in step.inputs[n_consts + n_carry :]]
    into = (
        {i: result_buffers[slot] for slot, i in step.results if slot in result_buffers}
        if result_buffers
        else {}
    )
    ys = [
        into.get(n_carry + k) or memory.empty(max(1, a.nbytes))
        for k, a in enumerate(step.avals[n_carry:])
    ]
    steps = [a.nbytes // length if length else 0 for a in step.avals[n_carry:]]
    rows_of = [memory.parts(x, n) for x, n in zip(xs, sizes, strict=True)]
    keep = _CarryCopier(body, n_consts, memory)
    native = step.bailout if memory is _HOST_MEMORY else None
    done = 0  # completed iterations
    while done < length:
        if native is not None:
            first = done
            done, carry = native.run([*consts, *carry, *xs, *ys], first)
            if done >= length:
                break
            native = None if native.is_idle(done > first) else native
            keep.started = False
        i = length - 1 - done if p["reverse"] else done
        done += 1
        carry = keep.safe(carry)
        rows = [row(i) for row in rows_of]
        outs = _run_body(body, [*consts, *carry, *rows], run)
        carry = outs[:n_carry]
        for y, out, n in zip(ys, outs[n_carry:], steps, strict=True):
            memory.put(y, i * n, out, n)
    # A carry that is an operand or a row of one needs no copy: buffers of results are immutable.
    return [*carry, *ys]


_RUNNERS = {"cond": _run_cond, "while": _run_while}
