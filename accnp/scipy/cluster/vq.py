"""`accnp.scipy.cluster.vq`: vector quantization, re-exported."""

from accnp.api.scientific.vector_codes import vq
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["vq"]

_install_getattr(__name__, __all__)
