# isort: skip_file
"""`accnp.experimental.sparse.linalg`: eigenvalues of large symmetric operators."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.experimental.sparse.linalg.lobpcg import lobpcg_standard

__all__ = ["lobpcg_standard"]

_install_getattr(__name__, __all__)
