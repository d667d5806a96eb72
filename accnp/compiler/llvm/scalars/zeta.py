"""Hurwitz's zeta function and the derivatives of digamma: zeta polygamma.

The functions emit LLVM IR. They take two float or double ``V`` and return a ``V`` of the same type;
floats are computed as doubles. The registry makes them available to kernels. For q > 0, they use
the Euler-Maclaurin formula (NIST Digital Library of Mathematical Functions, 25.11.5): some terms of
the sum, an integral for the others, and corrections with Bernoulli numbers. For q < 0, where the
order must be an integer, they use the sum over all integers, which has period 1.
"""

from __future__ import annotations

from accnp.compiler.llvm.scalars.forms import apart, rarely
from accnp.compiler.llvm.scalars.ir import (
    F32,
    F64,
    V,
    clamp,
    fast_two_sum,
    floor,
    fma,
    two_prod,
    two_sum,
    where,
)
from accnp.compiler.llvm.scalars.log import log
from accnp.compiler.llvm.scalars.power import exp_pair, exp_short, log_pair, log_short
from accnp.compiler.llvm.scalars.registry import BINARY, define
from accnp.compiler.llvm.scalars.special import digamma, stirling

INF, NAN = float("inf"), float("nan")
# B_2j / (2 j)!, where B are the Bernoulli numbers, for j from 1 on
CORRECTIONS = (
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07,
    2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13,
    8.586062056277845e-15, -2.174868698558062e-16, 5.5090028283602295e-18,
)  # fmt: skip
# (number of terms, number of corrections), to 4e-10 for floats and 1e-17 for doubles
COUNTS = {True: (4, 5), False: (7, 11)}


def _power(q: V, k: int, y: V, single: bool) -> V:
    """Return (q + k)^y of doubles q > 0. For floats, it is computed to about 2^-36, and limited to
    e^-690 to e^690."""
    if single:
        return exp_short(clamp(y * log_short(q + float(k)), -690.0, 690.0))
    # The relative rounding error of the base is multiplied by y in the power.
    a, lost = two_sum(q, q.const(float(k)))
    h, low = log_pair(a)
    low = low + lost / a
    y = clamp(y, -(2.0**70), 2.0**70)
    p, rest = two_prod(h, y)
    return exp_pair(p, fma(low, y, rest))


def _series(x: V, q: V, single: bool) -> V:
    """Return zeta(x, q) of doubles x > 1, q > 0."""
    count, last = COUNTS[single]
    w = q + float(count)
    inverse = 1.0 / w
    # For a larger order, only the first terms matter, and the last factors would overflow.
    ahead = x * inverse < 100.0
    s = where(ahead, x, 1.5)
    rising = s * inverse * inverse
    rest = fma(inverse, inverse.const(0.5), 1.0 / (x - 1.0))
    for j, factor in enumerate(CORRECTIONS[:last]):
        if j:
            rising = rising * ((s + (2.0 * j - 1.0)) * inverse) * ((s + 2.0 * j) * inverse)
        rest = fma(rising, rising.const(factor), rest)
    y, lost = where(ahead, _power(q, count, 1.0 - x, single) * rest, 0.0), x.const(0.0)
    for k in reversed(range(count)):
        term = _power(q, k, -x, single)
        if single:
            y = y + term
        else:
            y, more = two_sum(term, y)
            lost = lost + more
    return y if single else where(y < INF, y + lost, y)


def _zeta_of_negative(x: V, q: V) -> V:
    """Return zeta(x, q) for an integer order and q < 0. Floats are computed with the accuracy of
    doubles, since terms cancel near the zeros."""

    def of_doubles(x: V, q: V) -> V:
        return _series(x, q, False)

    fn = apart(x, 2, "zeta_series", of_doubles)

    def series(q: V) -> V:
        return V(x.b, x.b.call(fn, [x.v, q.v]))

    # Both distances to an integer are differences of q. The rounding error of 1 - f would be large
    # next to a pole.
    f, g = q - floor(q), -floor(-q) - q
    f, g = (where(v > 0.0, v, 0.5) for v in (f, g))  # at the poles
    up, down, beyond = series(f), series(g), series(1.0 - q)
    half = x * 0.5
    return where(floor(half).eq(half), up + (down - beyond), (up - down) + beyond)


def _zeta(x: V, q: V, single: bool) -> V:
    inside = (x > 1.0) & (q > 0.0) & (q < INF)
    # For orders above 2^70, terms are 0, 1 or infinite, and infinity times log(1) would be NaN.
    order, at = where(inside, where(x < 2.0**70, x, 2.0**70), 2.0), where(inside, q, 1.0)
    y = _series(order, at, single)
    y = where(q.eq(INF), 0.0, y)
    left = (q < 0.0) & (x > 1.0)
    y = rarely(left, y, [x, q], "zeta_below", _zeta_of_negative)
    y = where(left & floor(x).ne(x), NAN, y)
    y = where((q <= 0.0) & floor(q).eq(q), INF, y)
    y = where(q.ne(q), q, y)
    return where(x > 1.0, y, where(x.eq(1.0), INF, x.const(NAN)))


@define(BINARY)
def zeta(x: V, q: V) -> V:
    """Return the sum of 1 / (q + k)^x over all integers k >= 0."""
    if x.single:
        return _zeta(x.to(F64), q.to(F64), True).to(F32)
    return _zeta(x, q, False)


@define(BINARY)
def polygamma(n: V, x: V) -> V:
    """Return the derivative of order n of digamma."""
    if x.single:
        return _polygamma(n.to(F64), x.to(F64), True).to(F32)
    return _polygamma(n, x, False)


def _polygamma(n: V, x: V, single: bool) -> V:
    y = _factorial(n, single) * _zeta(n + 1.0, x, single)
    half = n * 0.5
    y = where(floor(half).eq(half), -y, y)
    y = where((n > 0.0) & floor(n).eq(n), y, NAN)
    return rarely(n.eq(0.0), y, [x], "digamma", digamma)


def _factorial(n: V, single: bool) -> V:
    """Return gamma(n + 1) of an integer n. The product that shifts n + 1 to 10 is exact."""
    y = where((n > 0.0) & (n < 1e4), n + 1.0, 2.0)
    below = y.const(1.0)
    for _ in range(8):
        more = y < 10.0
        below = where(more, below * y, below)
        y = where(more, y + 1.0, y)
    h, h_lo = stirling(y, lambda a: (log(a), a.const(0.0)) if single else log_pair(a))
    size = exp_pair(*fast_two_sum(h, h_lo)) / below
    return where(n < 1e4, size, INF)
