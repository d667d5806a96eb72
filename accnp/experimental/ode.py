"""`accnp.experimental.ode`: ordinary differential equations, re-exported."""

from accnp.api.flow.odes import odeint
from accnp.missing import nearest as _nearest

__all__ = ["odeint"]

__getattr__ = _nearest(__name__, __all__)
