"""Procedures that write selected elements of 32 or 64 bits to lists, or collect them from rows.

They are `distribute`, `collect_at_least`, `collect_between` (`scalars/compaction.py`) and `permute`
(`scalars/permute.py`). The kernels of sorts, partitions, `top_k` and scatters call them.
"""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.llvm.intrinsics.table import Resolved, define
from accnp.compiler.llvm.scalars.compaction import collect, distribute
from accnp.compiler.llvm.scalars.permute import permute
from accnp.compiler.loops.types import I4, I8, Pointer, Type

_WORDS = Pointer(I8)


def _resolve_distribute(
    to: Type, room: Type, src: Type, n: Type, limits: Type, counts: Type
) -> Resolved | None:
    if to not in (Pointer(I4), _WORDS) or src != to or limits != to:
        return None

    def emit(b: ir.IRBuilder, *args: ir.Value) -> None:
        distribute(b, args)

    return None, (to, I8, to, I8, to, _WORDS), emit


def _resolve_collect_at_least(
    values: Type, places: Type, src: Type, n: Type, first: Type, limit: Type
) -> Resolved | None:
    if not isinstance(values, Pointer) or src != values:
        return None
    t = values.of
    if t.kind not in ("int", "uint", "float") or t.size < 4:
        return None

    def emit(b: ir.IRBuilder, *args: ir.Value) -> ir.Value:
        return collect(b, t.signed, args)

    places = Pointer(I4)
    return I8, (values, places, src, I8, I8, t), emit


def _resolve_collect_between(
    values: Type, places: Type, src: Type, n: Type, first: Type, limit: Type, end: Type
) -> Resolved | None:
    if values != Pointer(I4) or src != values:
        return None

    def emit(b: ir.IRBuilder, *args: ir.Value) -> ir.Value:
        return collect(b, True, args)

    return I8, (values, values, src, I8, I8, I4, I4), emit


def _resolve_permute(to: Type, src: Type, size: Type, n: Type, places: Type) -> Resolved | None:
    if not isinstance(to, Pointer) or src != to:
        return None
    t = to.of
    if t.kind not in ("int", "uint", "float") or t.size < 4:
        return None

    def emit(b: ir.IRBuilder, *args: ir.Value) -> None:
        permute(b, t.kind == "float", args)

    return None, (to, to, I8, I8, Pointer(I4)), emit


define("distribute", 6, _resolve_distribute)
define("permute", 5, _resolve_permute)
define("collect_at_least", 6, _resolve_collect_at_least, acts=True)
define("collect_between", 7, _resolve_collect_between, acts=True)
