"""`accnp.experimental.optimizers`: where `example_libraries.optimizers` used to be."""

from accnp.example_libraries.optimizers import *  # noqa: F403
from accnp.example_libraries.optimizers import __all__ as __all__
from accnp.missing import nearest as _nearest

__getattr__ = _nearest(__name__, __all__)
