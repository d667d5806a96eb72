"""Intrinsics that deal elements out to lists, for sorts and selections.

In: pointers to integers of 32 or 64 bits, counts. Out: entries of ``NAMESPACE``.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from .factory import define
from .math.deal import deal

_WORDS = types.CPointer(types.int64)


def _deal(to: Any, room: Any, src: Any, n: Any, limits: Any, counts: Any) -> Any:
    if to not in (types.CPointer(types.int32), _WORDS) or src != to or limits != to:
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        deal(b, args)
        return context.get_dummy_value()

    return types.void, (to, types.int64, to, types.int64, to, _WORDS), emit


define("deal", 6, _deal)
