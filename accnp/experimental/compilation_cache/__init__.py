"""`accnp.experimental.compilation_cache`: where compiled kernels are kept."""

from accnp.experimental.compilation_cache import compilation_cache

__all__ = ["compilation_cache"]
