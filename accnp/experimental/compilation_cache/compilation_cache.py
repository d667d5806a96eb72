"""`accnp.experimental.compilation_cache.compilation_cache`: sets the folder of compiled kernels."""

from __future__ import annotations

from accnp.config import config
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["set_cache_dir"]


def set_cache_dir(path: str) -> None:
    """Store compiled kernels in a folder: `config.update("cache_dir", path)`.

    Parameters
    ----------
    path : str
        Folder to use. If it cannot be written to, the first compilation gives a warning.

    Raises
    ------
    ValueError
        If the path is not a string.

    See Also
    --------
    config.update : Set an option.

    Examples
    --------
    >>> import accnp
    >>> from accnp.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.set_cache_dir(accnp.config.cache_dir)
    """
    config.update("cache_dir", path)


_install_getattr(__name__, __all__)
