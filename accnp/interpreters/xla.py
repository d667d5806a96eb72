"""`accnp.interpreters.xla`: applying a primitive by its lowering; types that stand for arrays."""

from accnp.api.arguments.convert import canonicalize_dtype_handlers
from accnp.api.jaxprs.interpreters import apply_primitive
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["apply_primitive", "canonicalize_dtype_handlers"]

_install_getattr(__name__, __all__)
