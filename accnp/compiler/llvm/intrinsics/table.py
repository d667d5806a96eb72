"""The table of intrinsics: functions and procedures that kernels call by name.

A rule takes the types of the arguments. It returns the type of the result (None for a procedure),
the types to which the arguments are converted, and an emitter, which writes the code for the values
of the arguments and returns the value of the result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, NamedTuple

from llvmlite import ir

from accnp.compiler.llvm.registers import join_parts, split_parts
from accnp.compiler.llvm.scalars.ir import F32, F64, V
from accnp.compiler.loops.functions import KEEPS
from accnp.compiler.loops.types import C8, F4, DType, Type

__all__ = [
    "TABLE", "Emit", "Intrinsic", "Resolved", "Rule", "complex_emit", "define", "resolve", "simple",
    "widest",
]  # fmt: skip

# (builder, *values) -> value, or None for a procedure
Emit = Callable[Concatenate[ir.IRBuilder, ...], ir.Value | None]
Resolved = tuple["Type | None", tuple[Type, ...], Emit]
Rule = Callable[..., "Resolved | None"]


class Intrinsic(NamedTuple):
    """A function: its name, the number of its arguments, and its rule.

    `halves`: the rule gets the types of half precision, which are otherwise replaced by float32.
    `acts`: the function has side effects, or its value depends on which threads call it together.
    `gpu`: only kernels for GPUs can call it.
    """

    name: str
    arity: int
    rule: Rule
    halves: bool = False
    acts: bool = False
    gpu: bool = False


TABLE: dict[str, Intrinsic] = {}


def define(
    name: str, arity: int, rule: Rule, halves: bool = False, acts: bool = False, gpu: bool = False
) -> None:
    """Add a function to the table."""
    TABLE[name] = Intrinsic(name, arity, rule, halves, acts, gpu)


@functools.cache
def resolve(name: str, of: tuple[Type, ...]) -> Resolved | None:
    """Return the type of the result, the types of the parameters and the emitter of a function for
    arguments of some types; None if it does not take them."""
    intrinsic = TABLE.get(name)
    if intrinsic is None or len(of) != intrinsic.arity:
        return None
    small = {t for t in of if t.kind == "half"}
    wide = of if intrinsic.halves else tuple([F4 if t in small else t for t in of])
    resolved = intrinsic.rule(*wide)
    if resolved is None:
        return None
    result, params, emit = resolved
    if name in KEEPS and len(small) == 1 and {t for t in of if t.kind != "bool"} == small:
        (result,) = small
    return result, params, emit


def simple(build: Callable[..., V]) -> Emit:
    """Return an emitter from a function of wrapped values (`V`)."""
    return lambda b, *args: build(*[V(b, a) for a in args]).v


_RANKS = ("bool", "int", "uint", "float", "complex")


def widest(*of: Type) -> Type:
    """Return the common type of operands of different types. Sources convert operands explicitly,
    so this is for literals."""
    ranks = [1 if t.kind in ("int", "uint") else _RANKS.index(t.kind) if t.kind in _RANKS else 0
             for t in of]  # fmt: skip
    best = max(ranks)
    return max([t for t, r in zip(of, ranks, strict=True) if r == best], key=lambda t: t.size)


def complex_emit(of: DType, build: Callable[..., tuple[V, V]]) -> Emit:
    """Return an emitter from a function of complex numbers as pairs of doubles."""

    def emit(b: ir.IRBuilder, *args: ir.Value) -> ir.Value:
        pairs = [tuple([V(b, p).to(F64) for p in split_parts(b, a)]) for a in args]
        part = F32 if of == C8 else F64
        return join_parts(b, *[p.to(part).v for p in build(*pairs)])

    return emit
