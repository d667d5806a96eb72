"""Functions for products with separate exponents (`llvm.scalars.products`).

This module defines four functions that kernels call. `not_normal(x)` tells whether a product is not
a normal number. `mantissa(x)` and `exponent(x)` split a number, and `ldexp(m, e)` is m times 2 to
the power of e. Cumulative products use the first one, and reductions on GPUs use all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Concatenate

from llvmlite import ir

from accnp.compiler.llvm.intrinsics.table import Resolved, define
from accnp.compiler.llvm.registers import join_parts, split_parts
from accnp.compiler.llvm.scalars.ir import I64, V
from accnp.compiler.llvm.scalars.products import (
    exponent_type,
    is_not_normal,
    scale_by_power_of_two,
    split_exponents,
)
from accnp.compiler.loops.types import B1, I8, Type

# Emits a function of (builder, parts of the operand, *others), and returns the parts of the result,
# or a result without parts.
_EmitParts = Callable[
    Concatenate[ir.IRBuilder, list[ir.Value], ...], "ir.Value | Sequence[ir.Value]"
]


def _product(name: str, result: Callable[[Type], Type], emit_parts: _EmitParts) -> None:
    """Define a step of a product, which `emit_parts` emits."""

    def rule(x: Type, *more: Type) -> Resolved | None:
        if x.kind not in ("float", "complex"):
            return None

        def emit(b: ir.IRBuilder, value: ir.Value, *others: ir.Value) -> ir.Value:
            if x.kind == "float":
                out = emit_parts(b, [value], *others)
                return out[0] if isinstance(out, Sequence) else out
            out = emit_parts(b, [*split_parts(b, value)], *others)
            return join_parts(b, *out) if isinstance(out, Sequence) else out

        return result(x), (x, *[I8] * len(more)), emit

    define(name, 2 if name == "ldexp" else 1, rule, gpu=name != "not_normal")


def _exponent(b: ir.IRBuilder, xs: list[ir.Value]) -> ir.Value:
    exponent = split_exponents(b, xs)[1]
    return exponent if exponent.type == I64 else b.sext(exponent, I64)


def _scale(b: ir.IRBuilder, xs: list[ir.Value], power: ir.Value) -> list[ir.Value]:
    kind = exponent_type(xs[0].type)
    exponent = V(b, power if kind == I64 else b.trunc(power, kind))
    return [scale_by_power_of_two(V(b, x), exponent).v for x in xs]


_product("mantissa", lambda t: t, lambda b, xs: split_exponents(b, xs)[0])
_product("exponent", lambda t: I8, _exponent)
_product("ldexp", lambda t: t, _scale)
_product("not_normal", lambda t: B1, is_not_normal)
