"""Products whose partial products overflow or vanish where the whole does not: mantissas, and the
exponents that are kept apart from them.

In: raw LLVM values, floats or vectors of them; a complex number is two. Out: the same, and integers
of their size. Blocks of the processor (`block.py`) and warps of a GPU do the same steps, and have
the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from accnp.compiler.llvm.scalars.ir import F32, I32, I64, MANT, V, pow2, where

__all__ = ["apart", "constant", "is_odd", "raised", "times", "whole"]


def _single(t: ir.Type) -> bool:
    return getattr(t, "element", t) == F32


def _bias(t: ir.Type) -> int:
    return 127 if _single(t) else 1023


def whole(t: ir.Type) -> ir.Type:
    """The type of the exponents of floats of type t."""
    kind = I32 if _single(t) else I64
    return ir.VectorType(kind, t.count) if isinstance(t, ir.VectorType) else kind


def constant(t: ir.Type, value: float | int) -> ir.Value:
    """A number in a type, or in all places of a vector."""
    if isinstance(t, ir.VectorType):
        return ir.Constant(t, [ir.Constant(t.element, value)] * t.count)
    return ir.Constant(t, value)


def _larger(b: ir.IRBuilder, parts: Sequence[ir.Value]) -> ir.Value:
    """The larger one of one or two integers."""
    if len(parts) == 1:
        return parts[0]
    x, y = parts
    return b.select(b.icmp_signed(">", x, y), x, y)


def _fields(b: ir.IRBuilder, xs: Sequence[ir.Value]) -> ir.Value:
    """The exponent as it is written, of the larger part."""
    t = xs[0].type
    kind = whole(t)
    mantissa, mask = constant(kind, MANT[_single(t)]), constant(kind, 2 * _bias(t) + 1)
    each = [b.and_(b.lshr(b.bitcast(x, kind), mantissa), mask) for x in xs]
    return _larger(b, each)


def is_odd(b: ir.IRBuilder, xs: Sequence[ir.Value]) -> ir.Value:
    """Whether a product is no normal number: its larger part is 0, subnormal or infinite, or one
    is no number."""
    t = xs[0].type
    kind, bias, mantissa = whole(t), _bias(t), MANT[_single(t)]
    most = constant(kind, (2 * bias + 2 << mantissa) - 1)
    each = [b.and_(b.bitcast(x, kind), most) for x in xs]
    size = _larger(b, each)
    above = b.sub(size, constant(kind, 1 << mantissa))
    return b.icmp_unsigned(">=", above, constant(kind, 2 * bias << mantissa))


def apart(b: ir.IRBuilder, xs: Sequence[ir.Value]) -> tuple[Sequence[ir.Value], ir.Value]:
    """(mantissa, exponent): the larger part from 1 to 2, or 4 of complex numbers; zeros, infinite
    and no numbers are as they are."""
    t, bias, mantissa = xs[0].type, _bias(xs[0].type), MANT[_single(xs[0].type)]
    kind, zero = whole(t), constant(whole(t), 0)
    up = constant(t, 2.0**mantissa)
    tiny = b.icmp_signed("==", _fields(b, xs), zero)
    xs = [b.select(tiny, b.fmul(x, up, flags=("afn",)), x) for x in xs]
    field = _fields(b, xs)
    odd = b.or_(
        b.icmp_signed("==", field, zero),
        b.icmp_signed("==", field, constant(kind, 2 * bias + 1)),
    )
    shift = b.select(odd, zero, b.sub(field, constant(kind, bias)))
    if len(xs) == 1:
        less = b.shl(shift, constant(kind, mantissa))
        left = [b.bitcast(b.sub(b.bitcast(xs[0], kind), less), t)]
    else:  # the smaller part may vanish; 2^-bias is no normal number
        most = constant(kind, bias - 1)
        shift = b.select(b.icmp_signed(">", shift, most), most, shift)
        factor = b.shl(b.sub(constant(kind, bias), shift), constant(kind, mantissa))
        left = [b.fmul(x, b.bitcast(factor, t), flags=("afn",)) for x in xs]
    lost = b.select(b.and_(tiny, b.not_(odd)), constant(kind, mantissa), zero)
    return left, b.sub(shift, lost)


def times(b: ir.IRBuilder, x: Sequence[ir.Value], y: Sequence[ir.Value]) -> Sequence[ir.Value]:
    """The product of two numbers."""

    def mul(x: ir.Value, y: ir.Value) -> ir.Value:
        return b.fmul(x, y, flags=("afn",))

    if len(x) == 1:
        return [mul(x[0], y[0])]
    return [
        b.fsub(mul(x[0], y[0]), mul(x[1], y[1]), flags=("afn",)),
        b.fadd(mul(x[0], y[1]), mul(x[1], y[0]), flags=("afn",)),
    ]


def raised(x: V, power: V) -> V:
    """x times 2 to an integer, of a number between 1 and 2^48, in three exact factors but for the
    last."""
    bias = _bias(x.v.type)
    power = where(power > 3 * bias, 3 * bias, power)
    power = where(power < -3 * bias, -3 * bias, power)
    third = power / 3
    return x * pow2(third) * pow2(third) * pow2(power - third - third)
