"""Special functions from SciPy as map ops, and their derivatives.

Fused kernels call SciPy's C functions, element by element in float64, and round the result to the
operand's dtype; `compiler/library/special_calls.py` has the addresses. Derivatives by orders and
parameters without a closed form raise NotImplementedError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from accnp.ir.aval import Aval
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.lazy_imports import imported
from accnp.primitives.elementwise import like, like_full
from accnp.primitives.kinds import map_infer, map_op, opaque
from accnp.primitives.special import odd_function, scipy_function

if TYPE_CHECKING:
    from accnp.ir.op_types import Params

Rule = Callable[..., Node]
# A function (y, *operands) -> derivative.
Derivative = (
    Callable[[Node, Node], Node]
    | Callable[[Node, Node, Node], Node]
    | Callable[[Node, Node, Node, Node], Node]
    | Callable[[Node, Node, Node, Node, Node], Node]
)


def unknown(name: str, operand: str) -> Rule:
    def rule(*_: object) -> NoReturn:
        raise NotImplementedError(
            f"{name}: the derivative by {operand} is not known; got one that is differentiated; "
            "use stop_gradient, or give the function a rule with custom_jvp"
        )

    return rule


def _declare(name: str, ufunc: str, *derivatives: Derivative | str) -> None:
    """Declare an op; an unknown derivative is given as the name of the operand."""

    def tangent(derivative: Rule) -> Rule:
        def rule(t: Node, y: Node, *xs: Node) -> Node:
            return o.mul(t, derivative(y, *xs))

        return rule

    rules = [unknown(name, s) if isinstance(s, str) else tangent(s) for s in derivatives]
    places = ", ".join(f"{{{k}}}" for k in range(len(derivatives)))
    map_op(
        name,
        dtypes="f",
        numpy=scipy_function(ufunc),
        scalar=f"{name}({places})",
        jvp=tuple(rules),
        cost=80,
    )


def _scale(x: Node, factor: float) -> Node:
    return o.mul(x, like(x, factor))


def _i1_derivative(y: Node, x: Node) -> Node:
    # i0(x) - i1(x) / x tends to 1/2 at 0.
    zero = o.eq(x, like(x, 0))
    derivative = o.sub(o.bessel_i0(x), o.div(y, o.select_n(zero, x, like_full(x, 1))))
    return o.select_n(zero, derivative, like_full(x, 0.5))


def _psi_after(x: Node) -> Node:
    return o.digamma(o.add(x, like(x, 1)))


def _expn_derivative(y: Node, n: Node, x: Node) -> Node:
    # E_n' = -E_(n-1), where E_(-1) = exp(-x) (1 + 1/x) / x.
    lower = o.expn(o.max(o.sub(n, like(n, 1)), like(n, 0)), x)
    first = o.div(o.mul(o.exp(o.neg(x)), o.add(like(x, 1), o.div(like(x, 1), x))), x)
    return o.neg(o.select_n(o.lt(n, like(n, 1)), lower, first))


_declare(
    "beta",
    "beta",
    lambda y, a, b: o.mul(o.neg(y), o.digamma_difference(a, b)),
    lambda y, a, b: o.mul(o.neg(y), o.digamma_difference(b, a)),
)
_declare(
    "betaln",
    "betaln",
    lambda y, a, b: o.neg(o.digamma_difference(a, b)),
    lambda y, a, b: o.neg(o.digamma_difference(b, a)),
)
_declare(
    "binom",
    "binom",
    lambda y, n, k: o.mul(y, o.digamma_difference(o.add(o.sub(n, k), like(n, 1)), k)),
    lambda y, n, k: o.mul(y, o.sub(_psi_after(o.sub(n, k)), _psi_after(k))),
)
_declare("bessel_i0", "i0", lambda y, x: o.bessel_i1(x))
map_op(
    "bessel_i1",
    dtypes="f",
    numpy=odd_function("i1"),
    scalar="bessel_i1({0})",
    jvp=(lambda t, y, x: o.mul(t, _i1_derivative(y, x)),),
    cost=80,
)
_declare("bessel_j", "jv", "the order", lambda y, n, x: _scale(
    o.sub(o.bessel_j(o.sub(n, like(n, 1)), x), o.bessel_j(o.add(n, like(n, 1)), x)), 0.5
))  # fmt: skip
_declare("dawsn", "dawsn", lambda y, x: o.sub(like(x, 1), _scale(o.mul(x, y), 2.0)))
_declare("erfcx", "erfcx", lambda y, x: o.sub(
    _scale(o.mul(x, y), 2.0), like(x, 2 / math.sqrt(math.pi))
))  # fmt: skip
_declare("exp1", "exp1", lambda y, x: o.select_n(  # nan below 0, as the function is
    o.lt(x, like(x, 0)), o.neg(o.div(o.exp(o.neg(x)), x)), like_full(x, math.nan)
))  # fmt: skip
_declare("expi", "expi", lambda y, x: o.div(o.exp(x), x))
_declare("expn", "expn", "the order", _expn_derivative)
_declare("gamma", "gamma", lambda y, x: o.mul(y, o.digamma(x)))
_declare(
    "hyp1f1", "hyp1f1",
    lambda y, a, b, x: o.hyp1f1_grad_a(a, b, x),
    lambda y, a, b, x: o.hyp1f1_grad_b(a, b, x),
    lambda y, a, b, x: o.mul(
        o.div(a, b), o.hyp1f1(o.add(a, like(a, 1)), o.add(b, like(b, 1)), x)
    ),
)  # fmt: skip
_declare(
    "hyp2f1", "hyp2f1",
    lambda y, a, b, c, x: o.hyp2f1_grad_a(a, b, c, x),
    lambda y, a, b, c, x: o.hyp2f1_grad_b(a, b, c, x),
    lambda y, a, b, c, x: o.hyp2f1_grad_c(a, b, c, x),
    lambda y, a, b, c, x: o.mul(
        o.div(o.mul(a, b), c),
        o.hyp2f1(o.add(a, like(a, 1)), o.add(b, like(b, 1)), o.add(c, like(c, 1)), x),
    ),
)  # fmt: skip


def _density_over_law(x: Node) -> Node:
    """Return the normal density over the distribution function at x, without exponentials of
    differences of large numbers. It has a custom derivative, because the derivative of the quotient
    contains a square that overflows long before the result vanishes."""

    def value(xs: Sequence[Node]) -> list[Node]:
        below = o.erfcx(_scale(xs[0], -math.sqrt(0.5)))
        return [o.div(like(xs[0], math.sqrt(2 / math.pi)), below)]

    def rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
        (x,), (t,) = xs, ts
        y = _density_over_law(x)
        return [y], [t and o.neg(o.mul(t, _times_excess(x, y)))]

    custom = imported("accnp.primitives.custom")
    return custom.call_with_rule(custom.JvpRule("density_over_law", rule), [x], value)[0]


def _times_excess(x: Node, y: Node) -> Node:
    """Return y (x + y), where y is the density over the distribution function at x. Below -6 the
    sum would cancel. There, with s = -x, y - s = 1 / (s + 2 / (s + 3 / (s + ...))), and the number
    of terms used here gives all bits (M. Abramowitz, I. A. Stegun, Handbook of Mathematical
    Functions, 26.2.14)."""
    wide = x.aval.dtype.itemsize > 4
    s = o.max(o.neg(x), like(x, 6))
    s = o.min(s, like(x, 1e9 if wide else 1e4))  # the product is 1 beyond
    below = s
    for k in range(20 if wide else 8, 1, -1):
        below = o.add(s, o.div(like_full(s, k), below))
    excess = o.div(like_full(s, 1), below)
    above = o.min(x, like(x, 1e4))  # y is 0 beyond, also at infinity
    tail = o.mul(o.add(s, excess), excess)
    return o.select_n(o.lt(x, like(x, -6)), o.mul(y, o.add(above, y)), tail)


_declare("log_ndtr", "log_ndtr", lambda y, x: _density_over_law(x))


def _ndtri_derivative(y: Node, p: Node) -> Node:
    # exp(y**2 / 2) would multiply the rounding error of y by y**2. One side is selected for both
    # values: at 1/2, derivatives of a minimum and an absolute value would not cancel.
    upper = o.ge(p, like(p, 0.5))
    tail = o.select_n(upper, p, o.sub(like(p, 1), p))
    end = o.eq(tail, like(tail, 0))
    size = o.select_n(upper, o.neg(y), y)
    derivative = _scale(o.erfcx(_scale(size, math.sqrt(0.5))), math.sqrt(math.pi / 2))
    derivative = o.div(derivative, o.select_n(end, tail, like_full(tail, 1)))
    return o.select_n(end, derivative, like_full(p, math.inf))


_declare("ndtri", "ndtri", _ndtri_derivative)
_declare(
    "owens_t",
    "owens_t",
    lambda y, h, a: _scale(
        o.mul(o.exp(_scale(o.square(h), -0.5)), o.erf(_scale(o.mul(a, h), math.sqrt(0.5)))),
        -0.5 / math.sqrt(2 * math.pi),
    ),
    lambda y, h, a: _scale(
        o.div(
            o.exp(_scale(o.mul(o.square(h), o.add(o.square(a), like(a, 1))), -0.5)),
            o.add(o.square(a), like(a, 1)),
        ),
        0.5 / math.pi,
    ),
)
_declare(
    "poch",
    "poch",
    lambda y, z, m: o.mul(y, o.digamma_difference(z, m)),
    lambda y, z, m: o.mul(y, o.digamma(o.add(z, m))),
)


def _spence_derivative(y: Node, x: Node) -> Node:
    # At 1, log(x) / (1 - x) is replaced by the start of its series, which has derivatives, too.
    one, z = o.eq(x, like(x, 1)), o.sub(like(x, 1), x)
    safe = o.select_n(one, x, like_full(x, 2))
    series = o.sub(like(x, -1), o.add(_scale(z, 0.5), _scale(o.square(z), 1 / 3)))
    return o.select_n(one, o.div(o.log(safe), o.sub(like(x, 1), safe)), series)


_declare("spence", "spence", _spence_derivative)


# --- several results; complex numbers -------------------------------------------------------------


def _declare_pair(
    name: str,
    function: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    first: Callable[[Node], Node],
    second: Callable[[Node], Node],
) -> None:
    """Declare an op with one operand and two results, computed by a function of float64 arrays."""
    one = map_infer(name, "same", "f")

    def jvp(
        ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params
    ) -> Sequence[Node | None]:
        return [o.mul(ts[0], derivative(xs[0])) for derivative in (first, second)]

    def run(x: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple([part.astype(x.dtype) for part in function(x.astype(np.float64))])

    def batch(
        size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params
    ) -> tuple[Node, bool]:
        return getattr(o, name)(xs[0]), True

    def infer(x: Aval) -> tuple[Aval, Aval]:
        return one(x), one(x)

    opaque(name, infer=infer, numpy=run, jvp=jvp, batch=batch, several=True)


def _fresnel_derivative(f: str) -> Callable[[Node], Node]:
    return lambda x: getattr(o, f)(_scale(o.square(x), math.pi / 2))


def _sici(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return imported("scipy.special").sici(x)


# Coefficients of the auxiliary functions f = F / (pi x) and g = G / (pi x (pi x^2)), where F and G
# are power series in -1 / (pi x^2)^2 whose coefficients are products of odd numbers.
_FRESNEL_F, _FRESNEL_G = (
    [float(math.prod(range(1, 4 * k + more, 2))) for k in range(14)] for more in (0, 2)
)
_FRESNEL_BLOCK = 8192  # numbers whose temporaries fit into the caches: 3 times as fast as one block


def _fresnel(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (S, C). SciPy's function rounds x^2 before taking its sine and cosine, which is
    inaccurate for large x, so |x| >= 5 is computed here."""
    flat = x.reshape(-1)
    large = np.abs(flat) >= 5.0
    near, far = np.flatnonzero(~large), np.flatnonzero(large)
    if not far.size:
        return imported("scipy.special").fresnel(x)
    values = np.empty((2, flat.size))
    values[:, near] = imported("scipy.special").fresnel(flat[near])
    for start in range(0, far.size, _FRESNEL_BLOCK):
        at = far[start : start + _FRESNEL_BLOCK]
        values[:, at] = _fresnel_far(flat[at])
    return values[0].reshape(x.shape), values[1].reshape(x.shape)


