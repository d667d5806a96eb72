"""Stores past the caches beside ordinary ones, in loops that `lanes` writes.

In: where whole vectors are to go past the caches, and a vector to store. Out: code that takes one
of the two stores; the branch is the same in all steps of a launch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from accnp.runtime.vectors import Line, byte_size, vector

__all__ = ["asked_of_whole", "store_either"]

_LINE = 64  # bytes that go to memory at once
_I64 = ir.IntType(64)


def asked_of_whole(b: Any, asked: Any, now: Any, n: int, stop: Any) -> Any:
    """What is asked (1: past the caches) if there are n steps left, else 0."""
    fits = b.icmp_signed("<=", b.add(now, ir.Constant(_I64, n), flags=("nsw",)), stop)
    return b.select(fits, asked, ir.Constant(_I64, 0))


def store_either(
    b: Any, past: Any, n: int, kind: Any, place: Any, name: str, near: Callable[[], Any]
) -> None:
    """Store n lanes past the caches if `past` is 1 and lines begin there, else as `near` does."""
    align = min(_LINE, n * byte_size(kind))
    off = b.and_(b.ptrtoint(place, _I64), ir.Constant(_I64, align - 1))
    far, usual, on = (b.append_basic_block(x) for x in ("far", "near", "on"))
    b.cbranch(b.icmp_unsigned("<", off, past), far, usual)
    b.position_at_end(far)
    typed = f"{vector(kind, n)} {name}, {place.type} {place.get_reference()}"
    b._insert(Line(f"store {typed}, align {align}, !nontemporal !{{i32 1}}"))
    b.branch(on)
    b.position_at_end(usual)
    near()
    b.branch(on)
    b.position_at_end(on)
