# isort: skip_file
# ruff: noqa: F401  (names outside __all__ are those that JAX has deprecated or does not document)
"""`accnp.numpy.linalg`: linear algebra.

>>> import accnp.numpy as jnp
>>> jnp.linalg.solve(2 * jnp.eye(2), jnp.ones(2))
Array([0.5, 0.5], dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.numpy.linalg.least_squares import cond, lstsq, matrix_rank, pinv
    from accnp.numpy.linalg.decompositions import (
        cholesky, cross, det, diagonal, eig, eigh, eigvals, eigvalsh, inv, qr, slogdet, solve, svd,
        svdvals, trace,
    )  # fmt: skip
    from accnp.numpy.linalg.products import matmul, outer, tensordot
    from accnp.numpy.linalg.matrix_chains import matrix_power, multi_dot, tensorinv, tensorsolve
    from accnp.numpy.linalg.norms import matrix_norm, norm, vector_norm
    from accnp.numpy.products import vecdot
    from accnp.numpy.manipulation import matrix_transpose
    from numpy.linalg import LinAlgError

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

_install_getattr(__name__, __all__)
