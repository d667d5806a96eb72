"""`accnp.scipy.sparse.linalg`: iterative solvers, re-exported one by one."""

from accnp.api.factors.krylov import bicgstab, cg, gmres
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["bicgstab", "cg", "gmres"]

_install_getattr(__name__, __all__)
