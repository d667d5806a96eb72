"""What a node holds once it is asked for: a buffer; before, a task that delivers one, or a claim.

In: nodes, and buffers or tasks for them. Out: nodes whose value is never half set, whichever
threads ask for it at once.
"""

from __future__ import annotations

import threading
from _thread import allocate_lock, get_ident
from collections.abc import Iterable, Sequence
from typing import Any

from accnp.forks import at_fork, renewed
from accnp.ir.node import Node
from accnp.runtime.buffer import Buffer, from_scalar
from accnp.runtime.stream import Task

__all__ = [
    "DELETED", "Claim", "at_hand", "claim_among", "claimed", "deliver", "gone", "looking",
    "promise", "traced",
]  # fmt: skip

# Held while pending nodes are looked through, and while values are set and inputs are dropped;
# never while waiting.
looking = renewed(threading.RLock())


class _Deleted:
    """Stands in for the buffer of a donated or deleted array."""


DELETED = _Deleted()


def gone() -> RuntimeError:
    """The error of who asks for the value of such an array."""
    return RuntimeError(
        "Array has been deleted: its buffer was donated or given back; "
        "keep a copy before donating it"
    )


def traced(node: Node) -> RuntimeError:
    """The error of who asks for the value of a node that has none, as only its caller may know."""
    return RuntimeError(f"{node.op.name}: a traced value was asked for; got {node.aval}")


class Claim(Task):
    """Says that a thread is about to compute nodes and overwrites what they are computed from, so
    that no other thread may compute them meanwhile: threads that ask for them wait.

    A thread waits only before it claims anything itself.
    """

    __slots__ = ("lock", "nodes", "owner")

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes, self.owner, self.lock = nodes, get_ident(), allocate_lock()
        self._done = False

    def take(self) -> None:
        """Begin; the caller holds `looking`."""
        self.lock.acquire()
        claimed.add(self)
        for node in self.nodes:
            node.value = self

    def end(self) -> None:
        """The nodes have their values, or tasks; those without, by an error, are free again."""
        try:
            with looking:
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


claimed: set[Claim] = set()  # in force


def claim_among(nodes: Iterable[Node]) -> Claim | None:
    """A claim of another thread on one of some nodes, or None."""
    for node in nodes:
        value = node.value
        if type(value) is Claim:
            return value
    return None


def at_hand(node: Node) -> Buffer | None:
    """A leaf's buffer, or None if it is still being computed."""
    value = node.value
    if isinstance(value, Buffer):
        return value
    if value is None and node.op.name == "literal":
        node.value = from_scalar(node.params["value"], node.aval.dtype)
        return node.value
    if value is DELETED:
        raise gone()
    return None


def deliver(nodes: Sequence[Node], buffers: Iterable[Any]) -> None:
    """Give nodes their values; they need their inputs no more."""
    it = iter(buffers)
    with looking:
        for node in nodes:
            aval = node.aval
            node.value = tuple([next(it) for _ in aval]) if type(aval) is tuple else next(it)
            if node.trace is None or not node.trace.active:
                node.inputs = ()
                node.depth = 0
            else:
                node.trace.kept.append(node)


def promise(nodes: Sequence[Node], task: Task) -> None:
    """Give nodes a task that delivers their values, unless they have got these already."""
    with looking:
        for node in nodes:
            if node.value is None or type(node.value) is Claim:
                node.value = task


def _before_fork() -> None:
    """A child gets values whole."""
    for claim in list(claimed):
        if claim.owner != get_ident():
            claim.wait()


at_fork(lambda: None, before=_before_fork)
