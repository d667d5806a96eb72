"""Exponential and hyperbolic functions.

The functions exp, exp_difference, exp2, expm1, logistic, silu, mish, tanh_cdf, tanh_gelu, tanh,
sinh and cosh emit LLVM IR. They take a float or double ``V`` (`exp_difference` takes two) and
return a ``V`` of the same type, without branches or library calls. On a GPU, most of those of
float32 use the approximate units (`units.py`). The registry makes them available to kernels.
`power.py`, `special.py` and `cpower.py` use the argument reduction and the scaling as well.
"""

from __future__ import annotations

from accnp.compiler.llvm.scalars import coefs as k
from accnp.compiler.llvm.scalars import units
from accnp.compiler.llvm.scalars.forms import piece, scalef, scales
from accnp.compiler.llvm.scalars.ir import (
    MANT,
    V,
    bits,
    clamp,
    clamp_above,
    copysign,
    fabs,
    fma,
    int_to_float,
    nearest,
    poly,
    pow2,
    two_prod,
    two_sum,
    unbits,
    where,
)
from accnp.compiler.llvm.scalars.registry import BINARY, UNARY, define
from accnp.compiler.llvm.scalars.tables import TANH_32

LOG2E = 1.4426950408889634
# ln 2 in two pieces of the working precision, so that two fma reduce the argument
LN2_32 = (0.693147182464599609375, -1.904654323148236e-09)
LN2_64 = (0.6931471805599453, 2.3190468138462996e-17)


def reduce_exp(x: V) -> tuple[V, V]:
    """Return (r, n) with x = n ln 2 + r and |r| <= ln 2 / 2, where n is an integer."""
    hi, lo = LN2_32 if x.single else LN2_64
    t, n = nearest(x * LOG2E)
    return fma(t, -lo, fma(t, -hi, x)), n


def expm1_poly(r: V) -> V:
    """Return exp(r) - 1 of a reduced argument."""
    return fma(r * r, poly(r, k.EXP_32 if r.single else k.EXP_64), r)


def scale(y: V, n: V) -> V:
    """Return y * 2^n, rounded once, also if 2^n itself is not a normal number."""
    if scales(y):
        return scalef(y, int_to_float(n))
    h = n >> 1
    return y * pow2(h) * pow2(n - h)


# Adding 1.5 * 2^mantissa rounds to an integer n. With twice the exponent bias added as well, the
# low bits hold n + 2 * bias. Each half of that, shifted into the exponent field, is a power of two.
ROUND = {True: 1.5 * 2.0**23 + 254.0, False: 1.5 * 2.0**52 + 2046.0}
# (exp(r) - 1 - r) / r^2, interpolated at Chebyshev's nodes of |r| <= ln 2 / 2
EXP_SHORT_32 = (
    0.5,
    0.16666576266288757,
    0.041666556149721146,
    0.008363177999854088,
    0.0013926181709393859,
)


# The range in which exp is neither 0 nor infinite, with a small margin
RANGE = {True: (-105.0, 90.0), False: (-747.0, 712.0)}


def exp_halved(x: V, shift: int = 0) -> V:
    """Return exp(x) * 2^-shift, without overflow before the last step."""
    return _scale_by_exponent(*_exp_parts(clamp(x, *RANGE[x.single])), shift)


def _exp_parts(x: V) -> tuple[V, V]:
    """Return y and t with exp(x) = y 2^(t - ROUND)."""
    hi, lo = LN2_32 if x.single else LN2_64
    t = fma(x, x.const(LOG2E), ROUND[x.single])
    n = t - ROUND[x.single]
    r = fma(n, -lo, fma(n, -hi, x))
    return fma(r * r, poly(r, EXP_SHORT_32 if x.single else k.EXP_64), r) + 1.0, t


def _scale_by_exponent(y: V, t: V, shift: int = 0) -> V:
    """Return y 2^(t - ROUND - shift)."""
    if scales(y):
        n = t - ROUND[y.single]
        return scalef(y, n - shift if shift else n)
    b = bits(t) - shift if shift else bits(t)
    h = b >> 1
    return y * unbits(h << MANT[y.single]) * unbits((b - h) << MANT[y.single])


