"""`accnp.scipy.cluster`: vector quantisation."""

from accnp.missing import nearest
from accnp.scipy.cluster import vq

__all__ = ["vq"]

__getattr__ = nearest(__name__, __all__)
