"""`accnp.interpreters.xla`: applying a primitive by its lowering; types that stand for arrays."""

from accnp.api.arguments.convert import canonicalize_dtype_handlers
from accnp.api.jaxprs.interpreters import apply_primitive
from accnp.missing import nearest as _nearest

__all__ = ["apply_primitive", "canonicalize_dtype_handlers"]

__getattr__ = _nearest(__name__, __all__)
