"""Elementary functions of complex numbers, in double precision.

The functions emit LLVM IR. They take (real, imaginary) pairs of double ``V`` and return such pairs.
The registry makes them available to kernels. Complex64 operands are converted to doubles first, so
their products and squares do not overflow, and simpler code for them is in `COMPLEX64_BINARY`.
Powers are in `cpower.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from accnp.compiler.llvm.scalars import arc, exp, log, trig
from accnp.compiler.llvm.scalars.ir import V, copysign, fabs, fma, sqrt, two_prod, two_sum, where
from accnp.compiler.llvm.scalars.registry import COMPLEX, COMPLEX64_BINARY, COMPLEX_BINARY, define

C = tuple[V, V]
INF = float("inf")
LN2, LN2_REST, HALF_PI = 0.6931471805599453, 2.3190468138462996e-17, 1.5707963267948966
# Below this bound, the rounding error of an angle is so small that its square can be neglected.
FIRST_ORDER = 2.0**26
PI = (3.141592653589793, 1.2246467991473532e-16)


def mul(x: C, y: C) -> C:
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


@define(COMPLEX_BINARY, "cdiv")
def div(x: C, y: C) -> C:
    """Return x / y. Both are scaled by a power of two, so that the sums of Smith's method do not
    overflow, and small numbers do not lose digits in them."""
    (a, b), (c, d) = x, y
    over, under = _larger(fabs(a), fabs(b)), _larger(fabs(c), fabs(d))
    high, low = _larger(over, under), where(over > under, under, over)
    f = where(high > 2.0**900, 2.0**-120, where(low < 2.0**-900, 2.0**120, high.const(1.0)))
    return narrow_div((a * f, b * f), (c * f, d * f))


@define(COMPLEX64_BINARY, "cdiv")
def narrow_div(x: C, y: C) -> C:
    """Return x / y of numbers that were complex64, by Smith's method with selects."""
    (a, b), (c, d) = x, y
    big = fabs(c) >= fabs(d)
    p, q = where(big, c, d), where(big, d, c)
    zero = p.eq(0.0)
    r = where(zero, 0.0, q / p)
    s = 1.0 / fma(q, r, p)
    t, u = where(big, a, b), where(big, b, a)
    v = where(big, b, -a)
    # A division by zero divides each part separately.
    re = where(zero, t, fma(u, r, t)) * s
    im = where(zero, v, fma(where(big, -a, b), r, v)) * s
    return re, im


def _larger(a: V, b: V) -> V:
    return where(a > b, a, b)


def scaled_abs(x: C) -> V:
    """Return |x|. The larger part is factored out, so that squares neither overflow nor vanish."""
    a, b = fabs(x[0]), fabs(x[1])
    hi, lo = where(a > b, a, b), where(a > b, b, a)
    r = where(hi.eq(0.0), 0.0, lo / hi)
    y = hi * sqrt(fma(r, r, 1.0))
    y = where(a.ne(a) | b.ne(b), a + b, y)
    return where(a.eq(INF) | b.eq(INF), INF, y)


def _finite(x: V) -> V:
    return fabs(x) < INF


@define(COMPLEX, "exp")
def cexp(x: C) -> C:
    return _polar_power(exp.exp, x, trig.cos(x[1]), trig.sin(x[1]))


def _polar_power(power: Callable[[V], V], x: C, cos: V, sin: V) -> C:
    """Return a power of the real part times e^(i angle), whose cosine and sine are given."""
    re, im = x
    # e^re in two factors: the product with a cosine may be finite where e^re is not
    h = where(_finite(re), re * 0.5, re)
    e = power(h)
    real, some = im.eq(0.0), _finite(im)
    full = power(re)
    a = where(real, full, (cos * e) * where(_finite(re), e, 1.0))
    b = where(real, im, (sin * e) * where(_finite(re), e, 1.0))
    # For every angle, e^inf is infinite and e^-inf is 0.
    a = where(some | re.ne(INF), a, INF)
    zero = ~some & re.eq(-INF)
    return where(zero, 0.0, a), where(zero, copysign(re.const(0.0), im), b)


