"""`accnp.version`: the version of the package."""

from accnp import __version__

__version_info__ = tuple(int(part) for part in __version__.split("."))

__all__ = ["__version__", "__version_info__"]
