"""`accnp.scipy.ndimage`: values of images between their elements, re-exported one by one."""

from accnp.api.scientific.grids import map_coordinates
from accnp.missing import nearest as _nearest

__all__ = [
    "map_coordinates",
]

__getattr__ = _nearest(__name__, __all__)
