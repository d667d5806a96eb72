"""Intrinsics that deal elements out to lists, for sorts and selections, or take them from rows.

In: pointers to elements of 32 or 64 bits, counts. Out: entries of ``NAMESPACE``.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from .factory import define
from .math.deal import deal, pick
from .math.permute import permute

_WORDS = types.CPointer(types.int64)


def _deal(to: Any, room: Any, src: Any, n: Any, limits: Any, counts: Any) -> Any:
    if to not in (types.CPointer(types.int32), _WORDS) or src != to or limits != to:
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        deal(b, args)
        return context.get_dummy_value()

    return types.void, (to, types.int64, to, types.int64, to, _WORDS), emit


def _pick(values: Any, places: Any, src: Any, n: Any, first: Any, limit: Any) -> Any:
    if not isinstance(values, types.CPointer) or src != values:
        return None
    t: Any = values.dtype
    if not isinstance(t, (types.Integer, types.Float)) or values.dtype.bitwidth < 32:
        return None
    signed = isinstance(t, types.Integer) and values.dtype.signed

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        return pick(b, signed, args)

    places = types.CPointer(types.int32)
    return types.int64, (values, places, src, types.int64, types.int64, t), emit


def _sift(values: Any, places: Any, src: Any, n: Any, first: Any, limit: Any, end: Any) -> Any:
    if values != types.CPointer(types.int32) or src != values:
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        return pick(b, True, args)

    return (
        types.int64,
        (values, values, src, types.int64, types.int64, types.int32, types.int32),
        emit,
    )


def _permute(to: Any, src: Any, size: Any, n: Any, places: Any) -> Any:
    if not isinstance(to, types.CPointer) or src != to:
        return None
    t: Any = to.dtype
    if not isinstance(t, (types.Integer, types.Float)) or to.dtype.bitwidth < 32:
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        permute(b, isinstance(t, types.Float), args)
        return context.get_dummy_value()

    return types.void, (to, to, types.int64, types.int64, types.CPointer(types.int32)), emit


define("deal", 6, _deal)
define("permute", 5, _permute)
define("pick", 6, _pick)
define("sift", 7, _sift)
