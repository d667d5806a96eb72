"""`accnp.scipy.interpolate`: values between the points of a grid, re-exported one by one."""

from accnp.api.scientific.grids import RegularGridInterpolator
from accnp.missing import nearest as _nearest

__all__ = [
    "RegularGridInterpolator",
]

__getattr__ = _nearest(__name__, __all__)
