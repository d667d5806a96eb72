"""`accnp.experimental.jet`: Taylor series through functions, re-exported."""

from accnp.api.differentiation.taylor import jet
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["jet"]

_install_getattr(__name__, __all__)
