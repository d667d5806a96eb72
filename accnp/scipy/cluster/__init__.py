# isort: skip_file
"""`accnp.scipy.cluster`: vector quantization.

>>> import accnp as jax
>>> points, codes = jax.numpy.array([[0.0], [9.0]]), jax.numpy.array([[1.0], [8.0]])
>>> jax.scipy.cluster.vq.vq(points, codes)[0]
Array([0, 1], dtype=int32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.cluster import vq

__all__ = ["vq"]

_install_getattr(__name__, __all__)
