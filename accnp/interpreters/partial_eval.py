"""`accnp.interpreters.partial_eval`: dead code of jaxprs."""

from accnp.api.jaxprs.tracing import dce_jaxpr
from accnp.missing import nearest as _nearest

__all__ = ["dce_jaxpr"]

__getattr__ = _nearest(__name__, __all__)
