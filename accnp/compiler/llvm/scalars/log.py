"""Logarithms and inverse hyperbolic functions: log log2 log10 log1p asinh acosh atanh.

The functions emit LLVM IR. They take a float or double ``V`` and return a ``V`` of the same type,
without branches or library calls. A logarithm splits its argument into an exponent and a mantissa
near 1, for which it evaluates a polynomial. The registry makes the functions available to kernels;
`power.py` uses the split as well, and `gpu.py` has other implementations for float32 on GPUs.
"""

from __future__ import annotations

from accnp.compiler.llvm.scalars import coefs as k
from accnp.compiler.llvm.scalars.forms import exponent, has_exponents, mantissa
from accnp.compiler.llvm.scalars.ir import (
    F32,
    F64,
    MANT,
    V,
    bits,
    copysign,
    estrin,
    fabs,
    fast_two_sum,
    fma,
    int_to_float,
    pow2,
    sqrt,
    two_prod,
    two_sum,
    unbits,
    where,
)
from accnp.compiler.llvm.scalars.registry import UNARY, define

LN2_32 = (0.693145751953125, 1.42860677e-06)
LN2_64 = (0.693147180369123816490, 1.90821492927058770002e-10)
# log2(e), log10(e) and log10(2) in two pieces. The first piece of log10(2) is short, so that its
# product with an exponent is exact.
LOG2E_32 = (1.4426950216293335, 1.925963033500011e-08)
LOG2E_64 = (1.4426950408889634, 2.0355273740931033e-17)
LOG10E_32 = (0.4342944920063019, -1.0103049952192578e-08)
LOG10E_64 = (0.4342944819032518, 1.098319650216765e-17)
LOG10_2_32 = (0.301025390625, 4.605039066518657e-06)
LOG10_2_64 = (0.3010299956658855, -1.9043128467164274e-12)


def split(x: V) -> tuple[V, V]:
    """Return (f, e) with x = 2^e (1 + f) for a normal x. The range of 1 + f is 3/4 to 3/2 for
    float32, and sqrt(1/2) to sqrt(2) for float64."""
    i = bits(x)
    e = (i - (0x3F400000 if x.single else 0x3FE6A09E667F3BCD)) >> MANT[x.single]
    return unbits(i - (e << MANT[x.single])) - 1.0, e


def normal(x: V) -> tuple[V, V]:
    """Return x scaled into the normal range, and the exponent to add."""
    tiny = x < (1.1754943508222875e-38 if x.single else 2.2250738585072014e-308)
    up = 2.0**25 if x.single else 2.0**54
    return where(tiny, x * up, x), where(tiny, x.const(-25.0 if x.single else -54.0), 0.0)


def log1p_tail(f: V) -> V:
    """Return log(1 + f) - f of a reduced argument. It uses Estrin's scheme, since a logarithm is a
    long chain of dependent steps, for which other steps wait."""
    z = f * f
    if f.single:
        return z * fma(f, estrin(f, k.LOG_32), f.const(-0.5))
    h = z * 0.5
    s = f / (f + 2.0)
    w = s * s
    return fma(s, fma(w, estrin(w, k.LOG_64), h), -h)


def fix_log_domain(x: V, y: V) -> V:
    """Return y = log(x), or the value that all logarithms have if x is not positive and finite."""
    y = where(x < float("inf"), y, x)
    y = where(x < 0.0, float("nan"), y)
    return where(x.eq(0.0), -float("inf"), y)


def split_exponent(x: V) -> tuple[V, V]:
    """Return (f, t) with x = 2^t (1 + f), as `split` does, where t is a float."""
    if x.single and has_exponents(x):
        m, t = mantissa(x), exponent(x)
        return m - 1.0, where(m < 1.0, t + 1.0, t)
    n, up = normal(x)
    f, e = split(n)
    return f, int_to_float(e) + up


@define(UNARY)
def log(x: V) -> V:
    f, t = split_exponent(x)
    hi, lo = LN2_32 if x.single else LN2_64
    y = fma(t, x.const(hi), f + fma(t, x.const(lo), log1p_tail(f)))
    # The special values are right already: `exponent` may be infinite, and `mantissa` NaN.
    return y if x.single and has_exponents(x) else fix_log_domain(x, y)


def _log_to_base(x: V, inv: tuple[float, float], one: tuple[float, float]) -> V:
    """Return the logarithm to another base. ``inv`` is 1 / ln(base) and ``one`` is the logarithm of
    2, in two pieces each."""
    f, t = split_exponent(x)
    h, low = fast_two_sum(f, log1p_tail(f))
    p, q = two_prod(h, x.const(inv[0]))
    q = fma(h, x.const(inv[1]), fma(low, x.const(inv[0]), q))
    s, r = two_sum(t * one[0], p)
    return fix_log_domain(x, s + (fma(t, x.const(one[1]), q) + r))


