# isort: skip_file
"""`accnp.scipy.spatial.transform`: rotations and spherical interpolation."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.spatial.rotations import Rotation, Slerp

__all__ = ["Rotation", "Slerp"]

_install_getattr(__name__, __all__)
