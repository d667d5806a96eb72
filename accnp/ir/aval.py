"""Abstract values: the static type of an array (shape, dtype, weak type, devices).

Avals are interned: `make_aval` and `on_devices` return one `Aval` object for each combination, so
that equality is identity and the hash is the object's id. This keeps the lookups in the recorder's
memo (`ir/node.py`) cheap. The devices are part of an aval so that the memo also determines where a
result is placed. Every node, op rule and kernel of the package uses these types.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack, overload

import numpy as np

from accnp.caches import register_cache
from accnp.config import config
from accnp.dtypes import ExtendedDType, float0, issubdtype
from accnp.errors import InconclusiveDimensionOperation
from accnp.forks import renewed

if TYPE_CHECKING:
    from accnp.dtypes.names import DTypeLike

__all__ = [
    "AbstractValue", "Aval", "Devices", "ShardedDevices", "any_value_spans_processes",
    "batched_aval", "install_sharding", "keeps_sharding", "make_aval", "mesh_sharding",
    "on_devices", "result_avals", "result_devices", "row_aval", "spans_processes", "symbolic_aval",
]  # fmt: skip

# The devices that the user chose for a value; None: the value is not bound to any device.
Devices = tuple[Any, ...] | None


if TYPE_CHECKING:

    class MeshSharding(Protocol):
        """The attributes of `NamedSharding`, the sharding of a value, that this layer uses."""

        @property
        def mesh(self) -> ShardedMesh: ...

        @property
        def spec(self) -> ShardedAxes: ...

        @property
        def is_fully_replicated(self) -> bool: ...

        def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
            """Return the shape of one shard of an array."""
            ...

        def whole(self) -> MeshSharding:
            """Return the sharding that replicates values on the same mesh."""
            ...

        def in_types(self, ndim: int) -> MeshSharding:
            """Return this sharding as types of arrays of `ndim` axes have it."""
            ...

        def of_row(self, ndim: int) -> MeshSharding:
            """Return the sharding of one row of an array of `ndim` axes."""
            ...

        def of_rank(self, ndim: int) -> MeshSharding:
            """Return the sharding restricted to the first `ndim` axes."""
            ...

        def behind_one(self, ndim: int, own: MeshSharding | None = None) -> MeshSharding:
            """Return the sharding of an array of `ndim` axes, the first of which is new.

            It is sharded as the first axis of `own`, if possible.
            """
            ...

    class ShardedAxes(Protocol):
        """The mesh axes that shard each axis of an array: a `PartitionSpec`."""

        def __len__(self) -> int: ...

        def __getitem__(self, i: int, /) -> Hashable: ...

    class ShardedMesh(Protocol):
        """The attributes of a mesh that this layer uses."""

        @property
        def devices(self) -> np.ndarray: ...

        @property
        def explicit_axes(self) -> Sequence[Hashable]: ...


_over_processes = [False]  # whether a value over several processes has existed


def any_value_spans_processes() -> bool:
    """Return whether any value of this program has been over several processes."""
    return _over_processes[0]


class ShardedDevices(tuple[Any, ...]):
    """Devices of a sharded value, with the sharding that assigns a shard or a copy to each."""

    sharding: MeshSharding
    spans_processes: bool  # whether the devices belong to several processes

    def __new__(cls, sharding: MeshSharding, devices: Iterable[Any]) -> ShardedDevices:
        self = super().__new__(cls, devices)
        self.sharding = sharding
        self.spans_processes = len({d.process_index for d in self}) > 1
        if self.spans_processes:
            _over_processes[0] = True
        return self

    def __eq__(self, other: object) -> bool:
        return type(other) is ShardedDevices and other.sharding == self.sharding

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.sharding)


class AbstractValue:
    """Base class of all types of values: those of arrays, references and tokens.

    Examples
    --------
    >>> import accnp as jax
    >>> isinstance(jax.typeof(jax.numpy.ones(2)), jax.core.AbstractValue)
    True
    """

    __slots__ = ()


if TYPE_CHECKING:

    class AvalFields(TypedDict, total=False):
        """The fields of an aval that `update` changes."""

        shape: tuple[int, ...]
        dtype: DTypeLike | ExtendedDType
        weak_type: bool


class Aval(AbstractValue):
    """Type of an array: shape, dtype, weak-type flag and devices.

    Avals are interned, so equal ones are identical. The last three parameters are accepted for
    compatibility with JAX: what they say follows from the devices here.

    Parameters
    ----------
    shape : sequence of int
        Lengths of the axes.
    dtype : dtype_like
        Type of the elements.
    weak_type : bool, optional
        Whether the dtype is weak, as that of a Python number. The default is False.
    sharding : Sharding, optional
        Layout over devices.
    memory_space : object, optional
        Ignored; present for compatibility with JAX.
    manual_axis_type : ManualAxisType, optional
        Ignored; present for compatibility with JAX.

    Raises
    ------
    TypeError
        If the dtype is unknown.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.ShapedArray((2, 3), "float32")
    ShapedArray(float32[2,3])
    """

    __slots__ = (
        "__weakref__", "devices", "dtype", "nbytes", "ndim", "shape", "size", "weak_type",
    )  # fmt: skip

    shape: tuple[int, ...]
    dtype: Any  # np.dtype; for PRNG keys, as users see them, an ExtendedDType
    weak_type: bool
    devices: Devices
    ndim: int
    size: int
    nbytes: int

    def __new__(
        cls, shape: Iterable[Any], dtype: DTypeLike | ExtendedDType, weak_type: bool = False, *,
        sharding: object = None, memory_space: object = None, manual_axis_type: object = None,
    ) -> Aval:  # fmt: skip
        # JAX's types contain the last three; here they follow from the devices.
        try:
            return make_aval(tuple(shape), _as_dtype(dtype), weak_type)
        except InconclusiveDimensionOperation:
            return symbolic_aval(tuple(shape), _as_dtype(dtype), weak_type)

    def __repr__(self) -> str:
        return f"ShapedArray({self.str_short()}{', weak_type=True' if self.weak_type else ''})"

    def __str__(self) -> str:
        return "~" * self.weak_type + self.str_short()

    def str_short(self) -> str:
        """Return dtype and shape, such as "float32[2,3]"."""
        name = "float0" if self.dtype == float0 else self.dtype.name
        return f"{name}[{','.join(map(str, self.shape))}]"

    def update(self, **fields: Unpack[AvalFields]) -> Aval:
        """Return the aval with another shape, dtype or weak_type."""
        old: AvalFields = {
            "shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type,
        }  # fmt: skip
        if not fields.keys() <= old.keys():
            raise TypeError(
                f"ShapedArray.update: unknown fields; got {sorted(fields)}; "
                "use shape, dtype or weak_type"
            )
        changed: dict[str, Any] = {**old, **fields}
        return Aval(**changed)

    def strip_weak_type(self) -> Aval:
        """Return the same aval without the weak type."""
        return make_aval(self.shape, self.dtype, False)

    @property
    def sharding(self) -> Any:
        """The `Sharding` of such values; one on an empty mesh if they are not bound to devices."""
        return _sharding_of[0](self)

    def to_tangent_aval(self) -> Aval:
        """Return the type of the tangents of such values: float0 for integers and bools."""
        if issubdtype(self.dtype, np.inexact):
            return self
        return make_aval(self.shape, float0, self.weak_type)

    def of_keys(self, dtype: ExtendedDType) -> Aval:
        """Return the aval of PRNG keys whose uint32 words have this aval."""
        return on_devices(make_aval(self.shape[:-1], dtype), self.devices)

    def __reduce__(self):
        return make_aval, (self.shape, self.dtype, self.weak_type)


_sharding_of: list[Callable[[Aval], Any]] = []


def install_sharding(sharding_of: Callable[[Aval], Any]) -> None:
    """Set the function that returns the `Sharding` of a type."""
    _sharding_of[:] = [sharding_of]


# Shape, dtype and weak_type, and the devices if there are any.
_Key = tuple["Hashable", ...]
_INTERNED: dict[_Key, Aval] = {}
# Types that were interned before the last release, and that are still in use: a type must never
# exist twice.
_older: weakref.WeakValueDictionary[_Key, Aval] = weakref.WeakValueDictionary()
_interning = renewed(threading.RLock())


def make_aval(
    shape: tuple[int, ...], dtype: DTypeLike | ExtendedDType, weak_type: bool = False
) -> Aval:
    """Return the interned aval of this shape, dtype and weak_type that is not bound to a device."""
    key = (shape, dtype, weak_type)
    cached = _INTERNED.get(key)
    return cached if cached is not None else _intern_aval(shape, dtype, weak_type, None)


def _as_dtype(dtype: DTypeLike | ExtendedDType) -> np.dtype | ExtendedDType:
    return dtype if isinstance(dtype, ExtendedDType) else np.dtype(dtype)


_SYMBOLIC: weakref.WeakValueDictionary[_Key, Aval] = weakref.WeakValueDictionary()


def symbolic_aval(
    shape: tuple[Any, ...], dtype: np.dtype | ExtendedDType, weak_type: bool = False
) -> Aval:
    """Return the interned aval of a shape that contains symbols (`export.symbolic_shape`).

    No operation accepts such an aval: it describes programs that were traced for several sizes.
    """
    key = (shape, dtype, weak_type)
    cached = _SYMBOLIC.get(key)
    return cached if cached is not None else _SYMBOLIC.setdefault(key, _create_aval(*key, None))


def _intern_aval(
    shape: tuple[int, ...], dtype: DTypeLike | ExtendedDType, weak_type: bool, devices: Devices
) -> Aval:
    self = _create_aval(tuple([int(n) for n in shape]), dtype, weak_type, devices)
    key: _Key = (self.shape, self.dtype, self.weak_type)
    if devices is not None:
        key = (*key, devices)
    with _interning:
        interned = _INTERNED.get(key) or _older.get(key) or self
        if len(_INTERNED) >= config.type_cache_size:
            _release_types()
        _INTERNED[key] = interned
        return interned


def _release_types() -> None:
    """Let go of the types to which nothing else refers."""
    with _interning:
        _older.update(_INTERNED)
        _INTERNED.clear()


def _create_aval(
    shape: tuple[int, ...], dtype: DTypeLike | ExtendedDType, weak_type: bool, devices: Devices
) -> Aval:
    self = object.__new__(Aval)
    self.shape = shape
    self.dtype = _as_dtype(dtype)
    self.weak_type = bool(weak_type)
    self.devices = devices
    self.ndim = len(self.shape)
    self.size = prod(self.shape)
    self.nbytes = self.size * self.dtype.itemsize
    return self


def on_devices(aval: Aval, devices: Devices) -> Aval:
    """Return the aval of the same value on other devices."""
    if devices is None:
        return make_aval(aval.shape, aval.dtype, aval.weak_type)
    cached = _INTERNED.get((aval.shape, aval.dtype, aval.weak_type, devices))
    return (
        cached
        if cached is not None
        else _intern_aval(aval.shape, aval.dtype, aval.weak_type, devices)
    )


def result_avals(aval: Aval | tuple[Aval, ...]) -> tuple[Aval, ...]:
    """Return the types of all results of an operation, given its type: that of its only result, or
    a tuple."""
    return aval if isinstance(aval, tuple) else (aval,)


@overload
def result_devices(name: str, avals: Sequence[object], result: Aval) -> Aval: ...
@overload
def result_devices(
    name: str, avals: Sequence[object], result: tuple[Aval, ...]
) -> tuple[Aval, ...]: ...
@overload
def result_devices(
    name: str, avals: Sequence[object], result: Aval | tuple[Aval, ...]
) -> Aval | tuple[Aval, ...]: ...
def result_devices(
    name: str, avals: Sequence[object], result: Aval | tuple[Aval, ...]
) -> Aval | tuple[Aval, ...]:
    """Return the aval (or avals) of an operation's results, placed on the operands' devices.

    Raises:
        ValueError: the operands are on different devices.
    """
    first: Aval | None = None
    cut: Aval | None = None
    for a in avals:
        if isinstance(a, Aval) and a.devices is not None:
            if first is None:
                first = a
            elif a.devices != first.devices and tuple(a.devices) != tuple(first.devices or ()):
                raise ValueError(
                    f"{name}: the operands are on different devices; got "
                    f"{_describe_placement(first)} and {_describe_placement(a)}; move one of "
                    "them with device_put"
                )
            if type(a.devices) is ShardedDevices and (cut is None or a.ndim > cut.ndim):
                cut = a
    if first is None:
        return result
    if isinstance(result, tuple):
        return tuple([_place_result(r, first, cut) for r in result])
    return _place_result(result, first, cut)


def _place_result(result: Aval, first: Aval, cut: Aval | None) -> Aval:
    """Place a result: sharded like an operand of the same shape, otherwise replicated."""
    if result.devices:
        return result
    if cut is None:
        return on_devices(result, first.devices)
    if cut.shape == result.shape:
        return on_devices(result, cut.devices)
    whole = mesh_sharding(cut).whole()
    return on_devices(result, _resharded(cut, whole))


def _resharded(aval: Aval, sharding: MeshSharding) -> ShardedDevices:
    return ShardedDevices(sharding, aval.devices or ())


def spans_processes(aval: object) -> bool:
    """Return whether the devices of a value belong to several processes, each of which has one
    shard."""
    return (
        type(aval) is Aval and type(aval.devices) is ShardedDevices and aval.devices.spans_processes
    )


def row_aval(aval: Aval) -> Aval:
    """Return the type of one row of an array, or of one example: it is sharded as the other axes
    are."""
    row = make_aval(aval.shape[1:], aval.dtype, aval.weak_type)
    if not keeps_sharding(aval):
        return row
    return on_devices(row, _resharded(aval, mesh_sharding(aval).of_row(aval.ndim)))


def batched_aval(aval: Aval, size: int, operand_aval: Aval | None = None) -> Aval:
    """Return the type of a batch of arrays.

    If the examples are sharded, it is sharded as an operand of the type `operand_aval`, if there is
    one, and otherwise as the examples are.
    """
    wide = make_aval((size, *aval.shape), aval.dtype, aval.weak_type)
    if not keeps_sharding(aval):
        return wide
    if (
        operand_aval is not None
        and keeps_sharding(operand_aval)
        and operand_aval.shape == wide.shape
    ):
        return on_devices(wide, operand_aval.devices)
    return on_devices(wide, _resharded(aval, mesh_sharding(aval).behind_one(wide.ndim)))


def keeps_sharding(aval: Aval) -> bool:
    """Return whether the shards of a value matter for operations: on Explicit axes or on
    processes."""
    where = aval.devices
    return type(where) is ShardedDevices and (
        where.spans_processes or bool(where.sharding.mesh.explicit_axes)
    )


def mesh_sharding(aval: Aval) -> MeshSharding:
    """Return the sharding of a sharded value."""
    assert type(aval.devices) is ShardedDevices
    return aval.devices.sharding


def _describe_placement(a: Aval) -> str:
    where = ", ".join(map(str, a.devices or ()))
    return f"{a.dtype.name}[{','.join(map(str, a.shape))}] on {where}"


register_cache(
    "types",
    "types of arrays; those in use are kept",
    "type_cache_size",
    lambda: len(_INTERNED),
    lambda: 0,
    _release_types,
)
