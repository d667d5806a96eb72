"""Arrays on GPUs, handed to other libraries and taken from them, without a copy.

In: a `DeviceBuffer` and what it holds, or an array of CuPy's, PyTorch's... Out: DLPack capsules and
`__cuda_array_interface__`, or buffers over their memory. Both say on which stream the values are
made, so that the other side waits on its own stream for ours; the host waits for nothing.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from accnp.runtime import buffer as pool
from accnp.runtime.device import Device, devices
from accnp.runtime.device_buffer import DeviceBuffer, adopt, driver_of

__all__ = ["cuda_array_interface", "from_other", "on_gpu", "to_dlpack"]

CUDA, MANAGED = 2, 13  # DLPack's kinds of memory


# Buffers whose addresses others were told, by the ids of the arrays whose they are. Who took one
# keeps the array, which may be donated meanwhile.
_told: dict[int, tuple[weakref.ref, DeviceBuffer]] = {}


def cuda_array_interface(
    array: Any, buffer: DeviceBuffer, shape: tuple[int, ...], dtype: np.dtype
) -> dict[str, Any]:
    """What `__cuda_array_interface__` (version 3) says of an array's buffer, which then lives as
    long as the array and is never overwritten.

    Raises:
        TypeError: the protocol has no name for the type.
    """
    if dtype.kind == "V" or dtype.isbuiltin != 1:
        raise TypeError(
            f"__cuda_array_interface__: the protocol has no such type; got {dtype.name}; "
            "hand it over by DLPack"
        )
    key = id(array)
    if key not in _told:
        _told[key] = weakref.ref(array, lambda _: _told.pop(key, None)), buffer
    return {
        "shape": shape,
        "typestr": dtype.str,
        "data": (buffer.ptr, False),
        "strides": None,
        "stream": buffer.driver.stream or 1,
        "version": 3,
    }


def to_dlpack(
    buffer: DeviceBuffer, shape: tuple[int, ...], dtype: np.dtype, stream: Any, **kwargs: Any
) -> Any:
    """A DLPack capsule; `stream` is where the other side will work."""
    name = dtype.name if dtype.isbuiltin != 1 else ""
    plain = np.dtype(f"u{dtype.itemsize}") if name else dtype
    array = buffer.array(shape, plain)
    if stream is not None:
        kwargs["stream"] = stream
    return buffer.driver.call(lambda: pool.to_dlpack(array, name, **kwargs))


def on_gpu(x: Any) -> bool:
    """Whether another library's array lies on a GPU."""
    if hasattr(x, "__cuda_array_interface__"):
        return True
    return hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) in (CUDA, MANAGED)


def from_other(x: Any, copy: bool | None = None) -> tuple[DeviceBuffer, tuple[int, ...], np.dtype]:
    """A buffer over another library's array, its shape and its dtype; a copy where `copy` asks for
    one, or where the elements do not lie in order.

    Raises:
        BufferError: `copy` is False and they do not.
    """
    if hasattr(x, "__dlpack_device__"):
        number = int(x.__dlpack_device__()[1])
        device = devices("gpu")[number]
        name, array = driver_of(device).call(lambda: _through_dlpack(device, x))
    else:
        # The interface has no number; the array library finds it by the address.
        first = devices("gpu")[0]
        name, array = "", driver_of(first).call(lambda: driver_of(first).xp.asarray(x))
        device = devices("gpu")[int(getattr(array.device, "id", 0))]
    mine = array
    if copy or not array.flags.c_contiguous:
        if copy is False:
            raise BufferError(
                "from_dlpack: the elements must lie in order to be shared; got strides "
                f"{array.strides} for shape {array.shape}; let them be copied"
            )
        mine = driver_of(device).call(lambda: array.copy(order="C"))
    dtype = np.dtype(mine.dtype)
    if name:
        dtype = pool.small_type(name)
    made = adopt(device, mine, foreign=mine is array, made_by="another library")
    return made, tuple(array.shape), dtype


def _through_dlpack(device: Device, x: Any) -> tuple[str, Any]:
    """The array library's view of it, and the name of the type that its integers stand for."""
    plain = pool.Plain(x)
    array = driver_of(device).xp.from_dlpack(plain)
    return plain.name, array
