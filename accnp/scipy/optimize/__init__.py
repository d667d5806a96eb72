# isort: skip_file
"""`accnp.scipy.optimize`: minimization of functions.

>>> import accnp as jax
>>> found = jax.scipy.optimize.minimize(lambda x: x @ x, jax.numpy.ones(2), method="BFGS")
>>> bool(found.success)
True
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.optimize.minimizing import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]

_install_getattr(__name__, __all__)
