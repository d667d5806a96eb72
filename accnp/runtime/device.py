"""The devices of this process, by platform.

It takes the name of a platform and returns `Device` objects. The CPU is one device, or several that
share its memory and cores (`num_cpu_devices`), to try programs for many devices. If there are
several processes (`join`), each has one device. GPUs are looked up when a program first selects
them, by name or as the default (`config.default_device`, `config.platforms`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, TypeVar

from accnp.config import config, guards, listeners
from accnp.errors import api_boundary
from accnp.forks import renewed
from accnp.lazy_imports import imported

__all__ = [
    "Device", "check_has_local_device", "default_backend", "default_device", "device_count",
    "devices", "gpu_among", "gpu_possible", "local_device_count", "local_devices",
]  # fmt: skip


class Device:
    """Device on which arrays are stored and kernels run.

    Returned by `devices()`; users do not create devices.

    Parameters
    ----------
    platform : str
        "cpu" or "gpu".
    id : int
        Number of the device among those of its platform.
    device_kind : str
        Model of the processor.
    process_index : int, optional
        Process that the device belongs to. The default is this process.

    Examples
    --------
    >>> import accnp as jnp
    >>> device = jnp.devices("cpu")[0]
    >>> device, device.platform, device.id
    (CpuDevice(id=0), 'cpu', 0)
    """

    __slots__ = ("__weakref__", "device_kind", "id", "platform", "process_index")

    def __init__(
        self, platform: str, id: int, device_kind: str, process_index: int | None = None
    ) -> None:
        self.platform = platform
        self.id = id
        self.device_kind = device_kind
        self.process_index = process[0] if process_index is None else process_index

    @property
    def host_id(self) -> int:
        """The process that owns the device."""
        return self.process_index

    @property
    def local_hardware_id(self) -> int:
        """The number of the device among those of its process."""
        return self.id if process[1] == 1 or self.platform != "cpu" else 0

    @property
    def compute_capability(self) -> str:
        """The compute capability of a GPU, such as "9.0"."""
        if self.platform == "cpu":
            raise AttributeError(f"Device.compute_capability: {self} is not a GPU")
        buffers = imported("accnp.runtime.device_buffer")
        return ".".join(map(str, buffers.driver_of(self).cc))

    def memory_stats(self) -> dict[str, int] | None:
        """Return statistics of the memory of a GPU in bytes, and None for a CPU.

        Returns
        -------
        dict or None
            `bytes_in_use` by arrays, `pool_bytes` that the pool holds (in use or kept for reuse),
            and `bytes_limit`, the size of the memory.
        """
        if self.platform == "cpu":
            return None
        buffers = imported("accnp.runtime.device_buffer")
        stats = buffers.driver_of(self).stats()
        return {
            "bytes_in_use": buffers.live_bytes(self),
            "pool_bytes": stats["used"] + stats["kept"],
            "bytes_free": stats["free"],
            "bytes_limit": stats["total"],
        }

    def __repr__(self) -> str:
        return f"{_SHOWN[self.platform].capitalize()}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{_SHOWN[self.platform]}:{self.id}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _lookup, (self.platform, self.id)


process = 0, 1  # the index of this process, and how many there are; see `join`
_SHOWN = {"cpu": "cpu", "gpu": "cuda"}
_GPU, _OTHERS = ("gpu", "cuda"), ("rocm", "tpu", "metal")
_devices: dict[str, tuple[Device, ...]] = {}
_gpus: tuple[Any, tuple[Device, ...]] = (None, ())  # the drivers, and their devices
_lock = renewed(threading.Lock())
# Whether a GPU may be in use: one was found, or is selected as the default. If not, the devices of
# arrays are not checked.
gpu_possible = False


def _platforms() -> dict[str, tuple[Device, ...]]:
    """Return the devices by platform; the first call fixes their number."""
    if not _devices:
        with _lock:
            if not _devices:
                count = config.read("num_cpu_devices")
                _check_count(count)
                many = process[1] > 1  # each has one
                of = [*range(process[1])] if many else [0] * max(count, 1)
                _devices["cpu"] = tuple([Device("cpu", i, "cpu", p) for i, p in enumerate(of)])
    return _devices


def join(index: int, count: int) -> None:
    """Make this process one of several, each with one device of the CPU.

    Raises:
        RuntimeError: devices were used before, by a process that was not one of these.
    """
    global process
    if process == (index, count):  # connected again
        return
    if _devices and count > 1:
        raise RuntimeError(
            "distributed.initialize: it must be called before devices are used; got a program that "
            "has used them; call it first, right after the import"
        )
    if count > 1 and config.read("num_cpu_devices") > 1:
        raise RuntimeError(
            "distributed.initialize: each of several processes has one device of the CPU; got "
            f"num_cpu_devices={config.read('num_cpu_devices')}; start more processes in its place"
        )
    process = index, count


def process_index() -> int:
    """The index of this process."""
    return process[0]


_Devices = TypeVar("_Devices", bound="Sequence[Device]")


def check_has_local_device(where: _Devices, function: str) -> _Devices:
    """Return devices, of which one at least belongs to this process.

    Raises:
        ValueError: all belong to others.
    """
    index, count = process
    if count > 1 and all(d.process_index != index for d in where):
        raise ValueError(
            f"{function}: it takes a Device or a Sharding which represents addressable devices; "
            f"got {', '.join(map(str, where))} in process {index}; use one of local_devices(), or "
            "a NamedSharding over the devices of all processes"
        )
    return where


def _check_count(count: int) -> None:
    if count < 1 and count != -1:
        raise ValueError(
            f"config: num_cpu_devices must be at least 1; got {count}; pass a positive number"
        )


def _check_devices_not_made(count: int) -> None:
    """Reject a change of the number of devices after they have been made."""
    _check_count(count)
    if _devices and max(count, 1) != len(_devices["cpu"]):
        raise RuntimeError(
            "config: num_cpu_devices can only be set before devices are used; got "
            f"{count} where there are {len(_devices['cpu'])}; set it right after the import, or in "
            "ACCNP_NUM_CPU_DEVICES"
        )


guards["num_cpu_devices"] = _check_devices_not_made


def _lookup(platform: str, id: int) -> Device:
    return _find_devices("Device", platform)[id]


def _find_devices(function: str, backend: str | None) -> tuple[Device, ...]:
    name = _platform_from_config() if backend is None else backend
    if name == "cpu":
        return _platforms()["cpu"]
    if name in _GPU:
        return _gpu_devices(function, name)
    missing = "accnp has no kernels for it" if name in _OTHERS else "the platform is unknown"
    raise RuntimeError(
        f"{function}: Unknown backend {name}: backend {name!r} is not available: {missing}; "
        f"got backend={name!r}; use one of: cpu, gpu"
    )


def _gpu_devices(function: str, name: str) -> tuple[Device, ...]:
    """Return the GPUs, which the first call looks up.

    Raises:
        RuntimeError: there is no GPU, or software to use it is missing.
    """
    global _gpus, gpu_possible
    source = imported("accnp.runtime.driver")
    try:
        drivers = source.drivers()
    except source.GPUUnavailable as error:
        raise RuntimeError(
            f"{function}: backend {name!r} is not available: {error}, or use the cpu"
        ) from error
    with _lock:
        if _gpus[0] is not drivers:
            _gpus = drivers, tuple([Device("gpu", i, d.kind) for i, d in enumerate(drivers)])
        gpu_possible = True
    return _gpus[1]


def default_device() -> Device:
    """Return the device of arrays that were not put on a device explicitly."""
    chosen = config.default_device
    if chosen is None or isinstance(chosen, str):
        return _local_devices(_find_devices("default_device", chosen))[0]
    return chosen


def _local_devices(all_devices: tuple[Device, ...]) -> tuple[Device, ...]:
    """The devices of this process."""
    return (
        all_devices
        if process[1] == 1
        else tuple([d for d in all_devices if d.process_index == process[0]])
    )


def default_cpu(devices: Sequence[Device] | None) -> Device:
    """Return the CPU among these devices (of an aval), or the default one if they are None."""
    where = default_device() if devices is None else devices[0]
    return where if where.platform == "cpu" else _local_devices(_platforms()["cpu"])[0]


def gpu_among(devices: Sequence[Device] | None) -> Device | None:
    """Return the GPU among these devices (of an aval), or the default device if they are None; None
    for the CPU."""
    where = default_device() if devices is None else devices[0]
    return None if where.platform == "cpu" else where


@api_boundary
def devices(backend: str | None = None) -> list[Device]:
    """List all devices of a backend.

    Parameters
    ----------
    {backend}

    Returns
    -------
    list of Device
        At least one device.

    Raises
    ------
    {raises_backend}

    See Also
    --------
    local_devices : Devices of one process.
    device_count : Number of devices.
    default_backend : Name of the default backend.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.devices("cpu")[0].platform
    'cpu'
    """
    return list(_find_devices("devices", backend))


@api_boundary
def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """List the devices of one process, by default of this one.

    Parameters
    ----------
    process_index : int, optional
        Process whose devices are listed. The default is this process.
    {backend}
    host_id : int, optional
        Old name of `process_index`.

    Returns
    -------
    list of Device
        At least one device.

    Raises
    ------
    ValueError
        If there is no process with this index.
    RuntimeError
        If the backend is unknown.

    See Also
    --------
    devices : Devices of all processes.
    local_device_count : Number of these devices.

    Examples
    --------
    >>> import accnp as jnp
    >>> len(jnp.local_devices(backend="cpu")) == jnp.local_device_count("cpu")
    True
    """
    process_index = host_id if process_index is None else process_index
    index = process[0] if process_index is None else process_index
    if index not in range(process[1]):
        raise ValueError(
            f"local_devices: there are processes 0 to {process[1] - 1}; got "
            f"process_index={process_index}; use one of them"
        )
    return [d for d in _find_devices("local_devices", backend) if d.process_index == index]


@api_boundary
def device_count(backend: str | None = None) -> int:
    """Return the number of devices of a backend.

    Parameters
    ----------
    {backend}

    Returns
    -------
    int
        Number of devices, at least 1.

    Raises
    ------
    {raises_backend}

    See Also
    --------
    devices : List of the devices.
    local_device_count : Number of devices of this process.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.device_count("cpu") == len(jnp.devices("cpu"))
    True
    """
    return len(_find_devices("device_count", backend))


@api_boundary
def local_device_count(backend: str | None = None) -> int:
    """Return the number of devices of a backend in this process.

    Parameters
    ----------
    {backend}

    Returns
    -------
    int
        Number of devices, at least 1.

    Raises
    ------
    {raises_backend}

    See Also
    --------
    local_devices : List of these devices.
    device_count : Number of devices of all processes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.local_device_count("cpu") == len(jnp.devices("cpu"))
    True
    """
    return len(_local_devices(_find_devices("local_device_count", backend)))


def default_backend() -> str:
    """Return the name of the platform that is used when none is given.

    It is "cpu", unless `config.platforms` (`ACCNP_PLATFORM`) names another one first.

    Returns
    -------
    str
        "cpu" or "gpu".

    Raises
    ------
    RuntimeError
        If that platform cannot be used. The message says what is missing.

    See Also
    --------
    devices : List of the devices.
    default_device : Choose a device for a part of a program.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.default_backend() in ("cpu", "gpu")
    True
    """
    return _find_devices("default_backend", None)[0].platform


def _platform_from_config() -> str:
    setting = config.platforms or config.platform_name
    if not setting:
        return "cpu"
    name = setting.split(",")[0].strip()
    return "gpu" if name in _GPU else name


def _refresh() -> None:
    """Update `gpu_possible`: whether a GPU was found, or is selected."""
    global gpu_possible
    named = [*config.anywhere("platforms"), *config.anywhere("platform_name")]
    named += config.anywhere("default_device")
    gpu_names = [x for x in named if x and str(x).split(",")[0].split(":")[0] != "cpu"]
    if not _gpus[1]:
        gpu_possible = bool(gpu_names)
    if _gpus[1]:  # another thread may have found GPUs meanwhile
        gpu_possible = True


listeners.append(_refresh)
_refresh()
