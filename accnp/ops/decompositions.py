"""Decompositions of matrices: eigh, eig, svd, qr, lu; determinants.

Matrices are the last two axes; leading axes are batches. LAPACK does the work through NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.ops.kinds import broadcast_to, dtype_kind, full, opaque
from accnp.ops.linalg import (
    _square,
    batched_identity,
    each_matrix,
    lapack_dtype,
    matmul,
    matrix_t,
    triangle,
)
from accnp.ops.linalg_kernels import det_kernel, lu_kernel
from accnp.ops.reference import quiet

__all__ = ["diagonal_of", "last_axis", "trace_of"]


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the absolute values."""
    return np.dtype(dtype.type(0).real.dtype) if dtype.kind == "c" else dtype


def last_axis(x: Node, shape: tuple[int, ...]) -> Node:
    """Repeat a batch of vectors as the rows of matrices."""
    return broadcast_to(x, shape, (*range(x.aval.ndim - 1), len(shape) - 1))


def _column(x: Node, shape: tuple[int, ...]) -> Node:
    return broadcast_to(x, shape, (*range(x.aval.ndim - 1), len(shape) - 2))


def diagonal_of(x: Node) -> Node:
    """The diagonals of square matrices."""
    rank = x.aval.ndim
    zeros = full(x.aval.shape, 0, x.aval.dtype)
    eye = o.ne(batched_identity(x.aval), zeros)
    return o.reduce_sum(o.select_n(eye, zeros, x), axes=(rank - 1,))


def trace_of(x: Node) -> Node:
    """The traces of square matrices."""
    d = diagonal_of(x)
    return o.reduce_sum(d, axes=(d.aval.ndim - 1,))


def _to(x: Node, dtype: np.dtype) -> Node:
    if x.aval.dtype == dtype:
        return x
    return o.convert_element_type(x, new_dtype=dtype, weak_type=False)


def _batched(name: str) -> Any:
    def batch(size: int, xs: Any, batched: Any, p: dict[str, Any]) -> Any:
        out = getattr(o, name)(xs[0], **p)
        if isinstance(out.aval, tuple):
            return list(items(out)), [True] * len(out.aval)
        return out, True

    return batch


# --- symmetric eigenvalues -----------------------------------------------------------------------


def _eigh_infer(a: Aval) -> tuple[Aval, Aval]:
    _square("eigh", a)
    return make_aval(a.shape, a.dtype), make_aval(a.shape[:-1], real_dtype(a.dtype))


def _eigh_numpy(a: Any) -> Any:
    x = a.astype(lapack_dtype(a.dtype))
    w, v = np.linalg.eigh(x)
    return v, w


def _eigh_jvp(ts: Sequence[Any], y: Node, xs: Sequence[Node], p: dict[str, Any]) -> Any:
    if ts[0] is None:
        return [None, None]
    v, w = items(y)
    dtype, shape = v.aval.dtype, v.aval.shape
    inner = matmul(matrix_t(v, True), matmul(ts[0], v))
    gap = o.sub(last_axis(w, shape), _column(w, shape))
    eye = batched_identity(make_aval(shape, w.aval.dtype))
    weight = o.sub(o.div(full(shape, 1, w.aval.dtype), o.add(gap, eye)), eye)
    dv = matmul(v, o.mul(_to(weight, dtype), inner))
    dw = diagonal_of(inner)
    return [dv, o.real(dw) if dtype.kind == "c" else dw]


opaque("eigh", infer=_eigh_infer, numpy=_eigh_numpy, jvp=_eigh_jvp, batch=_batched("eigh"))


# --- general eigenvalues -------------------------------------------------------------------------


def _eig_infer(a: Aval) -> tuple[Aval, Aval]:
    _square("eig", a)
    wide = np.dtype(np.complex128 if real_dtype(a.dtype).itemsize == 8 else np.complex64)
    return make_aval(a.shape[:-1], wide), make_aval(a.shape, wide)


def _eig_numpy(a: Any) -> Any:
    w, v = np.linalg.eig(a.astype(lapack_dtype(a.dtype)))
    wide = np.complex128 if real_dtype(a.dtype).itemsize == 8 else np.complex64
    return w.astype(wide), v.astype(wide)


def _eig_jvp(ts: Sequence[Any], y: Node, xs: Sequence[Node], p: dict[str, Any]) -> Any:
    """Eigenvalues only; eigenvectors of a general matrix have no unique derivative."""
    if ts[0] is None:
        return [None, None]
    _w, v = items(y)
    inner = o.linear_solve(v, matmul(_to(ts[0], v.aval.dtype), v))
    return [diagonal_of(inner), None]


opaque("eig", infer=_eig_infer, numpy=_eig_numpy, jvp=_eig_jvp, batch=_batched("eig"))


# --- singular values -----------------------------------------------------------------------------


