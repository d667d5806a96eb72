"""`accnp.flatten_util`: conversion of a pytree of arrays to one vector and back."""

from accnp.api.arrays.raveling import ravel_pytree
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["ravel_pytree"]

_install_getattr(__name__, __all__)
