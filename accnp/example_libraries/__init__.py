"""`accnp.example_libraries`: small optimisers, layers."""

from accnp.example_libraries import optimizers, stax
from accnp.missing import nearest as _nearest

__all__ = ["optimizers", "stax"]

__getattr__ = _nearest(__name__, __all__)
