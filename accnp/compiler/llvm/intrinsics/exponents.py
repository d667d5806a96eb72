"""Functions for products with separate exponents (`llvm.scalars.products`): `odd(x)`, whether a
product is not a normal number; `mantissa(x)`; `exponent(x)`, an integer; `raised(m, e)`, the number
with this mantissa and exponent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Concatenate

from llvmlite import ir

from accnp.compiler.llvm.intrinsics.table import Resolved, define
from accnp.compiler.llvm.registers import join_parts, split_parts
from accnp.compiler.llvm.scalars.ir import I64, V
from accnp.compiler.llvm.scalars.products import apart, is_odd, raised, whole
from accnp.compiler.loops.types import B1, I8, Type

# (builder, parts of the operand, *others) -> parts of the result, or a result that has none
_Act = Callable[Concatenate[ir.IRBuilder, list[ir.Value], ...], "ir.Value | Sequence[ir.Value]"]


def _product(name: str, result: Callable[[Type], Type], act: _Act) -> None:
    """Define a step of a product: `act` computes the parts of the result from those of operands."""

    def rule(x: Type, *more: Type) -> Resolved | None:
        if x.kind not in ("float", "complex"):
            return None

        def emit(b: ir.IRBuilder, value: ir.Value, *others: ir.Value) -> ir.Value:
            if x.kind == "float":
                found = act(b, [value], *others)
                return found[0] if isinstance(found, Sequence) else found
            found = act(b, [*split_parts(b, value)], *others)
            return join_parts(b, *found) if isinstance(found, Sequence) else found

        return result(x), (x, *[I8] * len(more)), emit

    define(name, 2 if name == "raised" else 1, rule, gpu=name != "odd")


def _exponent(b: ir.IRBuilder, xs: list[ir.Value]) -> ir.Value:
    found = apart(b, xs)[1]
    return found if found.type == I64 else b.sext(found, I64)


def _raise_to_power(b: ir.IRBuilder, xs: list[ir.Value], power: ir.Value) -> list[ir.Value]:
    kind = whole(xs[0].type)
    exponent = V(b, power if kind == I64 else b.trunc(power, kind))
    return [raised(V(b, x), exponent).v for x in xs]


_product("mantissa", lambda t: t, lambda b, xs: apart(b, xs)[0])
_product("exponent", lambda t: I8, _exponent)
_product("raised", lambda t: t, _raise_to_power)
_product("odd", lambda t: B1, is_odd)
