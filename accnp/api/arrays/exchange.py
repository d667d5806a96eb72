"""`jax.dlpack`: importing arrays of other libraries by DLPack, and which dtypes it supports."""

from __future__ import annotations

import numpy as np

from accnp.array_type import Array, DeviceLike
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.numpy.loading import from_dlpack as from_any

__all__ = ["from_dlpack", "is_supported_dtype"]

_NAMES = frozenset((
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128",
))  # fmt: skip


@api_boundary
def from_dlpack(
    external_array: object, device: DeviceLike = None, copy: bool | None = None
) -> Array:
    """Make an array from an object of another library with `__dlpack__`.

    Shape and dtype do not change.

    Parameters
    ----------
    external_array : object
        Array with the methods `__dlpack__` and `__dlpack_device__`.
    device : Device, optional
        Device to put the array on. The default is where it is.
    copy : bool, optional
        True always copies, and False never does. The default, None, copies if the memory is
        writable.

    Returns
    -------
    Array
        Array with the same elements, in shared memory unless it was copied.

    Raises
    ------
    TypeError
        If the object has no `__dlpack__`.
    BufferError
        If the memory cannot be accessed from here, or the dtype is not supported.

    See Also
    --------
    dlpack.is_supported_dtype : Whether a dtype can be exchanged.
    numpy.asarray : Convert any array-like object.

    Notes
    -----
    With `copy=False`, memory that another library can write to is shared. Do not use results that
    were recorded before such a write.

    Examples
    --------
    >>> import accnp as jax, numpy as np
    >>> x = np.arange(3.0, dtype=np.float32)
    >>> jax.dlpack.from_dlpack(x, copy=False)
    Array([0., 1., 2.], dtype=float32)
    """
    if not hasattr(external_array, "__dlpack__"):
        raise TypeError(
            f"from_dlpack: expected an array with __dlpack__; got {external_array!r}; use asarray"
        )
    return from_any(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Return whether arrays of a dtype can be exchanged with other libraries by DLPack.

    Parameters
    ----------
    dtype : dtype_like
        Type of the elements of an array.

    Returns
    -------
    bool
        Whether `from_dlpack` and `__dlpack__` accept it.

    Raises
    ------
    TypeError
        If the dtype is unknown.

    See Also
    --------
    dlpack.from_dlpack : Exchange an array.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dlpack.is_supported_dtype("bfloat16"), jax.dlpack.is_supported_dtype("int4")
    (True, False)
    """
    return np.dtype(dtype).name in _NAMES
