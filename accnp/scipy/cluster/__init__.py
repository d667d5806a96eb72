"""`accnp.scipy.cluster`: vector quantisation."""

from accnp.missing import nearest as _nearest
from accnp.scipy.cluster import vq

__all__ = ["vq"]

__getattr__ = _nearest(__name__, __all__)
