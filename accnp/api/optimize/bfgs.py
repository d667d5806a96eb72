"""Quasi-Newton methods: a function with its gradient comes in, a minimum goes out.

Method: J. Nocedal and S. J. Wright, Numerical Optimization (2006), algorithms 6.1 (BFGS) and 7.5
(L-BFGS).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accnp.api.algebra.norms import norm as norm_of
from accnp.api.algebra.products import dot, outer
from accnp.api.arrays.creation import asarray, eye, zeros
from accnp.api.arrays.joining import concatenate
from accnp.api.differentiation.derivatives import value_and_grad
from accnp.api.elements import ufuncs as uf
from accnp.api.elements.selecting import where
from accnp.api.flow.loops import scan, while_loop
from accnp.api.optimize.line_search import line_search
from accnp.array import Array

__all__ = ["Minimum", "bfgs", "lbfgs"]


class Minimum(NamedTuple):
    """What a method returns."""

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


class _State(NamedTuple):
    converged: Any
    failed: Any
    k: Any
    evaluations: Any
    status: Any
    x: Array
    f: Array
    g: Array
    model: Any  # what stands for the inverse Hessian


def _begin(fun: Callable[[Array], Array], x0: Array, norm: Any, gtol: float, model: Any) -> _State:
    f, g = value_and_grad(fun)(x0)
    none = asarray(0)
    return _State(
        norm_of(g, norm) < gtol, asarray(False), none, none + 1, none, x0, f, g, model
    )  # fmt: skip


def bfgs(
    fun: Callable[[Array], Array], x0: Array, maxiter: int | None = None, norm: Any = np.inf,
    gtol: float = 1e-5, line_search_maxiter: int = 10,
) -> Minimum:  # fmt: skip
    """The method of Broyden, Fletcher, Goldfarb and Shanno: [n, n] numbers of memory.

    Args:
        fun: the function.
        x0: where to begin, [n].
        maxiter: how many iterations (200 n).
        norm: of the gradient, which is compared.
        gtol: with this.
        line_search_maxiter: growing steps of a line search.
    """
    n = x0.shape[0]
    steps = 200 * n if maxiter is None else maxiter

    def body(s: _State) -> _State:
        h, before = s.model
        p = -dot(h, s.g)
        found = line_search(fun, s.x, p, s.f, s.g, before, line_search_maxiter)
        move, change = found.a * p, found.gradient - s.g
        rho = 1 / dot(change, move)
        turned = dot(h, change)
        scale = rho * (1 + rho * dot(change, turned))
        mixed = rho * outer(turned, move)
        updated = h + scale * outer(move, move) - mixed - mixed.T
        h = where(uf.isfinite(rho), updated, h)
        return _State(
            norm_of(found.gradient, norm) < gtol, found.failed, s.k + 1,
            s.evaluations + found.evaluations, found.status, s.x + move, found.value,
            found.gradient, (h, s.f),
        )  # fmt: skip

    first = _begin(fun, x0, norm, gtol, None)
    model = eye(n, dtype=x0.dtype), first.f + norm_of(first.g) / 2
    last = while_loop(
        lambda s: ~s.converged & ~s.failed & (s.k < steps), body, first._replace(model=model)
    )
    failure = where(last.k == steps, 1, where(last.failed, 2 + last.status, -1))
    status = where(last.converged, 0, failure)
    return Minimum(
        last.x, last.converged & ~last.failed, status, last.f, last.g, last.model[0],
        last.evaluations, last.evaluations, last.k,
    )  # fmt: skip


class _History(NamedTuple):
    """The last moves, changes of the gradient and their weights; rows without any are zero."""

    moves: Array
    changes: Array
    weights: Array
    scale: Array


def _direction(h: _History, g: Array) -> Array:
    """Minus the product of the inverse Hessian and the gradient, by two runs over the history."""
    rows = h.moves, h.changes, h.weights

    def back(q: Array, row: Any) -> tuple[Array, Array]:
        move, change, weight = row
        a = weight * uf.real(dot(uf.conj(move), q)).astype(weight.dtype)
        return q - a * uf.conj(change), a

    def forth(q: Array, row: Any) -> tuple[Array, None]:
        move, change, weight, a = row
        b = weight * uf.real(dot(change, q)).astype(weight.dtype)
        return q + (a - b) * move, None

    q, a = scan(back, -uf.conj(g), rows, reverse=True)
    return scan(forth, h.scale * q, (*rows, a))[0]


def _pushed(rows: Array, row: Array) -> Array:
    """Rows without the oldest one, and a new one behind."""
    return concatenate([rows[1:], row[None]])


def lbfgs(
    fun: Callable[[Array], Array], x0: Array, maxiter: float | None = None, norm: Any = np.inf,
    maxcor: int = 10, ftol: float = 2.220446049250313e-09, gtol: float = 1e-5,
    maxfun: float | None = None, maxgrad: float | None = None, maxls: int = 20,
) -> Minimum:  # fmt: skip
    """The same with limited memory: the last `maxcor` moves stand for the inverse Hessian.

    Args:
        fun: the function.
        x0: where to begin, [n].
        maxiter: how many iterations (200 n if nothing else limits them).
        norm: of the gradient, which is compared.
        maxcor: how many moves are kept.
        ftol: it ends where the value falls by less.
        gtol: what the norm is compared with.
        maxfun: how many evaluations.
        maxgrad: how many evaluations of the gradient.
        maxls: growing steps of a line search.
    """
    n, dtype = x0.shape[0], x0.dtype
    if maxiter is None and maxfun is None and maxgrad is None:
        maxiter = 200 * n

    def body(s: _State) -> _State:
        h: _History = s.model
        p = _direction(h, s.g)
        found = line_search(fun, s.x, p, s.f, s.g, None, maxls)
        move, change = found.a.astype(dtype) * p, found.gradient - s.g
        product = uf.real(dot(change, move))
        scale = product / uf.real(dot(uf.conj(change), change))
        status = where(s.f - found.value < ftol, 4, 0)
        for limit, count, code in ((maxgrad, s.evaluations, 3), (maxfun, s.evaluations, 2),
                                   (maxiter, s.k, 1)):  # fmt: skip
            if limit is not None:
                status = where(count >= limit, code, status)
        status = where(found.failed, 5, status)
        converged = norm_of(found.gradient, norm) < gtol
        history = _History(
            _pushed(h.moves, move), _pushed(h.changes, change),
            _pushed(h.weights, (1 / product).astype(dtype)), scale.astype(dtype),
        )  # fmt: skip
        return _State(
            converged, (status > 0) & ~converged, s.k + 1, s.evaluations + found.evaluations,
            where(converged, 0, status), s.x + move, found.value, found.gradient, history,
        )  # fmt: skip

    rows = zeros((maxcor, n), dtype)
    history = _History(rows, rows, zeros(maxcor, dtype), asarray(1, dtype=dtype))
    first = _begin(fun, x0, norm, gtol, history)
    first = first._replace(converged=asarray(False))
    last = while_loop(lambda s: ~s.converged & ~s.failed, body, first)
    return Minimum(
        last.x, last.converged & ~last.failed, last.status, last.f, last.g, None,
        last.evaluations, last.evaluations, last.k,
    )  # fmt: skip
