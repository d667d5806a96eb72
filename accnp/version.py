"""`accnp.version`: the version of the package.

>>> import accnp as jax
>>> jax.version.__version__ == jax.__version__
True
"""

__version__ = "0.1.0"
__version_info__ = tuple(int(part) for part in __version__.split("."))

__all__ = ["__version__", "__version_info__"]
