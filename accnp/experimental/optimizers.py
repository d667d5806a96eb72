"""`accnp.experimental.optimizers`: where `example_libraries.optimizers` used to be."""

from accnp.example_libraries.optimizers import *  # noqa: F403
from accnp.example_libraries.optimizers import __all__ as __all__
