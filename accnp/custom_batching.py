"""`accnp.custom_batching`: functions with a batching rule of the user's."""

from accnp.api.mapping.custom_vmap import custom_vmap, sequential_vmap
from accnp.missing import nearest as _nearest

__all__ = ["custom_vmap", "sequential_vmap"]

__getattr__ = _nearest(__name__, __all__)
