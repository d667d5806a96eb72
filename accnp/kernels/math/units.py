"""The units of GPUs for functions of float32, and what functions of both targets make of them: exp
and reciprocals.

In: a float ``V``. Out: a ``V``. As far from the right number as NVIDIA says: reciprocals 1 ulp,
powers of two 2 ulp (of which 1.4 come from the unit), base-2 logarithms an absolute 2^-22 near 1,
tanh 2^-11, sine and cosine an absolute 2^-21 within a turn. Subnormal numbers are 0 for those here.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from .ir import F32, MAGIC, V, bits, fma, on_gpu, unbits

__all__ = ["cos", "ex2", "exp", "inverse", "lg2", "own", "rcp", "sin", "unit"]

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
    """exp(x) 2^-shift as 2^(n - shift) 2^r of a normal first factor; far out, r is what is too
    large, or leaves too little."""
    hi, lo = LOG2E
    lowest, count = shift - 126, 253
    bias = MAGIC[True] + 127 - shift
    t = fma(_saturated(x, hi / count, -lowest / count), x.const(count), bias + lowest)
    r = fma(x, x.const(lo), fma(x, x.const(hi), bias - t))
    return ex2(r) * unbits(bits(t) << 23)


def inverse(x: V) -> V:
    """1 / x; on a GPU within an ulp, and 0 where it is below the normal numbers."""
    return rcp(x) if own(x) else 1.0 / x
