"""Updates of factorizations: cholesky_update, symmetric_product, lu_pivots_to_permutation.

Matrices are the last two axes, and leading axes are batches. Each declaration has a type rule and a
reference function; as in JAX, there are no derivatives.
"""

from __future__ import annotations

import numpy as np

from accnp.errors import UnsupportedDtypeError
from accnp.ir.aval import Aval, make_aval
from accnp.ir.op import Lowering
from accnp.primitives.decompositions import row_order
from accnp.primitives.kinds import opaque, weak_as_operands, wrong_dtype
from accnp.primitives.lapack_calls import batched, inexact, lapack_dtype, map_batch
from accnp.primitives.reference import quiet

__all__: list[str] = []


@weak_as_operands
def _update_infer(r: Aval, w: Aval) -> Aval:
    inexact("cholesky_update", "21", r, w)
    if r.dtype.kind == "c":
        raise wrong_dtype("cholesky_update", r.dtype, "f")
    if not r.shape[-1] == r.shape[-2] == w.shape[-1]:
        raise ValueError(
            "cholesky_update: needs a square matrix and a vector of its size; got shapes "
            f"{r.shape} and {w.shape}; give the vector as many elements as the matrix has rows"
        )
    return make_aval(r.shape, r.dtype)


def _update_numpy(r: np.ndarray, w: np.ndarray) -> np.ndarray:
    """For each row, apply the rotation that makes the next element of the vector zero."""
    work, n = lapack_dtype(r.dtype), r.shape[-1]

    def one(r: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
        r, w = r.copy(), w.copy()
        for k in range(n):
            if w[k] != 0:
                size = np.hypot(r[k, k], w[k])
                c, s = r[k, k] / size, w[k] / size
                r[k], w = c * r[k] + s * w, c * w - s * r[k]
        return (r,)

    return map_batch(one, "21", [r.astype(work), w.astype(work)], [((n, n), work)])[0]


opaque(
    "cholesky_update",
    infer=_update_infer,
    numpy=_update_numpy,
    batch=batched("cholesky_update"),
)


@weak_as_operands
def _product_infer(a: Aval, c: Aval, *, alpha: float, beta: float) -> Aval:
    inexact("symmetric_product", "22", a, c)
    if a.dtype.kind == "c":
        raise wrong_dtype("symmetric_product", a.dtype, "f")
    if not a.shape[-2] == c.shape[-2] == c.shape[-1]:
        raise ValueError(
            "symmetric_product: needs matrices of shapes [..., m, n] and [..., m, m]; got "
            f"{a.shape} and {c.shape}; give c as many rows and columns as a has rows"
        )
    return make_aval(c.shape, c.dtype)


@quiet
def _product_numpy(a: np.ndarray, c: np.ndarray, *, alpha: float, beta: float) -> np.ndarray:
    work = lapack_dtype(a.dtype)
    a, c = a.astype(work), c.astype(work)
    return work.type(alpha) * (a @ a.swapaxes(-1, -2)) + work.type(beta) * c


opaque(
    "symmetric_product",
    infer=_product_infer,
    numpy=_product_numpy,
    batch=batched("symmetric_product"),
)


@weak_as_operands
def _permutation_infer(pivots: Aval, *, permutation_size: int) -> Aval:
    if pivots.dtype != np.int32 or not pivots.ndim:
        raise UnsupportedDtypeError(
            "lu_pivots_to_permutation: pivots must be int32 with at least one axis; got "
            f"{pivots}; pass the pivots that lu returns"
        )
    if permutation_size < pivots.shape[-1]:
        raise ValueError(
            "lu_pivots_to_permutation: permutation_size must be at least the number of pivots; got "
            f"{permutation_size} and {pivots.shape[-1]} pivots; pass that or more"
        )
    return make_aval((*pivots.shape[:-1], permutation_size), pivots.dtype)


def _permutation_numpy(pivots: np.ndarray, *, permutation_size: int) -> np.ndarray:
    out = np.empty((*pivots.shape[:-1], permutation_size), np.int32)
    for at in np.ndindex(*pivots.shape[:-1]):
        out[at] = row_order(pivots[at], permutation_size)
    return out


opaque(
    "lu_pivots_to_permutation",
    lowering=Lowering("linalg.small_matrices.pivots_to_permutation"),
    infer=_permutation_infer,
    numpy=_permutation_numpy,
    batch=batched("lu_pivots_to_permutation"),
)
