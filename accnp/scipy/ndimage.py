# isort: skip_file
"""`accnp.scipy.ndimage`: interpolation of images at given coordinates.

>>> import accnp as jax
>>> x = jax.numpy.arange(3.0)
>>> jax.scipy.ndimage.map_coordinates(x, [jax.numpy.array([0.5])], order=1)
Array([0.5], dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.grid_interpolation import map_coordinates

__all__ = [
    "map_coordinates",
]  # fmt: skip

_install_getattr(__name__, __all__)
