"""Decompositions of matrices: eigh, eig, svd, qr, lu.

Matrices are the last two axes; leading axes are batches. LAPACK does the work through NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.primitives.kinds import broadcast_to, dtype_kind, full, opaque
from accnp.primitives.lapack_kernels import (
    eigh_by_lapack,
    lu_by_lapack,
    qr_by_lapack,
    svd_by_lapack,
)
from accnp.primitives.linalg import (
    _square,
    batched_identity,
    lapack_dtype,
    matmul,
    matrix_t,
    triangle,
)
from accnp.primitives.linalg_kernels import lu_kernel
from accnp.primitives.reference import quiet
from accnp.primitives.sort import gather_permuted

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


def _over_gaps(w: Node, shape: tuple[int, ...]) -> Node:
    """1 / (w_j - w_i) at row i, column j; 0 in the diagonal."""
    gap = o.sub(last_axis(w, shape), _column(w, shape))
    eye = batched_identity(make_aval(shape, w.aval.dtype))
    return o.sub(o.div(full(shape, 1, w.aval.dtype), o.add(gap, eye)), eye)


def _columns(x: Node, start: int, stop: int) -> Node:
    """Some columns of matrices."""
    *outer, m, _ = x.aval.shape
    low = (*[0] * len(outer), 0, start)
    return o.slice(x, start_indices=low, limit_indices=(*outer, m, stop), strides=None)


def _rows(x: Node, start: int, stop: int) -> Node:
    """Some rows of matrices."""
    return matrix_t(_columns(matrix_t(x), start, stop))


def _side_by_side(*parts: Node) -> Node:
    return o.concatenate(*parts, dimension=parts[0].aval.ndim - 1)


def _completed(q: Node, dq: Node, k: int) -> Node:
    """The tangent of a whole unitary matrix, given that of its first k columns.

    The others may be any basis of what is left; theirs is the one that does not turn in itself.
    """
    m = q.aval.shape[-1]
    if k == m:
        return dq
    first, rest = _columns(q, 0, k), _columns(q, k, m)
    moved = o.neg(matmul(first, matrix_t(matmul(matrix_t(rest, True), dq), True)))
    return _side_by_side(dq, moved)


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
    dv = matmul(v, o.mul(_to(_over_gaps(w, shape), dtype), inner))
    dw = diagonal_of(inner)
    return [dv, o.real(dw) if dtype.kind == "c" else dw]


opaque(
    "eigh",
    infer=_eigh_infer,
    numpy=_eigh_numpy,
    jvp=_eigh_jvp,
    batch=_batched("eigh"),
    kernel=lambda operands, results, p: eigh_by_lapack(operands[0], results),
)


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
    """Eigenvectors as LAPACK scales them: of norm 1, the largest component real."""
    if ts[0] is None:
        return [None, None]
    w, v = items(y)
    dtype, shape = v.aval.dtype, v.aval.shape
    inner = o.linear_solve(v, matmul(_to(ts[0], dtype), v))
    dv = matmul(v, o.mul(_over_gaps(w, shape), inner))
    # What leaves the norm, and the phase of the largest component, as they are.
    real = real_dtype(dtype)
    size = o.abs(v)
    along = len(shape) - 2
    length = o.reduce_sum(o.real(o.mul(o.conj(v), dv)), axes=(along,))
    largest = o.eq(size, last_axis(o.reduce_max(size, axes=(along,)), shape))
    turn = o.reduce_sum(
        o.select_n(largest, full(shape, 0, real), o.imag(o.mul(dv, o.conj(v)))), axes=(along,)
    )
    weight = o.reduce_sum(
        o.select_n(largest, full(shape, 0, real), o.mul(size, size)), axes=(along,)
    )
    shift = last_axis(o.complex(length, o.div(turn, weight)), shape)
    return [diagonal_of(inner), o.sub(dv, o.mul(v, shift))]


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
    whole_u, s, vh = items(y)
    k = s.aval.shape[-1]
    whole_v = matrix_t(vh, True)
    u, v = _columns(whole_u, 0, k), _columns(whole_v, 0, k)
    dtype, ut = u.aval.dtype, matrix_t(u, True)
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
    if p["full_matrices"]:
        du, dv = _completed(whole_u, du, k), _completed(whole_v, dv, k)
    return [du, ds, matrix_t(dv, True)]


opaque(
    "svd",
    infer=_svd_infer,
    numpy=_svd_numpy,
    jvp=_svd_jvp,
    batch=_batched("svd"),
    kernel=lambda operands, results, p: svd_by_lapack(operands[0], results, p["full_matrices"]),
)


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
    whole_q, whole_r = items(y)
    k = min(m, n)
    # The first k columns decide; those after them are turned by the same q.
    t, q = _columns(ts[0], 0, k), _columns(whole_q, 0, k)
    r = _rows(_columns(whole_r, 0, k), 0, k)
    t_r = o.triangular_solve(
        r, t, left_side=False, lower=False, transpose_a=False, conjugate_a=False,
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
    if n > k:
        rest = _columns(ts[0], k, n)
        fixed = matmul(matrix_t(dq, True), matmul(q, _columns(whole_r, k, n)))
        dr = _side_by_side(dr, o.add(fixed, matmul(matrix_t(q, True), rest)))
    if p["full_matrices"] and m > k:
        dq = _completed(whole_q, dq, k)
        below = full((*dr.aval.shape[:-2], m - k, n), 0, dr.aval.dtype)
        dr = o.concatenate(dr, below, dimension=dr.aval.ndim - 2)
    return [dq, dr]


opaque(
    "qr",
    infer=_qr_infer,
    numpy=_qr_numpy,
    jvp=_qr_jvp,
    batch=_batched("qr"),
    kernel=lambda operands, results, p: qr_by_lapack(operands[0], results, p["full_matrices"]),
)


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


def _lu_jvp(ts: Sequence[Any], y: Node, xs: Sequence[Node], p: dict[str, Any]) -> Any:
    """With L and U completed to square matrices, the lower and upper part of L^-1 (P dA) U^-1."""
    if ts[0] is None:
        return [None, None, None]
    packed, _, perm = items(y)
    shape, dtype = packed.aval.shape, packed.aval.dtype
    *outer, m, n = shape
    k = len(outer)
    rows = broadcast_to(perm, shape, tuple(range(k + 1)))
    t = gather_permuted(ts[0], rows, k)
    low = _columns(packed, 0, m) if m <= n else _padded(packed, m)
    low = o.add(triangle(low, -1), batched_identity(low.aval))
    up = matrix_t(_columns(matrix_t(packed), 0, n) if n <= m else _padded(matrix_t(packed), n))
    up = triangle(up, upper=True)
    if n > m:
        number = o.iota(dtype=np.dtype(np.int32), shape=up.aval.shape, dimension=k)
        beyond = o.convert_element_type(
            o.ge(number, full((), m, np.dtype(np.int32))), new_dtype=dtype, weak_type=False
        )
        up = o.add(up, o.mul(beyond, batched_identity(up.aval)))
    flags = {"transpose_a": False, "conjugate_a": False}
    inner = o.triangular_solve(low, t, left_side=True, lower=True, unit_diagonal=True, **flags)
    inner = o.triangular_solve(
        up, inner, left_side=False, lower=False, unit_diagonal=False, **flags
    )
    lower = matmul(low, triangle(inner, -1))
    return [o.add(lower, matmul(triangle(inner, upper=True), up)), None, None]


def _padded(x: Node, n: int) -> Node:
    """Matrices with columns of zeros behind, n in all."""
    config = (*[(0, 0, 0)] * (x.aval.ndim - 1), (0, n - x.aval.shape[-1], 0))
    return o.pad(x, full((), 0, x.aval.dtype), padding_config=config)


opaque(
    "lu",
    infer=_lu_infer,
    numpy=quiet(_lu_numpy),
    jvp=_lu_jvp,
    batch=_batched("lu"),
    kernel=lambda operands, results, p: (
        lu_kernel(operands[0], results) or lu_by_lapack(operands[0], results)
    ),
)
