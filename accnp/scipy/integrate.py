"""`accnp.scipy.integrate`: integrals of sampled functions, re-exported one by one."""

from accnp.api.folds.statistics import trapezoid
from accnp.missing import nearest as _nearest

__all__ = [
    "trapezoid",
]

__getattr__ = _nearest(__name__, __all__)
