"""Functions of float32 that have a separate implementation for GPUs.

The functions exp2, log, log2, log10, log1p, rsqrt, tanh and erf emit LLVM IR. They take a float
``V`` of a module for a GPU and return a ``V``. A GPU has a unit for powers of two, but no
instruction that looks up a coefficient for each lane, as the implementations for CPUs do. Both are
within 2 ulp of the exact value, so their results may differ; float64 has one implementation for
both. `intrinsics/scalars.py` selects functions from `GPU`. Functions that consist of exp and
quotients use the units through `units.py`, and are not here.
"""

from __future__ import annotations

from collections.abc import Callable

from accnp.compiler.llvm.scalars.ir import (
    MAGIC,
    MAGIC_BITS,
    V,
    bits,
    copysign,
    fabs,
    fma,
    poly,
    unbits,
    where,
)
from accnp.compiler.llvm.scalars.log import LOG2E_32, LOG10_2_32
from accnp.compiler.llvm.scalars.units import approximate, ex2, exp2, lg2, rcp

__all__ = ["GPU"]

INF = float("inf")
LN2 = 0.6931471824645996
# log10(e) in two pieces of the same sign, so that the products with infinity have the same sign
LOG10E = (0.4342944622039795, 1.9699271547324315e-08)
# (log1p(f) - f) / f^2 in f, sqrt(1/2) <= 1 + f <= sqrt(2)
LOG = (
    -0.4999999,
    0.33333948,
    -0.25001785,
    0.19962156,
    -0.16570048,
    0.1491682,
    -0.14309664,
    0.087400086,
)
# (tanh x - x) / x^3 in x^2, |x| <= 1
TANH = (
    -0.33333296,
    0.13332348,
    -0.053879987,
    0.021487176,
    -0.007946845,
    0.0023018846,
    -0.0003585959,
)
# erf(x) / x - 1 in x^2, and log2(erfc(x)) in x, which meet at ERF_ENDS. The last coefficient is
# negative, so that erfc is 0 for large x.
ERF_ENDS = 0.95
ERF = (0.12837914, -0.3761241, 0.112810135, -0.026739476, 0.004955833, -0.00058112323)
ERFC = (-0.0031678279, -1.614481, -0.9410568, -0.12995733, 0.021990087, -0.0017436993)


def _fraction(f: V) -> V:
    """Return log(1 + f)."""
    return fma(f * f, poly(f, LOG), f)


def _log_parts(x: V) -> tuple[V, V]:
    """Return (log(m), t) with x = 2^t m and m from about sqrt(1/2) to sqrt(2). If x is not positive
    and finite, t is its logarithm, and log(m) has any value."""
    tiny = x < 2.0**-126
    n = where(tiny, x * 2.0**25, x)
    s = lg2(n) + MAGIC[True]
    m = unbits(bits(n) - (bits(s) << 23))
    return _fraction(m - 1.0), s - where(tiny, x.const(MAGIC[True] + 25), MAGIC[True])


def log(x: V) -> V:
    h, t = _log_parts(x)
    return fma(t, x.const(LN2), h)


def log2(x: V) -> V:
    h, t = _log_parts(x)
    hi, lo = LOG2E_32
    return fma(h, x.const(hi), fma(h, x.const(lo), t))


def log10(x: V) -> V:
    h, t = _log_parts(x)
    (hi, lo), (two, two_lo) = LOG10E, LOG10_2_32
    y = fma(h, x.const(hi), h * lo)
    return fma(t, x.const(two), fma(t, x.const(two_lo), y))


def log1p(x: V) -> V:
    e = (bits(x + 1.0) - 0x3F3504F3) & -0x800000  # relative to sqrt(1/2)
    # 2^-e x + (2^-e - 1). The first term is x with another exponent; e is 0 if x is small.
    unity = unbits(0x40800000 - e) * 0.25 - 1.0  # 2^-128 is not normal
    y = _fraction(unbits(bits(x) - e) + unity)
    y = fma(unbits((e >> 23) + MAGIC_BITS[True]) - MAGIC[True], x.const(LN2), y)
    y = where(x < INF, y, x)
    y = where(x < -1.0, float("nan"), y)
    return copysign(where(x.eq(-1.0), -INF, y), x)


def tanh(x: V) -> V:
    a, z = fabs(x), x * x
    near = fma(z * poly(z, TANH), x, x)
    far = fma(rcp(ex2(a * (2 * 1.4426950408889634)) + 1.0), x.const(-2.0), 1.0)
    return copysign(where(a > 1.0, far, near), x)  # the sum loses the sign of -0


def erf(x: V) -> V:
    a, z = fabs(x), x * x
    near = fma(poly(z, ERF), x, x)
    far = 1.0 - ex2(poly(a, ERFC))
    return copysign(where(a > ERF_ENDS, far, near), x)


GPU: dict[str, Callable[[V], V]] = {
    "exp2": exp2,
    "log": log,
    "log2": log2,
    "log10": log10,
    "log1p": log1p,
    "rsqrt": approximate("rsqrt.approx"),
    "tanh": tanh,
    "erf": erf,
}
