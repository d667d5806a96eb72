"""`accnp.experimental.sparse.linalg`: eigenvalues of large symmetric operators."""

from accnp.api.factors.lobpcg import lobpcg_standard
from accnp.missing import nearest as _nearest

__all__ = ["lobpcg_standard"]

__getattr__ = _nearest(__name__, __all__)
