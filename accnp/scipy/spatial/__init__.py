"""`accnp.scipy.spatial`: rotations."""

from accnp.missing import nearest
from accnp.scipy.spatial import transform

__all__ = ["transform"]

__getattr__ = nearest(__name__, __all__)
