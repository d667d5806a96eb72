# isort: skip_file
"""`accnp.scipy.sparse.linalg`: iterative solvers."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.sparse.linalg.krylov import bicgstab, cg, gmres

__all__ = ["bicgstab", "cg", "gmres"]

_install_getattr(__name__, __all__)
