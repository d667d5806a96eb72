"""LLVM IR for products with separate exponents.

A partial product may overflow or underflow although the whole product does not. These functions
split numbers into a mantissa and an integer exponent, multiply mantissas, and scale a mantissa by a
power of two. They take and return LLVM values: floats or vectors of floats, two of them for a
complex number. Reductions of blocks on the CPU (`block.py`) and of warps on a GPU
(`intrinsics/exponents.py`) use the same steps, so their results have the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from accnp.compiler.llvm.scalars.ir import F32, I32, I64, MANT, V, pow2, where

__all__ = [
    "constant", "exponent_type", "is_not_normal", "multiply", "scale_by_power_of_two",
    "split_exponents",
]  # fmt: skip


def _is_single(t: ir.Type) -> bool:
    return getattr(t, "element", t) == F32


def _bias(t: ir.Type) -> int:
    return 127 if _is_single(t) else 1023


def exponent_type(t: ir.Type) -> ir.Type:
    """Return the type of the exponents of floats of type t."""
    kind = I32 if _is_single(t) else I64
    return ir.VectorType(kind, t.count) if isinstance(t, ir.VectorType) else kind


def constant(t: ir.Type, value: float | int) -> ir.Value:
    """Return a constant of a type; all lanes of a vector have the value."""
    if isinstance(t, ir.VectorType):
        return ir.Constant(t, [ir.Constant(t.element, value)] * t.count)
    return ir.Constant(t, value)


def _larger(b: ir.IRBuilder, parts: Sequence[ir.Value]) -> ir.Value:
    """Emit the maximum of one or two integers."""
    if len(parts) == 1:
        return parts[0]
    x, y = parts
    return b.select(b.icmp_signed(">", x, y), x, y)


def _biased_exponent(b: ir.IRBuilder, xs: Sequence[ir.Value]) -> ir.Value:
    """Emit the biased exponent of the larger part."""
    t = xs[0].type
    kind = exponent_type(t)
    mantissa, mask = constant(kind, MANT[_is_single(t)]), constant(kind, 2 * _bias(t) + 1)
    each = [b.and_(b.lshr(b.bitcast(x, kind), mantissa), mask) for x in xs]
    return _larger(b, each)


def is_not_normal(b: ir.IRBuilder, xs: Sequence[ir.Value]) -> ir.Value:
    """Emit whether a product is not a normal number: the larger part is 0, subnormal or infinite,
    or one part is NaN."""
    t = xs[0].type
    kind, bias, mantissa = exponent_type(t), _bias(t), MANT[_is_single(t)]
    most = constant(kind, (2 * bias + 2 << mantissa) - 1)
    each = [b.and_(b.bitcast(x, kind), most) for x in xs]
    size = _larger(b, each)
    above = b.sub(size, constant(kind, 1 << mantissa))
    return b.icmp_unsigned(">=", above, constant(kind, 2 * bias << mantissa))


def split_exponents(b: ir.IRBuilder, xs: Sequence[ir.Value]) -> tuple[Sequence[ir.Value], ir.Value]:
    """Emit (mantissa, exponent). The larger part of the mantissa is from 1 to 2, or to 4 for
    complex numbers. Zeros, infinities and NaN are kept, with the exponent 0."""
    t, bias, mantissa = xs[0].type, _bias(xs[0].type), MANT[_is_single(xs[0].type)]
    kind, zero = exponent_type(t), constant(exponent_type(t), 0)
    scale = constant(t, 2.0**mantissa)
    is_subnormal = b.icmp_signed("==", _biased_exponent(b, xs), zero)
    xs = [b.select(is_subnormal, b.fmul(x, scale, flags=("afn",)), x) for x in xs]
    biased = _biased_exponent(b, xs)
    keeps = b.or_(
        b.icmp_signed("==", biased, zero),
        b.icmp_signed("==", biased, constant(kind, 2 * bias + 1)),
    )
    shift = b.select(keeps, zero, b.sub(biased, constant(kind, bias)))
    if len(xs) == 1:
        less = b.shl(shift, constant(kind, mantissa))
        mantissas = [b.bitcast(b.sub(b.bitcast(xs[0], kind), less), t)]
    else:  # the smaller part may become 0; 2^-bias is not a normal number
        most = constant(kind, bias - 1)
        shift = b.select(b.icmp_signed(">", shift, most), most, shift)
        factor = b.shl(b.sub(constant(kind, bias), shift), constant(kind, mantissa))
        mantissas = [b.fmul(x, b.bitcast(factor, t), flags=("afn",)) for x in xs]
    scaled = b.select(b.and_(is_subnormal, b.not_(keeps)), constant(kind, mantissa), zero)
    return mantissas, b.sub(shift, scaled)


def multiply(b: ir.IRBuilder, x: Sequence[ir.Value], y: Sequence[ir.Value]) -> Sequence[ir.Value]:
    """Emit the product of two real or complex numbers."""

    def mul(x: ir.Value, y: ir.Value) -> ir.Value:
        return b.fmul(x, y, flags=("afn",))

    if len(x) == 1:
        return [mul(x[0], y[0])]
    return [
        b.fsub(mul(x[0], y[0]), mul(x[1], y[1]), flags=("afn",)),
        b.fadd(mul(x[0], y[1]), mul(x[1], y[0]), flags=("afn",)),
    ]


def scale_by_power_of_two(x: V, power: V) -> V:
    """Emit x times a power of two, for x between 1 and 2^48.

    It is multiplied by three factors, of which only the last one rounds.
    """
    bias = _bias(x.v.type)
    power = where(power > 3 * bias, 3 * bias, power)
    power = where(power < -3 * bias, -3 * bias, power)
    third = power / 3
    return x * pow2(third) * pow2(third) * pow2(power - third - third)
