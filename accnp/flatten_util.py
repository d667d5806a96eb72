"""`accnp.flatten_util`: trees of arrays as one vector."""

from accnp.api.arrays.raveling import ravel_pytree
from accnp.missing import install_getattr as _install_getattr

__all__ = ["ravel_pytree"]

_install_getattr(__name__, __all__)
