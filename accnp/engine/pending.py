"""Collection and analysis of pending graphs.

Input: nodes without values. Output: a `Pending` with the nodes and leaves that they depend on and
the structure of the graph as a cache key; which nodes must be stored, which leaves may be
overwritten, and which device the graph runs on. Nothing is computed here; `engine/__init__.py`
uses the results to find or make a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import sub
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from accnp.config import config
from accnp.ir.aval import Aval, Devices, result_avals
from accnp.ir.node import LITERAL, Node
from accnp.ir.op import as_tuple
from accnp.lazy_imports import imported
from accnp.runtime.buffer import Buffer
from accnp.runtime.device import Device, gpu_among

if TYPE_CHECKING:
    from collections.abc import Hashable


__all__ = [
    "IN_TWO_LISTS", "Pending", "collect", "computing_device", "device_copies", "group_by_device",
    "has_own_buffer", "is_kept", "needs_copy_between", "nodes_to_store", "one_node_per_device",
    "sorted_order", "unreferenced_leaves",
]  # fmt: skip


class Pending:
    """A pending graph: nodes, leaves, structure as a cache key, and facts about each node."""

    __slots__ = ("key", "leaves", "n_requested", "order", "places", "updated_leaves", "uses")

    def __init__(self) -> None:
        self.order: list[Node] = []
        self.leaves: list[Node] = []
        self.key: list[Any] = []
        self.uses: list[int] = []  # how often each node is an input
        self.n_requested = 0  # the number of requested nodes, which are first in `order`
        self.updated_leaves: set[int] = set()  # leaves that are operands of updates in place
        # Leaves with the indices that updates write to. Their values are not part of the key.
        self.places: list[Node] = []


def collect(roots: Sequence[Node]) -> Pending:
    """Number the pending nodes and their leaves in the order of the search, and make the key.

    Consumers come before their inputs. A new program is built in the order of `sorted_order`.
    """
    pending_graph = Pending()
    order = pending_graph.order
    leaves = pending_graph.leaves
    key = pending_graph.key
    uses = pending_graph.uses
    place: dict[Node, int] = {}  # of leaves: -1, -2, ...
    place_of = place.get
    for root in roots:
        if root not in place and not _is_leaf(root):
            place[root] = len(order)
            order.append(root)
            uses.append(0)
    pending_graph.n_requested = len(order)
    for node in order:  # which grows meanwhile
        ins: list[int] = []
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
            # The parameters of a mark (a rule made for one call) do not affect what is computed.
            params = () if node.op.kind == "mark" else node.params.items()
            key.append((node.op, *ins, *params, *[x.aval for x in node.inputs]))
            continue
        key.append((form, *ins))
        updated = form.updated_operand
        if updated is not None:
            if ins[updated] < 0:
                pending_graph.updated_leaves.add(-1 - ins[updated])
            pending_graph.places += imported(
                "accnp.compiler.fusion.update_regions"
            ).leaves_of_places(node)
    return pending_graph


def sorted_order(nodes: Sequence[Node]) -> list[Node]:
    """Return pending nodes in topological order: inputs before consumers."""
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
    """Return whether a node is a leaf of the pending graph."""
    kind = node.op.kind
    return node.value is not None or kind == "leaf" or (kind == "item" and _is_item_settled(node))


def _is_item_settled(node: Node) -> bool:
    """Return whether the node whose result an item node selects has its values or a task for
    them."""
    value: Any = node.inputs[0].value
    if isinstance(value, tuple):
        node.value = as_tuple(value)[node.params["index"]]
    return value is not None


def _references(nodes: list[Node]) -> list[int]:
    return [*map(getrefcount, nodes)]


def nodes_to_store(pending_graph: Pending) -> tuple[list[Node], tuple[int, ...]]:
    """Return the nodes to store, and their positions in `order`: requested nodes, and nodes that
    objects outside the graph refer to."""
    order, n_requested = pending_graph.order, pending_graph.n_requested
    outside_counts = [*map(sub, _references(order), pending_graph.uses)]
    if max(outside_counts[n_requested:], default=0) <= _UNSHARED_NODE:
        return order[:n_requested], (n_requested,)
    places = [*range(n_requested)]
    places += [
        i
        for i in range(n_requested, len(order))
        if outside_counts[i] > _UNSHARED_NODE and is_kept(pending_graph, i)
    ]
    return [order[i] for i in places], tuple(places)


def is_kept(pending_graph: Pending, place: int) -> bool:
    """Return whether a value that is referenced outside the graph is worth storing."""
    order, key = pending_graph.order, pending_graph.key
    if order[place].op.kind in ("mark", "item", "iota"):
        return False
    while order[place].op.kind == "view":
        place = key[place][1]
        if place < 0:  # a view of a leaf
            return False
    return True


def unreferenced_leaves(pending_graph: Pending, leaves: Iterable[int]) -> tuple[int, ...]:
    """Return those of some leaves that are not visible once the pending graph has been computed.

    Results may overwrite their buffers. Only nodes of the graph may refer to such a leaf and to its
    buffer, and no node that stays pending (a view, one of several results, one of a derivative) may
    need it later.
    """
    if any(n.trace is not None or isinstance(n.aval, tuple) for n in pending_graph.order):
        return ()
    lost: list[int] = []
    needed = _needed_later(pending_graph)
    for k in sorted(leaves):
        if k in needed:
            continue
        uses = 0
        for node in pending_graph.order:
            here = sum([x is pending_graph.leaves[k] for x in node.inputs])
            if here and node.op.kind not in ("map", "reduce", "opaque", "assemble", "view"):
                break
            uses += here
        else:
            leaf = pending_graph.leaves[k]
            if getrefcount(leaf) - uses == _UNSHARED_LEAF and has_own_buffer(leaf):
                lost.append(k)
    return tuple(lost)


def _needed_later(pending_graph: Pending) -> set[int]:
    """Return the leaves that are needed to compute values which are referenced but not stored.

    For example, a function with a custom derivative rule, such as relu, marks its result.
    """
    order, key = pending_graph.order, pending_graph.key
    outside_counts = [*map(sub, _references(order), pending_graph.uses)]
    n_requested = pending_graph.n_requested
    stays = [
        i
        for i in range(n_requested, len(order))
        if outside_counts[i] > _UNSHARED_NODE and not is_kept(pending_graph, i)
    ]
    needed: set[int] = set()
    seen = set(stays)
    for i in stays:  # which grows meanwhile
        for at in key[i][1 : 1 + len(order[i].inputs)]:
            if at < 0:
                needed.add(-1 - at)
            elif (
                at >= n_requested
                and at not in seen
                and not (outside_counts[at] > _UNSHARED_NODE and is_kept(pending_graph, at))
            ):
                seen.add(at)
                stays.append(at)
    return needed


def has_own_buffer(leaf: Node) -> bool:
    """Return whether a leaf holds a pooled buffer to which nothing else refers."""
    if not isinstance(leaf.value, Buffer) or leaf.op is LITERAL:
        return False
    return leaf.value.pooled and getrefcount(leaf.value) == _UNSHARED_BUFFER


def group_by_device(nodes: Sequence[Node]) -> list[list[Node]]:
    """Group nodes by the device that users placed them on, since a plan runs on one device."""
    groups: dict[Hashable, list[Node]] = {}
    for node in nodes:
        groups.setdefault(_committed_device(node.aval), []).append(node)
    return list(groups.values())


def _committed_device(aval: Aval | tuple[Aval, ...]) -> Device | None:
    """Return the (first) device that a user placed a value on, or None if it is not committed."""
    for a in result_avals(aval):
        if a.devices:
            return a.devices[0]
    return None


def needs_copy_between(source: Devices, devices: Devices) -> bool:
    """Return whether values must be copied between two placements; false if either is
    unspecified."""
    if source is None or devices is None:
        return False
    return gpu_among(source) != gpu_among(devices)


def device_copies(nodes: Sequence[Node]) -> list[Node]:
    """Return the pending nodes, among the inputs of some nodes, that copy between devices.

    Such copies are not part of a plan.
    """
    return [
        x
        for x in collect(nodes).order
        if x.op.places and needs_copy_between(x.params.get("source"), x.params.get("devices"))
    ]


def one_node_per_device(nodes: Sequence[Node]) -> list[Node]:
    """Return one node for each device that users placed nodes on, for `computing_device`."""
    by_device = {_committed_device(x.aval): x for x in nodes}
    return [x for d, x in by_device.items() if d is not None]


def computing_device(nodes: Sequence[Node], leaves: Sequence[Node] = ()) -> Device | None:
    """Return the GPU on which nodes are computed, or None for the CPU.

    This is the device that users placed them or a leaf on; otherwise the default device, if a user
    has set one; otherwise the device of a leaf.

    Raises:
        ValueError: they were placed on several devices that share no memory.
    """
    put = {d for d in [_committed_device(x.aval) for x in (*nodes, *leaves)] if d is not None}
    if len(put) == 1:
        (device,) = put
        return None if device.platform == "cpu" else device
    if put:
        places = {None if d.platform == "cpu" else d for d in put}
        if len(places) > 1:
            raise ValueError(
                "one program runs on one device, but its values are on several; got "
                f"{', '.join(sorted(map(str, put)))}; move them with device_put before the call"
            )
        return places.pop()
    for x in leaves if config.default_device is None else ():
        own_device = getattr(x.value, "device", None)
        if own_device is not None:
            return own_device
    return gpu_among(None)


def _measure() -> tuple[int, int, int, int]:
    """Measure reference counts of objects that only the pending graph refers to.

    Returns the counts for a node as `nodes_to_store` sees it, for a leaf and for its buffer as
    `unreferenced_leaves` sees them, and for a leaf that two lists refer to.
    """
    pending_graph = Pending()
    pending_graph.leaves.append(Node(None, (), {}, None, object(), None, 0, None))  # type: ignore[arg-type]
    pending_graph.order.append(Node(None, (), {}, None, None, None, 0, None))  # type: ignore[arg-type]
    (alone,) = _references(pending_graph.order)
    leaf = pending_graph.leaves[0]
    leaf_alone, buffer_alone = getrefcount(leaf), getrefcount(leaf.value)
    del leaf
    used = list(pending_graph.leaves)
    return alone, leaf_alone, buffer_alone, getrefcount(pending_graph.leaves[len(used) - 1])


_UNSHARED_NODE, _UNSHARED_LEAF, _UNSHARED_BUFFER, IN_TWO_LISTS = _measure()
