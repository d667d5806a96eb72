# isort: skip_file
"""`accnp.api_util`: functions with flattened arguments, for libraries that transform functions.

>>> import accnp as jax
>>> jax.api_util.shaped_abstractify(1)
ShapedArray(int32[], weak_type=True)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.jax_compat.tracing.flat_functions import (
        argnums_partial, debug_info, flatten_axes, flatten_fun, flatten_fun_nokwargs, safe_map,
        shaped_abstractify,
    )  # fmt: skip

__all__ = [
    "argnums_partial", "debug_info", "flatten_axes", "flatten_fun", "flatten_fun_nokwargs",
    "safe_map", "shaped_abstractify",
]  # fmt: skip

_install_getattr(__name__, __all__)
