"""The units of GPUs for functions of float32, and what functions of both targets make of them: exp
and reciprocals.

In: a float ``V``. Out: a ``V``. As far from the right number as NVIDIA says: reciprocals 1 ulp,
powers of two 2 ulp, base-2 logarithms an absolute 2^-22 near 1,
tanh 2^-11, sine and cosine an absolute 2^-21 within a turn. Subnormal numbers are 0 for those here.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from accnp.compiler.llvm.scalars.ir import F32, MAGIC, V, bits, fma, on_gpu, unbits

__all__ = [
    "cos", "down", "ex2", "exp", "exp2", "inverse", "lg2", "own", "rcp", "saturated", "sin", "unit",
]  # fmt: skip

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


def _with_rounding(kind: str) -> Callable[[V, float, float], V]:
    """What builds x y + z, rounded, or limited, in a way of its own."""

    def build(x: V, y: float, z: float) -> V:
        asm = ir.InlineAsm(
            ir.FunctionType(F32, [F32] * 3), f"fma.{kind}.f32 $0, $1, $2, $3;", "=f,f,f,f"
        )
        return V(x.b, x.b.call(asm, [x.v, x.const(y).v, x.const(z).v]))

    return build


saturated = _with_rounding("rn.sat")  # between 0 and 1; 0 for what is no number
down = _with_rounding("rm")


def exp(x: V, shift: int = 0) -> V:
    """exp(x) 2^-shift"""
    hi, lo = LOG2E
    minus_n, power = _exponent(x, hi, shift)
    return ex2(fma(x, x.const(lo), fma(x, x.const(hi), minus_n))) * power


def exp2(x: V) -> V:
    minus_n, power = _exponent(x, 1.0, 0)
    return ex2(x + minus_n) * power


def _exponent(x: V, rate: float, shift: int) -> tuple[V, V]:
    """-n and 2^(n - shift), n the whole number below x rate, or the nearest one with a normal
    power: far out, the power of what is left is too large, or leaves too little.

    What is left is not negative: there the unit of an H200 is up to 2.06 ulp too small, else
    within 1.4."""
    lowest, count = shift - 126, 253
    bias = MAGIC[True] + 127 - shift
    # So much less that what is left is not below 0 by rounding.
    part = saturated(x, rate / count, -lowest / count - 2.0**-24)
    t = down(part, count, bias + lowest)
    return bias - t, unbits(bits(t) << 23)


def inverse(x: V) -> V:
    """1 / x; on a GPU within an ulp, and 0 where it is below the normal numbers."""
    return rcp(x) if own(x) else 1.0 / x
