"""Meshes: the devices of a program as a grid, whose axes have names.

`make_mesh` and `Mesh` take devices and axis names; a `Mesh` is hashable. `set_mesh` and `with
mesh:` select the current mesh.
"""

from __future__ import annotations

import enum
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from accnp.errors import api_boundary
from accnp.ir.mesh_axis import MeshAxis
from accnp.runtime.device import Device, process_index
from accnp.runtime.device import devices as every_device

__all__ = [
    "NO_MESH", "AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh",
    "get_abstract_mesh", "get_mesh", "make_mesh", "mesh_in_use", "set_mesh", "use_abstract_mesh",
    "within",
]  # fmt: skip


class AxisType(enum.Enum):
    """Types of mesh axes: who decides how arrays are laid out along an axis.

    Auto leaves it to the engine, Explicit puts it into the types of arrays, and Manual is for the
    body of `shard_map`. Devices that share their memory compute the same in all cases.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.sharding.AxisType.Auto
    Auto
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True)
class ManualAxisType:
    """Mesh axes along which a value inside `shard_map` differs or is a partial sum.

    Parameters
    ----------
    varying : frozenset, optional
        Axes along which the value differs between devices.
    unreduced : frozenset, optional
        Axes along which the value is a partial sum that is still to be reduced.
    reduced : frozenset, optional
        Axes along which its cotangent is a partial sum.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.sharding.ManualAxisType(varying=frozenset({"x"})).varying
    frozenset({'x'})
    """

    varying: frozenset[Any] = frozenset()
    unreduced: frozenset[Any] = frozenset()
    reduced: frozenset[Any] = frozenset()


class AbstractDevice:
    """Kind of device, for meshes that have no devices.

    Parameters
    ----------
    device_kind : str
        Model of the processor.
    num_cores : int or None
        How many processors a device has, if known.
    platform : str
        Name of the platform, such as "cpu".

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.sharding.AbstractDevice("cpu", None, "cpu").platform
    'cpu'
    """

    def __init__(self, device_kind: str, num_cores: int | None, platform: str) -> None:
        self.device_kind, self.num_cores, self.platform = device_kind, num_cores, platform

    def _key(self) -> tuple[Any, ...]:
        return self.device_kind, self.num_cores, self.platform

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractDevice) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"AbstractDevice(device_kind={self.device_kind}, num_cores={self.num_cores}, "
            f"platform={self.platform})"
        )


class _Grid:
    """Named axes with lengths: what a mesh and an abstract mesh have in common."""

    axis_names: tuple[Hashable, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    def _set_axes(self, sizes: Sequence[int], names: Any, types: Any, what: str) -> None:
        names = (names,) if isinstance(names, str) else tuple(names)
        sizes = tuple(int(n) for n in sizes)
        if len(names) != len(sizes):
            raise ValueError(
                f"{what}: there must be one name for each axis; got axes {sizes} and "
                f"axis_names {names}; name every axis once"
            )
        if len(set(names)) != len(names) or None in names:
            raise ValueError(
                f"{what}: names must differ and not be None; got axis_names {names}; "
                "give each axis a different name"
            )
        if types is None:
            types = (AxisType.Auto,) * len(names)
        types = (types,) if isinstance(types, AxisType) else tuple(types)
        if len(types) != len(names) or not all(isinstance(t, AxisType) for t in types):
            raise ValueError(
                f"{what}: axis_types must be one AxisType for each of {names}; got {types}; "
                "pass one for each"
            )
        self.axis_names, self.axis_sizes, self.axis_types = names, sizes, types

    @property
    def shape(self) -> OrderedDict[Hashable, int]:
        """Names and lengths of the axes."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Hashable, int], ...]:
        """Names and lengths of the axes, as pairs."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """How many devices there are."""
        return prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        """Whether there is no axis."""
        return not self.axis_names

    def _axes(self, kind: AxisType) -> tuple[Hashable, ...]:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple[Hashable, ...]:
        """The names of the axes of type Auto."""
        return self._axes(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Hashable, ...]:
        """The names of the axes of type Explicit."""
        return self._axes(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Hashable, ...]:
        """The names of the axes of type Manual."""
        return self._axes(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether every axis is of type Auto."""
        return len(self.auto_axes) == len(self.axis_names)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether every axis is of type Explicit."""
        return len(self.explicit_axes) == len(self.axis_names)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether every axis is of type Manual."""
        return len(self.manual_axes) == len(self.axis_names)

    @property
    def is_multi_process(self) -> bool:
        """Whether the devices belong to several processes."""
        return False  # of an abstract mesh, nothing is known

    def _axes_text(self) -> str:
        sizes = ", ".join(f"{n!r}: {k}" for n, k in self.shape_tuple)
        types = ", ".join(map(repr, self.axis_types)) + "," * (len(self.axis_types) == 1)
        return f"{sizes}, axis_types=({types})"