def _svd_infer(a: Aval, *, full_matrices: bool) -> tuple[Aval, Aval, Aval]:
    if a.ndim < 2 or dtype_kind(a.dtype) not in "fc":
        raise TypeError(f"svd: needs matrices of floating or complex dtype; got {a}")
    *outer, m, n = a.shape
    k = min(m, n)
    return (
        make_aval((*outer, m, m if full_matrices else k), a.dtype),
        make_aval((*outer, k), real_dtype(a.dtype)),
        make_aval((*outer, n if full_matrices else k, n), a.dtype),
    )


def _svd_numpy(a: Any, *, full_matrices: bool) -> Any:
    x = a.astype(lapack_dtype(a.dtype))
    u, s, vh = np.linalg.svd(x, full_matrices=full_matrices)
    return u, s, vh


def _svd_jvp(ts: Sequence[Any], y: Node, xs: Sequence[Node], p: dict[str, Any]) -> Any:
    t = ts[0]
    if t is None:
        return [None, None, None]
    m, n = xs[0].aval.shape[-2:]
    if p["full_matrices"] and m != n:
        raise NotImplementedError(
            "svd: the derivative is known for full_matrices=False only; pass that"
        )
    u, s, vh = items(y)
    dtype, k = u.aval.dtype, s.aval.shape[-1]
    ut, v = matrix_t(u, True), matrix_t(vh, True)
    inner = matmul(ut, matmul(t, v))
    ds = diagonal_of(inner)
    ds = o.real(ds) if dtype.kind == "c" else ds
    shape = inner.aval.shape
    real = s.aval.dtype
    eye = batched_identity(make_aval(shape, real))
    row, col = last_axis(s, shape), _column(s, shape)
    gap = o.mul(o.add(row, col), o.sub(row, col))
    f = o.sub(o.div(full(shape, 1, real), o.add(gap, eye)), eye)
    f = _to(f, dtype)
    wide_row, wide_col = _to(row, dtype), _to(col, dtype)
    right = o.mul(inner, wide_row)
    left = o.mul(wide_col, inner)
    du = matmul(u, o.mul(f, o.add(right, matrix_t(right, True))))
    dv = matmul(v, o.mul(f, o.add(left, matrix_t(left, True))))
    if dtype.kind == "c":  # the phase that the two share goes to u
        skew = o.sub(inner, matrix_t(inner, True))
        half = o.div(skew, o.mul(full((), 2, dtype), wide_row))
        du = o.add(du, matmul(u, o.mul(_to(eye, dtype), half)))
    if m > k:
        rest = o.sub(matmul(t, v), matmul(u, inner))
        du = o.add(du, o.div(rest, _to(last_axis(s, rest.aval.shape), dtype)))
    if n > k:
        rest = o.sub(matmul(matrix_t(t, True), u), matmul(v, matrix_t(inner, True)))
        dv = o.add(dv, o.div(rest, _to(last_axis(s, rest.aval.shape), dtype)))
    return [du, ds, matrix_t(dv, True)]


opaque("svd", infer=_svd_infer, numpy=_svd_numpy, jvp=_svd_jvp, batch=_batched("svd"))


# --- qr ------------------------------------------------------------------------------------------


def _qr_infer(a: Aval, *, full_matrices: bool) -> tuple[Aval, Aval]:
    if a.ndim < 2 or dtype_kind(a.dtype) not in "fc":
        raise TypeError(f"qr: needs matrices of floating or complex dtype; got {a}")
    *outer, m, n = a.shape
    k = m if full_matrices else min(m, n)
    return make_aval((*outer, m, k), a.dtype), make_aval((*outer, k, n), a.dtype)


def _qr_numpy(a: Any, *, full_matrices: bool) -> Any:
    x = a.astype(lapack_dtype(a.dtype))
    q, r = np.linalg.qr(x, mode="complete" if full_matrices else "reduced")
    return q, r


def _qr_jvp(ts: Sequence[Any], y: Node, xs: Sequence[Node], p: dict[str, Any]) -> Any:
    if ts[0] is None:
        return [None, None]
    m, n = xs[0].aval.shape[-2:]
    if m < n or (p["full_matrices"] and m != n):
        raise NotImplementedError(
            "qr: the derivative is known for matrices with at least as many rows as columns, "
            "in reduced mode only"
        )
    q, r = items(y)
    t_r = o.triangular_solve(
        r, ts[0], left_side=False, lower=False, transpose_a=False, conjugate_a=False,
        unit_diagonal=False,
    )  # fmt: skip
    inner = matmul(matrix_t(q, True), t_r)
    low = triangle(inner, -1)
    omega = o.sub(low, matrix_t(low, True))
    if inner.aval.dtype.kind == "c":
        eye = batched_identity(inner.aval)
        part = o.mul(eye, o.sub(inner, _to(o.real(inner), inner.aval.dtype)))
        omega = o.add(omega, part)
    dq = o.add(matmul(q, o.sub(omega, inner)), t_r)
    dr = matmul(o.sub(inner, omega), r)
    return [dq, dr]


