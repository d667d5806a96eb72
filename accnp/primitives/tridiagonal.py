"""The op `tridiagonal_solve`: systems with tridiagonal matrices.

The three diagonals are vectors of the same length; the first element of the lower one and the last
element of the upper one are not read. The reference function calls LAPACK, except with
`perturb_singular`, which is implemented here; the kernel calls LAPACK, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import Lowering, o
from accnp.primitives.kinds import broadcast_to, full, opaque, weak_as_operands
from accnp.primitives.lapack_calls import (
    batched,
    inexact,
    lapack_dtype,
    map_batch,
    real_dtype,
    routine,
)

if TYPE_CHECKING:
    from accnp.ir.op_types import Batched, Operand, Params, Tangents

__all__: list[str] = []


@weak_as_operands
def _infer(dl: Aval, d: Aval, du: Aval, b: Aval, *, perturb_singular: bool) -> Aval:
    inexact("tridiagonal_solve", "1112", dl, d, du, b)
    if not dl.shape == d.shape == du.shape == b.shape[:-1]:
        shapes = ", ".join(str(x.shape) for x in (dl, d, du, b))
        raise TypeError(
            "tridiagonal_solve: the diagonals need one shape [..., m], and b [..., m, k]; "
            f"got {shapes}; reshape them"
        )
    return make_aval(b.shape, b.dtype)


def _numpy(
    dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray, *, perturb_singular: bool
) -> np.ndarray:
    work = lapack_dtype(d.dtype)
    xs = [x.astype(work) for x in (dl, d, du, b)]
    if perturb_singular:
        return _solve_perturbed(*xs)

    def one(
        dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, ...] | None:
        *_, x, info = routine("gtsv", "gtsv", d)(dl[1:], d, du[:-1], b)
        return None if info else (x,)

    if d.shape[-1] == 1:
        with np.errstate(all="ignore"):
            d = xs[1][..., None]
            return np.where(d == 0, work.type(np.nan), xs[3] / d)
    return map_batch(one, "1112", xs, [(b.shape[-2:], work)])[0]


def _solve_perturbed(dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Eliminate with exchanges of neighboring rows, for all systems of the batch at once. Pivots
    that are zero or subnormal are replaced by eps times the largest element of U, with their sign,
    as in jax."""
    m, k = b.shape[-2:]
    if not b.size:
        return b
    flat = [np.moveaxis(x.reshape(-1, m), 1, 0) for x in (dl, d, du)]
    low, main, up = (x.copy() for x in flat)
    x = np.moveaxis(b.reshape(-1, m, k), 1, 0).copy()
    far = np.zeros_like(up)  # the second superdiagonal, which exchanges fill
    low[0], up[-1] = 0, 0
    for i in range(m - 1):
        swap = np.abs(low[i + 1]) > np.abs(main[i])
        rows: list[tuple[np.ndarray, np.ndarray]] = [
            (main[i], low[i + 1]),
            (up[i], main[i + 1]),
            (far[i], up[i + 1]),
        ]
        (p0, q0), (p1, q1), (p2, q2) = (
            (np.where(swap, q, p), np.where(swap, p, q)) for p, q in rows
        )
        there = swap[:, None]
        x[i], x[i + 1] = np.where(there, x[i + 1], x[i]), np.where(there, x[i], x[i + 1])
        factor = np.where(p0 == 0, 0, q0 / np.where(p0 == 0, 1, p0))
        main[i], up[i], far[i] = p0, p1, p2
        main[i + 1], up[i + 1] = q1 - factor * p1, q2 - factor * p2
        x[i + 1] -= factor[:, None] * x[i]
    kind = np.finfo(real_dtype(d.dtype))
    size = np.abs(main)
    largest = np.max(np.abs(np.stack([main, up, far])), axis=(0, 1))
    least = np.maximum(kind.eps * largest, kind.tiny)
    signed = np.copysign(least, np.real(main)).astype(main.dtype)
    main = np.where(size < kind.tiny, signed, main)
    x[m - 1] /= main[m - 1][:, None]
    for i in range(m - 2, -1, -1):
        rest = x[i] - up[i][:, None] * x[i + 1]
        if i < m - 2:
            rest -= far[i][:, None] * x[i + 2]
        x[i] = rest / main[i][:, None]
    return np.moveaxis(x, 0, 1).reshape(b.shape)


