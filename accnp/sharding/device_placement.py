"""Device placement: `device_put`, and the methods and properties of `Array` about devices.

The devices of a CPU share its memory. An array that is put on another CPU device keeps its buffer;
only its aval changes, so that expressions with operands on different devices raise an error when
they are recorded. Copies to and from a GPU start immediately, or as soon as the value is computed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from accnp import dtypes, engine, pytree
from accnp.api.arguments.convert import WITHOUT_VALUE, as_node
from accnp.api.arguments.non_numeric import moves_float0
from accnp.api.arguments.values import node_of
from accnp.array_type import Array, DeviceLike, local_node, wrap
from accnp.errors import api_boundary
from accnp.ir.aval import (
    Devices,
    ShardedDevices,
    install_sharding,
    mesh_sharding,
    on_devices,
    result_devices,
    spans_processes,
)  # fmt: skip
from accnp.ir.node import CONST, EMPTY, LITERAL, Node, literal_of_array
from accnp.ir.op import o
from accnp.ir.trace import state, types_only
from accnp.lazy_imports import imported
from accnp.pytree import PyTree, flatten_arrays
from accnp.runtime import device as devices_module
from accnp.runtime.buffer import Buffer
from accnp.runtime.device import Device, check_has_local_device, devices, gpu_among

__all__ = [
    "METHODS", "PROPERTIES", "beside", "device_put", "is_place", "new_array", "put_node",
    "put_tree", "record_sharded", "with_out_sharding",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")


def put_node(x: Node, where: Devices) -> Node:
    """Return the value on the given devices; None makes it uncommitted."""
    a = x.aval
    if a.devices == where:
        return x
    if spans_processes(a) or getattr(where, "spans_processes", False):
        return _over_processes(x, where)
    if state.abstract is None and devices_module.gpu_possible:
        if engine.needs_copy_between(a.devices, where):
            node = o.device_put(x, devices=where, source=a.devices)
            engine.materialize([node])  # starts the copy now if there is a value
            return node
        if where is not None and isinstance(x.value, Buffer) and x.trace is None:
            value = engine.to_device(x.value, gpu_among(where))
            return Node(CONST, (), EMPTY, on_devices(a, where), value, None, 0, None)
    if x.trace is None and state.abstract is None and type(x.value) is Buffer:
        return Node(CONST, (), EMPTY, on_devices(a, where), x.value, None, 0, None)
    return o.device_put(x, devices=where, source=a.devices)


def _over_processes(x: Node, where: Devices) -> Node:
    """Move shards between processes, or take the shards of this process from a value."""
    if where is None:
        return x  # it stays on its processes
    if isinstance(where, ShardedDevices) and where.spans_processes:
        if types_only():  # batching moves the values of all examples
            return o.device_put(x, devices=where, source=x.aval.devices)
        local = imported("accnp.sharding.process_shards")
        shape = x.aval.shape
        return local.whole_of(local.shard_of(x, where.sharding, shape), where.sharding, shape)
    return put_node(local_node(x, "device_put"), where)


def beside(function: str, x: Node, *others: Node) -> Node:
    """Put a value that was computed on the host on the devices of the operands `others`."""
    return put_node(x, result_devices(function, [n.aval for n in others], x.aval).devices)


def new_array(x: Node, device: Any) -> Array:
    """Return a new Array for a node, on a device if one is given.

    Values of dtype float0, which store no data, are NumPy arrays.
    """
    if x.aval.dtype.kind == "V" and x.aval.dtype == dtypes.float0:
        return np.zeros(x.aval.shape, dtypes.float0)  # type: ignore[return-value]
    if x.op is LITERAL and not state.named:
        engine.ready(x)  # one shared buffer, which compiled calls can use directly
        x = literal_of_array(x)
    return wrap(
        x if device is None else put_node(x, _resolve_devices(device, x.aval.shape, "device_put"))
    )


def record_sharded(function: str, sharding: Any, record: Callable[..., Node], *nodes: Node) -> Node:
    """Record an operation whose result has the sharding that the caller asks for, if any."""
    if sharding is None:
        return record(*nodes)
    shardings = imported("accnp.sharding.out_shardings")  # rarely used
    return shardings.record_as(function, sharding, nodes, record)


def with_out_sharding(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function honour its parameter `out_sharding`, by keyword or position.

    The function itself does not see it: its results are given the sharding that the caller asks
    for, and its operands are moved as that needs.
    """
    code = function.__code__  # type: ignore[attr-defined]
    place = code.co_varnames.index("out_sharding")
    if place >= code.co_argcount:
        place = sys.maxsize  # by keyword only

    @functools.wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        sharding = args[place] if len(args) > place else kwargs.pop("out_sharding", None)
        if sharding is None:
            return function(*args, **kwargs)
        shardings = imported("accnp.sharding.out_shardings")  # rarely used
        return shardings.call_as(function, sharding, args[:place], kwargs)

    return inner


