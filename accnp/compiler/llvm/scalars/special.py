"""Error functions and the gamma family.

The functions erf, erfc, normal_cdf, normal_gelu, erf_inv, lgamma, digamma and
`digamma_difference` emit LLVM IR. They take a float or double ``V`` (`digamma_difference` takes
two) and return a ``V`` of the same type, without branches or library calls. The registry makes
them available to kernels. The error functions of float32 are piecewise polynomials (`tables.py`),
and the other functions of float32 are computed as doubles. `normal.py` and `zeta.py` use parts of
this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from accnp.compiler.llvm.scalars import coefs as k
from accnp.compiler.llvm.scalars.exp import (
    EXP_SHORT_32,
    LN2_32,
    LOG2E,
    exp,
    expm1_poly,
    reduce_exp,
    scale,
)
from accnp.compiler.llvm.scalars.forms import lookup, piece, scalef, scales
from accnp.compiler.llvm.scalars.ir import (
    F32,
    F64,
    MAGIC,
    MAGIC_BITS,
    V,
    bits,
    clamp,
    clamp_above,
    copysign,
    fabs,
    fast_two_sum,
    floor,
    fma,
    isnan,
    poly,
    rint,
    sqrt,
    two_prod,
    two_sum,
    where,
)
from accnp.compiler.llvm.scalars.log import log, log1p
from accnp.compiler.llvm.scalars.power import log_pair
from accnp.compiler.llvm.scalars.registry import BINARY, UNARY, define
from accnp.compiler.llvm.scalars.tables import ERF_32, ERFCX_32, NORMAL_32
from accnp.compiler.llvm.scalars.trig import cos, sin

ROOT_PI_HALF, ROOT_HALF = 0.886226925452758, 0.7071067811865476


def _erfc_tail(a: V) -> V:
    """Return erfc(a) of doubles for a >= 0.4."""
    a = clamp(a, 0.4, 27.5)
    return _gauss_tail(a, *two_prod(a, a))


def _gauss_tail(a: V, s: V, s_lo: V, times: V | float = 1.0) -> V:
    """Return times exp(-s - s_lo) exp(a^2) erfc(a) of doubles for 0.4 <= a <= 27.5. The last factor
    is a power of two, and only the last product may be subnormal."""
    q = (a - 4.0) / (a + 4.0)
    c = k.ERFCX_64
    t = poly(q, c[1:])
    p = fma(q, t, c[0])
    p_lo = fma(q, t, c[0] - p)
    # p / (1 + 2 a) with the remainder
    d, d_lo = two_sum(a + a, a.const(1.0))
    r = 1.0 / d
    g = p * r
    g_lo = (fma(-g, d, p) + p_lo - g * d_lo) * r
    # exp(-s - s_lo) to first order in the correction
    r, n = reduce_exp(-s)
    m = expm1_poly(r)
    m = fma(-s_lo, m + 1.0, m)
    e = m + 1.0
    e_lo = m - (e - 1.0)
    return scale(fma(e, g, fma(e, g_lo, e_lo * g)) * times, n)


def _erf_small(x: V) -> V:
    """Return erf(x) of doubles for |x| < 1."""
    return fma(x, poly(x * x, k.ERF_64), x)


STEP = 0.2549936771392822  # chosen so that erf of its first multiples is close to floats


def _erf_pieces(a: V) -> V:
    """Return erf of nonnegative floats."""
    a = clamp_above(a, 3.952147)  # from there on, erf is 1
    t = fma(a, a.const(1 / STEP), MAGIC[True])
    d = fma(t - MAGIC[True], a.const(-STEP), a)
    first, *rows = [lookup(row, bits(t)) for row in ERF_32]
    # In the first interval, the polynomial is erf(a) / a - 1, and its product is added to a.
    return fma(d, poly(d, rows), where(first > d, first, d))


def _tail_pieces(
    a: V, s: V, s_lo: V, table: Sequence[Sequence[float]], times: V | float = 1.0
) -> V:
    """Return times exp(-s - s_lo) times a piecewise polynomial, of nonnegative floats; see
    `_gauss_tail`."""
    d, rows = piece(a, table)
    p = poly(d, rows)
    t = fma(s, s.const(-LOG2E), MAGIC[True])
    n = t - MAGIC[True]
    hi, lo = LN2_32
    r = fma(n, s.const(-hi), -s) + fma(n, s.const(-lo), -s_lo)
    m = fma(r * r, poly(r, EXP_SHORT_32), r)
    y = fma(p, m, p) * times
    return scalef(y, n) if scales(y) else scale(y, bits(t) - MAGIC_BITS[True])


@define(UNARY)
def erf(x: V) -> V:
    a = fabs(x)
    if x.single:
        return copysign(_erf_pieces(a), x)
    return copysign(where(a < 1.0, _erf_small(a), 1.0 - _erfc_tail(a)), x)


@define(UNARY)
def erfc(x: V) -> V:
    a = fabs(x)
    if x.single:
        a = clamp_above(a, 10.5)
        y = _tail_pieces(a, *two_prod(a, a), ERFCX_32)
        return where(x < 0.0, 2.0 - y, y)
    tail = _erfc_tail(a)
    return where(a < 0.45, 1.0 - _erf_small(x), where(x < 0.0, 2.0 - tail, tail))


@define(UNARY)
def normal_cdf(x: V) -> V:
    """Return erfc(-x / sqrt(2)) / 2, computed from the square of x itself: the relative error of
    x / sqrt(2) would be multiplied by x^2."""
    a = clamp_above(fabs(x), 14.5 if x.single else 38.8)
    y = _normal_tail(a, a.const(1.0))
    y = where(x > 0.0, 1.0 - y, y)
    return y if x.single else where(a < NEAR, _normal_near(x, a), y)


@define(UNARY)
def normal_gelu(x: V) -> V:
    """Return x normal_cdf(x) = max(x, 0) - |x| normal_cdf(-|x|). The product is formed before
    normal_cdf itself would become subnormal."""
    a = clamp_above(fabs(x), 14.5 if x.single else 38.8)
    # The product of minus infinity and 0 is NaN, and so is the result.
    y = where(x > 0.0, x, x * 0.0) - _normal_tail(a, a)
    return y if x.single else where(a < NEAR, _normal_near(x, a) * x, y)


NEAR = 0.6363961030678927  # below this, normal_cdf of doubles is computed from erf


def _normal_near(x: V, a: V) -> V:
    half = copysign(a.const(0.5), x)
    return fma(_erf_small(clamp_above(a * ROOT_HALF, 0.5)), half, a.const(0.5))


def _normal_tail(a: V, times: V) -> V:
    """Return `times` normal_cdf(-a)."""
    s, s_lo = two_prod(a * 0.5, a)
    if a.single:
        return _tail_pieces(a, s, s_lo, NORMAL_32, times)
    return _gauss_tail(clamp(a * ROOT_HALF, 0.4, 27.5), s, s_lo, times * 0.5)


@define(UNARY)
def erf_inv(x: V) -> V:
    if x.single:
        w = x.to(F64)
        return _erf_inv_edges(w, _erf_inv_guess(w)).to(F32)
    a = fabs(x)
    y = _erf_inv_guess(a)
    # one Halley step on erf, or on erfc where erf is flat
    low = a < 0.6
    d = where(low, _erf_small(y) - a, (1.0 - a) - _erfc_tail(y))
    u = d * ROOT_PI_HALF * exp(y * y)
    y = y - u / fma(y, u, 1.0)
    return _erf_inv_edges(x, copysign(y, x))


def _erf_inv_edges(x: V, y: V) -> V:
    a = fabs(x)
    y = where(x.eq(0.0), x, y)
    return where(a < 1.0, y, where(a.eq(1.0), x * float("inf"), float("nan")))


def _erf_inv_guess(x: V) -> V:
    """Return erf_inv of doubles, to about 1e-10."""
    w = -log((1.0 - x) * (x + 1.0))
    low = w < 6.25
    near = poly(where(low, w, 0.0) - 3.125, k.ERFINV_64)
    far = poly(sqrt(where(low, 16.0, w)) - 4.0, k.ERFINVT_64)
    return x * where(low, near, far)


def _sin_pi(x: V) -> tuple[V, V]:
    """Return (sin(pi f), cos(pi f)), where f is x minus the nearest integer."""
    f = x - floor(x + 0.5)
    return sin(f * 3.141592653589793), cos(f * 3.141592653589793)


STIRLING = (
    0.08333333333333333, -0.002777777777777778, 0.0007936507936507937, -0.0005952380952380953,
    0.0008417508417508417, -0.0019175269175269176, 0.00641025641025641, -0.029550653594771242,
)  # fmt: skip
# (sin(pi f) / (pi f) - 1) / f^2 in f^2 <= 1/4: interpolated at Chebyshev's points with mpmath.
SIN_PI_64 = (
    -1.6449340668482264, 0.8117424252833536, -0.19075182412208389, 0.026147847817640922,
    -0.0023460810351701666, 0.00014842878972769574, -6.975851212075427e-06, 2.530327454902365e-07,
    -7.114052630542553e-09,
)  # fmt: skip
Pair = tuple[V, V]
BERNOULLI = (
    0.08333333333333333, -0.008333333333333333, 0.003968253968253968, -0.004166666666666667,
    0.007575757575757576, -0.021092796092796094, 0.08333333333333333,
)  # fmt: skip
# digamma(x) / (x - root) in powers of x - 3/2, for 1 <= x <= 2, root (in two pieces) the positive
# one: interpolated at Chebyshev's points with mpmath, to 1e-16.
DIGAMMA_ROOT = (1.4616321449683622, 9.549995429965697e-17)
DIGAMMA_64 = (
    0.9510558760318328, -0.4236274212814573, 0.24054248424078478, -0.14840492305485808,
    0.09498872445354183, -0.06192213319072707, 0.0407608338843387, -0.026975800029253667,
    0.017907250563619775, -0.011908146513976738, 0.007926972735646359, -0.005280903066090605,
    0.0035187504361950134, -0.002337552647103118, 0.0015580749137213761, -0.0010776863967234226,
    0.0007184107969046378, -0.00035476352053371977, 0.00023650171719339814,
    -0.0003783907897248858, 0.0002522590506964885,
)  # fmt: skip


def _sin_pi_share(x: V) -> Pair:
    """Return |sin(pi x)| / pi as a pair."""
    f = fabs(x - rint(x))
    z = f * f
    s, s_lo = fast_two_sum(x.const(1.0), z * poly(z, SIN_PI_64))
    w, w_lo = two_prod(f, s)
    return w, fma(f, s_lo, w_lo)


@define(UNARY)
def lgamma(x: V) -> V:
    """Return log |gamma(x)|. Next to its zeros at negative arguments, the error is a fraction of
    2^-52."""
    if x.single:
        return _lgamma(x.to(F64), lambda a: (log(a), a.const(0.0))).to(F32)
    return _lgamma(x, log_pair)


def _lgamma(x: V, logarithm: Callable[[V], Pair]) -> V:
    """Return log |gamma(x)|. For x < 0, it is -(log gamma(|x|) + log(|x| |sin(pi x)| / pi)), whose
    terms nearly cancel, so they are pairs."""
    left, a = x < 0.0, fabs(x)
    low = a < 8.0
    u = where(low, a, 2.0)
    below = u < 1.0
    # Shift into [1, 2.5] by factors (by one up from below 1): only positive terms are added.
    p, p_lo = where(below.cmp("==", left), 1.0, a), x.const(0.0)
    for _ in range(6):
        more = u > 2.5
        u = where(more, u - 1.0, u)
        p, p_lo = _multiply_pairs(p, p_lo, where(more, u, 1.0), x.const(0.0))
    u = where(below, u + 1.0, u)
    # Below 1, the zeros are computed from the argument itself, without the rounding error of x + 1.
    zeros = where(below, a * (a - 1.0), (u - 1.0) * (u - 2.0))
    near = zeros * poly(u - 1.75, k.LGAMMA_64)
    y = where(low, 8.0, a)
    far, far_lo = stirling(y, logarithm)
    wave, wave_lo = _sin_pi_share(x)
    p, p_lo = _multiply_pairs(p, p_lo, where(left, wave, 1.0), where(left, wave_lo, 0.0))
    t, t_lo = logarithm(p)
    t_lo = t_lo + p_lo / p
    down = below & (x > 0.0)
    t, t_lo = where(down, -t, t), where(down, -t_lo, t_lo)
    s, rest = two_sum(where(low, near, far), t)
    y = where(fabs(s) < float("inf"), s + (rest + (where(low, 0.0, far_lo) + t_lo)), s)
    y = where(left, -y, y)
    pole = (x <= 0.0) & floor(x).eq(x)
    y = where(pole | a.eq(float("inf")), float("inf"), y)
    return where(isnan(x), x, y)


def stirling(y: V, logarithm: Callable[[V], Pair]) -> Pair:
    """Return log gamma(y) for y >= 8 as a pair. The second number is less than 1, but not as small
    as a rounding error."""
    r = 1.0 / y
    h, h_lo = logarithm(y)
    h, carry = fast_two_sum(h, y.const(-1.0))
    far, far_lo = two_prod(y - 0.5, h)
    return far, fma(y - 0.5, carry + h_lo, far_lo) + fma(
        r, poly(r * r, STIRLING), 0.41893853320467274
    )


def _multiply_pairs(p: V, p_lo: V, q: V, q_lo: V) -> Pair:
    r, r_lo = two_prod(p, q)
    return r, fma(p_lo, q, fma(p, q_lo, r_lo))


@define(UNARY)
def digamma(x: V) -> V:
    """Return the derivative of lgamma. Near its zeros at negative arguments, only the absolute
    error is small."""
    if x.single:
        return digamma(x.to(F64)).to(F32)
    left = x < 0.0
    y = where(left, 1.0 - x, x)
    # Shift into [1, 2]. Steps down add only positive terms to the smallest value, and the step up
    # from below 1 adds two negative numbers.
    low = y < 10.0
    u = where(low, y, 1.5)
    below = u < 1.0
    num, den = where(below, x.const(-1.0), 0.0), where(below, u, 1.0)
    u = where(below, u + 1.0, u)
    for _ in range(8):
        more = u > 2.0
        u = where(more, u - 1.0, u)
        num = where(more, fma(num, u, den), num)
        den = where(more, den * u, den)
    off = (u - DIGAMMA_ROOT[0]) - DIGAMMA_ROOT[1]
    near = fma(off, poly(u - 1.5, DIGAMMA_64), num / den)
    y = where(low, 10.0, y)
    r = 1.0 / y
    z = r * r
    far = log(y) - fma(z, poly(z, BERNOULLI), r * 0.5)
    right = where(low, near, far)
    s, c = _sin_pi(x)
    y = where(left, right - 3.141592653589793 * c / s, right)
    y = where(left & floor(x).eq(x), float("nan"), y)
    y = where(x.eq(0.0), -copysign(x.const(float("inf")), x), y)
    return where(x.eq(float("inf")), x, y)


@define(BINARY)
def digamma_difference(x: V, h: V) -> V:
    """Return digamma(x + h) - digamma(x). For positive numbers, only positive terms are added."""
    if x.single:
        return digamma_difference(x.to(F64), h.to(F64)).to(F32)
    positive = (x > 0.0) & (x + h > 0.0)
    y, steps = where(positive, x, 10.0), x.const(0.0)
    for _ in range(10):
        more = y < 10.0
        steps = where(more, steps + h / (y * (y + h)), steps)
        y = where(more, y + 1.0, y)
    # A difference of powers of r^2 and q^2 is r^2 - q^2 times a sum.
    r, q = 1.0 / y, 1.0 / (y + h)
    u, v, power = r * r, q * q, q * q
    between, tail = x.const(1.0), x.const(BERNOULLI[0])
    for c in BERNOULLI[1:]:
        between = fma(u, between, power)
        power = power * v
        tail = fma(between, x.const(c), tail)
    rise = log1p(h * r) + h * r * q * fma(r + q, tail, x.const(0.5)) + steps
    return where(positive, rise, digamma(x + h) - digamma(x))
