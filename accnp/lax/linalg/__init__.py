# isort: skip_file
"""`accnp.lax.linalg`: factorizations of matrices.

>>> import accnp as jax
>>> jax.lax.linalg.cholesky(4 * jax.numpy.eye(2))
Array([[2., 0.],
       [0., 2.]], dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.jax_compat.primitives.linalg_primitives import (
        cholesky_p, cholesky_update_p, eig_p, eigh_p, hessenberg_p, householder_product_p, lu_p,
        lu_pivots_to_permutation_p, ormqr_p, qr_p, schur_p, svd_p, symmetric_product_p,
        triangular_solve_p, tridiagonal_p, tridiagonal_solve_p,
    )  # fmt: skip
    from accnp.lax.linalg.factorizations import (
        cholesky, cholesky_update, householder_product, lu, lu_pivots_to_permutation, ormqr, qr,
        symmetric_product, triangular_solve, tridiagonal_solve,
    )  # fmt: skip
    from accnp.lax.linalg.spectra import (
        EigImplementation, EighImplementation, SvdAlgorithm, eig, eigh, hessenberg, schur, svd,
        tridiagonal,
    )  # fmt: skip
    from accnp.scipy.linalg.polar_decompositions import qdwh

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p",
    "cholesky_update", "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "hessenberg",
    "hessenberg_p", "householder_product", "householder_product_p", "lu", "lu_p",
    "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr", "ormqr_p", "qdwh", "qr",
    "qr_p", "schur", "schur_p", "svd", "svd_p", "symmetric_product", "symmetric_product_p",
    "triangular_solve", "triangular_solve_p", "tridiagonal", "tridiagonal_p", "tridiagonal_solve",
    "tridiagonal_solve_p",
]  # fmt: skip

_install_getattr(__name__, __all__)
