"""Eigenvalue problems: eigh, eig, schur, hessenberg, tridiagonal and eigh_tridiagonal.

Matrices are the last two axes, and leading axes are batches. Each declaration has a type rule, a
reference function that calls LAPACK through SciPy for each matrix, and a derivative rule if there
is one; only `eigh` has a kernel. The public functions are in `accnp/lax/linalg/`.
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
from accnp.primitives.decompositions import column, diagonal_of, last_axis, to_dtype
from accnp.primitives.kinds import broadcast_to, full, opaque, weak_as_operands
from accnp.primitives.lapack_calls import (
    batched,
    inexact,
    lapack_dtype,
    map_batch,
    real_dtype,
    routine,
    scale_by_power,
    scaling_power,
    square,
)
from accnp.primitives.linalg import batched_identity, matmul, matrix_t

if TYPE_CHECKING:
    from accnp.ir.op_types import Params

__all__: list[str] = []


def _invert_gaps(w: Node, shape: tuple[int, ...]) -> Node:
    """Return 1 / (w_j - w_i) at row i, column j, and 0 on the diagonal."""
    gap = o.sub(last_axis(w, shape), column(w, shape))
    eye = batched_identity(make_aval(shape, w.aval.dtype))
    return o.sub(o.div(full(shape, 1, w.aval.dtype), o.add(gap, eye)), eye)


def _check_no_subset(name: str, subset: Sequence[int] | None, n: int) -> None:
    if subset is not None and tuple(subset) != (0, n):
        raise NotImplementedError(
            f"{name}: subset_by_index is not implemented on CPU; got {subset}; slice the results"
        )


# --- symmetric matrices --------------------------------------------------------------------------


@weak_as_operands
def _eigh_infer(
    a: Aval,
    *,
    lower: bool,
    sort_eigenvalues: bool,
    subset_by_index: Sequence[int] | None,
    algorithm: Enum | None,
) -> tuple[Aval, Aval]:
    square("eigh", a)
    _check_no_subset("eigh", subset_by_index, a.shape[-1])
    if algorithm is not None and algorithm.name != "QR":
        raise NotImplementedError(
            f"eigh: {algorithm} is not implemented on CPU; use EighImplementation.QR or None"
        )
    return make_aval(a.shape, a.dtype), make_aval(a.shape[:-1], real_dtype(a.dtype))


def _eigh_numpy(a: np.ndarray, *, lower: bool, **_: object) -> tuple[np.ndarray, ...]:
    work, n = lapack_dtype(a.dtype), a.shape[-1]

    def one(x: np.ndarray) -> tuple[np.ndarray, ...] | None:
        try:
            w, v = np.linalg.eigh(x, "L" if lower else "U")
        except np.linalg.LinAlgError:
            return None
        return v, w

    return map_batch(one, "2", [a.astype(work)], [((n, n), work), ((n,), real_dtype(work))])


def _eigh_jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params
) -> Sequence[Node | None]:
    t = ts[0]
    if t is None:
        return [None, None]
    v, w = items(y)
    dtype, shape = v.aval.dtype, v.aval.shape
    inner = matmul(matrix_t(v, True), matmul(t, v))
    dv = matmul(v, o.mul(to_dtype(_invert_gaps(w, shape), dtype), inner))
    dw = diagonal_of(inner)
    return [dv, o.real(dw) if dtype.kind == "c" else dw]


opaque(
    "eigh",
    lowering=Lowering("linalg.lapack.eigh", "linalg.block_spectra.eigh", "cupy.calls.eigh"),
    infer=_eigh_infer,
    numpy=_eigh_numpy,
    jvp=_eigh_jvp,
    batch=batched("eigh"),
    several=True,
)


# --- general eigenvalues -------------------------------------------------------------------------


def _complex_dtype(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.complex128 if real_dtype(dtype).itemsize == 8 else np.complex64)


@weak_as_operands
def _eig_infer(
    a: Aval,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
    implementation: Enum | None,
) -> tuple[Aval, ...]:
    square("eig", a)
    if implementation is not None and implementation.name != "LAPACK":
        raise ValueError(
            f"eig: {implementation} is not implemented on CPU; use EigImplementation.LAPACK or None"
        )
    wide = _complex_dtype(a.dtype)
    count = compute_left_eigenvectors + compute_right_eigenvectors
    return make_aval(a.shape[:-1], wide), *[make_aval(a.shape, wide)] * count


def _eig_numpy(
    a: np.ndarray,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    **_: object,
) -> tuple[np.ndarray, ...]:
    wide, n = _complex_dtype(a.dtype), a.shape[-1]
    requested = [compute_left_eigenvectors, compute_right_eigenvectors]

    def one(x: np.ndarray) -> tuple[np.ndarray, ...] | None:
        if not np.isfinite(x).all():  # LAPACK may not terminate
            return None
        geev, power = routine("geev", "geev", x), scaling_power(x)
        *w, left, right, info = geev(scale_by_power(x, -power), *map(int, requested))
        if info:
            return None
        w = [scale_by_power(v, power) for v in w]
        if len(w) == 1:
            return w[0], *[v for v, use in zip((left, right), requested, strict=True) if use]
        pairs = [
            _unpack_vectors(v, w[1]) for v, use in zip((left, right), requested, strict=True) if use
        ]
        return w[0] + 1j * w[1], *pairs

    results = [((n,), wide), *[((n, n), wide)] * sum(requested)]
    return map_batch(one, "2", [a.astype(lapack_dtype(a.dtype))], results)


def _unpack_vectors(v: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """Return the complex eigenvectors of real matrices: LAPACK returns the real and imaginary part
    in two neighboring columns, and the conjugate is the next eigenvector."""
    out = v.astype(_complex_dtype(v.dtype))
    first = np.flatnonzero(imaginary > 0)
    out[:, first] = v[:, first] + 1j * v[:, first + 1]
    out[:, first + 1] = out[:, first].conj()
    return out


def _eigenvector_tangents(w: Node, v: Node, t: Node) -> tuple[Node, Node]:
    """Return the tangents of eigenvalues and eigenvectors, which LAPACK scales to norm 1 with a
    real largest component."""
    dtype, shape = v.aval.dtype, v.aval.shape
    inner = o.linear_solve(v, matmul(t, v))
    dv = matmul(v, o.mul(_invert_gaps(w, shape), inner))
    # Project out changes of the norm and of the phase of the largest component.
    real = real_dtype(dtype)
    size = o.abs(v)
    along = len(shape) - 2
    length = o.reduce_sum(o.real(o.mul(o.conj(v), dv)), axes=(along,))
    largest = o.eq(size, last_axis(o.reduce_max(size, axes=(along,)), shape))
    phase = o.reduce_sum(
        o.select_n(largest, full(shape, 0, real), o.imag(o.mul(dv, o.conj(v)))), axes=(along,)
    )
    weight = o.reduce_sum(
        o.select_n(largest, full(shape, 0, real), o.mul(size, size)), axes=(along,)
    )
    shift = last_axis(o.complex(length, o.div(phase, weight)), shape)
    return diagonal_of(inner), o.sub(dv, o.mul(v, shift))


def _eig_jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params
) -> Sequence[Node | None]:
    w, *vectors = items(y)
    if ts[0] is None:
        return [None] * (1 + len(vectors))
    if vectors and not p["enable_eigvec_derivs"]:
        raise NotImplementedError(
            "eig: derivatives of eigenvectors are valid only if all eigenvalues are distinct and "
            "no vector has two largest components; got enable_eigvec_derivs=False; call "
            "lax.linalg.eig(..., enable_eigvec_derivs=True) if that holds, or eigvals"
        )
    t = to_dtype(ts[0], w.aval.dtype)
    if not vectors:
        options = {"compute_right_eigenvectors": True}
        v = items(o.eig(xs[0], **{**p, **options}))[1]
        return [diagonal_of(o.linear_solve(v, matmul(t, v)))]
    out = []
    if p["compute_left_eigenvectors"]:  # they are right eigenvectors of the adjoint
        dw, dv = _eigenvector_tangents(o.conj(w), vectors[0], matrix_t(t, True))
        out = [o.conj(dw), dv]
    if p["compute_right_eigenvectors"]:
        dw, dv = _eigenvector_tangents(w, vectors[-1], t)
        out = [dw, *out[1:], dv]
    return out


opaque("eig", infer=_eig_infer, numpy=_eig_numpy, jvp=_eig_jvp, batch=batched("eig"), several=True)


# --- reductions to simpler forms; these have no derivatives in jax -------------------------------


@weak_as_operands
def _schur_infer(
    a: Aval, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: object
) -> tuple[Aval, ...]:
    square("schur", a)
    if sort_eig_vals:
        raise NotImplementedError(
            "schur: sort_eig_vals is not implemented; got True; order the eigenvalues afterwards"
        )
    return (make_aval(a.shape, a.dtype),) * (1 + compute_schur_vectors)


def _select_none(real: object, imaginary: object = None) -> None:
    """Select no eigenvalues for the start of the diagonal."""


def _schur_numpy(
    a: np.ndarray, *, compute_schur_vectors: bool, **_: object
) -> tuple[np.ndarray, ...]:
    work, n = lapack_dtype(a.dtype), a.shape[-1]

    def one(x: np.ndarray) -> tuple[np.ndarray, ...] | None:
        if not np.isfinite(x).all():
            return None
        gees = routine("gees", "gees", x)
        t, *_, vectors, _, info = gees(_select_none, x, compute_v=int(compute_schur_vectors))
        return None if info else (t, vectors)

    return map_batch(one, "2", [a.astype(work)], [((n, n), work)] * (1 + compute_schur_vectors))


opaque("schur", infer=_schur_infer, numpy=_schur_numpy, batch=batched("schur"), several=True)


@weak_as_operands
def _hessenberg_infer(a: Aval) -> tuple[Aval, Aval]:
    square("hessenberg", a)
    if not a.shape[-1]:
        raise ValueError(
            f"hessenberg: needs matrices of at least one row; got shape {a.shape}; "
            "pass matrices with rows"
        )
    taus = (*a.shape[:-2], a.shape[-1] - 1)
    return make_aval(a.shape, a.dtype), make_aval(taus, a.dtype)


def _hessenberg_numpy(a: np.ndarray) -> tuple[np.ndarray, ...]:
    work, n = lapack_dtype(a.dtype), a.shape[-1]

    def one(x: np.ndarray) -> tuple[np.ndarray, ...] | None:
        if n == 1:
            return x, np.zeros(0, work)
        h, taus, info = routine("gehrd", "gehrd", x)(x)
        return None if info else (h, taus[: n - 1])

    return map_batch(one, "2", [a.astype(work)], [((n, n), work), ((n - 1,), work)])


opaque(
    "hessenberg", infer=_hessenberg_infer, numpy=_hessenberg_numpy, batch=batched("hessenberg"),
    several=True,
)  # fmt: skip


@weak_as_operands
def _tridiagonal_infer(a: Aval, *, lower: bool) -> tuple[Aval, ...]:
    square("tridiagonal", a)
    *outer, n, _ = a.shape
    if not n:
        raise ValueError(
            f"tridiagonal: needs matrices of at least one row; got shape {a.shape}; "
            "pass matrices with rows"
        )
    real = real_dtype(a.dtype)
    return (
        make_aval(a.shape, a.dtype),
        make_aval((*outer, n), real),
        make_aval((*outer, n - 1), real),
        make_aval((*outer, n - 1), a.dtype),
    )


def _tridiagonal_numpy(a: np.ndarray, *, lower: bool) -> tuple[np.ndarray, ...]:
    work, n = lapack_dtype(a.dtype), a.shape[-1]
    real = real_dtype(work)

    def one(x: np.ndarray) -> Sequence[np.ndarray] | None:
        if n == 1:
            return x, np.real(x[0]), np.zeros(0, real), np.zeros(0, work)
        *parts, info = routine("sytrd", "hetrd", x)(x, lower=int(lower))
        return None if info else [part[: n - 1] if i > 1 else part for i, part in enumerate(parts)]

    results = [((n, n), work), ((n,), real), ((n - 1,), real), ((n - 1,), work)]
    return map_batch(one, "2", [a.astype(work)], results)


opaque(
    "tridiagonal",
    infer=_tridiagonal_infer,
    numpy=_tridiagonal_numpy,
    batch=batched("tridiagonal"),
    several=True,
)


# --- eigenvalues of tridiagonal matrices ---------------------------------------------------------


def _subset_range(subset: tuple[int, int] | None, n: int) -> tuple[int, int]:
    return (0, n - 1) if subset is None else subset


def _eigh_tridiagonal_infer(
    d: Aval, e: Aval, *, subset: tuple[int, int] | None, **_: object
) -> tuple[Aval, Aval]:
    inexact("eigh_tridiagonal", "11", d, e)
    *outer, n = d.shape
    low, high = _subset_range(subset, n)
    count = high - low + 1
    return make_aval((*outer, count), d.dtype), make_aval((*outer, n, count), d.dtype)


def _eigh_tridiagonal_numpy(
    d: np.ndarray, e: np.ndarray, *, subset: tuple[int, int] | None, tol: float
) -> tuple[np.ndarray, ...]:
    work, n = lapack_dtype(d.dtype), d.shape[-1]
    low, high = _subset_range(subset, n)
    count = high - low + 1
    how: dict[str, object] = {}
    if subset is not None:
        how = {"select": "i", "select_range": (low, high)}

    def one(d: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, ...] | None:
        if not (np.isfinite(d).all() and np.isfinite(e).all()):
            return None
        power = scaling_power(np.concatenate([d, e]))
        d, e = scale_by_power(d, -power), scale_by_power(e, -power)
        how["tol"] = np.ldexp(tol, -power)
        try:
            w, v = imported("scipy.linalg").eigh_tridiagonal(d, e, **how)
        except np.linalg.LinAlgError:
            return None
        return scale_by_power(w, power), v

    results = [((count,), work), ((n, count), work)]
    return map_batch(one, "11", [d.astype(work), e.astype(work)], results)


def _eigh_tridiagonal_jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params
) -> Sequence[Node | None]:
    """Differentiate as for `eigh`; the tangent of each vector is a combination of all vectors."""
    if all(t is None for t in ts):
        return [None, None]
    w, v = items(y)
    *outer, n, count = v.aval.shape
    rank, dtype = len(outer), v.aval.dtype
    dt, de = (full(x.aval.shape, 0, dtype) if t is None else t for t, x in zip(ts, xs, strict=True))
    whole = (w, v) if count == n else items(o.eigh_tridiagonal(*xs, **{**p, "subset": None}))

    def part(start: int) -> Node:
        low = (*[0] * rank, start, 0)
        high = (*outer, start + n - 1, count)
        return o.slice(v, start_indices=low, limit_indices=high, strides=None)

    def times(t: Node, x: Node, low: int = 0, high: int = 0) -> Node:
        """Multiply rows by numbers, and add rows of zeros before and after."""
        out = o.mul(broadcast_to(t, x.aval.shape, tuple(range(rank + 1))), x)
        config = (*[(0, 0, 0)] * rank, (low, high, 0), (0, 0, 0))
        return o.pad(out, full((), 0, dtype), padding_config=config) if low or high else out

    moved = o.add(times(dt, v), o.add(times(de, part(1), 0, 1), times(de, part(0), 1, 0)))
    dw = o.reduce_sum(o.mul(v, moved), axes=(rank,))
    shape = v.aval.shape
    row = o.iota(dtype=np.dtype(np.int32), shape=shape, dimension=rank)
    col = o.iota(dtype=np.dtype(np.int32), shape=shape, dimension=rank + 1)
    first = full((), _subset_range(p["subset"], n)[0], np.dtype(np.int32))
    own = o.convert_element_type(o.eq(row, o.add(col, first)), new_dtype=dtype, weak_type=False)
    gap = o.add(o.sub(last_axis(w, shape), column(whole[0], shape)), own)
    f = o.sub(o.div(full(shape, 1, dtype), gap), own)
    return [dw, matmul(whole[1], o.mul(f, matmul(matrix_t(whole[1]), moved)))]


opaque(
    "eigh_tridiagonal",
    infer=_eigh_tridiagonal_infer,
    numpy=_eigh_tridiagonal_numpy,
    jvp=_eigh_tridiagonal_jvp,
    batch=batched("eigh_tridiagonal"),
    several=True,
)