@define(COMPLEX, "exp2")
def cexp2(x: C) -> C:
    # The rounding error of the angle im ln 2 grows with the angle, so it is corrected.
    angle, rest = two_prod(x[1], x[1].const(LN2))
    rest = fma(x[1], LN2_REST, rest)
    rest = where(fabs(angle) < FIRST_ORDER, rest, 0.0)
    c, s = trig.cos(angle), trig.sin(angle)
    return _polar_power(exp.exp2, x, fma(-rest, s, c), fma(rest, c, s))


@define(COMPLEX, "expm1")
def cexpm1(x: C) -> C:
    re, im = x
    # e^re cos(im) - 1 = expm1(re) cos(im) - 2 sin(im / 2)^2
    s = trig.sin(im * 0.5)
    a = fma(exp.expm1(re), trig.cos(im), -2.0 * s * s)
    y = cexp(x)
    a = where(im.eq(0.0), exp.expm1(re), where(fabs(re) > 40.0, y[0] - 1.0, a))
    return a, y[1]


@define(COMPLEX, "log")
def clog(x: C) -> C:
    re, im = x
    a, b = fabs(re), fabs(im)
    hi, lo = where(a > b, a, b), where(a > b, b, a)
    near = (hi > 0.5) & (hi < 2.0)
    # |x| near 1: log1p of 2 d + d^2 + lo^2 with d = hi - 1; rounding errors are added at the end
    d = hi - 1.0
    p, p_lo = two_prod(d, d)
    q, q_lo = two_prod(lo, lo)
    s, s_lo = two_sum(d + d, q)
    s, rest = two_sum(s, p)
    close = log.log1p(s + ((p_lo + q_lo) + (s_lo + rest))) * 0.5
    r = where(hi.eq(0.0), 0.0, lo / hi)
    far = log.log(hi) + log.log1p(r * r) * 0.5
    m = where(near, close, far)
    m = where(re.ne(re) | im.ne(im), re + im, m)
    m = where(a.eq(INF) | b.eq(INF), INF, m)
    return m, arc.atan2(im, re)


@define(COMPLEX, "log1p")
def clog1p(x: C) -> C:
    re, im = x
    small = (fabs(re) < 0.5) & (fabs(im) < 0.5)
    m = log.log1p(fma(re, re + 2.0, im * im)) * 0.5
    y = clog((re + 1.0, im))
    return where(small, m, y[0]), y[1]


def _scale_into_range(x: C) -> tuple[C, V]:
    """Return x times a power of 4, so that |x| + |re| is finite and has all its digits, and the
    square root of the inverse of that power."""
    size = _larger(fabs(x[0]), fabs(x[1]))
    big, small, one = size > 2.0**1000, size < 2.0**-900, size.const(1.0)
    f = where(big, 2.0**-4, where(small, 2.0**120, one))
    return (x[0] * f, x[1] * f), where(big, 2.0**2, where(small, 2.0**-60, one))


@define(COMPLEX, "sqrt")
def csqrt(x: C) -> C:
    re, im = x
    near, back = _scale_into_range(x)
    m = scaled_abs(near) + fabs(near[0])
    t = sqrt(m * 0.5)
    u = where(t.eq(0.0), 0.0, fabs(near[1]) * 0.5 / t) * back
    t = t * back
    right = copysign(re.const(1.0), re) > 0.0
    p, q = where(right, t, u), copysign(where(right, u, t), im)
    inf = fabs(im).eq(INF)
    return where(inf, INF, p), where(inf, im, where(im.eq(0.0) & right & re.eq(re), im, q))


@define(COMPLEX, "rsqrt")
def crsqrt(x: C) -> C:
    return div((x[0].const(1.0), x[0].const(0.0)), csqrt(x))


