"""Line search for a step that satisfies the strong Wolfe conditions.

Method: J. Nocedal and S. J. Wright, Numerical Optimization (2006), algorithms 3.5 and 3.6. Both are
one loop here, so that a program contains the function once: steps grow until they bracket a good
one, then the bracket [lo, hi] shrinks by cubic or quadratic interpolation, or by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accnp.api.differentiation.derivatives import value_and_grad
from accnp.array_type import Array
from accnp.lax.control_flow.loops import while_loop
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import array, asarray
from accnp.numpy.products import dot
from accnp.numpy.selection import where
from accnp.pytree import tree_map

__all__ = ["Step", "line_search"]

_DECREASE, _CURVATURE = 1e-4, 0.9  # c1 and c2 of the Wolfe conditions
# The minimum distance of interpolated steps from the ends of a bracket, relative to its length.
_NEAR_CUBIC, _NEAR_QUADRATIC = 0.2, 0.1
_NARROWINGS = 30


class _Point(NamedTuple):
    """A step, and the value and derivative of the function there."""

    a: Any
    phi: Any
    derivative: Any


class Step(NamedTuple):
    """Result of a search."""

    failed: Array
    status: Array
    evaluations: Array
    a: Array
    value: Array
    gradient: Array


class _State(NamedTuple):
    narrowing: Any  # whether there is a bracket
    done: Any
    failed: Any
    i: Any  # the number of growing steps, from 1
    j: Any  # the number of narrowed brackets
    evaluations: Any
    before: _Point
    lo: _Point
    hi: _Point
    third: _Point  # a third point, for cubic interpolation
    best: _Point
    gradient: Any


def _choose(condition: Array, x: Any, y: Any) -> Any:
    return tree_map(lambda a, b: where(condition, a, b), x, y)


def _cubic(p: _Point, q: _Point, r: _Point) -> Array:
    """Return the minimum of the cubic through three points, with the derivative at the first."""
    db, dc = q.a - p.a, r.a - p.a
    fb = q.phi - p.phi - p.derivative * db
    fc = r.phi - p.phi - p.derivative * dc
    common = (db * dc) ** 2 * (db - dc)
    a = (dc**2 * fb - db**2 * fc) / common
    b = (db**3 * fc - dc**3 * fb) / common
    return p.a + (uf.sqrt(b * b - 3 * a * p.derivative) - b) / (3 * a)


def _quadratic(p: _Point, q: _Point) -> Array:
    """Return the minimum of the parabola through two points, with the derivative at the first."""
    d = q.a - p.a
    return p.a - p.derivative / (2 * (q.phi - p.phi - p.derivative * d) / d**2)


def _next_trial_step(s: _State) -> Array:
    """Return the next step to try inside a bracket."""
    low, high = uf.minimum(s.lo.a, s.hi.a), uf.maximum(s.lo.a, s.hi.a)
    cubic, quadratic = _cubic(s.lo, s.hi, s.third), _quadratic(s.lo, s.hi)

    def inside(a: Array, margin: float) -> Array:
        return (a > low + margin * (high - low)) & (a < high - margin * (high - low))

    middle = (s.lo.a + s.hi.a) / 2
    out = where(inside(quadratic, _NEAR_QUADRATIC), quadratic, middle)
    return where((s.j > 0) & inside(cubic, _NEAR_CUBIC), cubic, out)


def line_search(
    fun: Callable[[Array], Array], x: Array, direction: Array, value: Array, gradient: Array,
    before: Array | None, maxiter: int,
) -> Step:  # fmt: skip
    """Search for a step from x.

    Args:
        fun: the function.
        x: the starting position.
        direction: the direction of the step.
        value: the value of the function at x.
        gradient: the gradient at x.
        before: the value at the previous position, from which the first step is estimated; for
            None it is 1.
        maxiter: the maximum number of growing steps.
    """
    real = np.finfo(direction.dtype).dtype

    def look(a: Array) -> tuple[_Point, Array]:
        v, g = value_and_grad(fun)(x + a.astype(direction.dtype) * direction)
        derivative = uf.real(dot(g, direction))
        return _Point(a, v.astype(value.dtype), derivative), g.astype(gradient.dtype)

    derivative = uf.real(dot(gradient, direction))
    zero = _Point(array(0, dtype=real), value, derivative)
    start = array(1, dtype=real)
    if before is not None:
        guess = (1.01 * 2 * (value - before) / derivative).astype(real)
        start = where(guess > 1, start, guess)
    narrowest = 1e-5 if real.itemsize < 8 else 1e-10

    def too_high(p: _Point) -> Array:
        return p.phi > value + _DECREASE * p.a * derivative

    def flat(p: _Point) -> Array:
        return uf.abs(p.derivative) <= -_CURVATURE * derivative

    def grown(s: _State, p: _Point, g: Array) -> _State:
        """Update the state after a larger step."""
        passed = too_high(p) | ((p.phi >= s.before.phi) & (s.i > 1))
        is_accepted = flat(p) & ~passed
        turned = (p.derivative >= 0) & ~passed & ~is_accepted
        lo, hi = _choose(turned, p, s.before), _choose(turned, s.before, p)
        bracket = passed | turned
        # If the bracket contains no good step, the step is 1.
        best = _choose(
            bracket, lo._replace(a=array(1, dtype=real)), _choose(is_accepted, p, s.best)
        )
        middle = _Point((lo.a + hi.a) / 2, (lo.phi + hi.phi) / 2, lo.derivative)
        return s._replace(
            narrowing=bracket, done=is_accepted, i=s.i + 1, before=p, lo=lo, hi=hi, third=middle,
            best=best, gradient=where(is_accepted, g, gradient),
        )  # fmt: skip

    def narrowed(s: _State, p: _Point, g: Array) -> _State:
        """Update the state after a step inside the bracket."""
        upper = too_high(p) | (p.phi >= s.lo.phi)
        is_accepted = flat(p) & ~upper
        lower = ~upper & ~is_accepted
        beyond = lower & (p.derivative * (s.hi.a - s.lo.a) >= 0)
        third = _choose(upper | beyond, s.hi, _choose(lower, s.lo, s.third))
        hi = _choose(upper, p, _choose(beyond, s.lo, s.hi))
        return s._replace(
            done=is_accepted,
            failed=(uf.abs(s.hi.a - s.lo.a) <= narrowest) | (s.j + 1 >= _NARROWINGS),
            j=s.j + 1, lo=_choose(lower, p, s.lo), hi=hi, third=third,
            best=_choose(is_accepted, p, s.best), gradient=where(is_accepted, g, s.gradient),
        )  # fmt: skip

    def body(s: _State) -> _State:
        growing = where(s.i == 1, start, s.before.a * 2)
        p, g = look(where(s.narrowing, _next_trial_step(s), growing))
        out = _choose(s.narrowing, narrowed(s, p, g), grown(s, p, g))
        return out._replace(evaluations=s.evaluations + 1)

    no, none = asarray(False), asarray(0)
    first = _State(no, no, no, none + 1, none, none, zero, zero, zero, zero, zero, gradient)
    last = while_loop(lambda s: ~s.done & ~s.failed & (s.narrowing | (s.i <= maxiter)), body, first)
    a = last.best.a
    if real.itemsize < 8:  # smaller steps do not change x
        a = where(uf.abs(a) < 1e-8, uf.sign(a) * 1e-8, a)
    status = where(last.failed, 1, where(last.i > maxiter, 3, 0))
    failed = last.failed | ~last.done
    return Step(failed, status, last.evaluations, a, last.best.phi, last.gradient)
