"""Putting arrays on devices. In: trees of arrays, devices. Out: the same values, elsewhere.

Devices of the CPU share its memory: an array that is put on another of them has the same buffer,
and is told apart by its type alone, so that what an expression may combine is known when it is
written. To a GPU, and back, values are copied: at once, or as soon as they are computed.
"""

from __future__ import annotations

from typing import Any

from accnp import engine
from accnp.api.arguments.values import node_of
from accnp.array import Array, wrap
from accnp.errors import api_boundary
from accnp.ir.aval import Devices, on_devices
from accnp.ir.node import CONST, EMPTY, Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.pytree import broadcast_prefix, flatten_arrays
from accnp.runtime import device as devices_module
from accnp.runtime.buffer import Buffer
from accnp.runtime.device import Device, devices, place

__all__ = ["device_put", "is_place", "made", "put_node", "put_tree"]


def put_node(x: Node, where: Devices) -> Node:
    """Return the same value on these devices; None binds it to none."""
    a = x.aval
    if a.devices == where:
        return x
    if state.abstract is None and devices_module.reach:
        if engine.apart(a.devices, where):
            node = o.device_put(x, devices=where, source=a.devices)
            engine.materialise([node])  # the copy begins now, if there is something to copy
            return node
        if where is not None and isinstance(x.value, Buffer) and x.trace is None:
            value = engine.brought(x.value, place(where))
            return Node(CONST, (), EMPTY, on_devices(a, where), value, None, 0, None)
    if x.trace is None and state.abstract is None and type(x.value) is Buffer:
        return Node(CONST, (), EMPTY, on_devices(a, where), x.value, None, 0, None)
    return o.device_put(x, devices=where, source=a.devices)


def made(x: Node, device: Any) -> Array:
    """Return a handle on a new value, on a device if one is asked for."""
    return wrap(x if device is None else put_node(x, _where(device, x.aval.shape, "device_put")))


def is_place(x: Any) -> bool:
    """Whether something says where values lie: a device, a sharding, a spec, or None."""
    return x is None or isinstance(x, Device) or hasattr(x, "placed")


def _where(place: Any, shape: tuple[int, ...], function: str) -> Devices:
    if not isinstance(place, Device):
        if hasattr(place, "placed"):
            return place.placed(shape, function)
        raise ValueError(
            f"{function}: device must be a Device, a Sharding, None, or a tree of those; "
            f"got {place!r}; use one of {devices()}"
        )
    if place not in devices(place.platform):
        raise ValueError(
            f"{function}: there is no such device here; got {place!r}; use one of {devices()}"
        )
    return (place,)


def put_tree(function: str, x: Any, places: Any) -> Any:
    """Put the leaves of a tree where a tree prefix says; None leaves them as they are."""
    leaves, structure = flatten_arrays(x)
    if is_place(places):
        targets = [places] * len(leaves)
    else:
        targets = broadcast_prefix(places, x, is_place, f"{function} device")
    nodes = [node_of(leaf, function=function) for leaf in leaves]
    out = []
    for node, a, target in zip(
        nodes, structure.shown_leaves([x.aval for x in nodes]), targets, strict=True
    ):
        where = None if target is None else _where(target, a.shape, function)
        out.append(wrap(node if target is None else put_node(node, where)))
    return structure.unflatten(out)


@api_boundary
def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: bool = False, may_alias: Any = None
) -> Any:
    """Make arrays of a tree's leaves, on a device; shapes and dtypes stay.

    Arrays that were put on a device are bound to it: operations on them work there, and refuse
    operands that were put elsewhere. Arrays that were not go wherever they are needed.

    Args:
        x: a tree of arrays and numbers.
        device: a device, a sharding (`NamedSharding`, or a `PartitionSpec` over the mesh in use),
            or a tree prefix of those; None leaves arrays where they are.
        src: accepted for jax's sake.
        donate: accepted for jax's sake.
        may_alias: accepted for jax's sake.

    Raises:
        ValueError: there is no such device, `device` is no prefix of the tree, or an axis cannot be
            cut evenly.

    Example:
        >>> import accnp as jnp
        >>> x = jnp.device_put(jnp.arange(3.0), jnp.devices()[0])
        >>> (x + 1).device
        CpuDevice(id=0)
    """
    return put_tree("device_put", x, device)
