"""Determinants of matrices, and the adjugates on which their derivatives depend.

Matrices are the last two axes, and leading axes are batches. `det` is differentiated through
`adjugate` (transposed cofactors), which is also defined for singular matrices; `adjugate_tangent`
is its derivative. The reference functions call LAPACK through NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node, items
from accnp.ir.op import Lowering, o
from accnp.primitives.decompositions import to_dtype, trace_of
from accnp.primitives.kinds import broadcast_to, opaque
from accnp.primitives.lapack_calls import batched, lapack_dtype, real_dtype, square
from accnp.primitives.linalg import (
    batched_identity,
    map_matrices,
    matmul,
    matrix_t,
)
from accnp.primitives.reference import quiet

if TYPE_CHECKING:
    from accnp.ir.op_types import Params, Tangents


def _det_infer(a: Aval) -> Aval:
    square("det", a)
    return make_aval(a.shape[:-2], a.dtype)


def _svd_with_phase(m: np.ndarray) -> tuple[Any, Any, Any, Any]:
    """Return singular vectors and values, and the determinant of the product of the vectors."""
    u, s, vh = np.linalg.svd(m)
    return u, s, vh, np.linalg.det(u) * np.linalg.det(vh)


def _invert_regular(x: np.ndarray) -> tuple[Any, Any, Any]:
    """Return the determinants and inverses of matrices, and which ones are well-conditioned."""
    try:
        inverse = np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return np.zeros(x.shape[:-2], x.dtype), x, np.zeros(x.shape[:-2], bool)
    norms = [np.linalg.norm(m, 1, axis=(-2, -1)) for m in (x, inverse)]
    good = norms[0] * norms[1] < np.finfo(x.dtype).eps ** -0.5
    return np.linalg.det(x), inverse, good


def _adjugate(a: np.ndarray) -> np.ndarray:
    """Return the transposed cofactors: det(a) inv(a) or, for ill-conditioned matrices, a formula
    that uses singular values and needs no inverse."""

    def one(m: np.ndarray) -> np.ndarray:
        n = m.shape[0]
        if n == 1:
            return np.ones_like(m)
        u, s, vh, phase = _svd_with_phase(m)
        others = np.array([np.prod(np.delete(s, i)) for i in range(n)], s.dtype)
        return (vh.conj().T * (others * phase)) @ u.conj().T

    x = a.astype(lapack_dtype(a.dtype))
    if not x.size:
        return x
    det, inverse, good = _invert_regular(x)
    adjugate = det[..., None, None] * inverse
    if not good.all():
        adjugate[~good] = map_matrices(one, x[~good])
    return adjugate


def _adjugate_tangent(a: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the derivative of the adjugate in direction t; also valid for singular matrices.

    For a diagonal matrix s and a direction m, an off-diagonal element is -m_ij times the product of
    all s except s_i and s_j. A diagonal element is the sum over j of m_jj times such products.
    """

    def one(m: np.ndarray, d: np.ndarray) -> np.ndarray:
        n = m.shape[0]
        u, s, vh, phase = _svd_with_phase(m)
        inner = u.conj().T @ d @ vh.conj().T
        pairs = np.zeros((n, n), s.dtype)
        for i in range(n):
            for j in range(i):
                pairs[i, j] = pairs[j, i] = np.prod(np.delete(s, [i, j]))
        middle = np.diag(pairs @ np.diagonal(inner)) - pairs * inner
        return (vh.conj().T @ middle @ u.conj().T) * phase

    work = lapack_dtype(a.dtype)
    a, t = a.astype(work), t.astype(work)
    if not a.size:
        return a
    det, inverse, good = _invert_regular(a)
    product = inverse @ t
    trace = np.trace(product, axis1=-2, axis2=-1)
    tangent = det[..., None, None] * (trace[..., None, None] * inverse - product @ inverse)
    if not good.all():
        tangent[~good] = map_matrices(one, a[~good], t[~good])
    return tangent


def _broadcast_numbers(x: Node, shape: tuple[int, ...]) -> Node:
    """Broadcast one number per matrix to the matrices."""
    return broadcast_to(x, shape, tuple(range(len(shape) - 2)))


def _tangent_by_matrix(s: Node, y: Node, a: Node, t: Node) -> Node:
    """Differentiate y = (tr(adj t) I - adj t) adj / det by a in direction s; a must be regular."""
    shape, eye = a.aval.shape, batched_identity(a.aval)
    adj, d_adj, det = o.adjugate(a), o.adjugate_tangent(a, s), o.det(a)

    def factor(x: Node) -> Node:
        inner = matmul(x, t)
        return o.sub(o.mul(_broadcast_numbers(trace_of(inner), shape), eye), inner)

    total = o.add(matmul(factor(d_adj), adj), matmul(factor(adj), d_adj))
    total = o.sub(total, o.mul(y, _broadcast_numbers(trace_of(matmul(adj, s)), shape)))
    return o.div(total, _broadcast_numbers(det, shape))


def _adjugate_infer(a: Aval, *_: Aval) -> Aval:
    square("adjugate", a)
    return make_aval(a.shape, a.dtype)


opaque(
    "adjugate_tangent",
    lowering=Lowering("linalg.small_matrices.adjugate_tangent"),
    infer=_adjugate_infer,
    numpy=quiet(_adjugate_tangent),
    jvp=(_tangent_by_matrix, lambda s, y, a, t: o.adjugate_tangent(a, s)),
    transpose=lambda ct, a, t: (None, matrix_t(o.adjugate_tangent(a, matrix_t(ct)))),
    batch=batched("adjugate_tangent"),
)
opaque(
    "adjugate",
    lowering=Lowering("linalg.small_matrices.adjugate"),
    infer=_adjugate_infer,
    numpy=quiet(_adjugate),
    jvp=(lambda t, y, a: o.adjugate_tangent(a, t),),
    batch=batched("adjugate"),
)


opaque(
    "det",
    lowering=Lowering("linalg.lowering.det", "linalg.block_factors.det", "cupy.calls.det"),
    infer=_det_infer,
    numpy=quiet(lambda a: np.asarray(np.linalg.det(a.astype(lapack_dtype(a.dtype))))),
    jvp=(lambda t, y, a: trace_of(matmul(o.adjugate(a), t)),),
    batch=batched("det"),
)


def _slogdet_infer(a: Aval) -> tuple[Aval, Aval]:
    square("slogdet", a)
    return make_aval(a.shape[:-2], a.dtype), make_aval(a.shape[:-2], real_dtype(a.dtype))


def _slogdet_numpy(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sign, log = np.linalg.slogdet(a.astype(lapack_dtype(a.dtype)))
    return np.asarray(sign), np.asarray(log)


def _slogdet_jvp(ts: Tangents, y: Node, xs: Sequence[Node], p: Params) -> Sequence[Node | None]:
    if ts[0] is None:
        return [None, None]
    inner = trace_of(o.linear_solve(xs[0], ts[0]))
    if inner.aval.dtype.kind != "c":
        return [None, inner]
    log = o.real(inner)
    phase = o.sub(inner, to_dtype(log, inner.aval.dtype))
    return [o.mul(phase, items(y)[0]), log]


opaque(
    "slogdet",
    lowering=Lowering("linalg.lowering.det", "linalg.block_factors.det", "cupy.calls.slogdet"),
    infer=_slogdet_infer,
    numpy=quiet(_slogdet_numpy),
    jvp=_slogdet_jvp,
    batch=batched("slogdet"),
    several=True,
)
