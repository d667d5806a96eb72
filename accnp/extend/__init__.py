"""`accnp.extend`: what libraries build on: primitives, jaxprs, their evaluation."""

from accnp.extend import backend, core, linear_util, random, source_info_util
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["backend", "core", "linear_util", "random", "source_info_util"]

_install_getattr(__name__, __all__)