class Mesh(_Grid):
    """Grid of devices with named axes.

    Parameters
    ----------
    devices : array_like of Device
        Array or nested lists of devices, with one axis for each name.
    axis_names : str or sequence of str
        Name of each axis.
    axis_types : AxisType or sequence of AxisType, optional
        Type of each axis. The default is Auto.

    Raises
    ------
    ValueError
        If there is not one name for each axis, a name is repeated, or an element is not a device.

    See Also
    --------
    make_mesh : Make a mesh of the first devices.
    NamedSharding : Layout of an array over a mesh.

    Examples
    --------
    >>> import accnp as jnp
    >>> dict(jnp.sharding.Mesh(jnp.devices()[:1], "x").shape)
    {'x': 1}
    """

    devices: np.ndarray

    @api_boundary
    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None) -> None:
        grid = np.asarray(devices, dtype=object)
        wrong = [d for d in grid.flat if not isinstance(d, Device)]
        if wrong:
            raise ValueError(f"Mesh: devices must be devices; got {wrong[0]!r}; see devices()")
        self._set_axes(grid.shape, axis_names, axis_types, "Mesh")
        self.devices = grid.copy()
        self.devices.flags.writeable = False
        self._key = (tuple(grid.flat), self.axis_sizes, self.axis_names, self.axis_types)
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __enter__(self) -> Mesh:
        _in_use.stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _leave_mesh(self)

    @property
    def device_ids(self) -> np.ndarray:
        """The numbers of the devices, as a grid."""
        return np.vectorize(lambda d: d.id, otypes=[int])(self.devices)

    @property
    def local_devices(self) -> list[Device]:
        """The devices of this process."""
        return [d for d in self.devices.flat if d.process_index == process_index()]

    @property
    def is_multi_process(self) -> bool:
        """Whether the devices belong to several processes."""
        return len({d.process_index for d in self.devices.flat}) > 1

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh whose devices belong to this process."""
        if not self.is_multi_process:
            return self
        own = np.vectorize(lambda d: d.process_index == process_index(), otypes=[bool])
        places = np.nonzero(own(self.devices))
        if not self.local_devices:
            raise ValueError(
                f"Mesh.local_mesh: process {process_index()} has no device in the mesh; got {self}"
            )
        part = tuple([slice(int(p.min()), int(p.max()) + 1) for p in places])
        return self.update(devices=self.devices[part])

    def axis_over_processes(self, name: Hashable) -> MeshAxis:
        """The axis of this name, as collectives between processes use it."""
        ranks = tuple([d.process_index for d in self.devices.flat])
        if process_index() not in ranks:
            raise ValueError(
                f"shard_map: process {process_index()} has no device in the mesh; got {self}; "
                "call it in the processes of the mesh only"
            )
        return MeshAxis(name, self.axis_names, self.axis_sizes, ranks, process_index())

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The same axes, without devices."""
        first = self.devices.flat[0] if self.devices.size else None
        kind = first and AbstractDevice(first.device_kind, None, first.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=kind)

    @api_boundary
    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """Return a mesh with other devices, names or types."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __str__(self) -> str:
        return f"Mesh({self._axes_text()})"

    def __repr__(self) -> str:
        types = ", ".join(map(repr, self.axis_types)) + "," * (len(self.axis_types) == 1)
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
            f"axis_types=({types}))"
        )


class AbstractMesh(_Grid):
    """Named axes with lengths but without devices, enough to trace a program.

    Parameters
    ----------
    axis_sizes : sequence of int
        Length of each axis.
    axis_names : sequence of str
        Name of each axis.
    axis_types : sequence of AxisType, optional
        Type of each axis. The default is Auto.
    abstract_device : AbstractDevice, optional
        Kind of the devices.

    Raises
    ------
    ValueError
        If there is not one name for each axis, or a name is repeated.

    See Also
    --------
    sharding.Mesh : Grid of devices.

    Examples
    --------
    >>> import accnp as jnp
    >>> dict(jnp.sharding.AbstractMesh((4, 2), ("x", "y")).shape)
    {'x': 4, 'y': 2}
    """

    @api_boundary
    def __init__(
        self,
        axis_sizes: Any,
        axis_names: Any,
        axis_types: Any = None,
        *,
        abstract_device: Any = None,
    ) -> None:
        sizes = (axis_sizes,) if isinstance(axis_sizes, int) else axis_sizes
        self._set_axes(sizes, axis_names, axis_types, "AbstractMesh")
        self.abstract_device = abstract_device

    def _key(self) -> tuple[Any, ...]:
        return self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """This mesh."""
        return self

    @property
    def devices(self) -> Any:
        """Raise a ValueError, since the mesh has no devices."""
        raise ValueError("AbstractMesh: it has no devices; got AbstractMesh.devices; use a Mesh")

    @api_boundary
    def update(
        self,
        axis_sizes: Any = None,
        axis_names: Any = None,
        axis_types: Any = None,
        **more: Any,
    ) -> AbstractMesh:
        """Return a mesh with other lengths, names or types."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            abstract_device=more.get("abstract_device", self.abstract_device),
        )

    def update_axis_types(self, types: dict[Hashable, AxisType]) -> AbstractMesh:
        """Return a mesh whose axes of these names have other types."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple(types.get(n, t) for n, t in pairs))

    def __repr__(self) -> str:
        d = self.abstract_device
        kind = "" if d is None else (
            f", device_kind={d.device_kind}, num_cores={d.num_cores}, platform={d.platform}"
        )  # fmt: skip
        return f"AbstractMesh({self._axes_text()}{kind})"


@api_boundary
def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[str], axis_types: Any = None, *,
    devices: Sequence[Device] | None = None,
) -> Mesh:  # fmt: skip
    """Make a mesh of the first devices, or of the given ones.

    Parameters
    ----------
    axis_shapes : sequence of int
        Length of each axis.
    axis_names : sequence of str
        Name of each axis.
    axis_types : sequence of AxisType, optional
        Type of each axis. The default is Explicit.
    devices : sequence of Device, optional
        Devices to use, in this order. The default is the devices of the default backend.

    Returns
    -------
    sharding.Mesh
        Mesh of the given shape.

    Raises
    ------
    ValueError
        If there are too few devices, or the number of given devices does not match.

    See Also
    --------
    sharding.Mesh : Mesh of an array of devices.
    set_mesh : Use a mesh.
    devices : List of the devices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.make_mesh((1,), ("x",)).size
    1
    """
    shape = tuple(int(n) for n in axis_shapes)
    if axis_types is None:
        axis_types = (AxisType.Explicit,) * len(shape)
    device_list = every_device() if devices is None else list(devices)
    need = prod(shape)
    if need > len(device_list) or (devices is not None and need != len(device_list)):
        raise ValueError(
            f"make_mesh: a mesh of {shape} needs {need} devices; got {len(device_list)}; give "
            "other lengths, or make more devices of the CPU with ACCNP_NUM_CPU_DEVICES"
        )
    grid = np.empty(need, object)
    grid[:] = device_list[:need]
    return Mesh(grid.reshape(shape), axis_names, axis_types)


# --- the mesh in use ---


class _InUse(threading.local):
    def __init__(self) -> None:
        self.stack: list[Any] = []


_in_use = _InUse()
NO_MESH = AbstractMesh((), ())


class set_mesh:
    """Use a mesh from now on, or within a `with` block.

    `PartitionSpec`s without a mesh refer to it, for arrays of any shape and dtype.

    Parameters
    ----------
    mesh : Mesh or None
        Mesh to use; None for no mesh.

    Raises
    ------
    ValueError
        If the argument is not a mesh.

    See Also
    --------
    sharding.get_mesh : Current mesh.
    make_mesh : Make a mesh.

    Examples
    --------
    >>> import accnp as jnp
    >>> with jnp.set_mesh(jnp.make_mesh((1,), ("x",))) as mesh:
    ...     print(jnp.sharding.get_mesh() is mesh)
    True
    """

    @api_boundary
    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(
                f"set_mesh: mesh must be a Mesh or None; got {mesh!r}; make one with jax.make_mesh"
            )
        self._mesh = mesh
        self._before = list(_in_use.stack)
        _in_use.stack.append(mesh)

    def __enter__(self) -> Mesh | None:
        return self._mesh

    def __exit__(self, *exc: object) -> None:
        _in_use.stack[:] = self._before


class within:
    """Use a mesh within a `with` block."""

    def __init__(self, mesh: Any) -> None:
        self._mesh = mesh

    def __enter__(self) -> Any:
        _in_use.stack.append(self._mesh)
        return self._mesh

    def __exit__(self, *exc: object) -> None:
        _leave_mesh(self._mesh)


class use_abstract_mesh(within):
    """Use a mesh without devices within a `with` block.

    Parameters
    ----------
    mesh : AbstractMesh
        Named axes to use.

    Raises
    ------
    ValueError
        If an array is placed on it, since it has no devices.

    See Also
    --------
    sharding.get_abstract_mesh : Axes of the current mesh.

    Examples
    --------
    >>> import accnp as jnp
    >>> with jnp.sharding.use_abstract_mesh(jnp.sharding.AbstractMesh((4,), ("x",))):
    ...     print(jnp.sharding.get_abstract_mesh().size)
    4
    """


def _leave_mesh(mesh: Any) -> None:
    """Use a mesh no longer, nor any that was to be used within its block: a signal handler's error
    may have come before that was left."""
    stack = _in_use.stack
    for place in reversed(range(len(stack))):
        if stack[place] is mesh:
            del stack[place:]
            return


def mesh_in_use() -> Any:
    """The mesh set last, abstract or not, or None."""
    return _in_use.stack[-1] if _in_use.stack else None


def get_mesh() -> Any:
    """Return the current mesh of devices, or an empty one.

    Returns
    -------
    sharding.Mesh
        Mesh that `set_mesh` chose; a mesh without axes if there is none.

    See Also
    --------
    set_mesh : Use a mesh.
    sharding.get_abstract_mesh : Axes of the current mesh.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.sharding.get_mesh().empty
    True
    """
    meshes = [m for m in _in_use.stack if isinstance(m, Mesh)]
    return meshes[-1] if meshes else _EMPTY


def get_abstract_mesh() -> AbstractMesh:
    """Return the axes of the current mesh, or an empty mesh.

    Returns
    -------
    sharding.AbstractMesh
        Names and lengths of the axes; none if there is no mesh.

    See Also
    --------
    sharding.get_mesh : Current mesh of devices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.sharding.get_abstract_mesh().axis_names
    ()
    """
    mesh = mesh_in_use()
    return NO_MESH if mesh is None else mesh.abstract_mesh


def _empty_mesh() -> Mesh:
    """A mesh without axes has, as an array without axes does, room for one device; it has none."""
    mesh = object.__new__(Mesh)
    mesh._set_axes((), (), (), "Mesh")
    mesh.devices = np.empty(0, object)
    mesh._key = ((), (), (), ())
    mesh._hash = hash(mesh._key)
    return mesh


_EMPTY = _empty_mesh()
