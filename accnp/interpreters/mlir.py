"""`accnp.interpreters.mlir`: how primitives are compiled. Lowerings are functions that are traced;
there is no MLIR."""

from accnp.api.jaxprs.interpreters import lower_fun, register_lowering
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["lower_fun", "register_lowering"]

_install_getattr(__name__, __all__)
