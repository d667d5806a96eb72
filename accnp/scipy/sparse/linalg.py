"""`accnp.scipy.sparse.linalg`: iterative solvers, re-exported one by one."""

from accnp.api.factors.krylov import bicgstab, cg, gmres
from accnp.missing import nearest

__all__ = ["bicgstab", "cg", "gmres"]

__getattr__ = nearest(__name__, __all__)
