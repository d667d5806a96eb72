"""`accnp.experimental.jet`: Taylor series through functions, re-exported."""

from accnp.api.differentiation.taylor import jet
from accnp.missing import nearest as _nearest

__all__ = ["jet"]

__getattr__ = _nearest(__name__, __all__)
