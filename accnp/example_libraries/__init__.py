"""`accnp.example_libraries`: small optimisers."""

from accnp.example_libraries import optimizers
from accnp.missing import nearest

__all__ = ["optimizers"]

__getattr__ = nearest(__name__, __all__)
