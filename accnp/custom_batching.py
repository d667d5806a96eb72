# isort: skip_file
"""`accnp.custom_batching`: functions with a user-defined batching rule.

>>> import accnp as jax
>>> one_by_one = jax.custom_batching.sequential_vmap(lambda x: x + 1)
>>> jax.vmap(one_by_one)(jax.numpy.arange(2))
Array([1, 2], dtype=int32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.api.mapping.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]

_install_getattr(__name__, __all__)
