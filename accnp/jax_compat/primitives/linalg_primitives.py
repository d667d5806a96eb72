"""The primitives of matrix factorizations, under JAX's names."""

from accnp.jax_compat.jaxprs.primitives import primitive

__all__ = [
    "cholesky_p", "cholesky_update_p", "eig_p", "eigh_p", "hessenberg_p", "householder_product_p",
    "lu_p", "lu_pivots_to_permutation_p", "ormqr_p", "qr_p", "schur_p", "svd_p",
    "symmetric_product_p", "triangular_solve_p", "tridiagonal_p", "tridiagonal_solve_p",
]  # fmt: skip

cholesky_p = primitive("cholesky")
cholesky_update_p = primitive("cholesky_update")
eig_p = primitive("eig")
eigh_p = primitive("eigh")
hessenberg_p = primitive("hessenberg")
householder_product_p = primitive("householder_product")
lu_p = primitive("lu")
lu_pivots_to_permutation_p = primitive("lu_pivots_to_permutation")
ormqr_p = primitive("ormqr")
qr_p = primitive("qr")
schur_p = primitive("schur")
svd_p = primitive("svd")
symmetric_product_p = primitive("symmetric_product")
triangular_solve_p = primitive("triangular_solve")
tridiagonal_p = primitive("tridiagonal")
tridiagonal_solve_p = primitive("tridiagonal_solve")
