# isort: skip_file
"""`accnp.ffi`: calls of compiled functions of users.

>>> import accnp as jax, ctypes
>>> capsule = jax.ffi.pycapsule(ctypes.CDLL(None).free)
>>> jax.ffi.register_ffi_target("my.free", capsule, api_version=0)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.api.effects.foreign import (
        build_ffi_lowering_function, ffi_call, ffi_lowering, include_dir, pycapsule,
        register_ffi_target, register_ffi_target_as_batch_partitionable, register_ffi_type,
        register_ffi_type_id,
    )  # fmt: skip

__all__ = [
    "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule",
    "register_ffi_target", "register_ffi_target_as_batch_partitionable", "register_ffi_type",
    "register_ffi_type_id",
]  # fmt: skip

_install_getattr(__name__, __all__)
