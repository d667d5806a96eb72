"""Putting arrays on devices. In: trees of arrays, devices. Out: the same values, elsewhere.

The devices of one process share its memory: an array that is put somewhere has the same buffer, and
is told apart by its type alone, so that what an expression may combine is known when it is written.
"""

from __future__ import annotations

from typing import Any

from accnp.api.values import node_of
from accnp.array import Array, wrap
from accnp.ir.aval import Devices, on_devices
from accnp.ir.node import CONST, EMPTY, Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.pytree import broadcast_prefix, tree_flatten
from accnp.runtime.buffer import Buffer
from accnp.runtime.device import Device, devices

__all__ = ["device_put", "made", "put_node"]


def put_node(x: Node, where: Devices) -> Node:
    """Return the same value on these devices; None binds it to none."""
    a = x.aval
    if a.devices == where:
        return x
    if x.trace is None and state.abstract is None and type(x.value) is Buffer:
        return Node(CONST, (), EMPTY, on_devices(a, where), x.value, None, 0, None)
    return o.device_put(x, devices=where, source=a.devices)


def made(x: Node, device: Any) -> Array:
    """Return a handle on a new value, on a device if one is asked for."""
    return wrap(x if device is None else put_node(x, (_checked(device),)))


def _checked(device: Any) -> Device:
    if not isinstance(device, Device):
        raise ValueError(
            f"device_put: device must be a Device, None, or a tree of those; got {device!r}; "
            f"use one of {devices()}"
        )
    if device not in devices(device.platform):
        raise ValueError(
            f"device_put: there is no such device here; got {device!r}; use one of {devices()}"
        )
    return device


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: bool = False, may_alias: Any = None
) -> Any:
    """Make arrays of a tree's leaves, on a device.

    Arrays that were put on a device are bound to it: operations on them work there, and refuse
    operands that were put elsewhere. Arrays that were not go wherever they are needed.

    Args:
        x: a tree of arrays and numbers.
        device: a device, or a tree prefix of devices and None; None leaves arrays where they are.
        src: accepted for jax's sake.
        donate: accepted for jax's sake; nothing is copied.
        may_alias: accepted for jax's sake.

    Raises:
        ValueError: there is no such device, or `device` is no prefix of the tree.

    Example:
        >>> import accnp as jnp
        >>> x = jnp.device_put(jnp.arange(3.0), jnp.devices()[0])
        >>> (x + 1).device
        CpuDevice(id=0)
    """
    leaves, structure = tree_flatten(x)
    if device is None or isinstance(device, Device):
        targets = [device] * len(leaves)
    else:
        targets = broadcast_prefix(device, x, lambda d: d is None, "device_put device")
    nodes = [node_of(leaf, function="device_put") for leaf in leaves]
    return structure.unflatten([made(n, d) for n, d in zip(nodes, targets, strict=True)])
