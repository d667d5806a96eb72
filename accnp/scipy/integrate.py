# isort: skip_file
"""`accnp.scipy.integrate`: integrals of sampled functions.

>>> import accnp as jax
>>> jax.scipy.integrate.trapezoid(jax.numpy.arange(3.0))
Array(2., dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.numpy.statistics import trapezoid

__all__ = [
    "trapezoid",
]  # fmt: skip

_install_getattr(__name__, __all__)
