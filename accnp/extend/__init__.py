"""`accnp.extend`: what libraries build on: primitives, jaxprs, their evaluation."""

from accnp.extend import core, linear_util
from accnp.missing import nearest as _nearest

__all__ = ["core", "linear_util"]

__getattr__ = _nearest(__name__, __all__)
