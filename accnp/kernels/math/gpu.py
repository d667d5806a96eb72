"""Functions of float32 that GPUs compute in a way of their own: exp log tanh erf.

In: a float ``V`` of a module for a GPU. Out: a ``V``. A GPU has a unit for powers of two, and no
instruction that looks up a coefficient for each lane, as the forms for processors do. Both forms
are within 2 ulp of the right number, and so may differ; float64 has one form for both.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from .approximate import ex2, rcp
from .ir import F32, MAGIC, MAGIC_BITS, V, bits, copysign, fabs, fma, on_gpu, poly, unbits, where

__all__ = ["GPU", "own"]

INF = float("inf")
# log2(e) in two pieces, and the exponents of normal numbers, of which exp takes 2^n
LOG2E_32 = (1.4426950216293335, 1.925963033500011e-08)
LOWEST, HIGHEST = -126, 127
LN2 = 0.6931471824645996
# (log1p(f) - f) / f^2 in f, |f| <= 1/3
LOG = (
    -0.49999937,
    0.333332,
    -0.25007749,
    0.20011073,
    -0.1641703,
    0.13997135,
    -0.153836,
    0.14020579,
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
# erf(x) / x - 1 in x^2, and log2(erfc(x)) in x, which meet here. The last coefficient is negative:
# far out, erfc is 0.
ERF_ENDS = 0.95
ERF = (0.12837914, -0.3761241, 0.112810135, -0.026739476, 0.004955833, -0.00058112323)
ERFC = (-0.0031678279, -1.614481, -0.9410568, -0.12995733, 0.021990087, -0.0017436993)


def own(x: V) -> bool:
    """Whether a value is of a module and a type for which these are."""
    return x.single and on_gpu(x.b.module)


def _saturated(x: V, y: float, z: float) -> V:
    """x y + z between 0 and 1; 0 for what is no number."""
    kind = ir.FunctionType(F32, [F32] * 3)
    asm = ir.InlineAsm(kind, "fma.rn.sat.f32 $0, $1, $2, $3;", "=f,f,f,f")
    return V(x.b, x.b.call(asm, [x.v, x.const(y).v, x.const(z).v]))


def exp(x: V) -> V:
    """2^n 2^r of a normal 2^n; far out, r is what is too large, or leaves too little."""
    hi, lo = LOG2E_32
    count, bias = HIGHEST - LOWEST, MAGIC[True] + 127
    t = fma(_saturated(x, hi / count, -LOWEST / count), x.const(count), bias + LOWEST)
    r = fma(x, x.const(lo), fma(x, x.const(hi), bias - t))
    return ex2(r) * unbits(bits(t) << 23)


def log(x: V) -> V:
    tiny = x < 2.0**-126
    n = where(tiny, x * 2.0**25, x)
    i = bits(n) - 0x3F2AAAAB  # of 2/3: 2/3 <= 1 + f < 4/3
    f = unbits(bits(n) - (i & -0x800000)) - 1.0
    t = unbits((i >> 23) + MAGIC_BITS[True]) - where(tiny, x.const(MAGIC[True] + 25), MAGIC[True])
    y = fma(t, x.const(LN2), fma(f * f, poly(f, LOG), f))
    # negative numbers and what is none are above infinity as integers
    y = where(bits(x).cmp(">=", 0x7F800000, signed=False), fma(x, x.const(INF), INF), y)
    return where(x.eq(0.0), -INF, y)


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


GPU: dict[str, Callable[[V], V]] = {"exp": exp, "log": log, "tanh": tanh, "erf": erf}
