"""`accnp.extend`: what libraries build on: primitives, jaxprs, their evaluation."""

from accnp.extend import backend, core, linear_util, random, source_info_util
from accnp.missing import nearest as _nearest

__all__ = ["backend", "core", "linear_util", "random", "source_info_util"]

__getattr__ = _nearest(__name__, __all__)
