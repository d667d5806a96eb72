"""Half precision as Numba sees it: 16 bits in memory, a float32 in registers, and a type of its
own, so that what has been rounded is not rounded again when it is stored. Operators take such
numbers as float32."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, lower_cast, models, register_model, type_callable

from accnp.compiler.llvm.scalars import half
from accnp.compiler.llvm.scalars.ir import F32, I16, V
from accnp.compiler.numba.private import Conversion

__all__ = ["E2", "F2", "Half"]


class Half(types.Type):
    """A number of half precision; `code` is its token in kernels."""

    bitwidth = 16

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(name=code)

    def can_convert_to(self, typingctx: Any, other: Any) -> Any:
        if other is types.float32:
            return Conversion.promote
        return Conversion.safe if other is types.float64 else None

    def can_convert_from(self, typingctx: Any, other: Any) -> Any:
        """What is stored, or assigned, is rounded."""
        real = isinstance(other, types.Boolean | types.Integer | types.Float | Half)
        return Conversion.unsafe if real else None


F2, E2 = Half("f2"), Half("e2")


@register_model(Half)
class _Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, F32)

    def get_data_type(self) -> Any:
        return I16

    def as_data(self, builder: Any, value: Any) -> Any:
        return stored(builder, self._fe_type, value)

    def from_data(self, builder: Any, value: Any) -> Any:
        return loaded(builder, self._fe_type, value)


def loaded(b: ir.IRBuilder, t: Half, v: Any) -> Any:
    """What memory holds, as a float32."""
    return half.widen(V(b, v), t.code).v


def stored(b: ir.IRBuilder, t: Half, v: Any) -> Any:
    """The same the other way round."""
    return half.narrow(V(b, v), t.code).v


@lower_cast(Half, types.Float)
def _wider(context: Any, b: ir.IRBuilder, source: Any, target: Any, v: Any) -> Any:
    return v if target is types.float32 else b.fpext(v, context.get_value_type(target))


@lower_cast(types.Float, Half)
def _rounded(context: Any, b: ir.IRBuilder, source: Any, target: Any, v: Any) -> Any:
    return half.rounded(V(b, v), target.code).v


@lower_cast(types.Boolean, Half)
@lower_cast(types.Integer, Half)
def _of_whole(context: Any, b: ir.IRBuilder, source: Any, target: Any, v: Any) -> Any:
    """By way of float32, as jax and ml_dtypes do: two roundings for large numbers in bfloat16."""
    return half.rounded(V(b, context.cast(b, v, source, types.float32)), target.code).v


@lower_cast(Half, Half)
def _other(context: Any, b: ir.IRBuilder, source: Any, target: Any, v: Any) -> Any:
    return v if source is target else half.rounded(V(b, v), target.code).v


@lower_builtin(operator.setitem, types.CPointer(F2), types.Integer, F2)
@lower_builtin(operator.setitem, types.CPointer(E2), types.Integer, E2)
def _store(context: Any, b: ir.IRBuilder, sig: Any, args: Any) -> None:
    p, k, value = args
    b.store(stored(b, sig.args[2], value), b.gep(p, [k]))


@lower_builtin(operator.getitem, types.CPointer(F2), types.Integer)
@lower_builtin(operator.getitem, types.CPointer(E2), types.Integer)
def _load(context: Any, b: ir.IRBuilder, sig: Any, args: Any) -> Any:
    p, k = args
    return loaded(b, sig.args[0].dtype, b.load(b.gep(p, [k])))


@type_callable(operator.neg)
def _negated(context: Any) -> Any:
    """The one operator whose result needs no rounding."""

    def typer(x: Any) -> Any:
        return x if isinstance(x, Half) else None

    return typer


@lower_builtin(operator.neg, Half)
def _neg(context: Any, b: ir.IRBuilder, sig: Any, args: Any) -> Any:
    return b.fneg(args[0])
