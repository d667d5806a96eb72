"""The parts of arrays over several devices, and arrays made of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from accnp.api.arrays.creation import array
from accnp.api.arrays.placement import device_put
from accnp.api.sharding.mesh import NO_MESH, Mesh
from accnp.api.sharding.specs import NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding
from accnp.array import Array
from accnp.errors import api_boundary
from accnp.ir.aval import Aval, Cut
from accnp.runtime.device import Device

__all__ = [
    "Shard",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "sharding_at",
    "sharding_of",
    "sharding_of_type",
    "shards",
]  # fmt: skip


def sharding_of(x: Array) -> Sharding:
    """How an array lies on devices."""
    return sharding_at(x._where())


def sharding_of_type(aval: Aval) -> Sharding:
    """How values of a type lie on devices: on an empty mesh where they may lie anywhere."""
    if aval.devices is not None:
        found = sharding_at(aval.devices)
        if not isinstance(found, NamedSharding) or len(found.spec) >= aval.ndim:
            return found
        spec = (*found.spec, *[None] * (aval.ndim - len(found.spec)))  # one entry for each axis
        return NamedSharding(found.mesh, PartitionSpec(*spec))
    return NamedSharding(NO_MESH, PartitionSpec(*[None] * aval.ndim))


def sharding_at(where: Any) -> Sharding:
    """The sharding that a type's devices mean."""
    if type(where) is Cut:
        return where.sharding
    if len(where) == 1:
        return SingleDeviceSharding(where[0])
    grid = np.empty(len(where), object)
    grid[:] = where
    return NamedSharding(Mesh(grid, ("rows",)), PartitionSpec("rows"))


class Shard:
    """The part of an array that one device holds.

    Args:
        device: which one.
        sharding: how the array lies on devices.
        global_shape: the shape of the whole.
        data: the part, or a function that gives it.

    Made by `addressable_shards`; of the array's dtype. No errors: `data` may be None.

    Example:
        >>> import accnp as jnp
        >>> jnp.arange(3).addressable_shards[0].index
        (slice(None, None, None),)
    """

    __slots__ = ("_data", "device", "global_shape", "index", "replica_id", "sharding")

    def __init__(
        self, device: Device, sharding: Sharding, global_shape: Sequence[int], data: Any = None
    ) -> None:
        self.device, self.sharding, self.global_shape = device, sharding, tuple(global_shape)
        indices = dict(sharding.devices_indices_map(self.global_shape))
        self.index = indices[device]
        alike = [d for d, index in indices.items() if index == self.index]
        self.replica_id = alike.index(device)
        self._data = data

    @property
    def data(self) -> Any:
        """The values, on the device."""
        if callable(self._data):
            self._data = self._data(self)
        return self._data

    def of_keys(self, data: Any) -> Shard:
        """The part of the keys whose words this one is of."""
        return Shard(self.device, self.sharding, self.global_shape[:-1], data)

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
            f"data={self.data})"
        )


def shards(x: Array) -> list[Shard]:
    """The parts of an array, one for each of its devices."""
    sharding = sharding_of(x)

    def part(shard: Shard) -> Array:
        return device_put(x[shard.index], shard.device)

    return [Shard(d, sharding, x.shape, part) for d in sharding.devices_indices_map(x.shape)]


@api_boundary
def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[..., Any],
    dtype: Any = None,
) -> Array:
    """Make an array of parts that a function gives.

    Args:
        shape: of the whole.
        sharding: how it lies on devices.
        data_callback: called with the slices of each part; returns its values.
        dtype: of the result; that of the parts by default.

    Raises:
        ValueError: a part has another shape than its slices.

    Example:
        >>> import accnp as jnp, numpy as np
        >>> s = jnp.NamedSharding(jnp.make_mesh((1,), ("x",)), jnp.P("x"))
        >>> jnp.make_array_from_callback((3,), s, lambda i: np.arange(3.0, dtype=np.float32)[i])
        Array([0., 1., 2.], dtype=float32)
    """
    function = "make_array_from_callback"
    parts: dict[str, Any] = {}
    indices = list(sharding.devices_indices_map(tuple(shape)).values())
    for index in indices:
        if str(index) not in parts:
            parts[str(index)] = data_callback(index)
    return _joined(function, shape, sharding, indices, [parts[str(i)] for i in indices], dtype)


