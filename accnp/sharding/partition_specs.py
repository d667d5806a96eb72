"""How an array is distributed over devices: `PartitionSpec`, and the shardings.

Shardings combine a mesh with the names of its axes, and return which part of an array of a given
shape each device holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.errors import api_boundary
from accnp.ir.aval import Aval, ShardedDevices, mesh_sharding
from accnp.ir.node import install_distribution
from accnp.lazy_imports import imported
from accnp.runtime.device import Device, check_has_local_device, process_index
from accnp.sharding.meshes import AbstractMesh, Mesh, get_mesh, mesh_in_use

if TYPE_CHECKING:
    from accnp.ir.aval import MeshSharding

__all__ = [
    "NamedSharding", "P", "PartitionSpec", "Sharding", "SingleDeviceSharding",
    "make_single_device_sharding",
]  # fmt: skip  # fmt: skip

Index = tuple[slice, ...]


class _Unconstrained:
    """Along this dimension anything goes."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "_UNCONSTRAINED"


_UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """Mesh axis, or several, along which each dimension of an array is divided.

    A spec is a leaf of pytrees. `P` is another name of it.

    Parameters
    ----------
    *partitions : str, tuple of str or None
        Mesh axes for each dimension; None for a dimension that is not divided, as are those that
        are not given.
    unreduced : set of str, optional
        Mesh axes over which the array is a partial sum.
    reduced : set of str, optional
        Mesh axes over which the cotangent of the array is a partial sum.

    Raises
    ------
    ValueError
        If the spec is used with a mesh that lacks an axis.

    See Also
    --------
    NamedSharding : Mesh together with a spec.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.P("data", None)
    P('data', None)
    """

    __slots__ = ("partitions", "reduced", "unreduced")
    UNCONSTRAINED = _UNCONSTRAINED

    @api_boundary
    def __init__(
        self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()
    ) -> None:
        entries = []
        for p in partitions:
            if isinstance(p, list | tuple):
                p = tuple(p)
                p = None if not p else p[0] if len(p) == 1 else p
            entries.append(p)
        self.partitions = tuple(entries)
        self.unreduced, self.reduced = frozenset(unreduced), frozenset(reduced)
        if self.unreduced & self.reduced:
            raise ValueError(
                "PartitionSpec: an axis cannot be both unreduced and reduced; got "
                f"unreduced={set(self.unreduced)}, reduced={set(self.reduced)}; "
                "name it in one of the two"
            )

    def __len__(self) -> int:
        return len(self.partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.partitions)

    def __getitem__(self, i: Any) -> Any:
        return self.partitions[i]

    def index(self, value: Any) -> int:
        """The first dimension with this entry."""
        return self.partitions.index(value)

    def count(self, value: Any) -> int:
        """How many dimensions have this entry."""
        return self.partitions.count(value)

    def update(self, **fields: Any) -> PartitionSpec:
        """Return a spec with other partitions, unreduced or reduced axes.

        Parameters
        ----------
        **fields : object
            New values of `partitions`, `unreduced` or `reduced`.
        """
        partitions = fields.pop("partitions", self.partitions)
        return PartitionSpec(
            *partitions, **{"unreduced": self.unreduced, "reduced": self.reduced, **fields}
        )

    def placed(self, shape: tuple[int, ...], function: str) -> Any:
        """The devices of an array of this shape, over the mesh in use."""
        mesh = mesh_in_use()
        if mesh is None or mesh.empty:
            raise ValueError(
                f"{function}: a PartitionSpec needs a mesh; got {self}; use set_mesh, or give a "
                "NamedSharding"
            )
        return NamedSharding(mesh, self).placed(shape, function)

    def _unreduced_and_reduced(self) -> tuple[frozenset[Any], frozenset[Any]]:
        return self.unreduced, self.reduced

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and (
            (self.partitions, *self._unreduced_and_reduced())
            == (other.partitions, *other._unreduced_and_reduced())
        )

    def __hash__(self) -> int:
        return hash((self.partitions, *self._unreduced_and_reduced()))

    def __add__(self, other: Any) -> PartitionSpec:
        return self.update(partitions=(*self, *other))

    def __radd__(self, other: Any) -> PartitionSpec:
        return self.update(partitions=(*other, *self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _spec, (tuple(self), *self._unreduced_and_reduced())

    def __repr__(self) -> str:
        extras = [
            f"{k}={set(v)}"
            for k, v in zip(("unreduced", "reduced"), self._unreduced_and_reduced())
            if v
        ]
        own = ", ".join(map(repr, self.partitions)) + "," * (len(self.partitions) == 1)
        return f"P({', '.join(x for x in (own, *extras) if x)})"


def _spec(partitions: Any, unreduced: Any, reduced: Any) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


P = PartitionSpec


def axes_of(entry: Any) -> tuple[Any, ...]:
    """The mesh axes of one entry of a spec."""
    if entry is None or entry is _UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


class Sharding:
    """Abstract class: how an array is laid out over devices.

    Subclasses say which part of a shape each device holds.

    Examples
    --------
    >>> import accnp as jnp
    >>> isinstance(jnp.ones(3).sharding, jnp.sharding.Sharding)
    True
    """

    _devices: tuple[Device, ...]
    memory_kind: str | None = "device"

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Index]:
        """Return the index of the part that each device holds.

        Parameters
        ----------
        global_shape : sequence of int
            Shape of the whole array.

        Returns
        -------
        dict
            Tuple of slices for each device.

        Raises
        ------
        ValueError
            If an axis cannot be divided evenly.
        """
        raise NotImplementedError(f"{type(self).__name__}: it does not say where parts lie")

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raise a ValueError if an array of this shape cannot be divided evenly."""
        self.shard_shape(aval_shape)

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the part that each device holds.

        Parameters
        ----------
        global_shape : sequence of int
            Shape of the whole array.

        Returns
        -------
        tuple of int
            Shape of each part.
        """
        return tuple(global_shape)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole."""
        return True

    @property
    def device_set(self) -> set[Device]:
        """The devices."""
        return set(self._devices)

    @property
    def num_devices(self) -> int:
        """How many devices there are."""
        return len(self._devices)

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices of this process."""
        return {d for d in self._devices if d.process_index == process_index()}

    @property
    def has_addressable_devices(self) -> bool:
        """Whether this process owns some of the devices."""
        return bool(self.addressable_devices)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process owns all of the devices."""
        return all([d.process_index == process_index() for d in self._devices])

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> Any:
        """Return the index of the part that each device of this process holds."""
        indices = self.devices_indices_map(global_shape)
        return {d: index for d, index in indices.items() if d.process_index == process_index()}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Return whether two shardings lay out arrays of a rank alike on the same devices.

        Parameters
        ----------
        other : Sharding
            Sharding to compare with.
        ndim : int
            Rank of the arrays.

        Returns
        -------
        bool
            True if each device holds the same part.
        """
        if self._devices != other._devices:
            return False
        shape = (prod([self.num_devices, other.num_devices]),) * ndim
        return self._parts(shape) == other._parts(shape)

    def _parts(self, shape: Sequence[int]) -> list[Any]:
        indices = self.devices_indices_map(shape).values()
        return [[s.indices(n) for s, n in zip(index, shape, strict=True)] for index in indices]

    def with_memory_kind(self, kind: str) -> Sharding:
        """Return the sharding for another kind of memory, of which there is one.

        Parameters
        ----------
        kind : str
            "device" or "unpinned_host".

        Raises
        ------
        ValueError
            If the memory is unknown.
        """
        _check_memory(kind)
        return self


def _check_memory(kind: Any) -> None:
    if kind not in (None, "device", "unpinned_host", "pinned_host"):
        raise ValueError(
            f"Sharding: there is no memory of this kind; got memory_kind={kind!r}; use 'device'"
        )


class SingleDeviceSharding(Sharding):
    """Sharding of an array that lies on one device as a whole.

    Parameters
    ----------
    device : Device
        Where the array lies.
    memory_kind : str, optional
        Where the array is stored on its device: "device" or None.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ones(3).sharding
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None:
        _check_memory(memory_kind)
        if not isinstance(device, Device):
            raise TypeError(
                f"SingleDeviceSharding: device must be a Device; got {device!r}; pass one of "
                "jax.devices()"
            )
        self._device = device
        self._devices = (device,)

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Index]:
        """The device, and all of the array."""
        return {self._device: (slice(None),) * len(global_shape)}

    def placed(self, shape: tuple[int, ...], function: str) -> tuple[Any, ...]:
        """The devices of an array of this shape, as its type has them."""
        return check_has_local_device(self._devices, function)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self._devices == other._devices

    def __hash__(self) -> int:
        return hash(self._devices)

    def __reduce__(self) -> tuple[Any, ...]:
        return SingleDeviceSharding, (self._device,)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


@api_boundary
def make_single_device_sharding(
    device: Device, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """Return the sharding of arrays that lie on one device as a whole.

    Parameters
    ----------
    device : Device
        Where the array lies.
    memory_kind : str, optional
        Where the array is stored on its device: "device" or None.

    Returns
    -------
    sharding.SingleDeviceSharding
        Sharding with one device.

    See Also
    --------
    sharding.SingleDeviceSharding : Class of the result.
    NamedSharding : Sharding over a mesh.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.sharding.make_single_device_sharding(jnp.devices()[0]).num_devices
    1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class NamedSharding(Sharding):
    """Sharding of an array whose dimensions are divided along the axes of a mesh.

    Parameters
    ----------
    mesh : Mesh or AbstractMesh
        Grid of devices with named axes.
    spec : PartitionSpec
        Mesh axes for each dimension of the array.
    memory_kind : str, optional
        Where the array is stored on its devices: "device" or None.

    Raises
    ------
    ValueError
        If the spec names an axis that the mesh does not have, or one axis twice.

    See Also
    --------
    sharding.PartitionSpec : Mesh axes for each dimension.
    make_mesh : Make a mesh.

    Examples
    --------
    >>> import accnp as jnp
    >>> mesh = jnp.make_mesh((1,), ("x",))
    >>> jnp.NamedSharding(mesh, jnp.P("x")).shard_shape((4, 3))
    (4, 3)
    """

    @api_boundary
    def __init__(
        self, mesh: Mesh | AbstractMesh, spec: Any, *, memory_kind: str | None = None
    ) -> None:
        if not isinstance(mesh, Mesh | AbstractMesh):
            raise TypeError(
                f"NamedSharding: mesh must be a Mesh; got {mesh!r}; make one with jax.make_mesh"
            )
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"NamedSharding: spec must be a PartitionSpec; got {spec!r}; make one with jax.P"
            )
        _check_memory(memory_kind)
        self.mesh = mesh
        self.spec = spec
        used = [n for entry in self.spec for n in axes_of(entry)]
        for name in used:
            if name not in mesh.axis_names:
                raise ValueError(
                    f"NamedSharding: the mesh has no axis {name!r}; got {self.spec} for a mesh of "
                    f"axes {mesh.axis_names}; use one of these"
                )
            if used.count(name) > 1:
                raise ValueError(
                    f"NamedSharding: a mesh axis can cut one dimension; got {name!r} twice in "
                    f"{self.spec}; leave one of them out"
                )
        self._axes = frozenset(used)
        if isinstance(mesh, Mesh):
            self._devices = tuple(mesh.devices.flat)
        self._hash = hash((mesh, self.spec))

    def update(self, **fields: Any) -> NamedSharding:
        """Return a sharding with another mesh or spec."""
        return NamedSharding(
            **{"mesh": self.mesh, "spec": self.spec, **fields}  # pyright: ignore[reportArgumentType]
        )

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole."""
        return all(self.mesh.shape[n] == 1 for n in self._axes)

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The axes of the mesh that cut nothing."""
        return frozenset(self.mesh.axis_names) - self._axes

    def _parts_per_dimension(
        self, shape: Sequence[int], function: str = "NamedSharding"
    ) -> list[int]:
        """Into how many parts each dimension is cut."""
        sizes = self.mesh.shape
        if len(self.spec) > len(shape):
            raise ValueError(
                f"{function}: the spec is for arrays of rank {len(self.spec)} and more; got "
                f"{self.spec} for shape {tuple(shape)}; use P() for scalars"
            )
        counts = [prod(sizes[n] for n in axes_of(entry)) for entry in self.spec]
        counts += [1] * (len(shape) - len(counts))
        for d, (n, k) in enumerate(zip(shape, counts, strict=True)):
            if n % k:
                raise ValueError(
                    f"{function}: axis {d} is cut into {k} parts, which must divide its length; "
                    f"got {n} of shape {tuple(shape)} for {self.spec} over {dict(sizes)}; pad the "
                    "array or cut another axis"
                )
        return counts

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the part that each device holds.

        Parameters
        ----------
        global_shape : sequence of int
            Shape of the whole array.

        Returns
        -------
        tuple of int
            Shape of each part.

        Raises
        ------
        ValueError
            If an axis cannot be divided evenly.
        """
        counts = self._parts_per_dimension(global_shape)
        return tuple(n // k for n, k in zip(global_shape, counts, strict=True))

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Index]:
        """Return the index of the part that each device holds.

        Parameters
        ----------
        global_shape : sequence of int
            Shape of the whole array.

        Returns
        -------
        dict
            Tuple of slices for each device.

        Raises
        ------
        ValueError
            If an axis cannot be divided evenly.
        """
        counts = self._parts_per_dimension(global_shape)
        names, sizes = self.mesh.axis_names, self.mesh.shape
        entries = [axes_of(e) for e in self.spec] + [()] * (len(counts) - len(self.spec))
        indices: dict[Device, Index] = {}
        for place in np.ndindex(*self.mesh.axis_sizes):
            at = dict(zip(names, place, strict=True))
            index = []
            for entry, k, n in zip(entries, counts, global_shape, strict=True):
                here = 0
                for name in entry:
                    here = here * sizes[name] + at[name]
                index.append(
                    slice(here * (n // k), (here + 1) * (n // k)) if k > 1 else slice(None)
                )
            device: Any = self.mesh.devices[place]
            indices[device] = tuple(index)
        return indices

    def placed(self, shape: tuple[int, ...], function: str) -> tuple[Any, ...]:
        """The devices of an array of this shape, as its type has them."""
        self._parts_per_dimension(shape, function)
        if not isinstance(self.mesh, Mesh):
            mesh = get_mesh()
            if mesh.empty or mesh.shape_tuple != self.mesh.shape_tuple:
                raise ValueError(
                    f"{function}: an AbstractMesh has no devices; got {self}; use a Mesh, or "
                    "set_mesh one with these axes"
                )
            return NamedSharding(mesh, self.spec).placed(shape, function)
        return ShardedDevices(self, check_has_local_device(self._devices, function))

    def behind_one(self, ndim: int, own: MeshSharding | Sharding | None = None) -> NamedSharding:
        """The sharding of arrays of `ndim` dimensions: of the same ones with one more in front.

        This axis is divided as the first axis of the sharding `own` is, if mesh axes are left for
        it, and otherwise not at all.
        """
        first = None
        if isinstance(own, NamedSharding) and own.mesh == self.mesh and own.spec:
            first = own.spec[0]
        if self._axes.intersection(axes_of(first)):
            first = None
        result = NamedSharding(self.mesh, PartitionSpec(first, *self.spec))
        return result.in_types(ndim)

    def of_row(self, ndim: int) -> NamedSharding:
        """The sharding of the rows of arrays of `ndim` dimensions: without that of the first."""
        return NamedSharding(self.mesh, PartitionSpec(*self.of_rank(ndim).spec[1:]))

    def of_rank(self, ndim: int) -> NamedSharding:
        """Return this sharding with one entry for each axis, as in types on Explicit meshes."""
        missing = ndim - len(self.spec)
        if missing <= 0:
            return self
        return NamedSharding(self.mesh, PartitionSpec(*self.spec, *[None] * missing))

    def in_types(self, ndim: int) -> NamedSharding:
        """Return this sharding as types of arrays of `ndim` dimensions have it: with one entry for
        each axis on Explicit meshes, and as it is on others."""
        return self.of_rank(ndim) if self.mesh.explicit_axes else self

    def whole(self) -> NamedSharding:
        """Every device of the mesh with the whole."""
        return NamedSharding(self.mesh, PartitionSpec())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NamedSharding) and self.mesh == other.mesh and self.spec == other.spec
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedSharding, (self.mesh, self.spec)

    def __repr__(self) -> str:
        return (
            f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}, memory_kind={self.memory_kind})"
        )


def named_sharding(aval: Aval) -> NamedSharding:
    """Return the sharding of a type that has one."""
    sharding = mesh_sharding(aval)
    assert isinstance(sharding, NamedSharding)
    return sharding


install_distribution(lambda *given: imported("accnp.sharding.partitioning").distribute(*given))
