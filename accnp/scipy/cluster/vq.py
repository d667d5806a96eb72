"""`accnp.scipy.cluster.vq`: vector quantisation, re-exported."""

from accnp.api.scientific.vector_codes import vq
from accnp.missing import nearest as _nearest

__all__ = ["vq"]

__getattr__ = _nearest(__name__, __all__)
