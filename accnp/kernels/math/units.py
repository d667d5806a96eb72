"""The units of GPUs for functions of float32, and what functions of both targets make of them: exp
and reciprocals.

In: a float ``V``. Out: a ``V``. As far from the right number as NVIDIA says: reciprocals 1 ulp,
powers of two 2 ulp, base-2 logarithms an absolute 2^-22 near 1,
tanh 2^-11, sine and cosine an absolute 2^-21 within a turn. Subnormal numbers are 0 for those here.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from .ir import F32, MAGIC, V, bits, fma, on_gpu, unbits

__all__ = ["cos", "ex2", "exp", "exp2", "inverse", "lg2", "own", "rcp", "sin", "unit"]

# log2(e) in two pieces
LOG2E = (1.4426950216293335, 1.925963033500011e-08)


def own(x: V) -> bool:
    """Whether functions of a value are made of units."""
    return x.single and on_gpu(x.b.module)


def unit(name: str) -> Callable[[V], V]:
    """What builds an instruction, by its name without the type."""

    def build(x: V) -> V:
        asm = ir.InlineAsm(ir.FunctionType(F32, [F32]), f"{name}.f32 $0, $1;", "=f,f")
        return V(x.b, x.b.call(asm, [x.v]))

    return build


ex2, lg2, sin, cos, rcp = (unit(f"{n}.approx.ftz") for n in ("ex2", "lg2", "sin", "cos", "rcp"))


def _saturated(x: V, y: float, z: float) -> V:
    """x y + z between 0 and 1; 0 for what is no number."""
    kind = ir.FunctionType(F32, [F32] * 3)
    asm = ir.InlineAsm(kind, "fma.rn.sat.f32 $0, $1, $2, $3;", "=f,f,f,f")
    return V(x.b, x.b.call(asm, [x.v, x.const(y).v, x.const(z).v]))


def exp(x: V, shift: int = 0) -> V:
    """exp(x) 2^-shift"""
    hi, lo = LOG2E
    minus_n, power = _exponent(x, hi, shift)
    return _centred(fma(x, x.const(lo), fma(x, x.const(hi), minus_n))) * power


def exp2(x: V) -> V:
    minus_n, power = _exponent(x, 1.0, 0)
    return _centred(x + minus_n) * power


def _exponent(x: V, rate: float, shift: int) -> tuple[V, V]:
    """-n and 2^(n - shift), n the whole number next to x rate, or the nearest one with a normal
    power: far out, the power of what is left is too large, or leaves too little."""
    lowest, count = shift - 126, 253
    bias = MAGIC[True] + 127 - shift
    t = fma(_saturated(x, rate / count, -lowest / count), x.const(count), bias + lowest)
    return bias - t, unbits(bits(t) << 23)


def _centred(r: V) -> V:
    """2^r of |r| <= 1/2, of r = 0 exactly. Below 0 the unit of an H200 is up to 2.06 ulp too small,
    above 0 it is within 1.4: a little is added."""
    return ex2(r + 2.0**-26)


def inverse(x: V) -> V:
    """1 / x; on a GPU within an ulp, and 0 where it is below the normal numbers."""
    return rcp(x) if own(x) else 1.0 / x