def _fresnel_far(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Subtract from 1/2 the sine and cosine of the exact square times f and g, by their asymptotic
    series (NIST's Digital Library of Mathematical Functions, 7.5.3, 7.5.4, 7.12.2, 7.12.3)."""
    y = np.minimum(np.abs(x), 1e17)  # both integrals are 1/2 from 1e16 on
    # y^2 = p + q exactly, by Dekker's splitting of y
    high = y * 134217729.0
    high = high - (high - y)
    low = y - high
    p = y * y
    q = ((high * high - p) + 2 * high * low) + low * low
    turns = (p - 4 * np.rint(p / 4)) + (q - 4 * np.rint(q / 4))
    angle = (turns - 4 * np.rint(turns / 4)) * (math.pi / 2)
    c, s = np.cos(angle), np.sin(angle)
    r = 1 / (math.pi * p)
    z, f, g = -r * r, _FRESNEL_F[-1], _FRESNEL_G[-1]
    for a, b in zip(_FRESNEL_F[-2::-1], _FRESNEL_G[-2::-1], strict=True):
        f, g = f * z + a, g * z + b
    f, g = f / (math.pi * y), g * r / (math.pi * y)
    return np.copysign(0.5 - (f * c + g * s), x), np.copysign(0.5 - (g * c - f * s), x)


def _sinc(x: Node) -> Node:
    """Return sin(x) / x, and 1 at 0, without a derivative of 0 / 0 there."""
    zero = o.eq(x, like(x, 0))
    safe = o.select_n(zero, x, like_full(x, 1))
    return o.select_n(zero, o.div(o.sin(safe), safe), like_full(x, 1))


_declare_pair("sici", _sici, _sinc, lambda x: o.div(o.cos(x), x))
_declare_pair("fresnel", _fresnel, _fresnel_derivative("sin"), _fresnel_derivative("cos"))
opaque(
    "wofz",
    infer=map_infer("wofz", "same", "c"),
    numpy=scipy_function("wofz"),
    jvp=(
        lambda t, y, z: o.mul(t, o.sub(like(z, 2j / math.sqrt(math.pi)), _scale(o.mul(z, y), 2.0))),
    ),
    batch=lambda size, xs, batched, p: (o.wofz(xs[0]), True),
)
