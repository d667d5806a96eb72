"""`accnp.flatten_util`: trees of arrays as one vector."""

from accnp.api.arrays.raveling import ravel_pytree

__all__ = ["ravel_pytree"]
