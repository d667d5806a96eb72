"""`accnp.example_libraries`: small optimizers, layers."""

from accnp.example_libraries import optimizers, stax
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["optimizers", "stax"]

_install_getattr(__name__, __all__)
