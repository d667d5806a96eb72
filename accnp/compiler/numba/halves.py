"""Half precision in Numba: 16 bits in memory, and a float32 in registers.

`functions.py` uses the types `F2` and `E2`. They differ from float32, so that a number that was
rounded is not rounded again when it is stored. Operators convert such numbers to float32.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, lower_cast, models, register_model, type_callable

from accnp.compiler.llvm.scalars import half
from accnp.compiler.llvm.scalars.ir import F32, I16, V
from accnp.compiler.numba.private import Conversion

if TYPE_CHECKING:
    from numba.core.base import BaseContext as Context
    from numba.core.typing import Signature

__all__ = ["E2", "F2", "Half"]


class Half(types.Type):
    """A number of half precision; `code` is its token in kernels."""

    bitwidth = 16

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(name=code)

    def can_convert_to(self, typingctx: object, other: types.Type) -> Conversion | None:
        if other is types.float32:
            return Conversion.promote
        return Conversion.safe if other is types.float64 else None

    def can_convert_from(self, typingctx: object, other: types.Type) -> Conversion | None:
        """Return the conversion of another number, which is rounded when stored or assigned."""
        real = isinstance(other, types.Boolean | types.Integer | types.Float | Half)
        return Conversion.unsafe if real else None


F2, E2 = Half("f2"), Half("e2")


@register_model(Half)
class _Model(models.PrimitiveModel):
    def __init__(self, dmm: object, fe_type: Half) -> None:
        super().__init__(dmm, fe_type, F32)

    def get_data_type(self) -> ir.Type:
        return I16

    def as_data(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        return stored(builder, self._fe_type, value)

    def from_data(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        return loaded(builder, self._fe_type, value)


def loaded(b: ir.IRBuilder, t: Half, v: ir.Value) -> ir.Value:
    """Return a number from memory as a float32."""
    return half.widen(V(b, v), t.code).v


def stored(b: ir.IRBuilder, t: Half, v: ir.Value) -> ir.Value:
    """Return a float32 as it is stored in memory."""
    return half.narrow(V(b, v), t.code).v


@lower_cast(Half, types.Float)
def _cast_to_float(
    context: Context, b: ir.IRBuilder, source: types.Type, target: types.Type, v: ir.Value
) -> ir.Value:
    return v if target is types.float32 else b.fpext(v, context.get_value_type(target))


@lower_cast(types.Float, Half)
def _cast_to_half(
    context: Context, b: ir.IRBuilder, source: types.Type, target: Half, v: ir.Value
) -> ir.Value:
    return half.rounded(V(b, v), target.code).v


@lower_cast(types.Boolean, Half)
@lower_cast(types.Integer, Half)
def _cast_from_integer(
    context: Context, b: ir.IRBuilder, source: types.Type, target: Half, v: ir.Value
) -> ir.Value:
    """By way of float32, as jax and ml_dtypes do: two roundings for large numbers in bfloat16."""
    return half.rounded(V(b, context.cast(b, v, source, types.float32)), target.code).v


@lower_cast(Half, Half)
def _cast_between_halves(
    context: Context, b: ir.IRBuilder, source: types.Type, target: Half, v: ir.Value
) -> ir.Value:
    return v if source is target else half.rounded(V(b, v), target.code).v


@lower_builtin(operator.setitem, types.CPointer(F2), types.Integer, F2)
@lower_builtin(operator.setitem, types.CPointer(E2), types.Integer, E2)
def _store(context: Context, b: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> None:
    p, k, value = args
    b.store(stored(b, sig.args[2], value), b.gep(p, [k]))


@lower_builtin(operator.getitem, types.CPointer(F2), types.Integer)
@lower_builtin(operator.getitem, types.CPointer(E2), types.Integer)
def _load(context: Context, b: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
    p, k = args
    return loaded(b, sig.args[0].dtype, b.load(b.gep(p, [k])))


@type_callable(operator.neg)
def _declare_negation(context: Context) -> Callable[[types.Type], types.Type | None]:
    """Return the typing rule of negation, the one operator whose result needs no rounding."""

    def typer(x: types.Type) -> types.Type | None:
        return x if isinstance(x, Half) else None

    return typer


@lower_builtin(operator.neg, Half)
def _neg(context: Context, b: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
    return b.fneg(args[0])
