"""`accnp.scipy.spatial.transform`: rotations and paths between them, re-exported one by one."""

from accnp.api.scientific.rotations import Rotation, Slerp
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["Rotation", "Slerp"]

_install_getattr(__name__, __all__)
