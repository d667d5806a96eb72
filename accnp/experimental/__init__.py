"""`accnp.experimental`: names of `jax.experimental`."""

from accnp.api.callbacks import io_callback

__all__ = ["io_callback"]
