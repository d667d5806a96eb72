# isort: skip_file
"""`accnp.experimental.sparse`: sparse arrays, re-exported one by one."""

from typing import TYPE_CHECKING

from accnp.api.sparse.base import JAXSparse
from accnp.api.sparse.coordinates import (
    BCOO, bcoo_extract, bcoo_fromdense, bcoo_reduce_sum, bcoo_sort_indices, bcoo_sum_duplicates,
    bcoo_todense, bcoo_transpose,
)  # fmt: skip
from accnp.api.sparse.products import (
    bcoo_concatenate, bcoo_dot_general, bcoo_multiply_dense, bcoo_multiply_sparse, bcoo_reshape,
    bcoo_slice, bcoo_squeeze,
)  # fmt: skip
from accnp.api.sparse.rows import BCSR, bcsr_dot_general, bcsr_fromdense, bcsr_todense
from accnp.api.sparse.sparsifying import empty, eye, grad, sparsify, todense, value_and_grad
from accnp.missing import nearest as _nearest

if TYPE_CHECKING:  # loaded on first use
    from accnp.experimental.sparse import linalg

__all__ = [
    "BCOO", "BCSR", "JAXSparse", "bcoo_concatenate", "bcoo_dot_general", "bcoo_extract",
    "bcoo_fromdense", "bcoo_multiply_dense", "bcoo_multiply_sparse", "bcoo_reduce_sum",
    "bcoo_reshape", "bcoo_slice", "bcoo_sort_indices", "bcoo_squeeze", "bcoo_sum_duplicates",
    "bcoo_todense", "bcoo_transpose", "bcsr_dot_general", "bcsr_fromdense", "bcsr_todense",
    "empty", "eye", "grad", "linalg", "sparsify", "todense", "value_and_grad",
]  # fmt: skip

__getattr__ = _nearest(__name__, __all__, {"linalg": f"{__name__}.linalg"})