def _hyperbolic(re: V) -> tuple[V, V, V]:
    """Return (sinh, cosh, factor). Callers multiply a result by the factor at the end, so that
    other products stay finite."""
    large = fabs(re) > 40.0
    e = exp.exp(fabs(re) * 0.5)
    sh = where(large, copysign(e * 0.5, re), exp.sinh(re))
    co = where(large, e * 0.5, exp.cosh(re))
    return sh, co, where(large, e, 1.0)


@define(COMPLEX, "sinh")
def csinh(x: C) -> C:
    re, im = x
    sh, co, more = _hyperbolic(re)
    a, b = sh * trig.cos(im) * more, co * trig.sin(im) * more
    open_ = ~_finite(im) & (re.eq(0.0) | fabs(re).eq(INF))  # C leaves this sign open
    real = im.eq(0.0)
    return where(open_, re, where(real, exp.sinh(re), a)), where(real, im, b)


@define(COMPLEX, "cosh")
def ccosh(x: C) -> C:
    re, im = x
    sh, co, more = _hyperbolic(re)
    a, b = co * trig.cos(im) * more, sh * trig.sin(im) * more
    some, real = _finite(im), im.eq(0.0)
    a = where(~some & fabs(re).eq(INF), INF, where(real, exp.cosh(re), a))
    b = where(real, im * copysign(re.const(1.0), re), where(~some & re.eq(0.0), re, b))
    return a, b


@define(COMPLEX, "tanh")
def ctanh(x: C) -> C:
    re, im = x
    big = fabs(re) > 20.0
    c = where(big, 1.0, re)
    s, co, sh = trig.sin(im), trig.cos(im), exp.sinh(c)
    d = fma(sh, sh, co * co)
    a = sh * exp.cosh(c) / d
    b = s * co / d
    far = 4.0 * s * co * exp.exp(-2.0 * fabs(re))
    end, some, real = fabs(re).eq(INF), _finite(im), im.eq(0.0)
    a = where(big & (some | end), copysign(re.const(1.0), re), a)
    a = where(re.eq(0.0) & ~some, re, where(real, exp.tanh(re), a))
    # C's standard gives the zero at infinity the sign of sin(2 y); that of the array API, of y.
    b = where(real, im, where(big, where(end, copysign(re.const(0.0), im), far), b))
    return a, b


def _rotate_function(f: Callable[[C], C], x: C) -> C:
    """Return -i f(i x)."""
    a, b = f((-x[1], x[0]))
    return b, -a


@define(COMPLEX, "sin")
def csin(x: C) -> C:
    return _rotate_function(csinh, x)


@define(COMPLEX, "sin_pi")
def csin_pi(x: C) -> C:
    """Return sin(pi x), corrected for the rounding error of pi times the imaginary part, whose
    effect grows with that part."""
    part, sign = trig.from_whole(x[0])
    im = x[1]
    high, low = two_prod(im, im.const(PI[0]))
    low = copysign(im.const(1.0), im) * fma(im, PI[1], low)
    more = sign * where((fabs(im) > 1.0) & (fabs(im) < 1e3), low + 1.0, 1.0)
    a, b = csin((part * PI[0], high))
    return a * more, b * more


@define(COMPLEX, "cos")
def ccos(x: C) -> C:
    return ccosh((-x[1], x[0]))


@define(COMPLEX, "tan")
def ctan(x: C) -> C:
    return _rotate_function(ctanh, x)


# The inverse functions are those of W. Kahan, "Branch cuts for complex elementary functions"
# (1987): real functions of the parts of square roots, which avoid cancellation and keep the signs
# of zeros.


def _log_of_huge(x: C) -> tuple[V, V]:
    """Return whether squares of a part overflow, and log |2 x| for such x."""
    big = (fabs(x[0]) > 1e150) | (fabs(x[1]) > 1e150)
    return big, log.log(scaled_abs((x[0] * 0.5, x[1] * 0.5))) + 2 * LN2


