"""`accnp.scipy.sparse`: solvers that only multiply by a matrix."""

from accnp.missing import nearest as _nearest
from accnp.scipy.sparse import linalg

__all__ = ["linalg"]

__getattr__ = _nearest(__name__, __all__)
