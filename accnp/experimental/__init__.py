"""`accnp.experimental`: names of `jax.experimental`."""

from accnp.api.callbacks import io_callback
from accnp.experimental import checkify

__all__ = ["checkify", "io_callback"]
