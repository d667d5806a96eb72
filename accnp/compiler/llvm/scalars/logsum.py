"""Logarithms of sums of two powers: logaddexp logaddexp2.

In: two float or double ``V``. Out: a ``V`` of the same type. Branch-free, no library calls.

The larger operand and log(1 + exp(-d)), d the distance to the other, cancel where the result is
near 0. Floats are therefore computed in doubles, where that leaves enough digits for all but the
very zeros; doubles add up what the logarithm and the sum lose.
"""

from __future__ import annotations

from accnp.compiler.llvm.scalars import coefs as k
from accnp.compiler.llvm.scalars.exp import LN2_64, LOG2E
from accnp.compiler.llvm.scalars.ir import (
    F32,
    F64,
    V,
    bits,
    fabs,
    fma,
    nearest,
    poly,
    pow2,
    two_prod,
    two_sum,
    unbits,
    where,
)
from accnp.compiler.llvm.scalars.log import LOG2E_64
from accnp.compiler.llvm.scalars.registry import BINARY, define

INF, (LN2, LN2_LO) = float("inf"), LN2_64
# 1.5 * 2^52 + 1023: added to a whole number n, the last bits are those of 2^n's exponent.
POWER = 1.5 * 2.0**52 + 1023.0


def larger(a: V, b: V) -> V:
    return where(a > b, a, b)


def edges(a: V, b: V, y: V) -> V:
    """Where the distance is nan (equal infinities, a nan), the sum is right."""
    d = a - b
    return where(d.eq(d), y, a + b)


def _tail_short(d: V, base2: bool) -> V:
    """log(1 + exp(-d)), or that to base 2, of doubles d >= 0 to about 2^-46."""
    d = where(d < 200.0, d, 200.0)
    if base2:
        t = POWER - d
        r = (d + (t - POWER)) * -LN2
    else:
        t = fma(d, -LOG2E, d.const(POWER))
        r = fma(t - POWER, -LN2, -d)
    power = unbits(bits(t) << 52)
    e = fma(r * r, poly(r, k.EXP_MIDDLE_64), r + 1.0) * power
    y = e * poly(e, k.LOG1P_64)
    return y * LOG2E if base2 else y


def _log_sum(a: V, b: V, base2: bool) -> V:
    if a.single:
        tail = _tail_short(fabs(a.to(F64) - b.to(F64)), base2)
        return edges(a, b, (larger(a, b).to(F64) + tail).to(F32))
    top, low = larger(a, b), where(a > b, b, a)
    d, d_lo = two_sum(top, -low)
    farthest = 1100.0 if base2 else 800.0
    far = d < farthest
    c, c_lo = where(far, d, farthest), where(far, d_lo, 0.0)
    # exp(-c) = 2^n m, as a pair
    if base2:
        t = POWER - c
        x, n = c + (t - POWER), bits(t) - bits(c.const(POWER))
        r, r_lo = x * -LN2, fma(x, x.const(-LN2), x * LN2) - fma(x, LN2_LO, c_lo * LN2)
    else:
        t, n = nearest(c * -LOG2E)
        h, rest = fma(t, c.const(-LN2), -c), t * -LN2_LO
        r = h + rest
        r_lo = ((h - r) + rest) - c_lo
    q = r * r * poly(r, k.EXP_64)
    m_first = r + 1.0
    m = m_first + q
    m_lo = (q - (m - m_first)) + (r - (m_first - 1.0)) + r_lo
    h = n >> 1
    half, other = pow2(h), pow2(n - h)
    e, e_lo = m * half * other, m_lo * half * other
    # log(1 + e) = 2 s + s^3 (2/3 + ..), s = e / (2 + e) with its remainder
    q = e + 2.0
    inverse = 1.0 / q
    s = e * inverse
    s_lo = (fma(-s, q, e) + e_lo - s * ((e - (q - 2.0)) + e_lo)) * inverse
    w = s * s
    rest = fma(s * w, poly(w, k.ATANH_64), s_lo + s_lo)
    first = s + s
    if base2:
        scale, scale_lo = LOG2E_64
        rest = fma(rest, c.const(scale), first * scale_lo)
        first, lost = two_prod(first, c.const(scale))
        rest = rest + lost
    y, lost = two_sum(top, first)
    # next to an infinite operand the pieces are no numbers
    y = where(d < INF, y + (lost + rest), y)
    return edges(a, b, y)


@define(BINARY)
def logaddexp(a: V, b: V) -> V:
    return _log_sum(a, b, False)


@define(BINARY)
def logaddexp2(a: V, b: V) -> V:
    return _log_sum(a, b, True)
