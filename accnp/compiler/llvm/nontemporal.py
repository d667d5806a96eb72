"""Write non-temporal stores in vector loops, next to ordinary stores.

`vector_loop.py` passes a vector to store, and a value that says whether whole vectors are stored
non-temporally. `store_maybe_nontemporally` writes a branch to one of the two stores, which goes in
the same direction in nearly all steps of a launch. Rows need not start at a cache line:
`until_aligned` returns the step at which the first line starts, and `stepping.py` splits the loop
there. In loops with masks, `nontemporal_if_whole` selects ordinary stores for partial vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from accnp.compiler.llvm.accesses import Put
from accnp.compiler.llvm.private import insert_line
from accnp.compiler.llvm.templates import byte_size, vector

__all__ = ["LINE", "nontemporal_if_whole", "prefetch", "store_maybe_nontemporally", "until_aligned"]

_PREFETCH = "@llvm.prefetch.p0"
# Prefetch distances in bytes of loops with non-temporal stores.
_SOON = 2048  # loops over all elements
_ROWS = 8192  # loops over rows; this is usually further ahead than the next row
LINE = 64  # bytes in a cache line
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
    """Return the first step at which vectors of n elements of `size` bytes start at a cache line.

    This is `start` if `requested` is 0 instead of 1, and `stop` if the row ends before the next
    cache line.
    """
    align = min(LINE, n * size)
    gap = b.and_(b.neg(b.ptrtoint(place, _I64)), ir.Constant(_I64, align - 1))
    steps = b.mul(requested, b.lshr(gap, ir.Constant(_I64, size.bit_length() - 1)))
    first = b.add(start, steps, flags=("nsw",))
    return b.select(b.icmp_signed("<", first, stop), first, stop)


def prefetch(
    b: ir.IRBuilder, put: Put, declares: dict[str, str], place: ir.Value, ahead: int, nbytes: int
) -> None:
    """Prefetch the cache lines of `nbytes` bytes, which start `ahead` bytes after an address. If
    `nbytes` is negative, the direction is backwards."""
    declares[_PREFETCH] = f"declare void {_PREFETCH}(ptr, i32, i32, i32)"
    way = 1 if nbytes > 0 else -1
    for k in range(ahead, ahead + abs(nbytes), LINE):
        at = put(f"getelementptr i8, ptr {place.get_reference()}, i64 {way * k}")
        # The arguments mean: a read, into all cache levels, of data.
        insert_line(b, f"call void {_PREFETCH}(ptr {at}, i32 0, i32 3, i32 1)")


def store_maybe_nontemporally(
    b: ir.IRBuilder, put: Put, declares: dict[str, str], nontemporal: ir.Value, n: int,
    kind: ir.Type, place: ir.Value, name: str, store_normally: Callable[[], object],
    read: Sequence[tuple[ir.Value, int]], flat: bool,
) -> None:  # fmt: skip
    """Store n lanes non-temporally if `nontemporal` is 1 and the address is aligned. Otherwise,
    store them with the code that `store_normally` writes.

    In the first case, the operands in `read` (addresses and numbers of bytes) are prefetched. The
    processor does not prefetch across pages or rows by itself, so the arithmetic would wait.
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
