# isort: skip_file
"""`accnp.experimental`: names of `jax.experimental`, each loaded with its first use.

>>> from accnp.experimental import sparse
>>> import accnp as jax
>>> sparse.BCOO.fromdense(jax.numpy.eye(2))
BCOO(float32[2, 2], nse=2)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.api.effects.callbacks import io_callback
    from accnp.config import disable_jit, enable_x64
    from accnp.experimental import (
        checkify, compilation_cache, jet, layout, mesh_utils, multihost_utils, ode, optimizers,
        pallas, pjit, shard_map, sparse, xla_metadata,
    )  # fmt: skip

__all__ = [
    "checkify", "compilation_cache", "disable_jit", "enable_x64", "io_callback", "jet",
    "layout", "mesh_utils", "multihost_utils", "ode", "optimizers", "pallas", "pjit", "shard_map",
    "sparse", "xla_metadata",
]  # fmt: skip

_install_getattr(__name__, __all__)