@define(COMPLEX, "asinh")
def casinh(x: C) -> C:
    re, im = x
    p, q = csqrt((1.0 + im, -re)), csqrt((1.0 - im, re))
    a = log.asinh(p[0] * q[1] - q[0] * p[1])
    b = arc.atan2(im, p[0] * q[0] - p[1] * q[1])
    big, size = _log_of_huge(x)
    a = where(big, copysign(size, re), a)
    b = where(im.eq(0.0), im, where(big, arc.atan2(im, fabs(re)), b))
    return a, b


@define(COMPLEX, "acosh")
def cacosh(x: C) -> C:
    re, im = x
    p, q = csqrt((re - 1.0, im)), csqrt((re + 1.0, im))
    a = log.asinh(p[0] * q[0] + p[1] * q[1])
    b = 2.0 * arc.atan2(p[1], q[0])
    big, size = _log_of_huge(x)
    b = where(big, arc.atan2(im, re), where(re.eq(0.0) & im.ne(im), HALF_PI, b))
    return where(big, size, a), b


@define(COMPLEX, "atanh")
def catanh(x: C) -> C:
    re, im = fabs(x[0]), x[1]
    one, far = 1.0 - re, fabs(im)
    tiny = far < 1e-150
    # near 1 the real part is log(2 / |im|) / 2
    near = re.eq(1.0) & tiny
    square = fma(one, one, im * im)
    a = log.log1p(4.0 * re / square) * 0.25
    a = where(near, 0.5 * (LN2 - log.log(far)), a)
    b = arc.atan2(2.0 * im, fma(one, 1.0 + re, -(im * im))) * 0.5
    b = where(near, where(far.eq(0.0), im, copysign(far.const(HALF_PI / 2), im)), b)
    big = (re > 1e150) | (far > 1e150)
    size = scaled_abs((re * 0.5, im * 0.5))
    a = where(big, where(size.eq(INF), 0.0, re * 0.25 / size / size), a)
    a = where(re.eq(0.0) | (re.eq(INF) & far.ne(far)), 0.0, a)
    return copysign(a, x[0]), where(big & far.eq(far), copysign(far.const(HALF_PI), im), b)


@define(COMPLEX, "asin")
def casin(x: C) -> C:
    return _rotate_function(casinh, x)


@define(COMPLEX, "acos")
def cacos(x: C) -> C:
    re, im = x
    p, q = csqrt((1.0 - re, -im)), csqrt((1.0 + re, im))
    a = 2.0 * arc.atan2(p[0], q[0])
    b = log.asinh(q[0] * p[1] - q[1] * p[0])
    big, size = _log_of_huge(x)
    a = where(big, arc.atan2(fabs(im), re), where(re.eq(0.0) & im.ne(im), HALF_PI, a))
    return a, where(big, -copysign(size, im), b)


@define(COMPLEX, "atan")
def catan(x: C) -> C:
    return _rotate_function(catanh, x)


@define(COMPLEX, "logistic")
def clogistic(x: C) -> C:
    a, b = cexp((-x[0], -x[1]))
    return div((a.const(1.0), a.const(0.0)), (a + 1.0, b))


@define(COMPLEX_BINARY, "fmax")
def cmax(x: C, y: C) -> C:
    """Return the larger number, by the real part and then by the imaginary part, or the first
    operand that contains NaN."""
    (a, b), (c, d) = x, y
    first = ((a > c) | (a.eq(c) & (b > d))) & c.eq(c) & d.eq(d) | a.ne(a) | b.ne(b)
    return where(first, a, c), where(first, b, d)


@define(COMPLEX_BINARY, "fmin")
def cmin(x: C, y: C) -> C:
    (a, b), (c, d) = x, y
    first = ((a < c) | (a.eq(c) & (b < d))) & c.eq(c) & d.eq(d) | a.ne(a) | b.ne(b)
    return where(first, a, c), where(first, b, d)


@define(COMPLEX, "sign")
def csign(x: C) -> C:
    x, _ = _scale_into_range(x)
    m = scaled_abs(x)
    zero = m.eq(0.0)
    d = where(zero, 1.0, m)
    return where(zero, 0.0, x[0] / d), where(zero, 0.0, x[1] / d)
