"""Elementary functions of complex double arguments.

In: (real, imaginary) pairs of double ``V``. Out: such a pair. Complex64 callers widen first,
which also makes the naive products and squares below safe for them.
"""

from __future__ import annotations

from . import arc, exp, log, trig
from .ir import V, copysign, fabs, fma, sqrt, where

C = tuple[V, V]
INF = float("inf")


def mul(x: C, y: C) -> C:
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


def div(x: C, y: C) -> C:
    (a, b), (c, d) = x, y
    # Smith's division with selects
    big = fabs(c) >= fabs(d)
    p, q = where(big, c, d), where(big, d, c)
    r = where(p.eq(0.0), 0.0, q / p)
    s = 1.0 / fma(q, r, p)
    t, u = where(big, a, b), where(big, b, a)
    re = fma(u, r, t) * s
    im = where(big, fma(-a, r, b), fma(b, r, -a)) * s
    return re, im


def scaled_abs(x: C) -> V:
    """hypot: the largest part is taken out, so that squares neither overflow nor vanish."""
    a, b = fabs(x[0]), fabs(x[1])
    hi, lo = where(a > b, a, b), where(a > b, b, a)
    r = where(hi.eq(0.0), 0.0, lo / hi)
    y = hi * sqrt(fma(r, r, 1.0))
    y = where(a.ne(a) | b.ne(b), a + b, y)
    return where(a.eq(INF) | b.eq(INF), INF, y)


def cexp(x: C) -> C:
    re, im = x
    # e^re in two factors: the product with a cosine may be finite where e^re is not
    h = where(fabs(re) < INF, re * 0.5, re)
    e = exp.exp(h)
    real = im.eq(0.0)
    full = exp.exp(re)
    a = where(real, full, (trig.cos(im) * e) * where(fabs(re) < INF, e, 1.0))
    b = where(real, im, (trig.sin(im) * e) * where(fabs(re) < INF, e, 1.0))
    zero = re.eq(-INF)
    return where(zero, 0.0, a), where(zero, copysign(re.const(0.0), im), b)


def cexp2(x: C) -> C:
    ln2 = 0.6931471805599453
    return cexp((x[0] * ln2, x[1] * ln2))


def cexpm1(x: C) -> C:
    re, im = x
    # e^re cos(im) - 1 = expm1(re) cos(im) - 2 sin(im / 2)^2
    s = trig.sin(im * 0.5)
    return fma(exp.expm1(re), trig.cos(im), -2.0 * s * s), exp.exp(re) * trig.sin(im)


def clog(x: C) -> C:
    re, im = x
    a, b = fabs(re), fabs(im)
    hi, lo = where(a > b, a, b), where(a > b, b, a)
    near = (hi > 0.5) & (hi < 2.0)
    # |x| near 1: log of (hi - 1)(hi + 1) + lo^2 past 1
    close = log.log1p(fma(hi - 1.0, hi + 1.0, lo * lo)) * 0.5
    r = where(hi.eq(0.0), 0.0, lo / hi)
    far = log.log(hi) + log.log1p(r * r) * 0.5
    m = where(near, close, far)
    m = where(a.eq(INF) | b.eq(INF), INF, m)
    return m, arc.atan2(im, re)


def clog1p(x: C) -> C:
    re, im = x
    small = (fabs(re) < 0.5) & (fabs(im) < 0.5)
    m = log.log1p(fma(re, re + 2.0, im * im)) * 0.5
    y = clog((re + 1.0, im))
    return where(small, m, y[0]), y[1]


def csqrt(x: C) -> C:
    re, im = x
    a = fabs(re)
    # scale by 1/4 keeps |x| + |re| finite
    m = scaled_abs((re * 0.25, im * 0.25)) + a * 0.25
    t = sqrt(m * 2.0)
    u = where(t.eq(0.0), 0.0, fabs(im) * 0.5 / t)
    right = copysign(re.const(1.0), re) > 0.0
    p, q = where(right, t, u), copysign(where(right, u, t), im)
    inf = fabs(im).eq(INF)
    return where(inf, INF, p), where(inf, im, where(im.eq(0.0) & right, im, q))


def crsqrt(x: C) -> C:
    return div((x[0].const(1.0), x[0].const(0.0)), csqrt(x))


def csinh(x: C) -> C:
    re, im = x
    return exp.sinh(re) * trig.cos(im), exp.cosh(re) * trig.sin(im)


def ccosh(x: C) -> C:
    re, im = x
    return exp.cosh(re) * trig.cos(im), exp.sinh(re) * trig.sin(im)


def ctanh(x: C) -> C:
    re, im = x
    big = fabs(re) > 20.0
    c = where(big, 1.0, re)
    s, co, sh = trig.sin(im), trig.cos(im), exp.sinh(c)
    d = fma(sh, sh, co * co)
    a = sh * exp.cosh(c) / d
    b = s * co / d
    far = 4.0 * s * co * exp.exp(-2.0 * fabs(re))
    return where(big, copysign(re.const(1.0), re), a), where(big, far, b)


def _turned(f, x: C) -> C:
    """-i f(i x)."""
    a, b = f((-x[1], x[0]))
    return b, -a


def csin(x: C) -> C:
    return _turned(csinh, x)


def ccos(x: C) -> C:
    return ccosh((-x[1], x[0]))


def ctan(x: C) -> C:
    return _turned(ctanh, x)


def casinh(x: C) -> C:
    # log(x + sqrt(x^2 + 1)) of the half plane re >= 0, with sqrt(1 + ix) sqrt(1 - ix) for the root
    re, im = fabs(x[0]), x[1]
    one = re.const(1.0)
    root = mul(csqrt((one - im, re)), csqrt((one + im, -re)))
    a, b = clog1p((root[0] - 1.0 + re, root[1] + im))
    return copysign(a, x[0]), b


def cacosh(x: C) -> C:
    re, im = x
    root = mul(csqrt((re + 1.0, im)), csqrt((re - 1.0, im)))
    return clog((re + root[0], im + root[1]))


def catanh(x: C) -> C:
    re, im = x
    a, b = clog1p((re, im)), clog1p((-re, -im))
    return (a[0] - b[0]) * 0.5, (a[1] - b[1]) * 0.5


def casin(x: C) -> C:
    return _turned(casinh, x)


def cacos(x: C) -> C:
    a, b = casin(x)
    return 1.5707963267948966 - a, -b


def catan(x: C) -> C:
    return _turned(catanh, x)


def clogistic(x: C) -> C:
    a, b = cexp((-x[0], -x[1]))
    return div((a.const(1.0), a.const(0.0)), (a + 1.0, b))


def cpow(x: C, y: C) -> C:
    z = cexp(mul(y, clog(x)))
    zero = x[0].eq(0.0) & x[1].eq(0.0)
    to_zero = y[0] > 0.0
    none = y[0].eq(0.0) & y[1].eq(0.0)
    re = where(zero & to_zero, 0.0, z[0])
    im = where(zero & to_zero, 0.0, z[1])
    return where(none, 1.0, re), where(none, 0.0, im)


def csign(x: C) -> C:
    m = scaled_abs(x)
    d = where(m.eq(0.0), 1.0, m)
    return x[0] / d, x[1] / d
