"""`accnp.example_libraries`: small optimisers."""

from accnp.example_libraries import optimizers
from accnp.missing import nearest as _nearest

__all__ = ["optimizers"]

__getattr__ = _nearest(__name__, __all__)
