# isort: skip_file
"""`accnp.checkpoints`: pytrees of arrays in files, whole or sharded over processes.

>>> import tempfile
>>> import accnp as jax
>>> folder = tempfile.mkdtemp() + "/step-1"
>>> jax.checkpoints.save(folder, {"w": jax.numpy.arange(3)})
>>> jax.checkpoints.load(folder)
{'w': Array([0, 1, 2], dtype=int32)}
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.checkpoints.checkpoint_files import load, save
    from accnp.checkpoints.safetensors import load_safetensors, save_safetensors

__all__ = ["load", "load_safetensors", "save", "save_safetensors"]

_install_getattr(__name__, __all__)
