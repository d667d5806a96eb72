# isort: skip_file
"""`accnp.scipy.spatial`: rotations.

>>> import accnp as jax
>>> jax.scipy.spatial.transform.Rotation.identity().magnitude().item()
0.0
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.spatial import transform

__all__ = ["transform"]

_install_getattr(__name__, __all__)
