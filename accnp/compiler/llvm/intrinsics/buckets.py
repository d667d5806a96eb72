"""Procedures that distribute elements of 32 or 64 bits to lists, for sorts and selections, or
collect them from rows."""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.llvm.intrinsics.table import Resolved, define
from accnp.compiler.llvm.scalars.deal import deal, pick
from accnp.compiler.llvm.scalars.permute import permute
from accnp.compiler.loops.types import I4, I8, Pointer, Type

_WORDS = Pointer(I8)


def _resolve_deal(
    to: Type, room: Type, src: Type, n: Type, limits: Type, counts: Type
) -> Resolved | None:
    if to not in (Pointer(I4), _WORDS) or src != to or limits != to:
        return None

    def emit(b: ir.IRBuilder, *args: ir.Value) -> None:
        deal(b, args)

    return None, (to, I8, to, I8, to, _WORDS), emit


def _pick(
    values: Type, places: Type, src: Type, n: Type, first: Type, limit: Type
) -> Resolved | None:
    if not isinstance(values, Pointer) or src != values:
        return None
    t = values.of
    if t.kind not in ("int", "uint", "float") or t.size < 4:
        return None

    def emit(b: ir.IRBuilder, *args: ir.Value) -> ir.Value:
        return pick(b, t.signed, args)

    places = Pointer(I4)
    return I8, (values, places, src, I8, I8, t), emit


def _sift(
    values: Type, places: Type, src: Type, n: Type, first: Type, limit: Type, end: Type
) -> Resolved | None:
    if values != Pointer(I4) or src != values:
        return None

    def emit(b: ir.IRBuilder, *args: ir.Value) -> ir.Value:
        return pick(b, True, args)

    return I8, (values, values, src, I8, I8, I4, I4), emit


def _permute(to: Type, src: Type, size: Type, n: Type, places: Type) -> Resolved | None:
    if not isinstance(to, Pointer) or src != to:
        return None
    t = to.of
    if t.kind not in ("int", "uint", "float") or t.size < 4:
        return None

    def emit(b: ir.IRBuilder, *args: ir.Value) -> None:
        permute(b, t.kind == "float", args)

    return None, (to, to, I8, I8, Pointer(I4)), emit


define("deal", 6, _resolve_deal)
define("permute", 5, _permute)
define("pick", 6, _pick, acts=True)
define("sift", 7, _sift, acts=True)
