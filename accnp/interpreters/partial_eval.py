"""`accnp.interpreters.partial_eval`: dead code of jaxprs."""

from accnp.api.jaxprs.tracing import dce_jaxpr
from accnp.missing import nearest

__all__ = ["dce_jaxpr"]

__getattr__ = nearest(__name__, __all__)
