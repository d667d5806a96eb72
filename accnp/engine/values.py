"""Thread-safe access to the values of nodes.

The attribute `Node.value` has one of five states:

- None: the node is pending, that is, it has not been computed yet.
- A `Claim`: a thread is computing the node with a plan that overwrites its operands.
- A `Task`: a submitted task will set the value.
- A `Buffer`, or a tuple of buffers for an operation with several results: the node is computed.
- `DELETED`: the buffer was donated to a jitted call or deleted by the user. The node never gets
  another value, and a request of its value raises RuntimeError.

Only the engine sets values. It uses `set_values` for results, `set_pending_task` when it submits a
task, and `Claim.take` and `Claim.end`. It stores `DELETED` itself when an array is donated or
deleted. All of these hold `value_lock`, so other threads never see a state in between.
"""

from __future__ import annotations

import threading
from _thread import allocate_lock, get_ident
from collections.abc import Iterable, Sequence
from typing import Any

from accnp.forks import at_fork, renewed
from accnp.ir.aval import result_avals
from accnp.ir.node import LITERAL, Node
from accnp.runtime.buffer import Buffer, from_scalar
from accnp.runtime.stream import Task

__all__ = [
    "DELETED", "Claim", "available_buffer", "claimed", "find_claim", "make_deleted_error",
    "make_traced_error", "set_pending_task", "set_values", "value_lock",
]  # fmt: skip

# Held while pending graphs are traversed, and while values are set and inputs are dropped; never
# held while waiting.
value_lock = renewed(threading.RLock())


class _Deleted:
    """The class of `DELETED`, the value of the node of a donated or deleted array."""


DELETED = _Deleted()


def make_deleted_error() -> RuntimeError:
    """Return the error for a request of the value of a deleted array."""
    return RuntimeError(
        "Array has been deleted: its buffer was donated or freed; make a copy before donating it"
    )


def make_traced_error(node: Node) -> RuntimeError:
    """Return the error for a request of the value of a traced node, which has none."""
    return RuntimeError(f"{node.op.name}: a traced array has no value; got {node.aval}")


class Claim(Task):
    """Marks nodes that a thread is computing by a plan that overwrites their operands.

    Other threads must not compute these nodes meanwhile. If they request them, they wait. To
    prevent deadlocks, a thread waits only while it has no claim itself.
    """

    __slots__ = ("lock", "nodes", "owner")

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes, self.owner, self.lock = nodes, get_ident(), allocate_lock()
        self._done = False

    def take(self) -> None:
        """Start the claim. The caller holds `value_lock`."""
        self.lock.acquire()
        claimed.add(self)
        for node in self.nodes:
            node.value = self

    def end(self) -> None:
        """End the claim. Nodes without a value or task, because of an error, are pending again."""
        try:
            with value_lock:
                for node in self.nodes:
                    if node.value is self:
                        node.value = None
        finally:
            claimed.discard(self)
            self.nodes = ()
            if self.lock.locked():
                self.lock.release()

    def wait(self) -> None:
        if self.owner == get_ident():
            raise RuntimeError(
                "a callback uses an array that is computed from the result of the callback; pass "
                "an array that does not depend on it"
            )
        with self.lock:
            return


claimed: set[Claim] = set()  # active claims


def find_claim(nodes: Iterable[Node]) -> Claim | None:
    """Return the claim on one of the nodes, or None."""
    for node in nodes:
        value = node.value
        if type(value) is Claim:
            return value
    return None


def available_buffer(node: Node) -> Buffer | None:
    """Return the buffer of a leaf, or None if it is still being computed."""
    value = node.value
    if isinstance(value, Buffer):
        return value
    if value is None and node.op is LITERAL:
        node.value = from_scalar(node.params["value"], node.aval.dtype)
        return node.value
    if value is DELETED:
        raise make_deleted_error()
    return None


def set_values(nodes: Sequence[Node], buffers: Iterable[Any]) -> None:
    """Set the values of nodes, and drop their inputs, which are no longer needed."""
    remaining = iter(buffers)
    with value_lock:
        for node in nodes:
            several = type(node.aval) is tuple
            values = [next(remaining) for _ in result_avals(node.aval)]
            node.value = tuple(values) if several else values[0]
            trace = node.trace
            # The derivative that recorded a node may have ended within one that differentiates it.
            while trace is not None and not trace.active:
                trace = trace.parent
            if trace is None:
                node.inputs = ()
                node.depth = 0
            else:
                trace.computed_nodes.append(node)


def set_pending_task(nodes: Sequence[Node], task: Task) -> None:
    """Store the task that delivers the values of nodes, in nodes that have no value yet."""
    with value_lock:
        for node in nodes:
            if node.value is None or type(node.value) is Claim:
                node.value = task


def _before_fork() -> None:
    """Wait for the claims of other threads, which do not exist in the child process."""
    for claim in list(claimed):
        if claim.owner != get_ident():
            claim.wait()


at_fork(lambda: None, before=_before_fork)
