"""The pending graph above some nodes: in which order, from which leaves, of which structure; what
of it is to be stored, and what may be written over.

In: nodes without values. Out: a `Pending`; nothing is computed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from accnp.ir.node import Node
from accnp.runtime.buffer import Buffer

__all__ = ["Pending", "collect", "has_own_buffer", "lost_leaves", "wanted"]


class Pending:
    """A pending graph: nodes in order, leaves, structure as a key, facts about each node."""

    __slots__ = ("key", "leaves", "order", "shown", "taken", "uses")

    def __init__(self) -> None:
        self.order: list[Node] = []
        self.leaves: list[Node] = []
        self.key: list[Any] = []
        self.uses: list[int] = []  # how often each node is an input
        # Whether it is a view of what is there already: nothing to be saved by storing it.
        self.shown: list[bool] = []
        self.taken: set[int] = set()  # leaves that are operands of updates in place


def collect(roots: Sequence[Node]) -> Pending:
    """Order the pending nodes, number their leaves, and spell the structure as a key."""
    found = Pending()
    order, leaves, key, uses, shown = found.order, found.leaves, found.key, found.uses, found.shown
    place: dict[int, int] = {}  # of leaves: -1, -2, ...
    for root in roots:
        stack = [root]
        while stack:
            node = stack[-1]
            if id(node) in place:
                stack.pop()
                continue
            if node.value is not None or node.op.kind == "leaf" or _settled(node):
                place[id(node)] = -1 - len(leaves)
                leaves.append(node)
                key.append(node.aval)
                stack.pop()
                continue
            ins = []
            for x in node.inputs:
                at = place.get(id(x))
                if at is None:
                    if x.value is None:
                        stack.append(x)
                        continue
                    at = place[id(x)] = -1 - len(leaves)
                    leaves.append(x)
                    key.append(x.aval)
                ins.append(at)
            if stack[-1] is not node:
                continue
            stack.pop()
            place[id(node)] = len(order)
            order.append(node)
            uses.append(0)
            for at in ins:
                if at >= 0:
                    uses[at] += 1
            op = node.op
            if op.takes is not None and ins[op.takes] < 0:
                found.taken.add(-1 - ins[op.takes])
            shown.append(op.kind == "view" and (ins[0] < 0 or shown[ins[0]]))
            key.append((op, *ins, *node.params.items()) if node.params else (op, *ins))
    return found


def _settled(node: Node) -> bool:
    """Whether a node that selects one of several results finds them ready, or on their way."""
    if node.op.name == "item":
        whole = node.inputs[0]
        if isinstance(whole.value, tuple):
            node.value = whole.value[node.params["index"]]
        return whole.value is not None
    return False


def _references(node: Any) -> int:
    return sys.getrefcount(node)


def wanted(found: Pending, roots: Sequence[Node]) -> tuple[list[Node], tuple[int, ...]]:
    """The nodes to store, and their places: those asked for, those held from outside."""
    asked = {id(n) for n in roots}
    places = []
    i = 0
    for node in found.order:
        # Anything else that holds a node here would count, the tuples of enumerate too.
        if id(node) in asked or (
            _references(node) - found.uses[i] > _ALONE
            and not found.shown[i]
            and node.op.kind not in ("mark", "item", "iota")
        ):
            places.append(i)
        i += 1  # noqa: SIM113
    return [found.order[i] for i in places], tuple(places)


def lost_leaves(found: Pending) -> tuple[int, ...]:
    """Leaves that nobody can see any more once the pending graph is computed: updates are made in
    their buffers.

    Only what these nodes hold of a leaf may be all there is of it, and of its buffer; a node that
    stays pending (a view, one of several results, one of a derivative) would need it again.
    """
    if any(n.trace is not None or isinstance(n.aval, tuple) for n in found.order):
        return ()
    lost = []
    for k in sorted(found.taken):
        uses = 0
        for node in found.order:
            here = sum([x is found.leaves[k] for x in node.inputs])
            if here and node.op.kind not in ("map", "reduce", "opaque", "assemble"):
                break
            uses += here
        else:
            if _references(found.leaves[k]) - uses == _LEAF_ALONE and has_own_buffer(
                found.leaves[k]
            ):
                lost.append(k)
    return tuple(lost)


def has_own_buffer(leaf: Node) -> bool:
    """Whether the values of a leaf lie in memory of the pool that nobody else refers to."""
    if type(leaf.value) is not Buffer or leaf.op.name == "literal":
        return False
    return leaf.value.pooled and _references(leaf.value) == _BUFFER_ALONE


def _measure() -> tuple[int, int, int]:
    """References to a node that only the pending graph holds, as `wanted` sees them; to such a leaf
    and to its buffer, as `lost_leaves` does."""
    found = Pending()
    found.leaves.append(Node(None, (), {}, None, object(), None, 0, None))  # type: ignore[arg-type]
    found.order.append(Node(None, (), {}, None, None, None, 0, None))  # type: ignore[arg-type]
    for node in found.order:
        alone = _references(node)
    return alone, _references(found.leaves[0]), _references(found.leaves[0].value)


_ALONE, _LEAF_ALONE, _BUFFER_ALONE = _measure()
