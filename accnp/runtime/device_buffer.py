"""Memory of a GPU with the interface of `Buffer`.

It creates `DeviceBuffer`s from sizes and from buffers of the host. A buffer is available as soon as
the kernel that fills it has been launched. Reading its values (`view`) waits for the kernel and
returns a copy in host memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from accnp.runtime import buffer as pool
from accnp.runtime.buffer import Buffer
from accnp.runtime.device import Device
from accnp.runtime.driver import Driver, Memory, add_failure_note, drivers

if TYPE_CHECKING:
    from collections.abc import Hashable

    from accnp.runtime.driver import DeviceArray, Event

__all__ = [
    "DeviceBuffer", "copy", "driver_of", "empty", "live_bytes", "move", "retry_after_freeing",
    "wrap_foreign_array",
]  # fmt: skip

_R = TypeVar("_R")

SMALL = 16  # bytes of the largest value that is cached on the device: literals of programs
KEPT = 4096  # values in that cache
HELD = 1 << 16  # bytes of the largest host copy that is cached

# Live buffers by id: device, bytes, and the name of the operation that made it.
_live: dict[int, tuple[Device, int, str]] = {}
_small: dict[tuple[Hashable, bytes], DeviceBuffer] = {}


def driver_of(device: Device) -> Driver:
    """Return the driver of a GPU."""
    return drivers()[device.id]


class DeviceBuffer(Buffer):
    """Memory on a GPU; `ptr` is its address there.

    Attributes:
        device: the GPU.
        event: the driver's event after the work that fills it; None if `view` waits for that work
            anyway.
        name_and_site: the name of the operation that made the values, and the user's line that
            recorded it, if known.
    """

    __slots__ = ("_host", "_own", "device", "event", "name_and_site")
    memory: Memory

    def __init__(
        self, device: Device, ptr: int, nbytes: int, memory: Memory, own: bool, made_by: str = ""
    ) -> None:
        super().__init__(ptr, nbytes, memory)
        self._own = own
        self.device = device
        self.event: Event | None = None
        self.name_and_site: tuple[str, object] | None = None
        self._host: Buffer | None = None
        if own:
            _live[id(self)] = device, nbytes, made_by

    def __del__(self) -> None:
        # The memory is freed with the last reference to it; it does not belong to the host's pool.
        # The table is None while the interpreter shuts down.
        if self._own and _live is not None:  # pyright: ignore[reportUnnecessaryComparison]
            _live.pop(id(self), None)

    @property
    def pooled(self) -> bool:
        """Whether the memory belongs to the driver's pool."""
        return self._own

    @property
    def driver(self) -> Driver:
        """The driver of its device."""
        return driver_of(self.device)

    def wait(self) -> None:
        """Wait until the values are computed."""
        if self.event is not None:
            self.driver.wait(self.event)

    def done(self) -> bool:
        """Return whether the values are computed."""
        return self.event is None or self.driver.done(self.event)

    def host(self) -> Buffer:
        """Return a copy of the values in the memory of the host; waits for them."""
        if self._host is not None:
            return self._host
        buffer = pool.empty(self.nbytes)
        if self.nbytes:
            bytes_ = buffer.view((self.nbytes,), np.uint8, writeable=True)
            self.driver.copy_out(self.memory, self.ptr - self.memory.ptr, bytes_, self.event)
        if self.nbytes <= HELD:
            self._host = buffer
        return buffer

    def mark_written(self) -> None:
        """Discard the cached host copy, because a kernel has written to the memory."""
        self._host = None

    def view(
        self, shape: Sequence[int], dtype: np.dtype | type, writeable: bool = False
    ) -> np.ndarray:
        """Return a NumPy array of a copy of the values; waits for them."""
        return self.host().view(shape, dtype, writeable)

    def part(self, offset: int, nbytes: int) -> DeviceBuffer:
        """Return a buffer over a part of the memory; it keeps the whole memory alive."""
        return DeviceBuffer(self.device, self.ptr + offset, nbytes, self.memory, False)

    def array(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: Sequence[int] | None = None,
        offset: int = 0,
    ) -> DeviceArray:
        """Return an array of the driver's library over the memory, from an offset in bytes on. It
        keeps the buffer, so that the memory is not reused while the array exists."""
        return self.driver.array(self, offset, shape, dtype, strides)

    def __repr__(self) -> str:
        return f"DeviceBuffer({self.device}, ptr={self.ptr:#x}, nbytes={self.nbytes})"


