"""Shards of arrays that are distributed over devices: access to them, and arrays made from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from accnp.api.arguments.convert import numpy_node
from accnp.array_type import Array, ArrayLike, from_numpy, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.aval import Aval, ShardedDevices, spans_processes
from accnp.ir.node import Node
from accnp.lazy_imports import imported
from accnp.primitives.shards import local_of
from accnp.runtime.device import Device, process_index
from accnp.sharding.device_placement import device_put, new_array, put_node
from accnp.sharding.meshes import NO_MESH, Mesh
from accnp.sharding.partition_specs import (
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
)
from accnp.sharding.process_shards import whole_of

__all__ = [
    "Shard", "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays", "sharding_at", "sharding_of", "sharding_of_type",
    "shards",
]  # fmt: skip


def sharding_of(x: Array) -> Sharding:
    """How an array lies on devices."""
    return sharding_at(x._devices())


def sharding_of_type(aval: Aval) -> Sharding:
    """How values of a type lie on devices: on an empty mesh where they may lie anywhere."""
    if aval.devices is not None:
        sharding = sharding_at(aval.devices)
        return sharding.of_rank(aval.ndim) if isinstance(sharding, NamedSharding) else sharding
    return NamedSharding(NO_MESH, PartitionSpec(*[None] * aval.ndim))


def sharding_at(where: Any) -> Sharding:
    """The sharding that a type's devices mean."""
    if type(where) is ShardedDevices:
        assert isinstance(where.sharding, Sharding)
        return where.sharding
    if len(where) == 1:
        return SingleDeviceSharding(where[0])
    grid = np.empty(len(where), object)
    grid[:] = where
    return NamedSharding(Mesh(grid, ("rows",)), PartitionSpec("rows"))


class Shard:
    """Part of an array that one device holds.

    The elements of `Array.addressable_shards`.

    Parameters
    ----------
    device : Device
        Device that holds the part.
    sharding : Sharding
        Layout of the whole array over devices.
    global_shape : sequence of int
        Lengths of the axes of the whole array.
    data : Array or callable, optional
        The part, of the dtype of the array, or a function that returns it.

    Examples
    --------
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


def shards(x: Array, every: bool = False) -> list[Shard]:
    """The parts of an array, one for each of its devices that belongs to this process, or for all
    of them."""
    sharding = sharding_of(x)
    if spans_processes(x._node.aval):
        parts = []
        for d in sharding.devices_indices_map(x.shape):
            here = d.process_index == process_index()
            if here or every:
                data = device_put(wrap(local_of(x._node)), d) if here else None
                parts.append(Shard(d, sharding, x.shape, data))
        return parts

    def part(shard: Shard) -> Array:
        if not isinstance(sharding, NamedSharding):
            return device_put(x[shard.index], shard.device)
        # Not a slice of the array: along an axis that is divided, it would need messages.
        values = np.asarray(x)[shard.index]
        return device_put(from_numpy(values, x.weak_type, copy=False), shard.device)

    return [Shard(d, sharding, x.shape, part) for d in sharding.devices_indices_map(x.shape)]


@api_boundary
def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[..., Any],
    dtype: DTypeLike | None = None,
) -> Array:
    """Make an array from parts that a function returns.

    Parameters
    ----------
    shape : sequence of int
        Lengths of the axes of the whole array.
    {sharding}
    data_callback : callable
        Function of the index of a part, a tuple of slices, that returns its values.
    dtype : dtype_like, optional
        Dtype of the result. The default is that of the parts.

    Returns
    -------
    Array
        Array over the devices of the sharding.

    Raises
    ------
    ValueError
        If a part has another shape than its slices.

    See Also
    --------
    make_array_from_single_device_arrays : Make an array from its parts.
    device_put : Distribute an array.

    Examples
    --------
    >>> import accnp as jnp, numpy as np
    >>> s = jnp.NamedSharding(jnp.make_mesh((1,), ("x",)), jnp.P("x"))
    >>> jnp.make_array_from_callback((3,), s, lambda i: np.arange(3.0, dtype=np.float32)[i])
    Array([0., 1., 2.], dtype=float32)
    """
    function = "make_array_from_callback"
    parts: dict[str, Any] = {}
    if not sharding.is_fully_addressable:
        index_by_device = sharding.addressable_devices_indices_map(tuple(shape))
        return _of_shards(
            function, shape, sharding, [data_callback(i) for i in index_by_device.values()], dtype
        )
    indices = list(sharding.devices_indices_map(tuple(shape)).values())
    for index in indices:
        if str(index) not in parts:
            parts[str(index)] = data_callback(index)
    return _join_parts(function, shape, sharding, indices, [parts[str(i)] for i in indices], dtype)


def _copy_to_node(values: np.ndarray) -> Node:
    return numpy_node(values, "jnp.array", copy=True)


def _of_shards(
    function: str, shape: Sequence[int], sharding: Any, parts: Sequence[Any], dtype: Any
) -> Array:
    """The array over several processes of which this one has a part."""
    if len(parts) != 1:
        raise ValueError(
            f"{function}: this process has {len(sharding.addressable_devices)} of the devices; got "
            f"{len(parts)} parts; pass one for each"
        )
    need = sharding.shard_shape(tuple(shape))
    part = (
        parts[0]
        if isinstance(parts[0], Array)
        else new_array(_copy_to_node(np.asarray(parts[0])), None)
    )
    if part.shape != need:
        raise ValueError(
            f"{function}: parts of {tuple(shape)} must have shape {need}; got {part.shape}; "
            "cut them so"
        )
    if dtype is not None:
        part = part.astype(dtype)
    return wrap(whole_of(put_node(part._node, None), sharding, tuple(shape)))


def _join_parts(
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
    return device_put(new_array(_copy_to_node(whole), None), sharding)


@api_boundary
def make_array_from_single_device_arrays(
    shape: Sequence[int],
    sharding: Sharding,
    arrays: Sequence[Any],
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Make an array from its parts, one for each device.

    Parameters
    ----------
    shape : sequence of int
        Lengths of the axes of the whole array.
    {sharding}
    arrays : sequence of array_like
        Parts in the order of the devices.
    dtype : dtype_like, optional
        Dtype of the result. The default is that of the parts.

    Returns
    -------
    Array
        Array over the devices of the sharding.

    Raises
    ------
    ValueError
        If the number of parts is not that of the devices, or a part has a wrong shape.

    See Also
    --------
    make_array_from_callback : Make an array from a function of the index.

    Examples
    --------
    >>> import accnp as jnp
    >>> s = jnp.NamedSharding(jnp.make_mesh((1,), ("x",)), jnp.P("x"))
    >>> jnp.make_array_from_single_device_arrays((3,), s, [jnp.arange(3)])
    Array([0, 1, 2], dtype=int32)
    """
    function = "make_array_from_single_device_arrays"
    if not sharding.is_fully_addressable:
        return _of_shards(function, shape, sharding, arrays, dtype)
    indices = sharding.devices_indices_map(tuple(shape))
    if len(arrays) != len(indices):
        raise ValueError(
            f"{function}: there must be a part for each device; got {len(arrays)} arrays for "
            f"{len(indices)} devices; pass one for each"
        )
    array_by_device = {next(iter(x.devices())): x for x in arrays if isinstance(x, Array)}
    if len(array_by_device) == len(indices) and array_by_device.keys() == indices.keys():
        arrays = [array_by_device[d] for d in indices]
    return _join_parts(function, shape, sharding, list(indices.values()), arrays, dtype)


