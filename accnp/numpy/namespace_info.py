"""The inspection API of the array API standard: version, capabilities, devices and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp import dtypes
from accnp.config import config
from accnp.runtime.device import devices

__all__ = ["API_VERSION", "API_VERSIONS", "NamespaceInfo", "namespace_info"]

API_VERSION = "2025.12"
# Each version adds to the one before, so that the same module serves all of them.
API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", API_VERSION)
_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
_KINDS = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}
_WIDE = ("int64", "uint64", "float64", "complex128")


class NamespaceInfo:
    """Result of `__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, Any]:
        """Return which optional parts of the standard are supported, also in `jit`."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """Return None: arrays are not committed to a device by default."""

    def devices(self) -> list[Any]:
        """Return the devices, and None for the default one."""
        return [None, *devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """Return the dtypes that functions choose."""
        real = dtypes.default_float()
        wide = real == np.float64
        return {
            "real floating": real,
            "complex floating": np.dtype(np.complex128 if wide else np.complex64),
            "integral": np.dtype(np.int64 if wide else np.int32),
            "indexing": np.dtype(np.int64 if wide else np.int32),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """Return the dtypes of a kind, of several kinds, or all."""
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        unknown = [k for k in kinds if k not in _KINDS]
        if unknown:
            raise ValueError(
                f"dtypes: unknown kind of dtype; got {unknown[0]!r}; pass one of {list(_KINDS)}"
            )
        names = [name for k in kinds for name in _KINDS[k]]
        return {n: np.dtype(n) for n in names if config.enable_x64 or n not in _WIDE}


def namespace_info() -> NamespaceInfo:
    """Describe this namespace to code written for the array API standard.

    Returns
    -------
    NamespaceInfo
        Object with the methods `capabilities`, `default_device`, `default_dtypes`, `devices` and
        `dtypes` of the standard.

    See Also
    --------
    numpy.ndarray : Class of arrays.

    Examples
    --------
    >>> import accnp.numpy as jnp
    >>> jnp.__array_namespace_info__().default_dtypes()["integral"]
    dtype('int32')
    """
    return NamespaceInfo()
