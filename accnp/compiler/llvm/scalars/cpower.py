"""Powers of complex numbers, in double precision.

The functions emit LLVM IR. They take (real, imaginary) pairs of double ``V`` and return such a
pair; the registry makes them available to kernels. The power z^w is exp(w log z), and the error of
the exponential grows with the size of w log z. Therefore log |z|, the angle and both products are
carried as unevaluated sums of two doubles, to about 2^-64. Numbers that were complex64 need only
doubles (`narrow_pow`).
"""

from __future__ import annotations

from accnp.compiler.llvm.scalars import trig
from accnp.compiler.llvm.scalars.cplx import FIRST_ORDER, C, cexp, clog, mul
from accnp.compiler.llvm.scalars.exp import expm1_poly, scale
from accnp.compiler.llvm.scalars.ir import (
    V,
    clamp,
    copysign,
    fabs,
    fast_two_sum,
    fma,
    nearest,
    poly,
    two_prod,
    two_sum,
    where,
)
from accnp.compiler.llvm.scalars.power import LN2_HI, LN2_LO, log_pair
from accnp.compiler.llvm.scalars.registry import COMPLEX64_BINARY, COMPLEX_BINARY, define

Pair = tuple[V, V]
INF = float("inf")
PI = (3.141592653589793, 1.2246467991473532e-16)
HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
# (t, atan(t) in two pieces) for short numbers t. Each tangent in the first octant is near one of
# them, which BOUNDS selects.
ANGLES = (
    (0.1875, 0.18534794999569476, 4.180692268843079e-18),
    (0.40625, 0.38588266939807375, 2.378822732491941e-17),
    (0.65625, 0.5807563535676704, -1.441464378193067e-17),
    (1.0, 0.7853981633974483, 3.061616997868383e-17),
)
BOUNDS = (0.0935, 0.29, 0.52, 0.81)
# (atan(t) / t - 1 + t^2 / 3) / t^4 in t^2 < 0.011, interpolated at Chebyshev's points with mpmath.
ATAN_SHORT = (
    0.19999999999997953, -0.14285714276408207, 0.11111104336163026, -0.09089180672573369,
    0.07511828034564942,
)  # fmt: skip
THIRD = (-0.3333333333333333, -1.850371707708594e-17)


def _multiply_pair(x: Pair, y: V) -> Pair:
    p, q = two_prod(x[0], y)
    return p, fma(x[1], y, q)


def _add_pairs(x: Pair, y: Pair) -> Pair:
    """Return the sum of two pairs. Its second part is 0 if the sum is not finite."""
    s, r = two_sum(x[0], y[0])
    r = r + (x[1] + y[1])
    return s, where(fabs(s) < INF, r, 0.0)


def _angle(num: V, den: V) -> Pair:
    """Return atan(num / den) for 0 <= num <= den, whose squares are normal numbers."""
    c, base, base_lo = (num.const(0.0) for _ in range(3))
    for bound, (tangent, angle, rest) in zip(BOUNDS, ANGLES, strict=True):
        past = num > den * bound
        c = where(past, tangent, c)
        base, base_lo = where(past, angle, base), where(past, rest, base_lo)
    # t = (num - c den) / (den + c num)
    p, p_lo = two_prod(c, den)
    n, n_lo = two_sum(num, -p)
    n_lo = n_lo - p_lo
    q, q_lo = two_prod(c, num)
    d, d_lo = two_sum(den, q)
    d_lo = d_lo + q_lo
    inverse = 1.0 / d
    t = n * inverse
    t_lo = (fma(-t, d, n) + (n_lo - t * d_lo)) * inverse
    # t + t w (w A(w) - 1/3) with w = t^2, where the factor is a pair
    w, w_lo = two_prod(t, t)
    w_lo = fma(t + t, t_lo, w_lo)
    f, f_lo = fast_two_sum(t.const(THIRD[0]), w * poly(w, ATAN_SHORT))
    f_lo = f_lo + THIRD[1]
    g, g_lo = two_prod(w, f)
    g_lo = g_lo + fma(w, f_lo, w_lo * f)
    h, h_lo = two_prod(t, g)
    h_lo = h_lo + fma(t, g_lo, t_lo * g)
    t, carry = fast_two_sum(t, h)
    s, rest = two_sum(base, t)
    return s, rest + (carry + (t_lo + h_lo) + base_lo)


