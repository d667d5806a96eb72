"""`accnp.scipy.fft`: discrete cosine transforms, re-exported one by one.

>>> import accnp as jax
>>> jax.scipy.fft.dct(jax.numpy.ones(2)).shape
(2,)
"""

from accnp.api.scientific.cosine import dct, dctn, idct, idctn
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = [
    "dct",
    "dctn",
    "idct",
    "idctn",
]

_install_getattr(__name__, __all__)
