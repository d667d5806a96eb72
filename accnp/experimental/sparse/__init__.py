"""`accnp.experimental.sparse`: names of `jax.experimental.sparse`."""

from accnp.experimental.sparse import linalg
from accnp.missing import nearest

__all__ = ["linalg"]

__getattr__ = nearest(__name__, __all__)
