"""`accnp.scipy.optimize`: minima of functions, re-exported one by one.

>>> import accnp as jax
>>> found = jax.scipy.optimize.minimize(lambda x: x @ x, jax.numpy.ones(2), method="BFGS")
>>> bool(found.success)
True
"""

from accnp.api.optimize.minimizing import OptimizeResults, minimize
from accnp.missing import nearest as _nearest

__all__ = ["OptimizeResults", "minimize"]

__getattr__ = _nearest(__name__, __all__)
