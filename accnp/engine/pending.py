"""The pending graph above some nodes: which nodes, from which leaves, of which structure; what
of it is to be stored, what may be written over, and on which device.

In: nodes without values. Out: a `Pending`; nothing is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import sub
from sys import getrefcount
from typing import Any

from accnp.config import config
from accnp.forks import imported
from accnp.ir.node import Node
from accnp.runtime.buffer import Buffer
from accnp.runtime.device import Device
from accnp.runtime.device import place as default_place

__all__ = [
    "IN_TWO_LISTS",
    "Pending",
    "apart",
    "by_place",
    "collect",
    "crossings",
    "has_own_buffer",
    "is_kept",
    "lost_leaves",
    "place_of",
    "placed",
    "sorted_order",
    "wanted",
]  # fmt: skip


class Pending:
    """A pending graph: nodes, leaves, structure as a key, facts about each node."""

    __slots__ = ("asked", "key", "leaves", "order", "places", "taken", "uses")

    def __init__(self) -> None:
        self.order: list[Node] = []
        self.leaves: list[Node] = []
        self.key: list[Any] = []
        self.uses: list[int] = []  # how often each node is an input
        self.asked = 0  # how many of the nodes, the first ones, are asked for
        self.taken: set[int] = set()  # leaves that are operands of updates in place
        # Leaves that say where updates write: their values are not part of the key.
        self.places: list[Node] = []


def collect(roots: Sequence[Node]) -> Pending:
    """Number the pending nodes and their leaves as they are met, and spell the structure as a key.

    Consumers come first; a program is made, if it is new, in the order of `sorted_order`.
    """
    found = Pending()
    order, leaves, key, uses = found.order, found.leaves, found.key, found.uses
    place: dict[Node, int] = {}  # of leaves: -1, -2, ...
    place_of = place.get
    for root in roots:
        if root not in place and not _is_leaf(root):
            place[root] = len(order)
            order.append(root)
            uses.append(0)
    found.asked = len(order)
    for node in order:  # which grows meanwhile
        ins = []
        for x in node.inputs:
            at = place_of(x)
            if at is None:
                if x.value is None and (x.form is not None or not _is_leaf(x)):
                    at = len(order)
                    order.append(x)
                    uses.append(1)
                else:
                    at = -1 - len(leaves)
                    leaves.append(x)
                place[x] = at
            elif at >= 0:
                uses[at] += 1
            ins.append(at)
        form = node.form
        if form is None:
            # What transformations know of a mark (a rule, made for one call) is nothing that runs.
            params = () if node.op.kind == "mark" else node.params.items()
            key.append((node.op, *ins, *params, *[x.aval for x in node.inputs]))
            continue
        key.append((form, *ins))
        takes = form.takes
        if takes is not None:
            if ins[takes] < 0:
                found.taken.add(-1 - ins[takes])
            found.places += imported("accnp.compiler.fusion.places").leaves_of_places(node)
    return found


def sorted_order(nodes: Sequence[Node]) -> list[Node]:
    """Pending nodes in an order in which they can be computed."""
    pending = set(nodes)
    order: list[Node] = []
    for root in nodes:
        stack = [root]
        while stack:
            node = stack[-1]
            if node not in pending:
                stack.pop()
                continue
            missing = [x for x in node.inputs if x in pending]
            stack += missing
            if not missing:
                stack.pop()
                pending.discard(node)
                order.append(node)
    return order


def _is_leaf(node: Node) -> bool:
    """Whether a node is an end of the pending graph."""
    kind = node.op.kind
    return node.value is not None or kind == "leaf" or (kind == "item" and _settled(node))


def _settled(node: Node) -> bool:
    """Whether a node that selects one of several results finds them ready, or on their way."""
    whole = node.inputs[0]
    if isinstance(whole.value, tuple):
        node.value = whole.value[node.params["index"]]
    return whole.value is not None


def _references(nodes: list[Node]) -> list[int]:
    return [*map(getrefcount, nodes)]


def wanted(found: Pending) -> tuple[list[Node], tuple[int, ...]]:
    """The nodes to store, and their places: those asked for, those held from outside."""
    order, asked = found.order, found.asked
    held = [*map(sub, _references(order), found.uses)]
    if max(held[asked:], default=0) <= _ALONE:
        return order[:asked], (asked,)
    places = [*range(asked)]
    places += [i for i in range(asked, len(order)) if held[i] > _ALONE and is_kept(found, i)]
    return [order[i] for i in places], tuple(places)


def is_kept(found: Pending, place: int) -> bool:
    """Whether a value that is held outside is stored along the way: that has a cost."""
    order, key = found.order, found.key
    if order[place].op.kind in ("mark", "item", "iota"):
        return False
    while order[place].op.kind == "view":
        place = key[place][1]
        if place < 0:  # a view of what is there already
            return False
    return True


def lost_leaves(found: Pending, leaves: Iterable[int]) -> tuple[int, ...]:
    """Those of some leaves that are no longer visible once the pending graph is computed: results
    are written to their buffers.

    Only what these nodes hold of a leaf may be all there is of it, and of its buffer; a node that
    stays pending (a view, one of several results, one of a derivative) would need it again.
    """
    if any(n.trace is not None or isinstance(n.aval, tuple) for n in found.order):
        return ()
    lost = []
    needed = _needed_later(found)
    for k in sorted(leaves):
        if k in needed:
            continue
        uses = 0
        for node in found.order:
            here = sum([x is found.leaves[k] for x in node.inputs])
            if here and node.op.kind not in ("map", "reduce", "opaque", "assemble", "view"):
                break
            uses += here
        else:
            leaf = found.leaves[k]
            if getrefcount(leaf) - uses == _LEAF_ALONE and has_own_buffer(leaf):
                lost.append(k)
    return tuple(lost)


def _needed_later(found: Pending) -> set[int]:
    """The leaves from which a value may be computed again: one that is held, but not stored (a
    function with a rule of its own marks its result, as relu does)."""
    order, key = found.order, found.key
    held = [*map(sub, _references(order), found.uses)]
    asked = found.asked
    stays = [i for i in range(asked, len(order)) if held[i] > _ALONE and not is_kept(found, i)]
    needed: set[int] = set()
    seen = set(stays)
    for i in stays:  # which grows meanwhile
        for at in key[i][1 : 1 + len(order[i].inputs)]:
            if at < 0:
                needed.add(-1 - at)
            elif at >= asked and at not in seen and not (held[at] > _ALONE and is_kept(found, at)):
                seen.add(at)
                stays.append(at)
    return needed


def has_own_buffer(leaf: Node) -> bool:
    """Whether the values of a leaf lie in memory of the pool that only it refers to."""
    if not isinstance(leaf.value, Buffer) or leaf.op.name == "literal":
        return False
    return leaf.value.pooled and getrefcount(leaf.value) == _BUFFER_ALONE


def by_place(nodes: Sequence[Node]) -> list[list[Node]]:
    """Nodes apart by where their users put them: one plan runs on one device."""
    found: dict[Any, list[Node]] = {}
    for node in nodes:
        found.setdefault(_put_on(node.aval), []).append(node)
    return list(found.values())


def _put_on(aval: Any) -> Device | None:
    """The device where a user put a value, the first of several; None if it may be anywhere."""
    for a in aval if isinstance(aval, tuple) else (aval,):
        if a.devices:
            return a.devices[0]
    return None


def apart(source: Any, devices: Any) -> bool:
    """Whether values must be copied from one place to the other, both named."""
    if source is None or devices is None:
        return False
    return default_place(source) != default_place(devices)


def crossings(nodes: Sequence[Node]) -> list[Node]:
    """Pending nodes, among those that others need, which copy between devices: no plan does."""
    return [
        x
        for x in collect(nodes).order
        if x.op.name == "device_put" and apart(x.params["source"], x.params["devices"])
    ]


def placed(nodes: Sequence[Node]) -> list[Node]:
    """Of nodes, one for each device that users put them on: enough for `place_of`."""
    found = {_put_on(x.aval): x for x in nodes}
    return [x for d, x in found.items() if d is not None]


def place_of(nodes: Sequence[Node], leaves: Sequence[Node] = ()) -> Device | None:
    """The GPU on which nodes are computed, or None for the CPU: where they, or some leaf, were put;
    else on the default device, if users have said which; else where a leaf lies.

    Raises:
        ValueError: they were put on several that share no memory.
    """
    put = {d for d in [_put_on(x.aval) for x in (*nodes, *leaves)] if d is not None}
    if len(put) == 1:
        (device,) = put
        return None if device.platform == "cpu" else device
    if put:
        places = {None if d.platform == "cpu" else d for d in put}
        if len(places) > 1:
            raise ValueError(
                "one program runs on one device: its values were put on several; got "
                f"{', '.join(sorted(map(str, put)))}; move them with device_put before the call"
            )
        return places.pop()
    for x in leaves if config.default_device is None else ():
        found = getattr(x.value, "device", None)
        if found is not None:
            return found
    return default_place(None)


def _measure() -> tuple[int, int, int, int]:
    """References to a node that only the pending graph holds, as `wanted` sees them; to such a leaf
    and to its buffer, as `lost_leaves` does; to a leaf that only two lists hold."""
    found = Pending()
    found.leaves.append(Node(None, (), {}, None, object(), None, 0, None))  # type: ignore[arg-type]
    found.order.append(Node(None, (), {}, None, None, None, 0, None))  # type: ignore[arg-type]
    (alone,) = _references(found.order)
    leaf = found.leaves[0]
    leaf_alone, buffer_alone = getrefcount(leaf), getrefcount(leaf.value)
    del leaf
    used = list(found.leaves)
    return alone, leaf_alone, buffer_alone, getrefcount(found.leaves[len(used) - 1])


_ALONE, _LEAF_ALONE, _BUFFER_ALONE, IN_TWO_LISTS = _measure()
