"""Elementwise functions for signs, comparisons, rounding, remainders and conversions.

The functions emit LLVM IR. They take float or double ``V`` and return a ``V`` of the same type, or
an integer (`to_int`). They have no branches and call no library, except `fmod`: it calls the C
library on a CPU, and is a loop on a GPU. The registry makes most of them available to kernels;
`casts.py`, `llvm/functions.py` and `intrinsics/scalars.py` call the others.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from accnp.compiler.llvm.scalars.ir import (
    F32,
    MANT,
    V,
    bits,
    call,
    call_external,
    copysign,
    fabs,
    fma,
    isnan,
    on_gpu,
    pow2,
    unbits,
    where,
)
from accnp.compiler.llvm.scalars.registry import BINARY, UNARY, define


@define(UNARY)
def sign(x: V) -> V:
    """Return -1, 0 or 1, or NaN for NaN; 0 for -0, as the array API standard requires."""
    return where(fabs(x) > 0.0, copysign(x.const(1.0), x), where(x.eq(0.0), x.const(0.0), x))


@define(BINARY)
def fmax(x: V, y: V) -> V:
    """Return the larger number, or NaN if either is NaN; +0 is larger than -0."""
    return call("llvm.maximum", x, y)


@define(BINARY)
def fmin(x: V, y: V) -> V:
    return call("llvm.minimum", x, y)


@define(UNARY)
def round_even(x: V) -> V:
    return call("llvm.roundeven", x)


@define(UNARY)
def round_away(x: V) -> V:
    t = call("llvm.trunc", x)
    up = copysign(x.const(1.0), x)
    return copysign(where(fabs(x - t) >= 0.5, t + up, t), x)


@define(UNARY)
def trunc(x: V) -> V:
    return call("llvm.trunc", x)


@define(UNARY)
def ceil(x: V) -> V:
    return call("llvm.ceil", x)


def is_finite(x: V) -> V:
    return fabs(x) < float("inf")


def nextafter(
    x: V, y: V, to_bits: Callable[[V], V] = bits, of_bits: Callable[[V], V] = unbits
) -> V:
    """Return the next number after x toward y. `to_bits` and `of_bits` convert a number to its
    bits and back, for formats whose bits in memory differ from those in registers."""
    i, j = to_bits(x), to_bits(y)
    top = i.const(-(1 << (i.width - 1)))
    away = (i ^ j) < 0
    # step the magnitude up when y is farther from zero on the same side
    farther = fabs(y) > fabs(x)
    step = where(away | ~farther, i - 1, i + 1)
    from_zero = (j & top) | 1
    z = of_bits(where(x.eq(0.0), from_zero, step))
    z = where(x.eq(y), y, z)
    return where(isnan(x) | isnan(y), x + y, z)


@define(BINARY, "rem")
def fmod(x: V, y: V) -> V:
    """Return C's fmod, which is exact."""
    return _fmod_by_division(x, y) if on_gpu(x.b.module) else V(x.b, x.b.frem(x.v, y.v))


def _fmod_by_division(x: V, y: V) -> V:
    """Return fmod on targets without a library function for it.

    Multiples of y are subtracted until none fits. They are scaled by powers of two, so that the
    quotients are integers of the working precision. LLVM's own code for such targets is
    x - trunc(x / y) * y, which is wrong for large quotients.
    """
    b, digits = x.b, MANT[x.single]
    start, divisor = fabs(x), fabs(y)
    before = b.block
    head, work, end = (b.function.append_basic_block(n) for n in ("fits", "take", "rest"))
    b.branch(head)
    b.position_at_end(head)
    phi = b.phi(x.type)
    rest = V(b, phi)
    b.cbranch((rest >= divisor).v, work, end)
    b.position_at_end(work)
    more = _exponent(rest) - _exponent(divisor) - (digits - 1)
    k = where(more > 0, more, 0)
    half = k >> 1
    part = divisor * pow2(half) * pow2(k - half)  # exact; 2^k may be too large
    left = fma(-call("llvm.trunc", rest / part), part, rest)  # exact
    left = where(left < 0.0, left + part, left)
    phi.add_incoming(start.v, before)
    phi.add_incoming(left.v, b.block)
    b.branch(head)
    b.position_at_end(end)
    # If x is NaN, the loop has no steps. If y is 0, its first step makes the result NaN.
    return copysign(where(isnan(divisor), divisor, rest), x)


def _exponent(x: V) -> V:
    """Return the biased exponent of a positive number; it is below 1 if x is subnormal."""
    digits = MANT[x.single]
    tiny = bits(x).lshr(digits).eq(0)
    shifted = bits(where(tiny, x * 2.0**digits, x)).lshr(digits)
    return where(tiny, shifted - digits, shifted)


def to_int(x: V, t: ir.Type, signed: bool) -> V:
    """Convert a float to an integer: truncated, saturated to the range, and 0 for NaN."""
    kind = "si" if signed else "ui"
    assert isinstance(t, ir.IntType)
    name = f"llvm.fpto{kind}.sat.i{t.width}.{'f32' if x.type == F32 else 'f64'}"
    return V(x.b, call_external(x.b, name, t, [x.v]))