def is_place(x: Any) -> bool:
    """Return whether an object specifies a placement: a device, a sharding, a spec, or None."""
    return x is None or isinstance(x, Device) or hasattr(x, "placed")


def _resolve_devices(place: Any, shape: tuple[int, ...], function: str) -> Devices:
    if not isinstance(place, Device):
        if hasattr(place, "placed"):
            return place.placed(shape, function)
        one = f"devices({place!r})[0]" if isinstance(place, str) else f"one of {devices()}"
        raise ValueError(
            f"{function}: device must be a Device, a Sharding, None, or a tree of those; "
            f"got {place!r}; use {one}"
        )
    if place not in devices(place.platform):
        raise ValueError(f"{function}: unknown device; got {place!r}; use one of {devices()}")
    return check_has_local_device((place,), function)


def put_tree(
    function: str, x: Any, places: Any, seen: Callable[[Any, Node], Any] | None = None
) -> Any:
    """Put the leaves of a tree on the devices of a tree prefix; None leaves them in place.

    `seen`, if given, may replace a placement after it has seen the node that is put there.
    """
    leaves, structure = flatten_arrays(x)
    if is_place(places):
        targets = [places] * len(leaves)
    else:
        targets = pytree.broadcast_prefix(places, x, is_place, f"{function} device")
    nodes = [
        as_node(leaf, function) if type(leaf) in WITHOUT_VALUE else node_of(leaf, function=function)
        for leaf in leaves
    ]
    out = []
    for node, a, target in zip(
        nodes, structure.shown_leaves([x.aval for x in nodes]), targets, strict=True
    ):
        target = target if seen is None else seen(target, node)
        where = None if target is None else _resolve_devices(target, a.shape, function)
        out.append(wrap(node if target is None else put_node(node, where)))
    return structure.unflatten(out)


