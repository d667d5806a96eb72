"""DLPack: arrays from other libraries, and which types go that way. In: their arrays. Out: ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.api.arrays.loading import from_dlpack as from_any
from accnp.array import Array
from accnp.errors import api_boundary

__all__ = ["from_dlpack", "is_supported_dtype"]

_NAMES = frozenset((
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128",
))  # fmt: skip


@api_boundary
def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """Make an array of one of another library, by `__dlpack__`; shape and dtype stay.

    Its memory is shared where nobody can write to it, and where `copy=False` asks for it; then
    whoever writes to it must not use results recorded before.

    Args:
        external_array: has `__dlpack__` and `__dlpack_device__`.
        device: where to put it.
        copy: True: always; False: never; None: where somebody may write to the memory.

    Raises:
        TypeError: it has no `__dlpack__`.
        BufferError: it lies on another machine's memory, or its type does not go that way.

    Example:
        >>> import accnp as jax, numpy as np
        >>> x = np.arange(3.0, dtype=np.float32)
        >>> jax.dlpack.from_dlpack(x, copy=False)
        Array([0., 1., 2.], dtype=float32)
    """
    if not hasattr(external_array, "__dlpack__"):
        raise TypeError(
            f"from_dlpack: an array with __dlpack__ is needed; got {external_array!r}; use asarray"
        )
    return from_any(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged with every library.

    A TypeError if there is no such dtype.

    Example:
        >>> import accnp as jax
        >>> jax.dlpack.is_supported_dtype("bfloat16"), jax.dlpack.is_supported_dtype("int4")
        (True, False)
    """
    return np.dtype(dtype).name in _NAMES
