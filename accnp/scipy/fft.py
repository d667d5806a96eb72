"""`accnp.scipy.fft`: discrete cosine transforms, re-exported one by one."""

from accnp.api.scientific.cosine import dct, dctn, idct, idctn
from accnp.missing import nearest as _nearest

__all__ = [
    "dct",
    "dctn",
    "idct",
    "idctn",
]

__getattr__ = _nearest(__name__, __all__)
