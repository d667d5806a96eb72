"""`accnp.interpreters.partial_eval`: partial evaluation, and dead code of jaxprs."""

from accnp.api.jaxprs.partial import PartialVal, trace_to_jaxpr_dynamic, trace_to_jaxpr_nounits
from accnp.api.jaxprs.tracing import dce_jaxpr
from accnp.missing import nearest as _nearest

__all__ = ["PartialVal", "dce_jaxpr", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"]

__getattr__ = _nearest(__name__, __all__)
