"""Powers and roots: pow cbrt rsqrt.

The functions emit LLVM IR. They take one or two float or double ``V`` and return a ``V`` of the
same type, without branches or library calls; floats are computed as doubles. The registry makes
them available to kernels. `log_pair` and `exp_pair` compute with sums of two doubles; `cpower.py`,
`special.py` and `zeta.py` use them as well.
"""

from __future__ import annotations

from accnp.compiler.llvm.scalars import coefs as k
from accnp.compiler.llvm.scalars.exp import scale
from accnp.compiler.llvm.scalars.ir import (
    F32,
    F64,
    V,
    bits,
    clamp,
    copysign,
    fabs,
    fast_two_sum,
    floor,
    fma,
    int_to_float,
    nearest,
    poly,
    pow2,
    sqrt,
    two_prod,
    two_sum,
    unbits,
    where,
)
from accnp.compiler.llvm.scalars.log import normal, split
from accnp.compiler.llvm.scalars.registry import BINARY, UNARY, define

LN2_HI, LN2_LO = 0.6931471805599453, 2.3190468138462996e-17
INF = float("inf")


def log_short(a: V) -> V:
    """Return the logarithm of a normal double, to about 2^-38."""
    f, e = split(a)
    s = f / (f + 2.0)
    w = s * s
    return fma(int_to_float(e), a.const(LN2_HI), s * fma(w, poly(w, k.POWLOG_64), a.const(2.0)))


def exp_short(x: V) -> V:
    """Return exp(x) of a double, |x| < 700, to about 2^-37."""
    t, n = nearest(x * 1.4426950408889634)
    r = fma(t, x.const(-LN2_HI), x)
    return fma(r * r, poly(r, k.POWEXP_64), r + 1.0) * pow2(n)


def log_pair(a: V) -> tuple[V, V]:
    """Return the logarithm of a positive double as a sum of two doubles, to about 2^-66."""
    n, up = normal(a)
    f, e = split(n)
    t = int_to_float(e) + up
    # s = f / (2 + f) as a pair
    d, d_lo = two_sum(a.const(2.0), f)
    inverse = 1.0 / d
    s = f * inverse
    s_lo = (fma(-s, d, f) - s * d_lo) * inverse
    w, w_lo = two_prod(s, s)
    w_lo = fma(s + s, s_lo, w_lo)
    # log(1 + f) = 2 s + s w (2/3 + w T(w)); 2/3 + w T as a pair
    c, c_lo = fast_two_sum(a.const(2.0 / 3.0), w * poly(w, k.LOGT_64))
    c_lo = c_lo + 3.700743415417188e-17
    g, g_lo = two_prod(w, c)
    g_lo = g_lo + fma(w, c_lo, w_lo * c)
    g, carry = fast_two_sum(a.const(2.0), g)
    g_lo = g_lo + carry
    h, h_lo = two_prod(s, g)
    h_lo = h_lo + fma(s, g_lo, s_lo * g)
    p, p_lo = two_prod(t, a.const(LN2_HI))
    y, y_lo = two_sum(p, h)
    return fast_two_sum(y, y_lo + (fma(t, a.const(LN2_LO), p_lo) + h_lo))


def exp_pair(hi: V, lo: V) -> V:
    """Return exp(hi + lo) of doubles."""
    x = clamp(hi, -747.0, 712.0)
    lo = where(fabs(hi) < 747.0, lo, 0.0)
    t, n = nearest(x * 1.4426950408889634)
    r = fma(t, x.const(-LN2_HI), x)
    r, r_lo = fast_two_sum(r, fma(t, x.const(-LN2_LO), lo))
    q = fma(r * r, poly(r, k.EXP_64), r_lo)
    return scale((q + r) + 1.0, n)


def pow_abs(a: V, y: V) -> V:
    """Return a^y for a finite a >= 0 and a finite y."""
    if a.single:
        w = y.to(F64) * log_short(where(a.eq(0.0), 1.0, a).to(F64))
        return exp_short(clamp(w, -200.0, 200.0)).to(F32)
    h, low = log_pair(where(a.eq(0.0), 1.0, a))
    # A huge exponent must not lead to inf - inf. With 2^70, powers of all bases but 1 overflow or
    # underflow already.
    y = clamp(y, -(2.0**70), 2.0**70)
    p, q = two_prod(h, y)
    return exp_pair(p, fma(low, y, q))


@define(BINARY)
def pow(x: V, y: V) -> V:
    """Return x^y, with the special cases of C99."""
    a = fabs(x)
    finite = a < INF
    z = pow_abs(where(finite, a, 1.0), where(fabs(y) < INF, y, 1.0))
    half = y * 0.5
    integral = floor(y).eq(y)
    odd = (fabs(y) < INF) & integral & floor(half).ne(half)
    # base 0 or infinity, or an infinite exponent: 0, 1 or infinity
    grows = (a > 1.0).cmp("==", y > 0.0)
    limit = where(grows, x.const(INF), 0.0)
    limit = where(a.eq(1.0), 1.0, limit)
    z = where(a.eq(0.0) | a.eq(INF) | fabs(y).eq(INF), limit, z)
    z = where((x < 0.0) & finite & ~integral, float("nan"), z)
    z = where(odd, copysign(z, x), z)
    z = where(x.ne(x) | y.ne(y), x + y, z)
    return where(x.eq(1.0) | y.eq(0.0), 1.0, z)


@define(UNARY)
def cbrt(x: V) -> V:
    if x.single:
        return cbrt(x.to(F64)).to(F32)
    a = fabs(x)
    n, up = normal(a)
    n = where(n < INF, n, 1.0)
    i = bits(n)
    e = (i.lshr(52)) - 1023
    _, q = nearest(int_to_float(e) * (1.0 / 3.0))
    m = unbits(i - ((q * 3) << 52))
    c = poly(m, k.CBRT_64)
    for _ in range(2):
        c3 = c * c * c
        c = c * ((c3 + m + m) / (c3 + c3 + m))
    # one correction with the residual in extra precision
    s, s_lo = two_prod(c, c)
    r = fma(-s, c, m) - s_lo * c
    c = fma(r, 1.0 / (s * 3.0), c)
    y = c * pow2(q) * where(up < 0.0, x.const(2.0**-18), 1.0)
    return where((a > 0.0) & (a < INF), copysign(y, x), x)


@define(UNARY)
def rsqrt(x: V) -> V:
    if x.single:
        return (1.0 / sqrt(x.to(F64))).to(F32)
    return 1.0 / sqrt(x)
