# isort: skip_file
"""`accnp.scipy.fft`: discrete cosine transforms.

>>> import accnp as jax
>>> jax.scipy.fft.dct(jax.numpy.ones(2)).shape
(2,)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.fft.cosine_transforms import dct, dctn, idct, idctn

__all__ = [
    "dct", "dctn", "idct", "idctn",
]  # fmt: skip

_install_getattr(__name__, __all__)
