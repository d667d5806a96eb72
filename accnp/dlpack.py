# isort: skip_file
"""`accnp.dlpack`: exchange of arrays with other libraries.

>>> import accnp as jax, numpy as np
>>> jax.dlpack.from_dlpack(np.arange(3, dtype="int32"))
Array([0, 1, 2], dtype=int32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.api.arrays.exchange import from_dlpack, is_supported_dtype

__all__ = ["from_dlpack", "is_supported_dtype"]

_install_getattr(__name__, __all__)
