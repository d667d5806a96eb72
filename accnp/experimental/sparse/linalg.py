"""`accnp.experimental.sparse.linalg`: eigenvalues of large symmetric operators."""

from accnp.api.factors.lobpcg import lobpcg_standard
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["lobpcg_standard"]

_install_getattr(__name__, __all__)
