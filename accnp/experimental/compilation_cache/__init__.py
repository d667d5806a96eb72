"""`accnp.experimental.compilation_cache`: the location of the cache of compiled kernels."""

from accnp.experimental.compilation_cache import compilation_cache

__all__ = ["compilation_cache"]
