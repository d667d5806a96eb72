"""`accnp.scipy.integrate`: integrals of sampled functions, re-exported one by one.

>>> import accnp as jax
>>> jax.scipy.integrate.trapezoid(jax.numpy.arange(3.0))
Array(2., dtype=float32)
"""

from accnp.api.folds.statistics import trapezoid
from accnp.missing import nearest as _nearest

__all__ = [
    "trapezoid",
]

__getattr__ = _nearest(__name__, __all__)