def _multiply(diagonals: Sequence[Node], x: Node) -> Node:
    """Multiply a tridiagonal matrix by a matrix."""
    dl, d, du = diagonals
    rank, (*outer, m, k) = x.aval.ndim, x.aval.shape
    zero = full((), 0, x.aval.dtype)

    def shifted(diagonal: Node, low: int) -> Node:
        """Multiply element i of a diagonal by row i - low of x, where that exists."""
        first, last = max(low, 0), m + min(low, 0)
        start = (*[0] * len(outer), first)
        part = o.slice(diagonal, start_indices=start, limit_indices=(*outer, last), strides=None)
        start = (*[0] * len(outer), first - low, 0)
        stop = (*outer, last - low, k)
        rows = o.slice(x, start_indices=start, limit_indices=stop, strides=None)
        out = o.mul(broadcast_to(part, rows.aval.shape, tuple(range(rank - 1))), rows)
        config = (*[(0, 0, 0)] * (rank - 2), (first, m - last, 0), (0, 0, 0))
        return o.pad(out, zero, padding_config=config)

    total = o.mul(broadcast_to(d, x.aval.shape, tuple(range(rank - 1))), x)
    return o.add(o.add(total, shifted(dl, 1)), shifted(du, -1)) if m > 1 else total


def _jvp(ts: Tangents, y: Node, xs: Sequence[Node], p: Params) -> Node | None:
    """Differentiate A x = b: solve A dx = db - dA x."""
    right = ts[3]
    if any(t is not None for t in ts[:3]):
        moved = [
            full(x.aval.shape, 0, x.aval.dtype) if t is None else t
            for t, x in zip(ts[:3], xs[:3], strict=True)
        ]
        change = _multiply(moved, y)
        right = o.neg(change) if right is None else o.sub(right, change)
    return None if right is None else o.tridiagonal_solve(*xs[:3], right, **p)


def _shift(x: Node, by: int) -> Node:
    """Shift elements along the last axis and fill with zeros."""
    config = (*[(0, 0, 0)] * (x.aval.ndim - 1), (by, -by, 0))
    return o.pad(x, full((), 0, x.aval.dtype), padding_config=config)


def _transpose(
    ct: Node, dl: Node, d: Node, du: Node, b: Operand, **p: object
) -> tuple[None, None, None, Node]:
    turned = o.tridiagonal_solve(_shift(du, 1), d, _shift(dl, -1), ct, **p)
    return None, None, None, turned


def _batch(size: int, xs: Sequence[Node], flags: Sequence[bool], p: Params) -> Batched:
    """Batch a system: if all examples have the same matrix, their right sides become columns of one
    right side."""
    if any(flags[:3]):
        return batched("tridiagonal_solve")(size, xs, flags, p)
    *diagonals, b = xs
    rank = b.aval.ndim
    b = o.transpose(b, permutation=(*range(1, rank - 1), 0, rank - 1))
    shape = b.aval.shape
    flat = (*shape[:-2], shape[-2] * shape[-1])
    out = o.tridiagonal_solve(*diagonals, o.reshape(b, new_sizes=flat, dimensions=None), **p)
    out = o.reshape(out, new_sizes=shape, dimensions=None)
    return o.transpose(out, permutation=(rank - 2, *range(rank - 2), rank - 1)), True


opaque(
    "tridiagonal_solve",
    lowering=Lowering("linalg.lapack.tridiagonal_solve"),
    infer=_infer,
    numpy=_numpy,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
)
