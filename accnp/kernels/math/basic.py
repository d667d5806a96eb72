"""Comparisons, signs, rounding and conversions that NumPy's and jax's elementwise functions need.

In: float or double ``V`` (integers for ``int_*``). Out: a ``V``. Branch-free; fmod of large
quotients goes to libm.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .ir import F32, V, bits, call, copysign, fabs, isnan, unbits, where


def sign(x: V) -> V:
    """-1, 0, 1 with NaN and -0 passed through."""
    return where(fabs(x) > 0.0, copysign(x.const(1.0), x), x)


def fmax(x: V, y: V) -> V:
    """The larger; NaN if either is; +0 is above -0."""
    return call("llvm.maximum", x, y)


def fmin(x: V, y: V) -> V:
    return call("llvm.minimum", x, y)


def round_even(x: V) -> V:
    return call("llvm.roundeven", x)


def round_away(x: V) -> V:
    t = call("llvm.trunc", x)
    up = copysign(x.const(1.0), x)
    return copysign(where(fabs(x - t) >= 0.5, t + up, t), x)


def trunc(x: V) -> V:
    return call("llvm.trunc", x)


def ceil(x: V) -> V:
    return call("llvm.ceil", x)


def is_finite(x: V) -> V:
    return fabs(x) < float("inf")


def nextafter(x: V, y: V) -> V:
    i, j = bits(x), bits(y)
    top = i.const(-(1 << (i.type.width - 1)))
    away = (i ^ j) < 0
    # step the magnitude up when y is farther from zero on the same side
    farther = fabs(y) > fabs(x)
    step = where(away | ~farther, i - 1, i + 1)
    from_zero = (j & top) | 1
    z = unbits(where(x.eq(0.0), from_zero, step))
    z = where(x.eq(y), y, z)
    return where(isnan(x) | isnan(y), x + y, z)


def fmod(x: V, y: V) -> V:
    """C's fmod, exact."""
    return V(x.b, x.b.frem(x.v, y.v))


def to_int(x: V, t: Any, signed: bool) -> V:
    """Float to integer: truncated, saturated at the ends of the range, NaN to 0."""
    kind = "si" if signed else "ui"
    name = f"llvm.fpto{kind}.sat.i{t.width}.{'f32' if x.type == F32 else 'f64'}"
    fn = x.b.module.globals.get(name)
    if fn is None:
        fn = ir.Function(x.b.module, ir.FunctionType(t, [x.type]), name)
    return V(x.b, x.b.call(fn, [x.v]))
