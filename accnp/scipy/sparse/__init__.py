"""`accnp.scipy.sparse`: solvers that only multiply by a matrix.

>>> import accnp as jax
>>> x, _ = jax.scipy.sparse.linalg.cg(lambda v: 2 * v, jax.numpy.ones(2))
>>> x
Array([0.5, 0.5], dtype=float32)
"""

from accnp.missing import nearest as _nearest
from accnp.scipy.sparse import linalg

__all__ = ["linalg"]

__getattr__ = _nearest(__name__, __all__)
