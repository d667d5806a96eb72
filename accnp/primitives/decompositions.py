"""Matrix decompositions: svd, qr, lu.

Matrices are the last two axes, and leading axes are batches. Each declaration has a type rule, a
reference function that calls LAPACK through SciPy, and a derivative rule. The kernels are in
`compiler/library/linalg/`, and the public functions in `accnp/lax/linalg/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node, items
from accnp.ir.op import Lowering, o
from accnp.lazy_imports import imported
from accnp.primitives.kinds import broadcast_to, full, opaque, weak_as_operands
from accnp.primitives.lapack_calls import (
    batched,
    inexact,
    lapack_dtype,
    map_batch,
    real_dtype,
    routine,
    uses_qr,
)
from accnp.primitives.linalg import batched_identity, matmul, matrix_t, triangle
from accnp.primitives.reference import quiet
from accnp.primitives.sort import gather_permuted

if TYPE_CHECKING:
    from accnp.ir.op_types import Params

__all__ = ["column", "diagonal_of", "last_axis", "row_order", "to_dtype", "trace_of"]


def last_axis(x: Node, shape: tuple[int, ...]) -> Node:
    """Broadcast a batch of vectors to the rows of matrices."""
    return broadcast_to(x, shape, (*range(x.aval.ndim - 1), len(shape) - 1))


def column(x: Node, shape: tuple[int, ...]) -> Node:
    """Broadcast a batch of vectors to the columns of matrices."""
    return broadcast_to(x, shape, (*range(x.aval.ndim - 1), len(shape) - 2))


def diagonal_of(x: Node) -> Node:
    """Return the diagonals of square matrices."""
    rank = x.aval.ndim
    zeros = full(x.aval.shape, 0, x.aval.dtype)
    eye = o.ne(batched_identity(x.aval), zeros)
    return o.reduce_sum(o.select_n(eye, zeros, x), axes=(rank - 1,))


def trace_of(x: Node) -> Node:
    """Return the traces of square matrices."""
    d = diagonal_of(x)
    return o.reduce_sum(d, axes=(d.aval.ndim - 1,))


def to_dtype(x: Node, dtype: np.dtype) -> Node:
    """Convert to a dtype that is not weak."""
    if x.aval.dtype == dtype:
        return x
    return o.convert_element_type(x, new_dtype=dtype, weak_type=False)


def _slice_columns(x: Node, start: int, stop: int) -> Node:
    """Return columns start..stop of matrices."""
    *outer, m, _ = x.aval.shape
    low = (*[0] * len(outer), 0, start)
    return o.slice(x, start_indices=low, limit_indices=(*outer, m, stop), strides=None)


def _slice_rows(x: Node, start: int, stop: int) -> Node:
    """Return rows start..stop of matrices."""
    return matrix_t(_slice_columns(matrix_t(x), start, stop))


def _join_columns(*parts: Node) -> Node:
    return o.concatenate(*parts, dimension=parts[0].aval.ndim - 1)


def _complete_tangent(q: Node, dq: Node, k: int) -> Node:
    """Return the tangent of a whole unitary matrix, given that of its first k columns.

    The other columns are any basis of the complement; the tangent that rotates them only out of the
    complement, and not within it, is chosen.
    """
    m = q.aval.shape[-1]
    if k == m:
        return dq
    first, rest = _slice_columns(q, 0, k), _slice_columns(q, k, m)
    moved = o.neg(matmul(first, matrix_t(matmul(matrix_t(rest, True), dq), True)))
    return _join_columns(dq, moved)


# --- singular values -----------------------------------------------------------------------------


@weak_as_operands
def _svd_infer(
    a: Aval,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: Sequence[int] | None,
    algorithm: Enum | None,
) -> tuple[Aval, ...]:
    inexact("svd", "2", a)
    *outer, m, n = a.shape
    k = min(m, n)
    if subset_by_index is not None and tuple(subset_by_index) != (0, k):
        if full_matrices:
            raise ValueError(
                f"svd: subset_by_index needs full_matrices=False; got {subset_by_index}; "
                "say full_matrices=False"
            )
        raise NotImplementedError(
            f"svd: subset_by_index is not implemented on CPU; got {subset_by_index}; "
            "slice the results"
        )
    if algorithm is not None and algorithm.name in ("JACOBI", "POLAR"):
        raise NotImplementedError(
            f"svd: {algorithm} is not implemented on CPU; use DEFAULT, QR or DIVIDE_AND_CONQUER"
        )
    s = make_aval((*outer, k), real_dtype(a.dtype))
    if not compute_uv:
        return (s,)
    return (
        s,
        make_aval((*outer, m, m if full_matrices else k), a.dtype),
        make_aval((*outer, n if full_matrices else k, n), a.dtype),
    )


def _svd_numpy(
    a: np.ndarray, *, full_matrices: bool, compute_uv: bool, algorithm: Enum | None, **_: object
) -> tuple[np.ndarray, ...]:
    x = a.astype(lapack_dtype(a.dtype))
    m, n = x.shape[-2:]
    k = min(m, n)
    driver = "gesvd" if uses_qr(algorithm) else "gesdd"
    how = {"full_matrices": full_matrices, "compute_uv": compute_uv, "lapack_driver": driver}

    def one(x: np.ndarray) -> tuple[np.ndarray, ...] | None:
        if not np.isfinite(x).all():  # LAPACK may not terminate
            return None
        try:
            factors = imported("scipy.linalg").svd(x, check_finite=False, **how)
        except np.linalg.LinAlgError:
            return None
        return (factors[1], factors[0], factors[2]) if compute_uv else (factors,)

    left, right = (m, n) if full_matrices else (k, k)
    results = [((k,), real_dtype(x.dtype)), ((m, left), x.dtype), ((right, n), x.dtype)]
    out = map_batch(one, "2", [x], results if compute_uv else results[:1])
    if compute_uv and not k:  # any basis is valid
        out[1][...], out[2][...] = np.eye(m, left), np.eye(right, n)
    return out


def _svd_jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params
) -> Sequence[Node | None]:
    t = ts[0]
    if t is None:
        return [None] * len(y.aval)
    m, n = xs[0].aval.shape[-2:]
    if not p["compute_uv"]:
        y = o.svd(*xs, **{**p, "compute_uv": True, "full_matrices": False})
    s, whole_u, vh = items(y)
    k = s.aval.shape[-1]
    whole_v = matrix_t(vh, True)
    u, v = _slice_columns(whole_u, 0, k), _slice_columns(whole_v, 0, k)
    dtype, ut = u.aval.dtype, matrix_t(u, True)
    inner = matmul(ut, matmul(t, v))
    ds = diagonal_of(inner)
    ds = o.real(ds) if dtype.kind == "c" else ds
    if not p["compute_uv"]:
        return [ds]
    shape = inner.aval.shape
    real = s.aval.dtype
    eye = batched_identity(make_aval(shape, real))
    row, col = last_axis(s, shape), column(s, shape)
    # Differences of squares are computed as products, because squares over- and underflow.
    total = o.add(row, col)
    total = o.select_n(o.eq(total, full(shape, 0, real)), total, full(shape, 1, real))
    f = o.sub(o.div(full(shape, 1, real), o.add(o.sub(row, col), eye)), eye)
    by_row, by_col = (to_dtype(o.mul(f, o.div(part, total)), dtype) for part in (row, col))
    adjoint = matrix_t(inner, True)
    du = matmul(u, o.add(o.mul(by_row, inner), o.mul(by_col, adjoint)))
    dv = matmul(v, o.add(o.mul(by_col, inner), o.mul(by_row, adjoint)))
    if dtype.kind == "c":  # the common phase of u and v is assigned to u
        skew = o.sub(inner, adjoint)
        half = o.div(skew, o.mul(full((), 2, dtype), to_dtype(row, dtype)))
        du = o.add(du, matmul(u, o.mul(to_dtype(eye, dtype), half)))
    if m > k:
        rest = o.sub(matmul(t, v), matmul(u, inner))
        du = o.add(du, o.div(rest, to_dtype(last_axis(s, rest.aval.shape), dtype)))
    if n > k:
        rest = o.sub(matmul(matrix_t(t, True), u), matmul(v, matrix_t(inner, True)))
        dv = o.add(dv, o.div(rest, to_dtype(last_axis(s, rest.aval.shape), dtype)))
    if p["full_matrices"]:
        du, dv = _complete_tangent(whole_u, du, k), _complete_tangent(whole_v, dv, k)
    return [ds, du, matrix_t(dv, True)]


opaque(
    "svd",
    lowering=Lowering("linalg.lapack.svd", "linalg.block_spectra.svd", "cupy.calls.svd"),
    infer=_svd_infer,
    numpy=_svd_numpy,
    jvp=_svd_jvp,
    batch=batched("svd"),
    several=True,
)


# --- qr ------------------------------------------------------------------------------------------


@weak_as_operands
def _qr_infer(
    a: Aval, *, pivoting: bool, full_matrices: bool, use_magma: object
) -> tuple[Aval, ...]:
    inexact("qr", "2", a)
    *outer, m, n = a.shape
    k = m if full_matrices else min(m, n)
    q, r = make_aval((*outer, m, k), a.dtype), make_aval((*outer, k, n), a.dtype)
    return (q, r, make_aval((*outer, n), np.dtype(np.int32))) if pivoting else (q, r)


def _qr_numpy(
    a: np.ndarray, *, pivoting: bool, full_matrices: bool, **_: object
) -> tuple[np.ndarray, ...]:
    x = a.astype(lapack_dtype(a.dtype))
    m, n = x.shape[-2:]
    k = m if full_matrices else min(m, n)
    mode = "full" if full_matrices else "economic"

    def one(x: np.ndarray) -> tuple[np.ndarray, ...]:
        return imported("scipy.linalg").qr(x, mode=mode, pivoting=pivoting, check_finite=False)

    results = [((m, k), x.dtype), ((k, n), x.dtype), ((n,), np.int32)]
    out = map_batch(one, "2", [x], results if pivoting else results[:2])
    if not min(m, n):
        out[0][...] = np.eye(m, k)
    return out


def _qr_jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params
) -> Sequence[Node | None]:
    whole_t = ts[0]
    if whole_t is None:
        return [None] * len(y.aval)
    m, n = xs[0].aval.shape[-2:]
    whole_q, whole_r, *order = items(y)
    k = min(m, n)
    if order:  # the decomposition is that of the permuted columns
        places = last_axis(order[0], whole_t.aval.shape)
        whole_t = gather_permuted(whole_t, places, whole_t.aval.ndim - 1)
    # The first k columns determine q; the columns after them are multiplied by the same q.
    t, q = _slice_columns(whole_t, 0, k), _slice_columns(whole_q, 0, k)
    r = _slice_rows(_slice_columns(whole_r, 0, k), 0, k)
    t_r = o.triangular_solve(
        r, t, left_side=False, lower=False, transpose_a=False, conjugate_a=False,
        unit_diagonal=False,
    )  # fmt: skip
    inner = matmul(matrix_t(q, True), t_r)
    low = triangle(inner, -1)
    omega = o.sub(low, matrix_t(low, True))
    if inner.aval.dtype.kind == "c":
        eye = batched_identity(inner.aval)
        part = o.mul(eye, o.sub(inner, to_dtype(o.real(inner), inner.aval.dtype)))
        omega = o.add(omega, part)
    dq = o.add(matmul(q, o.sub(omega, inner)), t_r)
    dr = matmul(o.sub(inner, omega), r)
    if n > k:
        rest = _slice_columns(whole_t, k, n)
        fixed = matmul(matrix_t(dq, True), matmul(q, _slice_columns(whole_r, k, n)))
        dr = _join_columns(dr, o.add(fixed, matmul(matrix_t(q, True), rest)))
    if p["full_matrices"] and m > k:
        dq = _reflector_tangent(whole_q, dq, k)
        below = full((*dr.aval.shape[:-2], m - k, n), 0, dr.aval.dtype)
        dr = o.concatenate(dr, below, dimension=dr.aval.ndim - 2)
    return [dq, dr, *[None] * len(order)]


def _reflector_tangent(q: Node, dq: Node, k: int) -> Node:
    """Return the tangent of a product q of k reflectors, given that of its first k columns.

    q is I - y t y^H with y = [y1; y2] (Schreiber and Van Loan 1989), so the other columns are
    [0; I] + (first - [I; 0]) z^H with z = y2 / y1 = first2 / (first1 - I). The determinant of
    first1 - I is that of t, a product of factors of at least 1, or 0 if a reflector is the
    identity. q is not continuous there, and any basis is valid.
    """
    m = q.aval.shape[-1]
    first, d_above, d_below = _slice_columns(q, 0, k), _slice_rows(dq, 0, k), _slice_rows(dq, k, m)
    eye = batched_identity(d_above.aval)
    moved = o.sub(_slice_rows(first, 0, k), eye)
    factors = o.abs(o.det(moved))
    fine = o.gt(factors, full(factors.aval.shape, 0.5, factors.aval.dtype))
    each = tuple(range(fine.aval.ndim))
    moved = o.select_n(broadcast_to(fine, moved.aval.shape, each), eye, moved)
    adjoint = matrix_t(moved, True)
    zh = o.linear_solve(adjoint, matrix_t(_slice_rows(first, k, m), True))
    rest = o.sub(d_below, matmul(matrix_t(zh, True), d_above))
    dzh = o.linear_solve(adjoint, matrix_t(rest, True))
    below = full((*eye.aval.shape[:-2], m - k, k), 0, eye.aval.dtype)
    top = o.concatenate(eye, below, dimension=eye.aval.ndim - 2)
    others = o.add(matmul(dq, zh), matmul(o.sub(first, top), dzh))
    whole = _join_columns(dq, others)
    return o.select_n(
        broadcast_to(fine, whole.aval.shape, each), _complete_tangent(q, dq, k), whole
    )


opaque(
    "qr",
    lowering=Lowering("linalg.lapack.qr", "linalg.block_factors.qr", "cupy.calls.qr"),
    infer=_qr_infer,
    numpy=_qr_numpy,
    jvp=_qr_jvp,
    batch=batched("qr"),
    several=True,
)


# --- lu ------------------------------------------------------------------------------------------


@weak_as_operands
def _lu_infer(a: Aval) -> tuple[Aval, Aval, Aval]:
    inexact("lu", "2", a)
    *outer, m, n = a.shape
    kind = np.dtype(np.int32)
    return (
        make_aval(a.shape, a.dtype),
        make_aval((*outer, min(m, n)), kind),
        make_aval((*outer, m), kind),
    )


def _lu_numpy(a: np.ndarray) -> tuple[np.ndarray, ...]:
    x = a.astype(lapack_dtype(a.dtype))
    m, n = x.shape[-2:]
    k = min(m, n)

    def one(x: np.ndarray) -> tuple[np.ndarray, ...] | None:
        packed, pivots, info = routine("getrf", "getrf", x)(x)
        return None if info < 0 else (packed, pivots, row_order(pivots, m))

    out = map_batch(one, "2", [x], [((m, n), x.dtype), ((k,), np.int32), ((m,), np.int32)])
    if not k:
        out[2][...] = np.arange(m)
    return out


def row_order(pivots: np.ndarray, m: int) -> np.ndarray:
    """Return the order of m rows after successive exchanges; exchanges out of range are ignored."""
    order = np.arange(m, dtype=np.int32)
    for i, j in enumerate(pivots):
        if 0 <= j < m:
            order[[i, j]] = order[[j, i]]
    return order


def _lu_jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params
) -> Sequence[Node | None]:
    """Complete L and U to square matrices and split L^-1 (P dA) U^-1 into its triangles."""
    if ts[0] is None:
        return [None, None, None]
    packed, _, perm = items(y)
    shape, dtype = packed.aval.shape, packed.aval.dtype
    *outer, m, n = shape
    k = len(outer)
    rows = broadcast_to(perm, shape, tuple(range(k + 1)))
    t = gather_permuted(ts[0], rows, k)
    low = _slice_columns(packed, 0, m) if m <= n else _pad_columns(packed, m)
    low = o.add(triangle(low, -1), batched_identity(low.aval))
    up = matrix_t(
        _slice_columns(matrix_t(packed), 0, n) if n <= m else _pad_columns(matrix_t(packed), n)
    )
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


def _pad_columns(x: Node, n: int) -> Node:
    """Append columns of zeros, so that there are n columns."""
    config = (*[(0, 0, 0)] * (x.aval.ndim - 1), (0, n - x.aval.shape[-1], 0))
    return o.pad(x, full((), 0, x.aval.dtype), padding_config=config)


opaque(
    "lu",
    lowering=Lowering("linalg.lowering.lu", "linalg.block_factors.lu", "cupy.calls.lu"),
    infer=_lu_infer,
    numpy=quiet(_lu_numpy),
    jvp=_lu_jvp,
    batch=batched("lu"),
    several=True,
)
