# isort: skip_file
"""`accnp.scipy.linalg`: linear algebra in SciPy's spelling.

>>> import accnp as jax
>>> jax.scipy.linalg.expm(jax.numpy.zeros((2, 2)))
Array([[1., 0.],
       [0., 1.]], dtype=float32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.scipy.linalg.matrix_functions import (
        expm, expm_frechet, funm, rsf2csf, solve_sylvester, sqrtm,
    )  # fmt: skip
    from accnp.scipy.linalg.polar_decompositions import polar
    from accnp.scipy.linalg.decompositions import (
        eigh, eigh_tridiagonal, hessenberg, qr, qr_multiply, schur, svd,
    )  # fmt: skip
    from accnp.scipy.linalg.solving import (
        cho_factor, cho_solve, cholesky, det, inv, lu, lu_factor, lu_solve, solve, solve_triangular,
    )  # fmt: skip
    from accnp.scipy.linalg.structured_matrices import (
        block_diag, circulant, companion, convolution_matrix, dft, fiedler, fiedler_companion,
        hadamard, hankel, helmert, hilbert, invhilbert, invpascal, leslie, pascal, toeplitz,
    )  # fmt: skip

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion",
    "convolution_matrix", "det", "dft", "eigh", "eigh_tridiagonal", "expm", "expm_frechet",
    "fiedler", "fiedler_companion", "funm", "hadamard", "hankel", "helmert", "hessenberg",
    "hilbert", "inv", "invhilbert", "invpascal", "leslie", "lu", "lu_factor", "lu_solve", "pascal",
    "polar", "qr", "qr_multiply", "rsf2csf", "schur", "solve", "solve_sylvester",
    "solve_triangular", "sqrtm", "svd", "toeplitz",
]  # fmt: skip

_install_getattr(__name__, __all__)
