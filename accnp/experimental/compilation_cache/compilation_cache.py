"""`accnp.experimental.compilation_cache.compilation_cache`: the folder of compiled kernels."""

from __future__ import annotations

from accnp.config import config
from accnp.missing import install_getattr as _install_getattr

__all__ = ["set_cache_dir"]


def set_cache_dir(path: str) -> None:
    """Keep compiled kernels in a folder: `config.update("cache_dir", path)`.

    Errors: none here; a folder that cannot be written to means a warning at the first compile.

    Example:
        >>> import accnp
        >>> from accnp.experimental.compilation_cache import compilation_cache
        >>> compilation_cache.set_cache_dir(accnp.config.cache_dir)
    """
    config.update("cache_dir", path)


_install_getattr(__name__, __all__)
