"""The approximate units of GPUs for functions of float32, and functions that use them if possible.

The functions get a float ``V`` and return a ``V``. They require that `has_units` is true, except
`reciprocal`, which divides otherwise. Error bounds by NVIDIA's documentation: reciprocals 1 ulp,
powers of two 2 ulp, base-2 logarithms 2^-22 (absolute) near 1, tanh 2^-11, sine and cosine 2^-21
(absolute) within a turn. The units treat subnormal numbers as 0.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from accnp.compiler.llvm.scalars.ir import F32, MAGIC, V, bits, fma, on_gpu, unbits

__all__ = [
    "approximate", "cos", "ex2", "exp", "exp2", "fma_down", "fma_saturated", "has_units", "lg2",
    "rcp", "reciprocal", "sin",
]  # fmt: skip

# log2(e) in two pieces
LOG2E = (1.4426950216293335, 1.925963033500011e-08)


def has_units(x: V) -> bool:
    """Return whether functions of a value use the approximate units."""
    return x.single and on_gpu(x.b.module)


def approximate(name: str) -> Callable[[V], V]:
    """Return a function that emits an instruction, by its name without the type."""

    def build(x: V) -> V:
        asm = ir.InlineAsm(ir.FunctionType(F32, [F32]), f"{name}.f32 $0, $1;", "=f,f")
        return V(x.b, x.b.call(asm, [x.v]))

    return build


ex2, lg2, sin, cos, rcp = (
    approximate(f"{n}.approx.ftz") for n in ("ex2", "lg2", "sin", "cos", "rcp")
)


def _with_rounding(kind: str) -> Callable[[V, float, float], V]:
    """Return a function that emits x * y + z with a rounding mode or a limit of PTX."""

    def build(x: V, y: float, z: float) -> V:
        asm = ir.InlineAsm(
            ir.FunctionType(F32, [F32] * 3), f"fma.{kind}.f32 $0, $1, $2, $3;", "=f,f,f,f"
        )
        return V(x.b, x.b.call(asm, [x.v, x.const(y).v, x.const(z).v]))

    return build


fma_saturated = _with_rounding("rn.sat")  # limited to 0..1; 0 for NaN
fma_down = _with_rounding("rm")  # rounds down


def exp(x: V, shift: int = 0) -> V:
    """Return exp(x) * 2^-shift."""
    hi, lo = LOG2E
    minus_n, power = _exponent(x, hi, shift)
    return ex2(fma(x, x.const(lo), fma(x, x.const(hi), minus_n))) * power


def exp2(x: V) -> V:
    minus_n, power = _exponent(x, 1.0, 0)
    return ex2(x + minus_n) * power


def _exponent(x: V, rate: float, shift: int) -> tuple[V, V]:
    """Return -n and 2^(n - shift), where n is the largest integer up to x * rate.

    If 2^(n - shift) is not a normal number, n is the nearest integer for which it is. The power of
    the rest then overflows or underflows, as it has to. The rest x * rate - n is not negative:
    for negative numbers, the unit of an H200 is up to 2.06 ulp too small, and otherwise within 1.4.
    """
    lowest, count = shift - 126, 253
    bias = MAGIC[True] + 127 - shift
    # Slightly less, so that rounding does not make the rest negative.
    part = fma_saturated(x, rate / count, -lowest / count - 2.0**-24)
    t = fma_down(part, count, bias + lowest)
    return bias - t, unbits(bits(t) << 23)


def reciprocal(x: V) -> V:
    """Return 1 / x; on a GPU within an ulp, and 0 instead of subnormal results."""
    return rcp(x) if has_units(x) else 1.0 / x