def empty(device: Device, nbytes: int, made_by: str = "") -> DeviceBuffer:
    """Return a buffer with unspecified contents; errors name `made_by` as the owner of the memory.

    If there is not enough memory, memory kept for reuse is freed before a second attempt.

    Raises:
        MemoryError: there is not enough; the message says what was requested and what holds memory.
    """
    alloc = driver_of(device).alloc
    memory = retry_after_freeing(device, lambda: alloc(nbytes or 1), nbytes)
    return DeviceBuffer(device, memory.ptr, nbytes, memory, True, made_by)


def retry_after_freeing(
    device: Device, make: Callable[[], _R], requested: int | None = None, who: str = "empty"
) -> _R:
    """Call a function that allocates memory. If there is not enough, memory kept for reuse is freed
    before a second attempt.

    Raises:
        MemoryError: there is not enough; the message says what was requested, by which function,
            and what holds memory.
    """
    try:
        return make()
    except MemoryError:
        _small.clear()
        driver_of(device).free_all()
    except RuntimeError as error:
        add_failure_note(error)
        raise
    try:
        return make()
    except MemoryError as error:
        raise MemoryError(_too_large_message(device, requested, who, str(error))) from error


def _too_large_message(device: Device, requested: int | None, who: str, why: str) -> str:
    stats = driver_of(device).stats()
    sizes: Counter[str] = Counter()
    for where, nbytes, made_by in list(_live.values()):
        if where == device:
            sizes[made_by or "arrays from the host"] += nbytes
    most = "; ".join([f"{_size(n)} by {name}" for name, n in sizes.most_common(5)])
    what = "an array" if requested is not None else "a call of the GPU's library"
    request = (
        f"a request of {requested} bytes ({_size(requested)})"
        if requested is not None
        else f"'{why}'"
    )
    return (
        f"{who}: not enough memory on {device} for {what}; got {request} where "
        f"{_size(stats['free'])} of {_size(stats['total'])} are free, after "
        f"memory kept for reuse was freed; held: {most or 'nothing by accnp'}; delete arrays, "
        "donate arguments that are not needed any more, or process the data in parts"
    )


def _size(nbytes: int) -> str:
    size = float(nbytes)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


def move(source: Buffer, device: Device, made_by: str = "") -> DeviceBuffer:
    """Copy a buffer to a device, from the host or from another device. Waits only if it is copied
    between devices. Small values are cached on the device, since programs reuse their literals."""
    if isinstance(source, DeviceBuffer):
        if source.device == device:
            return source
        source = source.host()
    nbytes = source.nbytes
    data = source.view((nbytes,), np.uint8)
    key = (device, data.tobytes()) if nbytes <= SMALL else None
    buffer = _small.get(key) if key is not None else None
    if buffer is None:
        if not nbytes:
            return empty(device, 0, made_by)
        upload = driver_of(device).upload
        memory = retry_after_freeing(device, lambda: upload(data), nbytes)
        # A cached buffer is shared: it must not be written to.
        buffer = DeviceBuffer(device, memory.ptr, nbytes, memory, key is None, made_by)
        if key is not None:
            if len(_small) >= KEPT:
                _small.clear()
            _small[key] = buffer
    return buffer


def copy(source: DeviceBuffer, made_by: str = "") -> DeviceBuffer:
    """Return a copy on the same device."""
    fresh = empty(source.device, source.nbytes, made_by)
    if source.nbytes:
        source.driver.copy(fresh.ptr, source.ptr, source.nbytes)
    return fresh


def wrap_foreign_array(
    device: Device, array: DeviceArray, foreign: bool = False, made_by: str = ""
) -> DeviceBuffer:
    """Return a buffer over a C-contiguous array of the driver's library; `foreign`: other code may
    see its memory."""
    memory = driver_of(device).adopt(array)
    return DeviceBuffer(device, memory.ptr, array.nbytes, memory, not foreign, made_by)


def live_bytes(device: Device) -> int:
    """Return the bytes of the live buffers of a device."""
    return sum([nbytes for where, nbytes, _ in list(_live.values()) if where == device])
