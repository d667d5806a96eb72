# isort: skip_file
"""`accnp.scipy.interpolate`: interpolation on grids.

>>> import accnp as jax
>>> x = jax.numpy.arange(3.0)
>>> jax.scipy.interpolate.RegularGridInterpolator((x,), x * x)(jax.numpy.array([[1.5]]))
Array([2.5], dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.grid_interpolation import RegularGridInterpolator

__all__ = [
    "RegularGridInterpolator",
]  # fmt: skip

_install_getattr(__name__, __all__)