@moves_float0
@api_boundary
def device_put(
    x: PyTree,
    device: PyTree = None,
    *,
    src: object = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Any:
    """Convert the leaves of a pytree to arrays and put them on a device.

    Shapes and dtypes do not change. Writable NumPy arrays are copied, as by `asarray`.

    Parameters
    ----------
    x : pytree of array_like
        Leaves to transfer.
    device : Device, sharding or pytree, optional
        Target: a device, a sharding (`NamedSharding`, or a `PartitionSpec` over the current mesh),
        or a pytree prefix of these. The default, None, leaves arrays where they are.
    src : object, optional
        Ignored; present for compatibility with JAX.
    donate : bool, optional
        Ignored; present for compatibility with JAX.
    may_alias : bool, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    pytree of Array
        Arrays on the device.

    Raises
    ------
    ValueError
        If the device does not exist, `device` is not a prefix of the pytree, or an axis cannot be
        divided evenly.

    See Also
    --------
    device_get : Copy arrays to NumPy.
    reshard : Change the sharding of arrays.
    devices : List of the devices.

    Notes
    -----
    Arrays that were put on a device are committed to it: operations on them run there, and reject
    operands that were put elsewhere. Other arrays are moved where they are needed.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.device_put(jnp.arange(3.0), jnp.devices()[0])
    >>> (x + 1).device
    CpuDevice(id=0)
    """
    return put_tree("device_put", x, device)


# --- methods and properties of `Array`, installed by `methods.py` ---------------------------------


@api_boundary
def _to_device(self: Array, device: DeviceLike, *, stream: None = None) -> Array:
    """Return the array on a device, with the same shape and dtype.

    Parameters
    ----------
    device : Device or Sharding
        Where to put the array.
    stream : None, optional
        Not supported; present for the array API standard.

    Returns
    -------
    Array
        Array on the device.

    Raises
    ------
    ValueError
        If the device does not exist.
    NotImplementedError
        If `stream` is given.

    See Also
    --------
    device_put : The function, with notes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.arange(2).to_device(jnp.devices()[0]).platform()
    'cpu'
    """
    if stream is not None:
        raise NotImplementedError(
            f"to_device: streams are not supported; got {stream!r}; leave it out"
        )
    return new_array(self._node, device)


@api_boundary
def _unsafe_pointer(self: Array) -> int:
    """Return the address of the elements in memory, whatever their dtype and shape.

    Returns
    -------
    int
        Address of the first element. Do not write to this memory: other arrays may share it.

    Raises
    ------
    TracerArrayConversionError
        If the array is traced.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.arange(2).unsafe_buffer_pointer() != 0
    True
    """
    return self._buffer("array").ptr


@api_boundary
def _addressable(self: Array, index: int) -> Array:
    """Return the part of the array that lies on one of its devices.

    Parameters
    ----------
    index : int
        Position of the device among those of the array.

    Returns
    -------
    Array
        Part of the array, with the same dtype and a part of the shape: the whole array if there is
        one device.

    Raises
    ------
    IndexError
        If there are fewer devices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.arange(2).addressable_data(0)
    Array([0, 1], dtype=int32)
    """
    parts = self.addressable_shards
    if not 0 <= index < len(parts):
        raise IndexError(
            f"addressable_data: this process has {len(parts)} devices; got index {index}; "
            "pass a smaller index"
        )
    return parts[index].data


def _is_addressable(self: Array) -> bool:
    """Return whether this process has all parts of the array."""
    return not spans_processes(self._node.aval)


def _is_replicated(self: Array) -> bool:
    """Return whether every device has the whole array; CPU devices of a process share memory."""
    a = self._node.aval
    return not spans_processes(a) or mesh_sharding(a).is_fully_replicated


def _bytes_on_device(self: Array) -> int:
    """Return the number of bytes of the elements on each device.

    Returns
    -------
    int
        Number of elements, of any shape, times the size of the dtype.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.arange(3).on_device_size_in_bytes()
    12
    """
    return self.nbytes


def _shards() -> Any:
    return imported("accnp.sharding.shards")  # rarely used


install_sharding(lambda aval: _shards().sharding_of_type(aval))


def _sharding(self: Array) -> Any:
    """Sharding of the array: how its values are distributed over devices."""
    return _shards().sharding_of(self)


def _addressable_shards(self: Array) -> list[Any]:
    """Parts of the array, one for each device of this process."""
    return _shards().shards(self)


def _every_part(self: Array) -> list[Any]:
    """Parts of the array, one for each device; those of other processes have no data here."""
    return _shards().shards(self, every=True)


def _format(self: Array) -> Any:
    """Layout of the elements in memory and on devices."""
    layouts = imported("accnp.sharding.layouts")  # rarely used
    return layouts.format_of(self)


def _flat(self: Array) -> Any:
    """Not implemented, as in JAX; use `flatten`."""
    raise NotImplementedError("Array.flat: iterators over elements do not exist; use x.flatten()")


def _device_buffer(self: Array) -> Any:
    """Former name of `addressable_data(0)`."""
    raise AttributeError("Array.device_buffer: a former name; use x.addressable_data(0)")


def _device_buffers(self: Array) -> Any:
    """Former name of `addressable_shards`."""
    raise AttributeError(
        "Array.device_buffers: a former name; use the data of each of x.addressable_shards"
    )


METHODS: dict[str, Callable[..., Any]] = {
    "addressable_data": _addressable,
    "on_device_size_in_bytes": _bytes_on_device,
    "to_device": _to_device,
    "unsafe_buffer_pointer": _unsafe_pointer,
}
PROPERTIES: dict[str, Callable[[Array], Any]] = {
    "addressable_shards": _addressable_shards,
    "device_buffer": _device_buffer,
    "device_buffers": _device_buffers,
    "flat": _flat,
    "format": _format,
    "global_shards": _every_part,
    "is_fully_addressable": _is_addressable,
    "is_fully_replicated": _is_replicated,
    "sharding": _sharding,
}
