"""`accnp.scipy.spatial`: rotations."""

from accnp.missing import nearest as _nearest
from accnp.scipy.spatial import transform

__all__ = ["transform"]

__getattr__ = _nearest(__name__, __all__)