opaque("qr", infer=_qr_infer, numpy=_qr_numpy, jvp=_qr_jvp, batch=_batched("qr"))


# --- lu ------------------------------------------------------------------------------------------


def _lu_infer(a: Aval) -> tuple[Aval, Aval, Aval]:
    if a.ndim < 2 or dtype_kind(a.dtype) not in "fc":
        raise TypeError(f"lu: needs matrices of floating or complex dtype; got {a}")
    *outer, m, n = a.shape
    kind = np.dtype(np.int32)
    return (
        make_aval(a.shape, a.dtype),
        make_aval((*outer, min(m, n)), kind),
        make_aval((*outer, m), kind),
    )


def _lu_numpy(a: Any) -> Any:
    import scipy.linalg

    *outer, m, n = a.shape
    x = a.astype(lapack_dtype(a.dtype)).reshape(-1, m, n)
    lu, piv, perm = [], [], []
    for one in x:
        f, pivots = scipy.linalg.lu_factor(one, check_finite=False) if one.size else (one, [])
        order = np.arange(m)
        for i, j in enumerate(pivots):
            order[[i, j]] = order[[j, i]]
        lu.append(f)
        piv.append(pivots)
        perm.append(order)
    return (
        np.reshape(lu, a.shape),
        np.reshape(piv, (*outer, min(m, n))).astype(np.int32),
        np.reshape(perm, (*outer, m)).astype(np.int32),
    )


opaque(
    "lu",
    infer=_lu_infer,
    numpy=quiet(_lu_numpy),
    batch=_batched("lu"),
    kernel=lambda operands, results, p: lu_kernel(operands[0], results),
)


# --- determinants --------------------------------------------------------------------------------


def _det_infer(a: Aval) -> Aval:
    _square("det", a)
    return make_aval(a.shape[:-2], a.dtype)


def _adjugate(a: Any) -> Any:
    """The transposed cofactors; by singular values, so that it is right when singular."""

    def one(m: Any) -> Any:
        n = m.shape[0]
        if n == 1:
            return np.ones_like(m)
        u, s, vh = np.linalg.svd(m)
        others = np.array([np.prod(np.delete(s, i)) for i in range(n)], s.dtype)
        sign = np.linalg.det(u) * np.linalg.det(vh)
        return (vh.conj().T * (others * sign)) @ u.conj().T

    x = a.astype(lapack_dtype(a.dtype))
    return each_matrix(one, x) if x.size else x


def _adjugate_jvp(t: Node, y: Node, a: Node) -> Node:
    """From adj(a) a = det(a) I; needs a regular matrix."""
    det = o.det(a)
    inner = trace_of(matmul(y, t))
    eye = batched_identity(a.aval)
    shape = a.aval.shape
    outer = tuple(range(len(shape) - 2))
    part = o.mul(broadcast_to(inner, shape, outer), eye)
    inverse = o.div(y, broadcast_to(det, shape, outer))
    return matmul(o.sub(part, matmul(y, t)), inverse)


opaque(
    "adjugate",
    infer=lambda a: (_square("adjugate", a), make_aval(a.shape, a.dtype))[1],
    numpy=quiet(_adjugate),
    jvp=(_adjugate_jvp,),
    batch=_batched("adjugate"),
)
opaque(
    "det",
    infer=_det_infer,
    numpy=quiet(lambda a: np.asarray(np.linalg.det(a.astype(lapack_dtype(a.dtype))))),
    jvp=(lambda t, y, a: trace_of(matmul(o.adjugate(a), t)),),
    batch=_batched("det"),
    kernel=lambda operands, results, p: det_kernel(operands[0], results),
)


def _slogdet_infer(a: Aval) -> tuple[Aval, Aval]:
    _square("slogdet", a)
    return make_aval(a.shape[:-2], a.dtype), make_aval(a.shape[:-2], real_dtype(a.dtype))


def _slogdet_numpy(a: Any) -> Any:
    sign, log = np.linalg.slogdet(a.astype(lapack_dtype(a.dtype)))
    return np.asarray(sign), np.asarray(log)


def _slogdet_jvp(ts: Sequence[Any], y: Node, xs: Sequence[Node], p: dict[str, Any]) -> Any:
    if ts[0] is None:
        return [None, None]
    inner = trace_of(o.linear_solve(xs[0], ts[0]))
    if inner.aval.dtype.kind != "c":
        return [None, inner]
    log = o.real(inner)
    turn = o.sub(inner, _to(log, inner.aval.dtype))
    return [o.mul(turn, items(y)[0]), log]


opaque(
    "slogdet",
    infer=_slogdet_infer,
    numpy=quiet(_slogdet_numpy),
    jvp=_slogdet_jvp,
    batch=_batched("slogdet"),
    kernel=lambda operands, results, p: det_kernel(operands[0], results),
)
