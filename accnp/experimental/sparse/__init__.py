# isort: skip_file
"""`accnp.experimental.sparse`: sparse arrays."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.experimental.sparse.base import JAXSparse
    from accnp.experimental.sparse.contractions import (
        bcoo_conv_general_dilated,
        bcoo_dot_general_sampled,
    )
    from accnp.experimental.sparse.bcoo import (
        BCOO, CuSparseEfficiencyWarning, SparseEfficiencyError, SparseEfficiencyWarning,
        bcoo_broadcast_in_dim, bcoo_concatenate, bcoo_dot_general, bcoo_dynamic_slice, bcoo_extract,
        bcoo_fromdense, bcoo_gather, bcoo_multiply_dense, bcoo_multiply_sparse, bcoo_reduce_sum,
        bcoo_reshape, bcoo_rev, bcoo_slice, bcoo_sort_indices, bcoo_squeeze, bcoo_sum_duplicates,
        bcoo_todense, bcoo_transpose, bcoo_update_layout, random_bcoo,
    )  # fmt: skip
    from accnp.experimental.sparse.matrices import (
        COO, CSC, CSR, coo_fromdense, coo_matmat, coo_matvec, coo_todense, csr_fromdense,
        csr_matmat, csr_matvec, csr_todense,
    )  # fmt: skip
    from accnp.experimental.sparse.bcsr import (
        BCSR, bcsr_broadcast_in_dim, bcsr_concatenate, bcsr_dot_general, bcsr_extract,
        bcsr_fromdense, bcsr_sum_duplicates, bcsr_todense,
    )  # fmt: skip
    from accnp.experimental.sparse.sparsifying import (
        empty, eye, grad, jacfwd, jacobian, jacrev, sparsify, todense, value_and_grad,
    )  # fmt: skip
    from accnp.experimental.sparse import linalg

__all__ = [
    "BCOO", "BCSR", "COO", "CSC", "CSR", "CuSparseEfficiencyWarning", "JAXSparse",
    "SparseEfficiencyError", "SparseEfficiencyWarning", "bcoo_broadcast_in_dim",
    "bcoo_concatenate", "bcoo_conv_general_dilated", "bcoo_dot_general",
    "bcoo_dot_general_sampled", "bcoo_dynamic_slice", "bcoo_extract", "bcoo_fromdense",
    "bcoo_gather", "bcoo_multiply_dense", "bcoo_multiply_sparse", "bcoo_reduce_sum",
    "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices", "bcoo_squeeze",
    "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "bcoo_update_layout",
    "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract",
    "bcsr_fromdense", "bcsr_sum_duplicates", "bcsr_todense", "coo_fromdense", "coo_matmat",
    "coo_matvec", "coo_todense", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense",
    "empty", "eye", "grad", "jacfwd", "jacobian", "jacrev", "linalg", "random_bcoo", "sparsify",
    "todense", "value_and_grad",
]  # fmt: skip

_install_getattr(__name__, __all__)
