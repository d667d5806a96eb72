"""`accnp.interpreters.xla`: applying a primitive by its lowering."""

from accnp.api.jaxprs.interpreters import apply_primitive
from accnp.missing import nearest

__all__ = ["apply_primitive"]

__getattr__ = nearest(__name__, __all__)
