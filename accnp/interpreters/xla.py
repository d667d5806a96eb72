"""`accnp.interpreters.xla`: applying a primitive by its lowering."""

from accnp.api.jaxprs.interpreters import apply_primitive
from accnp.missing import nearest as _nearest

__all__ = ["apply_primitive"]

__getattr__ = _nearest(__name__, __all__)
