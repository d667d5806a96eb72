"""Devices: a platform name comes in, `Device` objects go out. There is one CPU device."""

from __future__ import annotations


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
        return f"TFRT_{self.platform.upper()}_{self.id}"

    def __reduce__(self) -> tuple:
        return _lookup, (self.platform, self.id)


CPU = Device("cpu", 0, "cpu")
_DEVICES: dict[str, tuple[Device, ...]] = {"cpu": (CPU,)}
_GPU_NAMES = ("gpu", "cuda", "rocm", "tpu", "metal")


def _lookup(platform: str, id: int) -> Device:
    return _DEVICES[platform][id]


def _all(function: str, backend: str | None) -> tuple[Device, ...]:
    name = "cpu" if backend is None else backend
    found = _DEVICES.get(name)
    if found is None:
        known = ", ".join(sorted(_DEVICES))
        missing = (
            "accnp has no kernels for it on this machine yet"
            if name in _GPU_NAMES
            else "no such platform is known"
        )
        raise RuntimeError(
            f"{function}: backend {name!r} is not available: {missing}; got backend={name!r}; "
            f"use one of: {known}"
        )
    return found


def devices(backend: str | None = None) -> list[Device]:
    """All devices of a backend."""
    return list(_all("devices", backend))


def local_devices(process_index: int | None = None, backend: str | None = None) -> list[Device]:
    """The devices of this process; there is one process."""
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