def _log(x: C) -> tuple[Pair, Pair]:
    """Return log |x| and the angle of x, with the special values of clog."""
    a, b = fabs(x[0]), fabs(x[1])
    infinite = a.eq(INF) | b.eq(INF)
    # Infinity and a finite number have the same angle as 1 and 0.
    a, b = (where(infinite, where(v.eq(INF), 1.0, v * 0.0), v) for v in (a, b))
    none = a.eq(0.0) & b.eq(0.0)
    a = where(none, 1.0, a)
    hi = where(a > b, a, b)
    large, small = hi > 2.0**500, hi < 2.0**-400
    f = where(large, 2.0**-600, where(small, 2.0**600, hi.const(1.0)))
    up = where(large, 600.0, where(small, -600.0, hi.const(0.0)))
    a, b = a * f, b * f
    swap = b > a
    hi, lo = where(swap, b, a), where(swap, a, b)
    p, p_lo = two_prod(hi, hi)
    q, q_lo = two_prod(lo, lo)
    s, r = two_sum(p, q)
    s, r = fast_two_sum(s, r + (p_lo + q_lo))
    size = log_pair(s)
    m, m_lo = fast_two_sum(size[0], size[1] + r / s)
    m, m_lo = _add_pairs(
        (m * 0.5, m_lo * 0.5), _multiply_pair((up.const(LN2_HI), up.const(LN2_LO)), up)
    )
    t, t_lo = _angle(lo, hi)
    u, u_lo = _add_pairs((t.const(HALF_PI[0]), t.const(HALF_PI[1])), (-t, -t_lo))
    t, t_lo = where(swap, u, t), where(swap, u_lo, t_lo)
    left = copysign(x[0].const(1.0), x[0]) < 0.0
    u, u_lo = _add_pairs((t.const(PI[0]), t.const(PI[1])), (-t, -t_lo))
    t, t_lo = where(left, u, t), where(left, u_lo, t_lo)
    sign = copysign(t.const(1.0), x[1])
    m = where(none, -INF, where(infinite, INF, m))
    m_lo = where(none | infinite, 0.0, m_lo)
    return (m, m_lo), (t * sign, t_lo * sign)


def _exp(re: Pair, im: Pair) -> C:
    """Return exp(re + i im) of finite numbers. Its parts are rounded once, at the end, and do not
    overflow before that."""
    hi = clamp(re[0], -1400.0, 1400.0)
    t, n = nearest(hi * 1.4426950408889634)
    r, r_lo = fast_two_sum(fma(t, hi.const(-LN2_HI), hi), fma(t, hi.const(-LN2_LO), re[1]))
    e = expm1_poly(r)
    e = fma(r_lo, e + 1.0, e) + 1.0
    s, c = trig.sin(im[0]), trig.cos(im[0])
    rest = where(fabs(im[0]) < FIRST_ORDER, im[1], 0.0)
    real, imaginary = fma(-s, rest, c), fma(c, rest, s)
    return scale(e * real, n), scale(e * imaginary, n)


@define(COMPLEX64_BINARY, "pow")
def narrow_pow(x: C, y: C) -> C:
    """Return x^y of numbers that were complex64."""
    m, t = clog(x)
    real = y[1].eq(0.0)
    re, im = mul(y, (m, t))
    return _edges(x, y, cexp((where(real, y[0] * m, re), where(real, y[0] * t, im))))


@define(COMPLEX_BINARY, "pow")
def cpow(x: C, y: C) -> C:
    size, angle = _log(x)
    # For a real exponent, its imaginary part 0 is not multiplied by an infinite logarithm.
    real = y[1].eq(0.0)
    grown = [where(real, 0.0, part) for part in _multiply_pair(size, y[1])]
    turned = [where(real, 0.0, part) for part in _multiply_pair((-angle[0], -angle[1]), y[1])]
    re = _add_pairs(_multiply_pair(size, y[0]), (turned[0], turned[1]))
    im = _add_pairs(_multiply_pair(angle, y[0]), (grown[0], grown[1]))
    z = _exp(re, im)
    other = cexp((re[0], im[0]))
    plain = (fabs(re[0]) < INF) & (fabs(im[0]) < INF)
    return _edges(x, y, (where(plain, z[0], other[0]), where(plain, z[1], other[1])))


def _edges(x: C, y: C, z: C) -> C:
    """Return z = x^y with its special values: 1 if y is 0; if x is 0, then 0 or, as in NumPy and
    JAX, NaN."""
    zero = x[0].eq(0.0) & x[1].eq(0.0)
    none = y[0].eq(0.0) & y[1].eq(0.0)
    of_zero = where(y[0] > 0.0, 0.0, x[0].const(float("nan")))
    re, im = (where(zero, of_zero, part) for part in z)
    return where(none, 1.0, re), where(none, 0.0, im)