@api_boundary
def make_array_from_process_local_data(
    sharding: Sharding, local_data: ArrayLike, global_shape: Sequence[int] | None = None
) -> Array:
    """Make an array from the data of each process: of one process, from all of it.

    Parameters
    ----------
    {sharding}
    local_data : array_like
        Values of this process, whose dtype is kept: its shard. Along axes that the sharding does
        not divide, it has the whole length.
    global_shape : sequence of int, optional
        Shape of the whole array. By default it follows from that of the data. None for an axis
        does the same for that axis.

    Returns
    -------
    Array
        Array over the devices of the sharding.

    Raises
    ------
    ValueError
        If the shapes do not match. If `global_shape` is not given, the processes compare the shapes
        and dtypes that follow from their data.

    See Also
    --------
    make_array_from_callback : Make an array from a function of the index.
    device_put : Distribute an array.

    Examples
    --------
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
    if not sharding.is_fully_addressable:
        return _of_local_data(sharding, local_data, global_shape)
    if global_shape is not None:
        if not hasattr(global_shape, "__iter__"):
            raise ValueError(
                "make_array_from_process_local_data: global_shape must be a shape; got "
                f"{global_shape!r}; pass that of the data, or leave it out"
            )
        expected = tuple(
            n if g is None else g for g, n in zip(global_shape, data.shape, strict=False)
        )
        if expected != data.shape or prod(expected) != data.size:
            raise ValueError(
                "make_array_from_process_local_data: one process holds the whole; got data of "
                f"shape {data.shape} for global_shape {tuple(global_shape)}; pass all of it"
            )
    return device_put(new_array(_copy_to_node(data), None), sharding)


def _of_local_data(sharding: Any, data: Any, shape: Any) -> Array:
    """The array over several processes of which this one has the data, or more of it.

    As in jax, data with the whole length along an axis that is divided are cut.
    """
    function = "make_array_from_process_local_data"
    probe = sharding.mesh.size
    cut = sharding.shard_shape((probe,) * data.ndim)
    counts = [probe // n for n in cut]
    if shape is None:
        shape = (None,) * data.ndim
    pairs = zip(shape, data.shape, counts, strict=True)
    whole = tuple([n * k if g is None else int(g) for g, n, k in pairs])
    if None in shape:  # each process has found a shape from its own data
        ranks = sorted({d.process_index for d in sharding.device_set})
        text = f"an array {data.dtype}{list(whole)}"
        imported("accnp.runtime.mpi").world().compare(ranks, text, function)
    (index,) = sharding.addressable_devices_indices_map(whole).values()
    need = sharding.shard_shape(whole)
    part = []
    for d, (n, m, g) in enumerate(zip(data.shape, need, whole, strict=True)):
        if n not in (m, g):
            raise ValueError(
                f"{function}: along axis {d} this process has {m} of {g} elements; got data of "
                f"shape {data.shape} for global_shape {whole} and {sharding.spec}; pass the shard "
                "of this process"
            )
        part.append(slice(None) if n == m else index[d])
    return _of_shards(function, whole, sharding, [data[tuple(part)]], None)
