"""Test cases of the linear algebra ops; see `cases.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from primitives.operands import Case, cplx, real

from accnp.array_type import wrap
from accnp.ir.node import items
from accnp.ir.op import o

__all__ = ["EIG", "EIGH", "LINALG", "SVD", "qr"]

LINALG: list[Case] = []


def add(op: str, *inputs: Any, **more: Any) -> None:
    LINALG.append(Case(op, tuple(np.asarray(x) for x in inputs), **more))


EIGH = {"lower": True, "sort_eigenvalues": True, "subset_by_index": None, "algorithm": None}
EIG = {
    "compute_left_eigenvectors": False,
    "compute_right_eigenvectors": True,
    "enable_eigvec_derivs": True,
    "implementation": None,
}
SVD = {"full_matrices": False, "compute_uv": True, "subset_by_index": None, "algorithm": None}


def qr(full: bool, pivoting: bool = False) -> dict[str, Any]:
    return {"pivoting": pivoting, "full_matrices": full, "use_magma": None}


SQUARE = real(3, 3) + 4 * np.eye(3)
add("linear_solve", SQUARE, real(3, 2))
for left in (True, False):
    for lower in (True, False):
        for turned in (True, False):
            params = {
                "left_side": left,
                "lower": lower,
                "transpose_a": turned,
                "conjugate_a": False,
                "unit_diagonal": lower and turned,
            }
            add("triangular_solve", SQUARE, real(3, 3), params=params)


def symmetric(a: Any) -> list[Any]:
    both = o.add(a, o.transpose(a, permutation=(1, 0)))
    return [both]


def completed_svd(y: Any) -> list[Any]:
    """Return the results of a full SVD, with projectors in place of arbitrary bases."""
    s, u, vh = items(y)
    first, last = wrap(u), wrap(vh)
    k = min(first.shape[-1], last.shape[-1])
    out = [first[:, :k], last[:k], first[:, k:] @ first[:, k:].T, last[k:].T @ last[k:]]
    return [s, *[v._node for v in out]]


add("cholesky", SQUARE, pre=symmetric)
add("eigh", SQUARE, pre=symmetric, params=EIGH)
for x in (SQUARE, cplx(3, 3)):
    add("eig", x, params=EIG, tol=1e-5)
add("eig", SQUARE, params={**EIG, "compute_left_eigenvectors": True}, tol=1e-5)
add("eig", cplx(2, 2), params={**EIG, "compute_right_eigenvectors": False}, tol=1e-5)
add("svd", real(3, 3) + np.diag([1.0, 3, 6]), params=SVD, tol=1e-5)
add("svd", np.eye(4, 2) * [3.0, 1.0] + real(4, 2) / 4, params=SVD, tol=1e-5)
add("svd", real(3, 2), params={**SVD, "compute_uv": False}, tol=1e-5)
# The columns that complete a basis are known up to their own rotation: their projector is compared.
for shape in ((4, 2), (2, 3)):
    full = {**SVD, "full_matrices": True}
    add("svd", real(*shape), params=full, post=completed_svd, tol=1e-5)
for x in (SQUARE, real(4, 3), real(2, 4)):
    add("qr", x, params=qr(False), tol=1e-5)
add("qr", real(4, 3), params=qr(False, True), tol=1e-5)
add("qr", real(4, 2), params=qr(True), tol=1e-5)
add("qr", cplx(3, 1), params=qr(True), tol=1e-5)
add("qr", real(4, 2), params=qr(True, True), tol=1e-5)
add("lu", SQUARE)
add("lu", real(4, 2))
add("lu", real(2, 3))
add("lu", cplx(2, 2))
add("det", SQUARE)
add("slogdet", SQUARE)
add("adjugate", SQUARE)
add("adjugate_tangent", SQUARE, real(3, 3))

# Derivatives of these are not known in jax either.
SCHUR = {"compute_schur_vectors": True, "sort_eig_vals": False, "select_callable": None}
for x in (SQUARE, cplx(3, 3)):
    add("schur", x, params=SCHUR)
    add("hessenberg", x)
    add("tridiagonal", x, params={"lower": True})
    add("geqrf", x)
    add("geqp3", x)
add("householder_product", real(3, 2), real(2))
add("ormqr", cplx(3, 2), cplx(2), cplx(3, 4), params={"left": True, "transpose": True})
add("ormqr", real(3, 2), real(2), real(2, 3), params={"left": False, "transpose": False})
add("cholesky_update", np.triu(SQUARE), real(3))
add("symmetric_product", real(3, 2), real(3, 3), params={"alpha": 2.0, "beta": 0.5})
add(
    "lu_pivots_to_permutation", np.array([[2, 1], [1, 1]], np.int32), params={"permutation_size": 4}
)

for kind in (real, cplx):
    diagonals = kind(2, 4), kind(2, 4) + 5, kind(2, 4)
    add("tridiagonal_solve", *diagonals, kind(2, 4, 3), params={"perturb_singular": False})
add("tridiagonal_solve", real(4), real(4), real(4), real(4, 1), params={"perturb_singular": True})
for subset in (None, (1, 2)):
    params = {"subset": subset, "tol": 0.0}
    add("eigh_tridiagonal", np.arange(4.0) + real(4) / 4, real(3), params=params, tol=1e-5)
