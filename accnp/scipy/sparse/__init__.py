# isort: skip_file
"""`accnp.scipy.sparse`: iterative solvers of linear systems.

>>> import accnp as jax
>>> x, _ = jax.scipy.sparse.linalg.cg(lambda v: 2 * v, jax.numpy.ones(2))
>>> x
Array([0.5, 0.5], dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.sparse import linalg

__all__ = ["linalg"]

_install_getattr(__name__, __all__)
