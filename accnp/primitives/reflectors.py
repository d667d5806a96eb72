"""Householder reflectors in LAPACK's storage: geqrf, geqp3, householder_product, ormqr.

geqrf and geqp3 compute QR factors and store reflectors below the diagonal; householder_product and
ormqr multiply the reflectors. Matrices are the last two axes, and leading axes are batches. The
reference functions call LAPACK through SciPy; as in JAX, there are no derivatives.
"""

from __future__ import annotations

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.primitives.kinds import opaque, weak_as_operands
from accnp.primitives.lapack_calls import batched, inexact, lapack_dtype, map_batch, routine

__all__: list[str] = []


@weak_as_operands
def _geqrf_infer(a: Aval) -> tuple[Aval, Aval]:
    inexact("geqrf", "2", a)
    return make_aval(a.shape, a.dtype), make_aval((*a.shape[:-2], min(a.shape[-2:])), a.dtype)


def _geqrf_numpy(a: np.ndarray) -> tuple[np.ndarray, ...]:
    x = a.astype(lapack_dtype(a.dtype))
    shape = x.shape[-2:]

    def one(x: np.ndarray) -> tuple[np.ndarray, ...]:
        return routine("geqrf", "geqrf", x)(x)[:2]

    return map_batch(one, "2", [x], [(shape, x.dtype), ((min(shape),), x.dtype)])


opaque("geqrf", infer=_geqrf_infer, numpy=_geqrf_numpy, batch=batched("geqrf"), several=True)


@weak_as_operands
def _geqp3_infer(a: Aval) -> tuple[Aval, Aval, Aval]:
    inexact("geqp3", "2", a)
    *outer, m, n = a.shape
    return (
        make_aval(a.shape, a.dtype),
        make_aval((*outer, n), np.dtype(np.int32)),
        make_aval((*outer, min(m, n)), a.dtype),
    )


def _geqp3_numpy(a: np.ndarray) -> tuple[np.ndarray, ...]:
    x = a.astype(lapack_dtype(a.dtype))
    shape = x.shape[-2:]

    def one(x: np.ndarray) -> tuple[np.ndarray, ...]:
        packed, order, taus, *_ = routine("geqp3", "geqp3", x)(x)
        return packed, order - 1, taus

    results = [(shape, x.dtype), ((shape[1],), np.int32), ((min(shape),), x.dtype)]
    return map_batch(one, "2", [x], results)


opaque("geqp3", infer=_geqp3_infer, numpy=_geqp3_numpy, batch=batched("geqp3"), several=True)


@weak_as_operands
def _product_infer(a: Aval, taus: Aval) -> Aval:
    inexact("householder_product", "21", a, taus)
    m, n = a.shape[-2:]
    if m < n or taus.shape[-1] > n:
        raise ValueError(
            "householder_product: needs at least as many rows as columns, and at most as many "
            f"factors as columns; got shapes {a.shape} and {taus.shape}; pass the results of geqrf"
        )
    return make_aval(a.shape, a.dtype)


def _product_numpy(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    work, shape = lapack_dtype(a.dtype), a.shape[-2:]
    if not taus.shape[-1]:
        return np.broadcast_to(np.eye(*shape, dtype=work), a.shape).copy()

    def one(x: np.ndarray, taus: np.ndarray) -> tuple[np.ndarray, ...]:
        return (routine("orgqr", "ungqr", x)(x, taus)[0],)

    return map_batch(one, "21", [a.astype(work), taus.astype(work)], [(shape, work)])[0]


opaque(
    "householder_product",
    infer=_product_infer,
    numpy=_product_numpy,
    batch=batched("householder_product"),
)


@weak_as_operands
def _ormqr_infer(a: Aval, taus: Aval, c: Aval, *, left: bool, transpose: bool) -> Aval:
    inexact("ormqr", "212", a, taus, c)
    m, n = a.shape[-2:]
    if c.shape[-2 if left else -1] != m:
        raise ValueError(
            f"ormqr: c needs as many {'rows' if left else 'columns'} as the reflectors have rows; "
            f"got shapes {a.shape} and {c.shape} (left={left}); transpose c, or change left"
        )
    if taus.shape[-1] > min(m, n):
        raise ValueError(
            f"ormqr: there are more factors than reflectors; got shapes {a.shape}, {taus.shape}; "
            "pass the results of geqrf"
        )
    return make_aval(c.shape, c.dtype)


def _ormqr_numpy(
    a: np.ndarray, taus: np.ndarray, c: np.ndarray, *, left: bool, transpose: bool
) -> np.ndarray:
    work, k = lapack_dtype(a.dtype), taus.shape[-1]
    side, adjoint = "L" if left else "R", "C" if work.kind == "c" else "T"
    if not k:
        return c.astype(work)

    def one(x: np.ndarray, taus: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
        multiply = routine("ormqr", "unmqr", x)
        room = 64 * max(c.shape) + 4288  # LAPACK's work size for blocks of 64 columns
        results = multiply(side, adjoint if transpose else "N", x[:, :k], taus, c, room)
        return (results[0],)

    xs = [a.astype(work), taus.astype(work), c.astype(work)]
    return map_batch(one, "212", xs, [(c.shape[-2:], work)])[0]


opaque("ormqr", infer=_ormqr_infer, numpy=_ormqr_numpy, batch=batched("ormqr"))
