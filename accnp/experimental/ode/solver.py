"""Ordinary differential equations: `odeint`, with derivatives by the adjoint method.

Methods: J. R. Dormand and P. J. Prince, A family of embedded Runge-Kutta formulae (1980): order 5,
with an error estimate of order 4; L. F. Shampine, Some practical Runge-Kutta formulas (1986): the
value in the middle of a step, for interpolation; the first step after E. Hairer, S. P. Norsett and
G. Wanner, Solving Ordinary Differential Equations I (1993), II.4. The backward pass solves the
adjoint equation backwards from each time to the previous one, without stored intermediate states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, wrap
from accnp.api.differentiation.custom_vjp import closure_convert, custom_vjp
from accnp.api.differentiation.derivatives import vjp
from accnp.api.mapping.vmap import vmap
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.flatten_util.raveling import ravel_pytree
from accnp.lax.control_flow.loops import scan, while_loop
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import asarray, zeros, zeros_like
from accnp.numpy.joining import concatenate, stack
from accnp.numpy.means import mean
from accnp.numpy.products import dot
from accnp.numpy.selection import where
from accnp.pytree import PyTree, flatten_arrays, tree_unflatten

__all__ = ["odeint"]

Rhs = Callable[..., Array]

# The Butcher tableau, without its first row and column of zeros.
_C = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0)
_A = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
_B = (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
_B_HAT = (1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60)
_B_ERROR = tuple(a - b for a, b in zip((*_B, 0), _B_HAT, strict=True))
_B_MIDDLE = (
    6025192743 / 30085553152 / 2, 0, 51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2, 187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2,
)  # fmt: skip
_SAFETY, _MAX_FACTOR, _MIN_FACTOR, _ORDER = 0.9, 10.0, 0.2, 5


def _weighted_sum(weights: tuple[float, ...], stages: list[Array]) -> Array:
    terms = [w * k for w, k in zip(weights, stages, strict=True) if w]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _step(rhs: Rhs, y: Array, f: Array, t: Array, dt: Array) -> tuple[Array, Array, Array, Any]:
    """Take one step; return the new state, its derivative, the error, and an interpolant."""
    h = dt.astype(y.dtype)
    stages = [f]
    for c, weights in zip(_C, _A, strict=True):
        stages.append(rhs(y + h * _weighted_sum(weights, stages), t + c * dt))
    after = y + h * _weighted_sum(_B, stages)
    stages.append(rhs(after, t + dt))
    middle = y + h * _weighted_sum(_B_MIDDLE, stages)
    df, d_after = h * f, h * stages[-1]
    # The polynomial of degree 4 through y, middle and after, with the derivatives at both ends.
    quartic = stack([
        2 * (d_after - df) - 8 * (y + after) + 16 * middle,
        5 * df - 3 * d_after + 18 * y + 14 * after - 32 * middle,
        d_after - 4 * df - 11 * y - 5 * after + 16 * middle,
        df,
        y,
    ])  # fmt: skip
    return after, stages[-1], h * _weighted_sum(_B_ERROR, stages), quartic


def _norm(x: Array) -> Array:
    return uf.sqrt((uf.abs(x) ** 2).sum())


def _first_step(rhs: Rhs, y: Array, f: Array, t: Array, rtol: float, atol: float) -> Array:
    """Return a first step for which the state, and its derivative, change little."""
    scale = (atol + uf.abs(y) * rtol).astype(y.dtype)
    d0, d1 = _norm(y / scale), _norm(f / scale)
    tiny = (d0 < 1e-5) | (d1 < 1e-5)
    h = where(tiny, 1e-6, 0.01 * d0 / where(tiny, 1, d1))
    d2 = _norm((rhs(y + h.astype(y.dtype) * f, t + h) - f) / scale) / h
    flat = (d1 <= 1e-15) & (d2 <= 1e-15)
    curved = (0.01 / where(flat, 1, uf.maximum(d1, d2))) ** (1 / _ORDER)
    return uf.minimum(100 * h, where(flat, uf.maximum(1e-6, h * 1e-3), curved)).astype(t.dtype)


def _next_step(dt: Array, ratio: Array) -> Array:
    """Return the step for which the estimated error is a little below the tolerance."""
    least = where(ratio < 1, 1.0, _MIN_FACTOR)
    factor = uf.maximum(where(ratio == 0, 1, ratio) ** (-1 / _ORDER) * _SAFETY, least)
    factor = where(ratio == 0, _MAX_FACTOR, uf.minimum(factor, _MAX_FACTOR))
    return dt * factor.astype(dt.dtype)


def _evaluate_quartic(quartic: Array, fraction: Array) -> Array:
    value = quartic[0]
    for k in range(1, 5):
        value = value * fraction + quartic[k]
    return value


def _solve(
    rhs: Rhs, rtol: float, atol: float, mxstep: float, hmax: float, y: Array, ts: Array,
    *args: Any,
) -> Array:  # fmt: skip
    """Return the states [times, n]. Steps continue from one time to the next, and may pass it."""

    def derivative(y: Array, t: Array) -> Array:
        return rhs(y, t, *args)

    def to_target(carry: Any, target: Array) -> tuple[Any, Array]:
        def is_before_target(state: Any) -> Array:
            count, _, _, t, dt, _, _ = state
            return (t < target) & (count < mxstep) & (dt > 0)

        def step(state: Any) -> Any:
            count, y, f, t, dt, t_begin, quartic = state
            after, f_after, error, new = _step(derivative, y, f, t, dt)
            allowed = atol + rtol * uf.maximum(uf.abs(y), uf.abs(after))
            ratio = uf.sqrt(mean((uf.abs(error) / allowed) ** 2))
            accepted = ratio <= 1
            y, f, t_new, t_begin, quartic = [
                where(accepted, a, b)
                for a, b in ((after, y), (f_after, f), (t + dt, t), (t, t_begin), (new, quartic))
            ]
            dt = uf.clip(_next_step(dt, ratio), 0.0, hmax)
            return [count + 1, y, f, t_new, dt, t_begin, quartic]

        _, *carry = while_loop(is_before_target, step, [asarray(0), *carry])
        _, _, t, dt, t_begin, quartic = carry
        width = t - t_begin  # 0 before the first step
        fraction = where(width > 0, (target - t_begin) / where(width > 0, width, 1), 0)
        # No step was small enough, or derivatives were nan, so the state is undefined.
        fraction = where((t < target) & ~(dt > 0), np.nan, fraction)
        return carry, _evaluate_quartic(quartic, fraction.astype(quartic.dtype))

    f = derivative(y, ts[0])
    dt = uf.clip(_first_step(derivative, y, f, ts[0], rtol, atol), 0.0, hmax)
    start = [y, f, ts[0], dt, ts[0], stack([y] * 5)]
    _, ys = scan(to_target, start, ts[1:])
    return concatenate([y[None], ys])


_solved = custom_vjp(_solve, nondiff_argnums=(0, 1, 2, 3, 4))


def _forward(
    rhs: Rhs, rtol: float, atol: float, mxstep: float, hmax: float, y: Array, ts: Array,
    *args: Any,
) -> Any:  # fmt: skip
    ys = _solved(rhs, rtol, atol, mxstep, hmax, y, ts, *args)
    return ys, (ys, ts, args)


def _backward(
    rhs: Rhs, rtol: float, atol: float, mxstep: float, hmax: float, saved: Any, ct: Array
) -> Any:
    """Solve for the state and the cotangents of state, first time and arguments together."""
    ys, ts, args = saved
    differentiable = [k for k, a in enumerate(args) if a.dtype.kind in "fcV"]
    diff_args = [args[k] for k in differentiable]

    def rhs_at(y: Array, t: Array, inexact_args: list[Array], all_args: tuple[Any, ...]) -> Array:
        whole = [*all_args]
        for k, w in zip(differentiable, inexact_args, strict=True):
            whole[k] = w
        return rhs(y, t, *whole)

    zero_cotangents = [zeros_like(w) for w in diff_args]
    _, unravel = ravel_pytree((ys[0], ys[0], ts[0], zero_cotangents))

    def adjoint(state: Array, t: Array, *args: Any) -> Array:
        y, y_bar, _, _ = unravel(state)
        derivative, back = vjp(
            lambda y, t, w: rhs_at(y, t, w, args), y, -t, [args[k] for k in differentiable]
        )
        return ravel_pytree((-derivative, *back(y_bar)))[0]

    def step_back(carry: Any, x: Any) -> Any:
        y_bar, t_bar, args_bar = carry
        y, t, t_before, ct, ct_before = x
        t_contribution = uf.real(dot(rhs(y, t, *args), ct)).astype(ts.dtype)
        state = ravel_pytree((y, y_bar, t_bar - t_contribution, args_bar))[0]
        out = _solved(adjoint, rtol, atol, mxstep, hmax, state, stack([-t, -t_before]), *args)
        _, y_bar, t_bar, args_bar = unravel(out[1])
        return (y_bar + ct_before, t_bar, args_bar), t_contribution

    start = ct[-1], zeros((), ts.dtype), zero_cotangents
    steps = ys[1:], ts[1:], ts[:-1], ct[1:], ct[:-1]
    (y_bar, t_bar, args_bar), t_contribution = scan(step_back, start, steps, reverse=True)
    cotangents: list[Any] = [None] * len(args)
    for k, bar in zip(differentiable, args_bar, strict=True):
        cotangents[k] = bar
    return (y_bar, concatenate([t_bar[None], t_contribution]), *cotangents)


_solved.defvjp(_forward, _backward)


@api_boundary
def odeint(
    func: Callable[..., Any], y0: PyTree, t: ArrayLike, *args: PyTree, rtol: float = 1.4e-8,
    atol: float = 1.4e-8, mxstep: float = np.inf, hmax: float = np.inf,
) -> Any:  # fmt: skip
    """Solve the initial value problem dy/dt = func(y, t, *args), y(t[0]) = y0.

    Parameters
    ----------
    func : callable
        Derivative of the state, of the structure of the state, as a function of the state, the time
        and `args`.
    y0 : pytree
        Initial state, an array or a tree of arrays of floating or complex dtype.
    t : array_like
        Increasing times of shape (n,) and floating dtype.
    *args : pytree
        Further arguments of `func`, arrays or trees of arrays.
    rtol : float, optional
        Relative tolerance: the root mean square error of a step is below `atol` + `rtol` times the
        state. The default is 1.4e-8.
    atol : float, optional
        Absolute tolerance. The default is 1.4e-8.
    mxstep : float, optional
        Maximum number of steps from one time to the next, after which the last step is
        extrapolated. The default is no limit.
    hmax : float, optional
        Maximum step size. The default is no limit.

    Returns
    -------
    pytree
        States at all times, with the structure of `y0` and a leading axis of length n.

    Raises
    ------
    TypeError
        If `y0` has an integer dtype, `t` is not floating, or an argument is not an array.

    See Also
    --------
    lax.while_loop : Loop while a condition holds.
    scipy.integrate.trapezoid : Integrate samples of a function.

    Notes
    -----
    Reverse-mode derivatives are available with respect to `y0`, `t`, `args` and the arrays that
    `func` closes over. If no step is small enough for the tolerances, or a derivative is nan, the
    states are nan from there on.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.ode import odeint
    >>> jnp.round(odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0, 2.0])), 4)
    Array([1.    , 0.3679, 0.1353], dtype=float32)
    """
    name = "ode.odeint"
    leaves, tree = flatten_arrays(args)
    values = [wrap(as_node(leaf, name)) for leaf in leaves]
    ts = asarray(t)
    if ts.dtype.kind != "f" or ts.ndim != 1:
        raise TypeError(
            f"{name}: t must be a rank-1 array of floats; got shape {ts.shape} of {ts.dtype.name}; "
            "ravel and convert it"
        )
    flat, unravel = ravel_pytree(y0)
    if flat.dtype.kind in "biu":
        raise TypeError(
            f"{name}: the state must be floating or complex; got y0 of {flat.dtype.name}; "
            "convert it first, e.g. by astype(float)"
        )
    converted, outer = closure_convert(func, unravel(flat), ts[0], *tree_unflatten(tree, values))

    def rhs(y: Array, t: Array, *extra_args: Any) -> Array:
        own = tree_unflatten(tree, extra_args[: len(values)])
        return ravel_pytree(converted(unravel(y), t, *own, *extra_args[len(values) :]))[0]

    ys = _solved(rhs, rtol, atol, mxstep, hmax, flat, ts, *values, *outer)
    return vmap(unravel)(ys)