@define(UNARY)
def exp(x: V) -> V:
    return units.exp(x) if units.has_units(x) else exp_halved(x)


@define(BINARY)
def exp_difference(x: V, top: V) -> V:
    """Return exp(x - top) for x <= top, corrected for the rounding error of the difference."""
    d, low = two_sum(x, -top)
    lowest, _ = RANGE[x.single]
    y = (
        units.exp(d)
        if units.has_units(d)
        else _scale_by_exponent(*_exp_parts(where(d < lowest, lowest, d)))
    )
    # If x is infinite, `low` is NaN. Then y is 0, and any number can replace `low`.
    return fma(y, where(low < 1.0, low, 1.0), y)


@define(UNARY)
def exp2(x: V) -> V:
    x = clamp(x, -152.0, 129.0) if x.single else clamp(x, -1076.0, 1025.0)
    t, n = nearest(x)
    r = x - t
    return scale(fma(r, poly(r, k.EXP2_32 if x.single else k.EXP2_64), x.const(1.0)), n)


@define(UNARY)
def expm1(x: V) -> V:
    c = clamp(x, -20.0, 89.0) if x.single else clamp(x, -40.0, 710.0)
    hi, lo = LN2_32 if x.single else LN2_64
    t, n = nearest(c * LOG2E)
    # the reduced argument in two pieces: the first difference is exact
    h, low = fma(t, -hi, c), t * -lo
    r = h + low
    r_lo = (h - r) + low
    tail = fma(r * r, poly(r, k.EXP_32 if x.single else k.EXP_64), r_lo)
    # 2^(n-1) stays finite where 2^n overflows; the last doubling is exact or infinite.
    s = pow2(n - 1)
    y = fma(s, tail, fma(s, r, s - 0.5))
    return copysign(y + y, x)


@define(UNARY)
def logistic(x: V) -> V:
    e = exp_halved(-fabs(x))
    n = where(x < 0.0, e, 1.0)
    d = e + 1.0
    r = units.reciprocal(d)
    y = n * r
    # Add the remainder of the division, and the rounding error of the sum 1 + e.
    return fma(fma(-y, d, n) - y * (e - (d - 1.0)), r, y)


@define(UNARY)
def silu(x: V) -> V:
    """Return x / (1 + exp(-x)).

    The quotient 1 / (1 + exp(-x)) could be subnormal before its product with x. Therefore, the
    numerator and the denominator are multiplied by 2^-shift, so that exp(-x) is infinite only if
    the result is 0.
    """
    lowest, highest, shift = (-105.0, 120.0, 32) if x.single else (-747.0, 760.0, 64)
    s = 2.0**-shift
    if units.has_units(x):
        e = units.exp(-x, shift)
    else:
        e = _scale_by_exponent(*_exp_parts(clamp(-x, lowest, highest)), shift)
    low = x < -1.0
    n, d = where(low, x * s, s), e + s
    return (units.reciprocal(d) * n if units.has_units(d) else n / d) * where(low, 1.0, x)


@define(UNARY)
def mish(x: V) -> V:
    """Return x tanh(log(1 + exp(x))) = x n / (n + 2), where n = exp(x) (exp(x) + 2).

    The numerator and the denominator are multiplied by 2^shift, so that no factor is subnormal.
    """
    lowest, shift = (-115.0, 40) if x.single else (-760.0, 80)
    c = clamp(x, lowest, 20.0)  # from 20 on, the result is x
    e = _scale_by_exponent(*_exp_parts(c), -shift)
    n = fma(e, e * 2.0**-shift, e + e)
    d = n + 2.0 ** (shift + 1)
    r = units.reciprocal(d)
    p, p_lo = two_prod(c, n)
    y = p * r
    y = fma(fma(-y, d, p) + p_lo, r, y)
    # The product of minus infinity and 0 is NaN, and so is the result.
    return where(x > 20.0, x, copysign(fma(x, 0.0, y), x))


