"""Inverse trigonometric functions: asin acos atan atan2.

The functions emit LLVM IR. They take one or two float or double ``V`` and return a ``V`` of the
same type, without branches or library calls. The registry makes them available to kernels, and
`cplx.py` calls `atan2`.
"""

from __future__ import annotations

from accnp.compiler.llvm.scalars import coefs as k
from accnp.compiler.llvm.scalars.ir import V, bits, copysign, fabs, fma, poly, sqrt, where
from accnp.compiler.llvm.scalars.registry import BINARY, UNARY, define

PI_32 = (3.1415927410125732, -8.742277657347586e-08)
PI_64 = (3.141592653589793, 1.2246467991473532e-16)


def _angle(num: V, den: V) -> tuple[V, V]:
    """Return atan(num / den) for num >= 0 and den >= 0, as a sum of two numbers."""
    # t = num/den up to tan(pi/8), (num - den)/(num + den) in the middle, and -den/num above
    # tan(3 pi/8)
    high = num * 0.41421356 > den
    mid = num > den * 0.41421356
    n = where(high, -den, where(mid, num - den, num))
    d = where(high, num, where(mid, num + den, den))
    t = n / d
    z = t * t
    pi, pi_lo = PI_32 if num.single else PI_64
    base = where(high, num.const(pi / 2), where(mid, num.const(pi / 4), 0.0))
    base_lo = where(high, num.const(pi_lo / 2), where(mid, num.const(pi_lo / 4), 0.0))
    return base, fma(t * z, poly(z, k.ATAN_32 if num.single else k.ATAN_64), base_lo) + t


@define(UNARY)
def atan(x: V) -> V:
    a = fabs(x)
    base, rest = _angle(where(a < float("inf"), a, 1.0), x.const(1.0))
    pi = PI_32[0] if x.single else PI_64[0]
    y = where(a.eq(float("inf")), pi / 2, base + rest)
    return copysign(where(x.ne(x), x, y), x)


@define(BINARY)
def atan2(y: V, x: V) -> V:
    a, b = fabs(y), fabs(x)
    inf = float("inf")
    both = a.eq(inf) & b.eq(inf)
    a, b = where(both, 1.0, a), where(both, 1.0, b)
    # Infinity and a finite number have the same angle as 1 and 0.
    b, a = where(a.eq(inf), 0.0, b), where(b.eq(inf), 0.0, a)
    a, b = where(a.eq(inf), 1.0, a), where(b.eq(inf), 1.0, b)
    big = 1e38 if y.single else 1e307
    scale = where((a > big) | (b > big), y.const(0.0625), 1.0)
    # Two subnormal numbers have too few digits for the following steps.
    small, grow = (1e-30, 2.0**64) if y.single else (1e-290, 2.0**100)
    scale = where((a < small) & (b < small), y.const(grow), scale)
    a, b = a * scale, b * scale
    zero = a.eq(0.0) & b.eq(0.0)
    base, rest = _angle(a, where(zero, 1.0, b))
    pi, pi_lo = PI_32 if y.single else PI_64
    left = bits(x) < 0
    r = where(left, pi - base, base) + where(left, pi_lo - rest, rest)
    r = copysign(r, y)
    return where(x.ne(x) | y.ne(y), x + y, r)


def _asin_tail(t: V, z: V) -> V:
    """Return asin(t) - t for z = t^2 <= 1/4."""
    return t * z * poly(z, k.ASIN_32 if t.single else k.ASIN_64)


def _root(a: V) -> tuple[V, V, V]:
    """Return (sqrt(z), its correction, z) with z = (1 - a) / 2."""
    z = fma(a, a.const(-0.5), 0.5)
    s = sqrt(z)
    lo = fma(-s, s, z) / (s + s)
    return s, where(s > 0.0, lo, 0.0), z


@define(UNARY)
def asin(x: V) -> V:
    a = fabs(x)
    s, lo, z = _root(a)
    pi, pi_lo = PI_32 if x.single else PI_64
    tail = _asin_tail(s, z) + lo
    large = (pi / 2) - (s + s - (pi_lo / 2 - (tail + tail)))
    small = a + _asin_tail(a, a * a)
    y = where(a <= 0.5, small, large)
    return where(a <= 1.0, copysign(y, x), float("nan"))


@define(UNARY)
def acos(x: V) -> V:
    a = fabs(x)
    s, lo, z = _root(a)
    pi, pi_lo = PI_32 if x.single else PI_64
    half = s + (_asin_tail(s, z) + lo)
    large = half + half
    large = where(x < 0.0, (pi_lo - large) + pi, large)
    mid = (pi / 2) - (x - (pi_lo / 2 - _asin_tail(x, x * x)))
    return where(a <= 1.0, where(a <= 0.5, mid, large), float("nan"))
