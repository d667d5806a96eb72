"""`accnp.scipy.integrate`: integrals of sampled functions, re-exported one by one.

>>> import accnp as jax
>>> jax.scipy.integrate.trapezoid(jax.numpy.arange(3.0))
Array(2., dtype=float32)
"""

from accnp.api.folds.statistics import trapezoid
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = [
    "trapezoid",
]

_install_getattr(__name__, __all__)
