"""Quasi-Newton methods for minimization with gradients: BFGS and L-BFGS.

Method: J. Nocedal and S. J. Wright, Numerical Optimization (2006), algorithms 6.1 (BFGS) and 7.5
(L-BFGS).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accnp import dtypes
from accnp.api.differentiation.derivatives import value_and_grad
from accnp.array_type import Array
from accnp.lax.control_flow.branches import cond
from accnp.lax.control_flow.loops import scan, while_loop
from accnp.lax.control_flow.scans import map as lax_map
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import asarray, eye, zeros
from accnp.numpy.joining import concatenate, stack
from accnp.numpy.linalg.norms import norm as norm_of
from accnp.numpy.number_parts import power_of_two
from accnp.numpy.products import dot, outer
from accnp.numpy.selection import where
from accnp.scipy.optimize.line_search import line_search

__all__ = ["Minimum", "bfgs", "lbfgs"]


class Minimum(NamedTuple):
    """Result of a method."""

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
    model: Any  # approximation of the inverse Hessian


_ORDINARY = 2.0**20  # sizes between its reciprocal and this are not scaled


class _Units:
    """Powers of two by which positions and values are divided.

    They keep products of gradients and steps in range, and make the first step as large as a
    position. Both are 1 for ordinary sizes, so that no bit changes.
    """

    def __init__(self, fun: Callable[[Array], Array], x0: Array) -> None:
        f, g = value_and_grad(fun)(x0)
        self.fun = fun
        self.length = self._length(x0, g)
        size = _factor(_max_norm(g)) * self.length
        room = np.asarray(dtypes.finfo(size.dtype).max, size.dtype) ** 0.75
        most = uf.abs(f).astype(size.dtype) / room  # keeps the value in range
        least = where(most > 0, power_of_two(most), 0)
        self.value = where(_factor(size) == 1, 1, uf.maximum(_factor(size), least))
        self.gradient = self.value / self.length
        self.first = (x0 / self.length.astype(x0.dtype), self.of_value(f),
                      g / self.gradient.astype(g.dtype))  # fmt: skip

    def _length(self, x: Array, g: Array) -> Array:
        """Return the magnitude of the initial position, unless it is small and an ordinary step
        decreases the value: it may just be close to 0."""
        length = _factor(_max_norm(x))

        def look(step: Array) -> Array:
            direction = -(uf.conj(g) / power_of_two(_max_norm(g)).astype(g.dtype))
            v = self.fun(x + step.astype(x.dtype) * direction)
            return where(uf.isnan(v), np.inf, v)

        def choose() -> Array:
            steps = asarray(_ORDINARY ** -np.linspace(0, 1, 6), dtype=length.dtype)
            values = lax_map(look, concatenate([stack([length, 0 * length]), steps]))
            return where(values[2:].min() < values[:2].min(), 1, length)

        return cond(length < 1, choose, lambda: length)

    def of_value(self, f: Array) -> Array:
        return f / self.value.astype(f.dtype)

    def scaled(self, x: Array) -> Array:
        """Return the function in these units."""
        return self.of_value(self.fun(x * self.length.astype(x.dtype)))

    def small(self, g: Array, norm: Any, gtol: float) -> Array:
        return norm_of(g, norm) * self.gradient < gtol

    def back(self, s: _State, inverse: Array | None) -> _State:
        """Return a state and the inverse Hessian in the original units."""
        if inverse is not None:
            inverse = inverse * self.length / self.gradient
        return s._replace(
            x=s.x * self.length.astype(s.x.dtype), f=s.f * self.value.astype(s.f.dtype),
            g=s.g * self.gradient.astype(s.g.dtype), model=inverse,
        )  # fmt: skip


def _max_norm(x: Array) -> Array:
    return uf.abs(x).max(initial=0)


def _factor(size: Array) -> Array:
    ordinary = (size > 1 / _ORDINARY) & (size < _ORDINARY)
    return where(ordinary, 1, power_of_two(size))


def _initial_state(units: _Units, norm: Any, gtol: float, model: Any) -> _State:
    x, f, g = units.first
    none = asarray(0)
    return _State(
        units.small(g, norm, gtol), asarray(False), none, none + 1, none, x, f, g, model
    )  # fmt: skip


def bfgs(
    fun: Callable[[Array], Array], x0: Array, maxiter: int | None = None, norm: Any = np.inf,
    gtol: float = 1e-5, line_search_maxiter: int = 10,
) -> Minimum:  # fmt: skip
    """Minimize by the method of Broyden, Fletcher, Goldfarb and Shanno, with an [n, n] matrix.

    Args:
        fun: the function.
        x0: the initial position, [n].
        maxiter: the maximum number of iterations (default 200 n).
        norm: the order of the norm of the gradient.
        gtol: the tolerance for that norm.
        line_search_maxiter: the maximum number of growing steps of a line search.
    """
    n, units = x0.shape[0], _Units(fun, x0)
    steps = 200 * n if maxiter is None else maxiter

    def body(s: _State) -> _State:
        h, before = s.model
        p = -dot(h, s.g)
        search = line_search(units.scaled, s.x, p, s.f, s.g, before, line_search_maxiter)
        move, change = search.a * p, search.gradient - s.g
        rho = 1 / dot(change, move)
        turned = dot(h, change)
        scale = rho * (1 + rho * dot(change, turned))
        mixed = rho * outer(turned, move)
        updated = h + scale * outer(move, move) - mixed - mixed.T
        h = where(uf.isfinite(rho), updated, h)
        return _State(
            units.small(search.gradient, norm, gtol), search.failed, s.k + 1,
            s.evaluations + search.evaluations, search.status, s.x + move, search.value,
            search.gradient, (h, s.f),
        )  # fmt: skip

    first = _initial_state(units, norm, gtol, None)
    model = eye(n, dtype=x0.dtype), first.f + norm_of(first.g) / 2
    last = while_loop(
        lambda s: ~s.converged & ~s.failed & (s.k < steps), body, first._replace(model=model)
    )
    failure = where(last.k == steps, 1, where(last.failed, 2 + last.status, -1))
    status = where(last.converged, 0, failure)
    last = units.back(last, last.model[0])
    return Minimum(
        last.x, last.converged & ~last.failed, status, last.f, last.g, last.model,
        last.evaluations, last.evaluations, last.k,
    )  # fmt: skip


class _History(NamedTuple):
    """The last steps, changes of the gradient, and their weights; unused rows are zero."""

    moves: Array
    changes: Array
    weights: Array
    scale: Array


def _direction(h: _History, g: Array) -> Array:
    """Return minus the inverse Hessian times the gradient, by the two-loop recursion."""
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


def _push_row(rows: Array, row: Array) -> Array:
    """Append a row and drop the oldest one."""
    return concatenate([rows[1:], row[None]])


def lbfgs(
    fun: Callable[[Array], Array], x0: Array, maxiter: float | None = None, norm: Any = np.inf,
    maxcor: int = 10, ftol: float = 2.220446049250313e-09, gtol: float = 1e-5,
    maxfun: float | None = None, maxgrad: float | None = None, maxls: int = 20,
) -> Minimum:  # fmt: skip
    """Minimize by L-BFGS: the last `maxcor` steps approximate the inverse Hessian.

    Args:
        fun: the function.
        x0: the initial position, [n].
        maxiter: the maximum number of iterations (default 200 n if nothing else is limited).
        norm: the order of the norm of the gradient.
        maxcor: the number of stored steps.
        ftol: stop if the value decreases by less.
        gtol: the tolerance for the norm of the gradient.
        maxfun: the maximum number of evaluations.
        maxgrad: the maximum number of gradient evaluations.
        maxls: the maximum number of growing steps of a line search.
    """
    n, dtype, units = x0.shape[0], x0.dtype, _Units(fun, x0)
    if maxiter is None and maxfun is None and maxgrad is None:
        maxiter = 200 * n

    def body(s: _State) -> _State:
        h: _History = s.model
        p = _direction(h, s.g)
        search = line_search(units.scaled, s.x, p, s.f, s.g, None, maxls)
        move, change = search.a.astype(dtype) * p, search.gradient - s.g
        product = uf.real(dot(change, move))
        scale = product / uf.real(dot(uf.conj(change), change))
        fall = (s.f - search.value) * units.value.astype(s.f.dtype)
        status = where(fall < ftol, 4, 0)
        for limit, count, code in ((maxgrad, s.evaluations, 3), (maxfun, s.evaluations, 2),
                                   (maxiter, s.k, 1)):  # fmt: skip
            if limit is not None:
                status = where(count >= limit, code, status)
        status = where(search.failed, 5, status)
        converged = units.small(search.gradient, norm, gtol)
        history = _History(
            _push_row(h.moves, move), _push_row(h.changes, change),
            _push_row(h.weights, (1 / product).astype(dtype)), scale.astype(dtype),
        )  # fmt: skip
        return _State(
            converged, (status > 0) & ~converged, s.k + 1, s.evaluations + search.evaluations,
            where(converged, 0, status), s.x + move, search.value, search.gradient, history,
        )  # fmt: skip

    rows = zeros((maxcor, n), dtype)
    history = _History(rows, rows, zeros(maxcor, dtype), asarray(1, dtype=dtype))
    first = _initial_state(units, norm, gtol, history)
    first = first._replace(converged=asarray(False))
    last = units.back(while_loop(lambda s: ~s.converged & ~s.failed, body, first), None)
    return Minimum(
        last.x, last.converged & ~last.failed, last.status, last.f, last.g, None,
        last.evaluations, last.evaluations, last.k,
    )  # fmt: skip
