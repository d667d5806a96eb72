"""Devices: a platform name comes in, `Device` objects go out.

The CPU is one device, or several that share its memory and its cores (`num_cpu_devices`), on which
programs for many devices can be tried.
"""

from __future__ import annotations

import threading

from accnp.config import config, guards

__all__ = [
    "Device",
    "default_backend",
    "device_count",
    "devices",
    "local_device_count",
    "local_devices",
]


class Device:
    """A place where arrays live and kernels run."""

    __slots__ = ("__weakref__", "device_kind", "id", "platform", "process_index")

    def __init__(self, platform: str, id: int, device_kind: str) -> None:
        self.platform = platform
        self.id = id
        self.device_kind = device_kind
        self.process_index = 0

    @property
    def host_id(self) -> int:
        """The process that owns the device."""
        return self.process_index

    @property
    def local_hardware_id(self) -> int:
        """The number of the device on its machine."""
        return self.id

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"

    def __reduce__(self) -> tuple:
        return _lookup, (self.platform, self.id)


_GPU_NAMES = ("gpu", "cuda", "rocm", "tpu", "metal")
_made: dict[str, tuple[Device, ...]] = {}
_lock = threading.Lock()


def _platforms() -> dict[str, tuple[Device, ...]]:
    """The devices by platform; how many there are is settled by the first look."""
    if not _made:
        with _lock:
            if not _made:
                count = config.read("num_cpu_devices")
                _check_count(count)
                _made["cpu"] = tuple([Device("cpu", i, "cpu") for i in range(max(count, 1))])
    return _made


def _check_count(count: int) -> None:
    if count < 1 and count != -1:
        raise ValueError(
            f"config: num_cpu_devices must be at least 1; got {count}; pass a positive number"
        )


def _settled(count: int) -> None:
    """Refuse another number of devices once they are made."""
    _check_count(count)
    if _made and max(count, 1) != len(_made["cpu"]):
        raise RuntimeError(
            "config: num_cpu_devices can only be set before devices are used; got "
            f"{count} where there are {len(_made['cpu'])}; set it right after the import, or in "
            "ACCNP_NUM_CPU_DEVICES"
        )


guards["num_cpu_devices"] = _settled


def _lookup(platform: str, id: int) -> Device:
    return _platforms()[platform][id]


def _all(function: str, backend: str | None) -> tuple[Device, ...]:
    known = _platforms()
    name = "cpu" if backend is None else backend
    found = known.get(name)
    if found is None:
        missing = (
            "accnp has no kernels for it on this machine yet"
            if name in _GPU_NAMES
            else "no such platform is known"
        )
        raise RuntimeError(
            f"{function}: backend {name!r} is not available: {missing}; got backend={name!r}; "
            f"use one of: {', '.join(sorted(known))}"
        )
    return found


def devices(backend: str | None = None) -> list[Device]:
    """All devices of a backend."""
    return list(_all("devices", backend))


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process; there is one process. `host_id` is the old name of its index."""
    process_index = host_id if process_index is None else process_index
    if process_index not in (None, 0):
        raise ValueError(
            f"local_devices: there is one process; got process_index={process_index}; use 0"
        )
    return list(_all("local_devices", backend))


def device_count(backend: str | None = None) -> int:
    """How many devices a backend has."""
    return len(_all("device_count", backend))


def local_device_count(backend: str | None = None) -> int:
    """How many devices of a backend this process has."""
    return len(_all("local_device_count", backend))


def default_backend() -> str:
    """The platform that is used when none is named."""
    return "cpu"