# 2 u = RATE x (x^2 + K), where u = sqrt(2 / pi) (x + 0.044715 x^3). CUBE is K, and STEP is
# ln 2 / RATE. Each is a short number and the rest, so that a difference from K and a product with
# an exponent are exact.
RATE = 0.07135481627260025
CUBE_32 = (22.363861083984375, -1.081748e-06)
CUBE_64 = (22.36386000223638, 7.068084733670861e-15)
STEP_32 = (9.714111328125, -2.0300102e-05)
STEP_64 = (9.714091028028633, -4.9373498940974755e-12)


@define(UNARY)
def tanh_cdf(x: V) -> V:
    """Return (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)). For negative u, the relative error of the
    result is up to 2 |u| times that of u."""
    return _tanh_cdf(x, x.const(1.0))


@define(UNARY)
def tanh_gelu(x: V) -> V:
    """Return x tanh_cdf(x). The product is formed before tanh_cdf itself would become
    subnormal."""
    least, low = -11.0 if x.single else -22.0, x < -1.0
    # Below -1, x is a factor of the numerator. Elsewhere x may be tiny, and multiplies the
    # quotient.
    y = _tanh_cdf(x, where(low, where(x < least, least, x), 1.0)) * where(low, 1.0, x)
    # The product of minus infinity and 0 is NaN, and so is the result.
    return where(x > 8.0, x, fma(x, x.const(0.0), y))


def _tanh_cdf(x: V, times: V) -> V:
    single = x.single
    x = clamp(x, -11.0, 8.0) if single else clamp(x, -22.0, 8.0)
    (hi, lo), (step, step_lo) = (CUBE_32, STEP_32) if single else (CUBE_64, STEP_64)
    w = fma(x, x, hi)
    w_lo = fma(x, x, hi - w) + lo
    t = fma(x * w, x.const(-RATE * LOG2E), ROUND[single])
    n = t - ROUND[single]
    g = fma(n, step_lo, fma(x, w, n * step))
    g = fma(x, w_lo, g)
    # exp(-RATE g) times 2^-shift, since exp(-2 u) itself may overflow if the result is not 0
    if units.has_units(x):
        power = unbits((bits(t) - (127 + 40)) << MANT[True])  # t contains the bias twice
        return units.reciprocal(units.ex2(g * (-RATE * LOG2E)) * power + 2.0**-40) * (
            times * 2.0**-40
        )
    shift = 24 if single else 64
    series = (1.0, *(EXP_SHORT_32 if single else k.EXP_64))
    y = fma(g, poly(g, [c * (-RATE) ** (i + 1) for i, c in enumerate(series)]), x.const(1.0))
    e = _scale_by_exponent(y, t, shift)
    return times * 2.0**-shift / (e + 2.0**-shift)


def _tanh_pieces(a: V) -> V:
    d, rows = piece(a, TANH_32)
    # In the first interval, the polynomial is tanh(a) / a - 1, and its product is added to a.
    return fma(d, poly(d, rows[1:]), where(rows[0] > d, rows[0], d))


@define(UNARY)
def tanh(x: V) -> V:
    a = fabs(x)
    if x.single:
        return copysign(_tanh_pieces(clamp_above(a, 9.02)), x)
    z = x * x
    small = fma(z * x, poly(z, k.TANH_64), x)
    e = exp_halved(clamp(a + a, 0.0, 60.0))
    return copysign(where(a < 0.625, small, 1.0 - 2.0 / (e + 1.0)), x)


@define(UNARY)
def sinh(x: V) -> V:
    a = fabs(x)
    z = x * x
    small = fma(z * x, poly(z, k.SINH_32 if x.single else k.SINH_64), x)
    e = exp_halved(a, 1)
    return where(
        a < 1.0,
        small,
        copysign(e - (units.reciprocal(e) * 0.25 if units.has_units(e) else 0.25 / e), x),
    )


@define(UNARY)
def cosh(x: V) -> V:
    e = exp_halved(fabs(x), 1)
    return e + (units.reciprocal(e) * 0.25 if units.has_units(e) else 0.25 / e)
