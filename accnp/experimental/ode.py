"""`accnp.experimental.ode`: ordinary differential equations, re-exported."""

from accnp.api.flow.odes import odeint
from accnp.missing import nearest

__all__ = ["odeint"]

__getattr__ = nearest(__name__, __all__)