def _joined(
    function: str, shape: Sequence[int], sharding: Sharding, indices: Any, parts: Any, dtype: Any
) -> Array:
    values = [np.asarray(p) for p in parts]
    need = sharding.shard_shape(tuple(shape))
    for v in values:
        if v.shape != need:
            raise ValueError(
                f"{function}: parts of {tuple(shape)} must have shape {need}; got {v.shape}; "
                "cut them so"
            )
    if dtype is None:
        dtype = values[0].dtype if values else None
    whole = np.empty(tuple(shape), dtype)
    for index, v in zip(indices, values, strict=True):
        whole[index] = v
    return device_put(array(whole), sharding)


@api_boundary
def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Any], *, dtype: Any = None
) -> Array:
    """Make an array of its parts, one for each device, in the order of the devices.

    Args:
        shape: of the whole.
        sharding: how it lies on devices.
        arrays: the parts.
        dtype: of the result; that of the parts by default.

    Raises:
        ValueError: another number of parts than devices, or a part of another shape.

    Example:
        >>> import accnp as jnp
        >>> s = jnp.NamedSharding(jnp.make_mesh((1,), ("x",)), jnp.P("x"))
        >>> jnp.make_array_from_single_device_arrays((3,), s, [jnp.arange(3)])
        Array([0, 1, 2], dtype=int32)
    """
    function = "make_array_from_single_device_arrays"
    found = sharding.devices_indices_map(tuple(shape))
    if len(arrays) != len(found):
        raise ValueError(
            f"{function}: there must be a part for each device; got {len(arrays)} arrays for "
            f"{len(found)} devices; pass one for each"
        )
    by_device = {next(iter(x.devices())): x for x in arrays if isinstance(x, Array)}
    if len(by_device) == len(found) and by_device.keys() == found.keys():
        arrays = [by_device[d] for d in found]
    return _joined(function, shape, sharding, list(found.values()), arrays, dtype)


@api_boundary
def make_array_from_process_local_data(
    sharding: Sharding, local_data: Any, global_shape: Sequence[int] | None = None
) -> Array:
    """Make an array of the data of this process, which is all of it.

    Args:
        sharding: how it lies on devices.
        local_data: the values, whose dtype stays.
        global_shape: the shape of the whole, which is that of the data.

    Raises:
        ValueError: the shapes differ.

    Example:
        >>> import accnp as jnp, numpy as np
        >>> s = jnp.NamedSharding(jnp.make_mesh((1,), ("x",)), jnp.P("x"))
        >>> jnp.make_array_from_process_local_data(s, np.arange(3, dtype=np.int32))
        Array([0, 1, 2], dtype=int32)
    """
    if not isinstance(sharding, Sharding):
        raise ValueError(
            f"make_array_from_process_local_data: a sharding is needed; got {sharding!r}; pass one"
        )
    if not hasattr(local_data, "shape"):
        raise TypeError(
            f"make_array_from_process_local_data: an array is needed; got {local_data!r} of type "
            f"{type(local_data).__name__}; pass np.asarray of it"
        )
    data = np.asarray(local_data)
    if global_shape is not None:
        if not hasattr(global_shape, "__iter__"):
            raise ValueError(
                "make_array_from_process_local_data: global_shape must be a shape; got "
                f"{global_shape!r}; pass that of the data, or leave it out"
            )
        want = tuple(n if g is None else g for g, n in zip(global_shape, data.shape, strict=False))
        if want != data.shape or prod(want) != data.size:
            raise ValueError(
                "make_array_from_process_local_data: one process holds the whole; got data of "
                f"shape {data.shape} for global_shape {tuple(global_shape)}; pass all of it"
            )
    return device_put(array(data), sharding)
