"""`accnp.scipy.sparse`: solvers that only multiply by a matrix."""

from accnp.missing import nearest
from accnp.scipy.sparse import linalg

__all__ = ["linalg"]

__getattr__ = nearest(__name__, __all__)
