"""`accnp.experimental.optimizers`: a former name of `example_libraries.optimizers`."""

from accnp.example_libraries.optimizers import *  # noqa: F403
from accnp.example_libraries.optimizers import __all__ as __all__
from accnp.module_getattr import install_getattr as _install_getattr

_install_getattr(__name__, __all__)
