"""Share arrays on GPUs with other libraries, without copies.

It exports a `DeviceBuffer` with a shape and a dtype as a DLPack capsule or
`__cuda_array_interface__`, and imports arrays of CuPy, PyTorch, or another library as buffers over
their memory. Both protocols name the stream that computes the values, so that the consumer's stream
waits for it; the host does not wait.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from accnp.runtime import buffer as pool
from accnp.runtime.device import Device, devices
from accnp.runtime.device_buffer import DeviceBuffer, driver_of, wrap_foreign_array

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

    from accnp.runtime.buffer import DLPackArray, DLPackOptions
    from accnp.runtime.driver import DeviceArray

    class MemoryOptions(TypedDict, total=False):
        """The arguments of `__dlpack__` except the stream."""

        max_version: tuple[int, int] | None
        dl_device: tuple[int, int] | None
        copy: bool | None


__all__ = ["cuda_array_interface", "import_gpu_array", "is_gpu_array", "to_dlpack"]

CUDA, MANAGED = 2, 13  # device types of DLPack


# Buffers whose addresses were exported, by the ids of their arrays. A consumer holds the array, but
# the array may be donated meanwhile.
_exported: dict[int, tuple[weakref.ref[Any], DeviceBuffer]] = {}


def cuda_array_interface(
    array: object, buffer: DeviceBuffer, shape: tuple[int, ...], dtype: np.dtype
) -> dict[str, Any]:
    """Return `__cuda_array_interface__` (version 3) of an array's buffer. The buffer then lives as
    long as the array, and is never overwritten.

    Raises:
        TypeError: the protocol does not have the dtype.
    """
    if dtype.kind == "V" or dtype.isbuiltin != 1:
        raise TypeError(
            f"__cuda_array_interface__: the protocol does not have this dtype; got {dtype.name}; "
            "use DLPack"
        )
    key = id(array)
    if key not in _exported:
        _exported[key] = weakref.ref(array, lambda _: _exported.pop(key, None)), buffer
    return {
        "shape": shape,
        "typestr": dtype.str,
        "data": (buffer.ptr, False),
        "strides": None,
        "stream": buffer.driver.stream or 1,
        "version": 3,
    }


def to_dlpack(
    buffer: DeviceBuffer,
    shape: tuple[int, ...],
    dtype: np.dtype,
    stream: int | None,
    **kwargs: Unpack[MemoryOptions],
) -> CapsuleType:
    """Return a DLPack capsule; `stream` is the stream of the consumer."""
    name = dtype.name if dtype.isbuiltin != 1 else ""
    plain = np.dtype(f"u{dtype.itemsize}") if name else dtype
    array = buffer.array(shape, plain)
    options: DLPackOptions = {**kwargs}
    if stream is not None:
        options["stream"] = stream
    return buffer.driver.call(lambda: pool.to_dlpack(array, name, **options))


def is_gpu_array(x: Any) -> bool:
    """Return whether another library's array is on a GPU."""
    if hasattr(x, "__cuda_array_interface__"):
        return True
    return hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) in (CUDA, MANAGED)


def import_gpu_array(
    x: Any, copy: bool | None = None
) -> tuple[DeviceBuffer, tuple[int, ...], np.dtype]:
    """Return a buffer over another library's array, its shape and its dtype. The buffer is a copy
    if `copy` is True or the array is not C-contiguous.

    Raises:
        BufferError: `copy` is False and the array is not C-contiguous.
    """
    if hasattr(x, "__dlpack_device__"):
        number = int(x.__dlpack_device__()[1])
        device = devices("gpu")[number]
        name, array = driver_of(device).call(lambda: _import_dlpack(device, x))
    else:
        # The interface does not name the device; the array library finds it by the address.
        first = devices("gpu")[0]
        name, array = "", driver_of(first).call(lambda: driver_of(first).xp.asarray(x))
        device = devices("gpu")[int(getattr(array.device, "id", 0))]
    mine = array
    if copy or not array.flags.c_contiguous:
        if copy is False:
            raise BufferError(
                "from_dlpack: the array must be C-contiguous to be shared; got strides "
                f"{array.strides} for shape {array.shape}; pass copy=None or copy=True"
            )
        mine = driver_of(device).call(lambda: array.copy(order="C"))
    dtype = np.dtype(mine.dtype)
    if name:
        dtype = pool.ml_dtype(name)
    buffer = wrap_foreign_array(device, mine, foreign=mine is array, made_by="another library")
    return buffer, tuple(array.shape), dtype


def _import_dlpack(device: Device, x: DLPackArray) -> tuple[str, DeviceArray]:
    """Return the array library's view, and the name of the dtype that its integers replace."""
    plain = pool.Plain(x)
    array = driver_of(device).xp.from_dlpack(plain)
    return plain.name, array
