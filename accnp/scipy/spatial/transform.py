"""`accnp.scipy.spatial.transform`: rotations and paths between them, re-exported one by one."""

from accnp.api.scientific.rotations import Rotation, Slerp
from accnp.missing import nearest as _nearest

__all__ = ["Rotation", "Slerp"]

__getattr__ = _nearest(__name__, __all__)
