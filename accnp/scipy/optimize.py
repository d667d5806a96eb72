"""`accnp.scipy.optimize`: minima of functions, re-exported one by one."""

from accnp.api.optimize.minimizing import OptimizeResults, minimize
from accnp.missing import nearest as _nearest

__all__ = ["OptimizeResults", "minimize"]

__getattr__ = _nearest(__name__, __all__)