@define(UNARY)
def log2(x: V) -> V:
    return _log_to_base(x, LOG2E_32 if x.single else LOG2E_64, (1.0, 0.0))


@define(UNARY)
def log10(x: V) -> V:
    pair = (LOG10E_32, LOG10_2_32) if x.single else (LOG10E_64, LOG10_2_64)
    return _log_to_base(x, *pair)


def log1p_sum(x: V, lo: V | None) -> V:
    """Return log(1 + x + lo) for x > -1, where lo is a correction much smaller than x."""
    _, e = split(where(x < -1.0, -0.5, x) + 1.0)
    # 2^-e in two factors: e reaches 128 (1024), where 2^-e is subnormal.
    h = e >> 1
    a, b = pow2(-h), pow2(h - e)
    s = a * b
    if lo is None:
        f = fma(x * a, b, s - 1.0)
        tail = log1p_tail(f)
    else:
        f, r = two_sum(s - 1.0, x * a * b)
        tail = log1p_tail(f) + (fma(lo * a, b, r) / (f + 1.0))
    t = int_to_float(e)
    c, d = LN2_32 if x.single else LN2_64
    return fma(t, x.const(c), f + fma(t, x.const(d), tail))


@define(UNARY)
def log1p(x: V) -> V:
    y = copysign(log1p_sum(x, None), x)
    y = where(x < float("inf"), y, x)
    y = where(x < -1.0, float("nan"), y)
    return where(x.eq(-1.0), -float("inf"), y)


@define(UNARY)
def asinh(x: V) -> V:
    if x.single:  # in doubles, whose precision and range suffice
        a = fabs(x.to(F64))
        root = sqrt(fma(a, a, 1.0))
        y = log1p(fma(a, a / (root + 1.0), a))
        return copysign(where(a < float("inf"), y, a).to(F32), x)
    a = fabs(x)
    # Above 2^28, asinh(a) = log(a) + ln 2; the square could overflow.
    big = a > 2.0**28
    c = where(big, 1.0, a)
    p, q = two_prod(c, c)
    s, r = two_sum(p, x.const(1.0))
    root = sqrt(s)
    # sqrt(1 + a^2) - 1 = a^2 / (1 + sqrt(1 + a^2)) in two pieces
    root_lo = (fma(-root, root, s) + (r + q)) / (root + root)
    d, d_lo = two_sum(root, x.const(1.0))
    d_lo = d_lo + root_lo
    w = p / d
    w_lo = (fma(-w, d, p) + q - w * d_lo) / d
    u, u_lo = two_sum(c, w)
    y = log1p_sum(u, u_lo + w_lo)
    y = where(big, log(where(big, a, 1.0)) + 0.6931471805599453, y)
    return copysign(where(a < 1e-8, a, y), x)


@define(UNARY)
def acosh(x: V) -> V:
    if x.single:
        t = x.to(F64) - 1.0
        y = log1p(t + sqrt(t * (t + 2.0)))
        return where(t < 0.0, float("nan"), y).to(F32)
    big = x > 2.0**28
    t = where(big, 1.0, x) - 1.0
    # acosh(1 + t) = log1p(t + sqrt(2 t + t^2))
    p, q = two_prod(t, t)
    s, r = two_sum(t + t, p)
    root = sqrt(s)
    root_lo = (fma(-root, root, s) + (r + q)) / (root + root)
    u, u_lo = two_sum(root, t)
    y = log1p_sum(u, u_lo + where(root.eq(0.0), 0.0, root_lo))
    y = where(t.eq(0.0), 0.0, y)
    y = where(big, log(where(big, x, 1.0)) + 0.6931471805599453, y)
    return where(x < 1.0, float("nan"), y)


@define(UNARY)
def atanh(x: V) -> V:
    if x.single:
        a = fabs(x.to(F64))
        return copysign((log1p((a + a) / (1.0 - a)) * 0.5).to(F32), x)
    a = fabs(x)
    ok = a < 1.0
    c = where(ok, a, 0.5)
    d, d_lo = two_sum(x.const(1.0), -c)
    n = c + c
    u = n / d
    u_lo = (fma(-u, d, n) - u * d_lo) / d
    y = log1p_sum(u, u_lo) * 0.5
    y = where(ok, y, where(a.eq(1.0), x.const(float("inf")), float("nan")))
    return copysign(where(a < 1e-9, a, y), x)
