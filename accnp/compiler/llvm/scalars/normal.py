"""Functions of the normal distribution: erfcx log_ndtr ndtri.

The functions emit LLVM IR. They take a float or double ``V`` and return a ``V`` of the same type;
floats are computed as doubles. The registry makes them available to kernels. `ndtri` uses Wichura's
approximation (AS 241) in the tails. The distribution function itself, `normal_cdf`, is in
`special.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from accnp.compiler.llvm.scalars.exp import exp
from accnp.compiler.llvm.scalars.ir import F32, F64, V, fabs, fma, poly, sqrt, two_prod, where
from accnp.compiler.llvm.scalars.log import log, log1p
from accnp.compiler.llvm.scalars.registry import UNARY, define
from accnp.compiler.llvm.scalars.special import ROOT_HALF

# (1 + 2 a) exp(a^2) erfc(a) in (a - 4) / (a + 4), a >= 0: interpolated at Chebyshev's nodes with
# mpmath; for floats, to 2e-10
ERFCX_ALL_64 = (
    1.2329951186255526, -0.13962111684056228, 0.015379652102619974, 0.06809705425466839,
    -0.10103906603631811, 0.09373283499911264, -0.06633036581186058, 0.037167515526338006,
    -0.01619773406293477, 0.005031970069102256, -0.0007577732435942576, -0.0001992571524726518,
    0.00015062142608651945, -2.4397731143023292e-05, -1.1221135665965907e-05,
    5.70657829924074e-06, 2.9173425573089733e-07, -8.210647933297337e-07, 7.771943241086912e-08,
    1.0631817593818149e-07, -2.0725802488181963e-08, -1.2338731403798444e-08,
    3.2323973445082033e-09, 9.297625263709659e-10, -2.764120233734578e-10,
)  # fmt: skip
ERFCX_ALL_32 = (
    1.2329951186255526, -0.13962111376213265, 0.015379652514656337, 0.06809693885725905,
    -0.1010390813977985, 0.09373409380727189, -0.06633020048068222, 0.037161413362401655,
    -0.016198516244698414, 0.005047344723414027, -0.0007558842570188051,
    -0.00022049658164202712, 0.0001482094691445721, -8.59703641317568e-06,
    -9.714709731988143e-06,
)  # fmt: skip
# (ndtri(1/2 + q) / q - sqrt(2 pi)) / q^2 in 0.180625 - q^2, |q| <= 0.425: a ratio, by weighted
# least squares with mpmath, to 1e-16.
MIDDLE = (
    (4.874765941399952, 187.51428960784963, 2701.743566978996, 18143.290798221908,
     57569.17117906779, 77305.98307431804, 31676.33870443886, 464.0947325508251),
    (1.0, 44.49063433144416, 770.7559019807389, 6590.021879953068, 29133.406412271193,
     63824.43136488229, 60275.91019892802, 17110.33198184532),
)  # fmt: skip
ROOT_TWO_PI = (2.5066282746310007, -1.8328579980459167e-16)
# Ratios for tails: M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal
# Distribution", Applied Statistics 37 (1988); to 1e-16.
TAIL = (
    (1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550,
     3.64784832476320460504, 1.27045825245236838258, 0.241780725177450611770,
     0.0227238449892691845833, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187, 1.67638483018380384940, 0.689767334985100004550,
     0.148103976427480074590, 0.0151986665636164571966, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)  # fmt: skip
FAR = (
    (6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
     0.296560571828504891230, 0.0265321895265761230930, 0.00124266094738807843860,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 0.599832206555887937690, 0.136929880922735805310, 0.0148753612908506148525,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15),
)  # fmt: skip


def _scaled_tail(a: V, single: bool) -> V:
    """Return exp(a^2) erfc(a) of nonnegative doubles."""
    q = where(a < 1e18, (a - 4.0) / (a + 4.0), 1.0)
    d = fma(a, a.const(2.0), 1.0)
    if single:
        return poly(q, ERFCX_ALL_32) / d
    # Correct the quotient for its rounding error and that of the last step of the polynomial.
    first, *rest = ERFCX_ALL_64
    t = poly(q, rest)
    p = fma(q, t, a.const(first))
    g = p / d
    left = fma(-g, d, p) + fma(q, t, first - p)
    return where(d < float("inf"), fma(left, 1.0 / d, g), g)


@define(UNARY)
def erfcx(x: V) -> V:
    """Return exp(x^2) erfc(x)."""
    if x.single:
        return _erfcx(x.to(F64), True).to(F32)
    return _erfcx(x, False)


def _erfcx(x: V, single: bool) -> V:
    right = _scaled_tail(fabs(x), single)
    below = where(x < 0.0, x, 0.0)
    below = where(below < -30.0, -30.0, below)  # there the result is infinite
    s, s_lo = two_prod(below, below)
    e = exp(s) * 2.0
    left = where(e < float("inf"), fma(e, s_lo, e - right), e)
    return where(x < 0.0, left, right)


@define(UNARY)
def log_ndtr(x: V) -> V:
    """Return the logarithm of the normal distribution function. For x < 0, -x^2 / 2 is added to the
    logarithm, since the function itself becomes too small."""
    if x.single:
        return _log_ndtr(x.to(F64), True).to(F32)
    return _log_ndtr(x, False)


def _log_ndtr(x: V, single: bool) -> V:
    a = fabs(x)
    half = _scaled_tail(a * ROOT_HALF, single) * 0.5  # cdf(-|x|) / exp(-x^2 / 2)
    s, s_lo = two_prod(a * 0.5, a)
    s_lo = where(s < float("inf"), s_lo, 0.0)
    law = exp(-s) * half
    low = x < 0.0
    # If `half` is negligible in a sum with 1, its logarithm is negligible in a sum with s.
    y = log1p(where(low, where(half < 2.0**-50, 2.0**-50, half) - 1.0, -fma(law, -s_lo, law)))
    return where(low, (y - s_lo) - s, y)


@define(UNARY)
def ndtri(p: V) -> V:
    """Return the x for which the normal distribution function is p."""
    return _ndtri(p.to(F64)).to(F32) if p.single else _ndtri(p)


def _ratio(x: V, pair: Sequence[Sequence[float]]) -> V:
    return poly(x, pair[0]) / poly(x, pair[1])


def _ndtri(p: V) -> V:
    q = p - 0.5
    near = fabs(q) <= 0.425
    z = where(near, q * q, 0.0)
    rest = fma(z, _ratio(q.const(0.180625) - z, MIDDLE), q.const(ROOT_TWO_PI[1]))
    middle = fma(q, q.const(ROOT_TWO_PI[0]), q * rest)
    least = where(q < 0.0, p, 1.0 - p)
    r = sqrt(-log(where(near | (least <= 0.0), 0.5, least)))
    far = r > 5.0
    y = where(far, _ratio(where(far, r - 5.0, 0.0), FAR), _ratio(where(far, 0.0, r - 1.6), TAIL))
    y = where(near, middle, where(q < 0.0, -y, y))
    inside = (p > 0.0) & (p < 1.0)
    ends = where(p.eq(0.0), -float("inf"), where(p.eq(1.0), float("inf"), p.const(float("nan"))))
    return where(inside, y, ends)
