# isort: skip_file
"""`accnp.scipy.spatial.transform`: rotations and paths between them, re-exported one by one."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/public_names.py
    from accnp.api.scientific.rotations import Rotation, Slerp

__all__ = ["Rotation", "Slerp"]

_install_getattr(__name__, __all__)
