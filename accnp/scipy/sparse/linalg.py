"""`accnp.scipy.sparse.linalg`: iterative solvers, re-exported one by one."""

from accnp.api.factors.krylov import bicgstab, cg, gmres
from accnp.missing import nearest as _nearest

__all__ = ["bicgstab", "cg", "gmres"]

__getattr__ = _nearest(__name__, __all__)
