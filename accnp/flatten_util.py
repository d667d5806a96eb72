"""`accnp.flatten_util`: trees of arrays as one vector."""

from accnp.api.arrays.raveling import ravel_pytree
from accnp.missing import nearest as _nearest

__all__ = ["ravel_pytree"]

__getattr__ = _nearest(__name__, __all__)
