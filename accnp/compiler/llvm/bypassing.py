"""Non-temporal stores beside ordinary ones, in vector loops.

In: where whole vectors are to bypass the caches, and a vector to store. Out: code that takes one
of the two stores; the branch is the same in all steps of a launch. Rows begin anywhere: their first
steps, up to where a cache line begins, are stored by themselves (`until_aligned`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from accnp.compiler.llvm.accesses import Put
from accnp.compiler.llvm.templates import Line, byte_size, vector

__all__ = ["LINE", "asked_of_whole", "prefetch", "store_either", "until_aligned"]

_PREFETCH = "@llvm.prefetch.p0"
_SOON = 2048  # bytes ahead that loops over all elements ask for while they use such stores;
_ROWS = 8192  # those over rows: beyond the next row, mostly
LINE = 64  # bytes that go to memory at once
_I64 = ir.IntType(64)


def asked_of_whole(b: Any, asked: Any, now: Any, n: int, stop: Any) -> Any:
    """What is asked (1: non-temporal stores) if there are n steps left, else 0."""
    fits = b.icmp_signed("<=", b.add(now, ir.Constant(_I64, n), flags=("nsw",)), stop)
    return b.select(fits, asked, ir.Constant(_I64, 0))


def until_aligned(b: Any, asked: Any, n: int, size: int, place: Any, start: Any, stop: Any) -> Any:
    """The step from which on vectors of n elements of this many bytes, the first of which lies at a
    place, bypass the caches: the first one if nothing is asked, the last if there are fewer."""
    align = min(LINE, n * size)
    gap = b.and_(b.neg(b.ptrtoint(place, _I64)), ir.Constant(_I64, align - 1))
    steps = b.mul(asked, b.lshr(gap, ir.Constant(_I64, size.bit_length() - 1)))
    first = b.add(start, steps, flags=("nsw",))
    return b.select(b.icmp_signed("<", first, stop), first, stop)


def prefetch(
    b: Any, put: Put, declares: dict[str, str], place: Any, ahead: int, nbytes: int
) -> None:
    """Ask for the lines of this many bytes, some bytes from a place; backwards if `nbytes` is
    negative."""
    declares[_PREFETCH] = f"declare void {_PREFETCH}(ptr, i32, i32, i32)"
    way = 1 if nbytes > 0 else -1
    for k in range(ahead, ahead + abs(nbytes), LINE):
        at = put(f"getelementptr i8, ptr {place.get_reference()}, i64 {way * k}")
        # Reading, kept in all caches, data.
        b._insert(Line(f"call void {_PREFETCH}(ptr {at}, i32 0, i32 3, i32 1)"))


def store_either(
    b: Any, put: Put, declares: dict[str, str], past: Any, n: int, kind: Any, place: Any, name: str,
    near: Callable[[], Any], read: Sequence[tuple[Any, int]], flat: bool,
) -> None:  # fmt: skip
    """Store n lanes non-temporally if `past` is 1 and lines begin there, else as `near` does.

    What is `read` (places and bytes) is asked for ahead then: the processor does not look ahead by
    itself from page to page nor from row to row, and waits for memory with its arithmetic.
    """
    align = min(LINE, n * byte_size(kind))
    off = b.and_(b.ptrtoint(place, _I64), ir.Constant(_I64, align - 1))
    far, usual, on = (b.append_basic_block(x) for x in ("far", "near", "on"))
    b.cbranch(b.icmp_unsigned("<", off, past), far, usual)
    b.position_at_end(far)
    for where, nbytes in read:
        prefetch(b, put, declares, where, _SOON if flat else _ROWS, nbytes)
    typed = f"{vector(kind, n)} {name}, {place.type} {place.get_reference()}"
    b._insert(Line(f"store {typed}, align {align}, !nontemporal !{{i32 1}}"))
    b.branch(on)
    b.position_at_end(usual)
    near()
    b.branch(on)
    b.position_at_end(on)
