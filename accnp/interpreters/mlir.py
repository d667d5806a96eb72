"""`accnp.interpreters.mlir`: how primitives are compiled. Lowerings are functions that are traced;
there is no MLIR."""

from accnp.api.jaxprs.interpreters import lower_fun, register_lowering
from accnp.missing import nearest as _nearest

__all__ = ["lower_fun", "register_lowering"]

__getattr__ = _nearest(__name__, __all__)
