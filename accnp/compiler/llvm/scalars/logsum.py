"""Logarithms of sums of two powers: logaddexp logaddexp2.

The functions emit LLVM IR. They take two float or double ``V`` and return a ``V`` of the same type,
without branches or library calls. The registry makes them available to kernels.

The result is max(a, b) + log(1 + exp(-d)), where d = abs(a - b). The two terms cancel if the result
is close to 0. Float operands are therefore computed in double precision, which leaves enough digits
except next to the zeros of the function. For double operands, the rounding errors of the logarithm
and of the sum are computed and added.
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
# Adding this number to a double rounds the double to an integer n. The low bits of the sum are then
# n + 1023, which is the exponent field of 2^n.
POWER = 1.5 * 2.0**52 + 1023.0


def larger_operand(a: V, b: V) -> V:
    """Return the larger operand, or b if one is NaN."""
    return where(a > b, a, b)


def fix_infinite_operands(a: V, b: V, y: V) -> V:
    """Return y, or a + b where a - b is NaN: for equal infinities, and for NaN operands."""
    d = a - b
    return where(d.eq(d), y, a + b)


def _log1p_exp(d: V, base2: bool) -> V:
    """log(1 + exp(-d)), or log2(1 + 2^-d) for `base2`, of doubles d >= 0, to about 2^-46."""
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


def _emit_logaddexp(a: V, b: V, base2: bool) -> V:
    """logaddexp, or logaddexp2 for `base2`."""
    if a.single:
        tail = _log1p_exp(fabs(a.to(F64) - b.to(F64)), base2)
        return fix_infinite_operands(a, b, (larger_operand(a, b).to(F64) + tail).to(F32))
    top, low = larger_operand(a, b), where(a > b, b, a)
    d, d_lo = two_sum(top, -low)
    farthest = 1100.0 if base2 else 800.0  # exp(-d) is 0 from here on
    near = d < farthest
    c, c_lo = where(near, d, farthest), where(near, d_lo, 0.0)
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
    # log(1 + e) = 2 s + s^3 (2/3 + ..), where s + s_lo = e / (2 + e)
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
    # If an operand is infinite, y is right, and the rounding errors are NaN.
    y = where(d < INF, y + (lost + rest), y)
    return fix_infinite_operands(a, b, y)


@define(BINARY)
def logaddexp(a: V, b: V) -> V:
    return _emit_logaddexp(a, b, False)


@define(BINARY)
def logaddexp2(a: V, b: V) -> V:
    return _emit_logaddexp(a, b, True)
