"""`accnp.experimental.ode`: ordinary differential equations, re-exported."""

from accnp.api.flow.odes import odeint
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["odeint"]

_install_getattr(__name__, __all__)
