"""`accnp.debug`: printing and calling functions from programs while they run."""

from accnp.api.debug import callback, log, print

__all__ = ["callback", "log", "print"]
