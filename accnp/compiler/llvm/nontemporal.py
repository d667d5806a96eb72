"""Write non-temporal stores in vector loops, next to ordinary stores.

In: a vector to store, and the value that says whether whole vectors are stored non-temporally. Out:
code that branches to one of the two stores, in the same direction in all steps of a launch. Rows
need not begin with a cache line: their first steps, up to the first line, are stored separately
(`until_aligned`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from accnp.compiler.llvm.accesses import Put
from accnp.compiler.llvm.private import insert_line
from accnp.compiler.llvm.templates import byte_size, vector

__all__ = ["LINE", "nontemporal_if_whole", "prefetch", "store_maybe_nontemporally", "until_aligned"]

_PREFETCH = "@llvm.prefetch.p0"
_SOON = 2048  # bytes that loops over all elements prefetch ahead while they use such stores;
_ROWS = 8192  # the same of loops over rows: mostly beyond the next row
LINE = 64  # bytes of a cache line
_I64 = ir.IntType(64)


def nontemporal_if_whole(
    b: ir.IRBuilder, requested: ir.Value, now: ir.Value, n: int, stop: ir.Value
) -> ir.Value:
    """Return `requested` (1 for non-temporal stores) if n steps are left, else 0."""
    fits = b.icmp_signed("<=", b.add(now, ir.Constant(_I64, n), flags=("nsw",)), stop)
    return b.select(fits, requested, ir.Constant(_I64, 0))


def until_aligned(
    b: ir.IRBuilder,
    requested: ir.Value,
    n: int,
    size: int,
    place: ir.Value,
    start: ir.Value,
    stop: ir.Value,
) -> ir.Value:
    """Return the first step at which vectors of n elements of `size` bytes begin with a cache line:
    the first step if non-temporal stores are not `requested` (0 or 1), and the last if the row ends
    before."""
    align = min(LINE, n * size)
    gap = b.and_(b.neg(b.ptrtoint(place, _I64)), ir.Constant(_I64, align - 1))
    steps = b.mul(requested, b.lshr(gap, ir.Constant(_I64, size.bit_length() - 1)))
    first = b.add(start, steps, flags=("nsw",))
    return b.select(b.icmp_signed("<", first, stop), first, stop)


def prefetch(
    b: ir.IRBuilder, put: Put, declares: dict[str, str], place: ir.Value, ahead: int, nbytes: int
) -> None:
    """Prefetch the cache lines of `nbytes` bytes, at a distance from an address; backwards if
    `nbytes` is negative."""
    declares[_PREFETCH] = f"declare void {_PREFETCH}(ptr, i32, i32, i32)"
    way = 1 if nbytes > 0 else -1
    for k in range(ahead, ahead + abs(nbytes), LINE):
        at = put(f"getelementptr i8, ptr {place.get_reference()}, i64 {way * k}")
        # A read of data, into all caches.
        insert_line(b, f"call void {_PREFETCH}(ptr {at}, i32 0, i32 3, i32 1)")


def store_maybe_nontemporally(
    b: ir.IRBuilder, put: Put, declares: dict[str, str], nontemporal: ir.Value, n: int,
    kind: ir.Type, place: ir.Value, name: str, store_normally: Callable[[], object],
    read: Sequence[tuple[ir.Value, int]], flat: bool,
) -> None:  # fmt: skip
    """Store n lanes non-temporally if `nontemporal` is 1 and a cache line begins there. Otherwise
    call `store_normally`.

    In the first case, the operands that are `read` (addresses and bytes) are prefetched: the
    processor does not prefetch across pages or rows by itself, so its arithmetic would wait.
    """
    align = min(LINE, n * byte_size(kind))
    misaligned = b.and_(b.ptrtoint(place, _I64), ir.Constant(_I64, align - 1))
    nontemporal_block, normal_block, end = (
        b.append_basic_block(x) for x in ("nontemporal", "normal", "end")
    )
    b.cbranch(b.icmp_unsigned("<", misaligned, nontemporal), nontemporal_block, normal_block)
    b.position_at_end(nontemporal_block)
    for where, nbytes in read:
        prefetch(b, put, declares, where, _SOON if flat else _ROWS, nbytes)
    typed = f"{vector(kind, n)} {name}, {place.type} {place.get_reference()}"
    insert_line(b, f"store {typed}, align {align}, !nontemporal !{{i32 1}}")
    b.branch(end)
    b.position_at_end(normal_block)
    store_normally()
    b.branch(end)
    b.position_at_end(end)
