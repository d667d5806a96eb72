"""Write loads and stores of vectors: contiguous, masked, strided, and gathered.

The functions get an address, the LLVM type of an element, and the number of lanes, and write LLVM
text; `vector_loop.py` calls them. Elements with a small stride are loaded as contiguous vectors,
which are then shuffled, because a gather instruction accesses the cache once for each lane.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence

from llvmlite import ir

from accnp.compiler.llvm.private import insert_line
from accnp.compiler.llvm.templates import Vector, byte_size, vector

__all__ = [
    "SIZES", "Put", "gather", "load_strided", "load_vector", "mask_of", "shuffled", "store_vector",
]  # fmt: skip

SIZES = (4, 8)  # bytes of elements whose vectors one instruction shuffles, or gathers
_I64 = ir.IntType(64)

Put = Callable[[str], str]  # writes an instruction, and returns the name of its result
_Load = Callable[[ir.Value, str | None], str]  # loads lanes from an address, under a mask
# The active lanes: all (None), those of a vector of bits, or the first ones, given by their number.
# The last form is loaded and stored in pieces without a mask, so that later loads can be forwarded
# from these stores.
Mask = str | int | None


def mask_of_first(b: ir.IRBuilder, put: Put, count: ir.Value, n: int, register: int) -> str:
    """Write a mask of the first `count` of n lanes; at least one, and all if `count` is above n."""
    if register < 64:
        return mask_of(b, put, count, n, register)
    most = ir.Constant(_I64, n)
    count = b.select(b.icmp_signed("<", count, most), count, most)
    bits = b.lshr(ir.Constant(_I64, -1), b.sub(ir.Constant(_I64, 64), count))
    bits = b.trunc(bits, ir.IntType(n)) if n < 64 else bits
    return put(f"bitcast i{n} {bits.get_reference()} to {vector('i1', n)}")


def mask_of(
    b: ir.IRBuilder, put: Put, count: ir.Value, n: int, register: int, at_end: bool = False
) -> str:
    """Write a mask of the first `count` of n lanes, or of the last; a `count` below 0 means none,
    above n all.

    If masks are vectors (AVX2), a comparison makes them: from bits, each lane takes an instruction.
    """
    zero, most = ir.Constant(_I64, 0), ir.Constant(_I64, n)
    count = b.select(b.icmp_signed("<", count, most), count, most)
    if register < 64:
        limit = b.trunc(b.sub(most, count) if at_end else count, ir.IntType(32))
        lanes = vector("i32", n)
        one = put(f"insertelement {lanes} poison, i32 {limit.get_reference()}, i64 0")
        limits = shuffled(put, "i32", n, one, "poison", [0] * n)
        places = ", ".join([f"i32 {k}" for k in range(n)])
        return put(f"icmp {'sge' if at_end else 'slt'} {lanes} <{places}>, {limits}")
    bits = b.lshr(ir.Constant(_I64, -1), b.sub(ir.Constant(_I64, 64), count))
    if at_end:
        bits = b.shl(bits, b.sub(most, count))
    bits = b.select(b.icmp_signed(">", count, zero), bits, zero)
    bits = b.trunc(bits, ir.IntType(n)) if n < 64 else bits
    return put(f"bitcast i{n} {bits.get_reference()} to {vector('i1', n)}")


def load_vector(
    b: ir.IRBuilder, put: Put, declares: dict[str, str], kind: ir.Type, place: ir.Value,
    n: int, mask: Mask, whole: ir.Value | None = None,
) -> str:  # fmt: skip
    """Load n lanes, or the lanes of a mask; all lanes if `whole` is 1."""
    at, lanes, size = f"ptr {place.get_reference()}", vector(kind, n), byte_size(kind)
    if mask is None:
        return put(f"load {lanes}, {at}, align {size}")
    if isinstance(mask, int):
        return _load_pieces(put, kind, place, 1, n, mask)
    name, masks = f"@llvm.masked.load.v{n}{kind.intrinsic_name}.p0", vector("i1", n)
    declares[name] = f"declare {lanes} {name}(ptr, i32, {masks}, {lanes})"
    masked = f"call {lanes} {name}({at}, i32 {size}, {masks} {mask}, {lanes} zeroinitializer)"
    if whole is None or size in SIZES:
        return put(masked)
    incoming: list[
        str
    ] = []  # without a masked load instruction, LLVM writes a branch for each lane
    with _branch_on_whole(b, whole) as branches:
        for block, text in zip(
            branches, (f"load {lanes}, {at}, align {size}", masked), strict=True
        ):
            b.position_at_end(block)
            incoming.append(f"[{put(text)}, %{block.get_reference().lstrip('%')}]")
    return put(f"phi {lanes} {', '.join(incoming)}")


@contextlib.contextmanager
def _branch_on_whole(b: ir.IRBuilder, whole: ir.Value) -> Generator[tuple[ir.Block, ir.Block]]:
    """Write a branch on `whole`, and yield its two blocks: for whole vectors, and for others."""
    branches = b.append_basic_block("whole"), b.append_basic_block("part")
    end = b.append_basic_block("on")
    b.cbranch(whole, branches[0], branches[1])
    yield branches
    for block in branches:
        b.position_at_end(block)
        b.branch(end)
    b.position_at_end(end)


def store_vector(
    b: ir.IRBuilder, put: Put, declares: dict[str, str], kind: ir.Type, place: ir.Value,
    n: int, mask: Mask, value: str, whole: ir.Value | None = None,
) -> None:  # fmt: skip
    """Store n lanes, or the lanes of a mask; all lanes if `whole` is 1.

    Without AVX-512, a masked store can take some 40 micro-operations (Zen 3).
    """
    at, lanes, size = f"ptr {place.get_reference()}", vector(kind, n), byte_size(kind)
    if mask is None:
        insert_line(b, f"store {lanes} {value}, {at}, align {size}")
        return
    if isinstance(mask, int):
        for first, count in _split(mask):
            here = put(f"getelementptr {kind}, {at}, i64 {first}")
            piece = shuffled(put, kind, n, value, "poison", range(first, first + count))
            insert_line(b, f"store {vector(kind, count)} {piece}, ptr {here}, align {size}")
        return
    name, masks = f"@llvm.masked.store.v{n}{kind.intrinsic_name}.p0", vector("i1", n)
    declares[name] = f"declare void {name}({lanes}, ptr, i32, {masks})"
    masked = f"call void {name}({lanes} {value}, {at}, i32 {size}, {masks} {mask})"
    if whole is None:
        insert_line(b, masked)
        return
    with _branch_on_whole(b, whole) as branches:
        plain = f"store {lanes} {value}, {at}, align {size}"
        for block, text in zip(branches, (plain, masked), strict=True):
            b.position_at_end(block)
            insert_line(b, text)


def gather(
    put: Put, declares: dict[str, str], kind: ir.Type, place: ir.Value, places: Vector, n: int,
    mask: Mask,
) -> str:  # fmt: skip
    """Gather lanes at a vector of indices from an address, or the lanes of a mask."""
    lanes, masks, pointers = vector(kind, n), vector("i1", n), vector("ptr", n)
    name = f"@llvm.masked.gather.v{n}{kind.intrinsic_name}.v{n}p0"
    declares[name] = f"declare {lanes} {name}({pointers}, i32, {masks}, {lanes})"
    where = f"{vector(places.type, n)} {places.name}"
    at = put(f"getelementptr {kind}, ptr {place.get_reference()}, {where}")
    if isinstance(mask, int):
        mask = f"<{', '.join(f'i1 {int(k < mask)}' for k in range(n))}>"
    under = f"{masks} {mask or 'splat (i1 true)'}, {lanes} zeroinitializer"
    return put(f"call {lanes} {name}({pointers} {at}, i32 {byte_size(kind)}, {under})")


def load_strided(
    b: ir.IRBuilder, put: Put, declares: dict[str, str], kind: ir.Type, first: ir.Value,
    step: int, n: int, register: int, left: ir.Value | int | None,
) -> str:  # fmt: skip
    """Load n lanes with a stride of `step` elements from `first` on, with registers of this many
    bytes.

    Only the first `left` lanes are needed, or all if it is None: memory after the last needed one
    may not be accessible.
    """

    if isinstance(left, int):
        return _load_pieces(put, kind, first, step, n, left)

    def load(place: ir.Value, mask: str | None) -> str:
        return load_vector(b, put, declares, kind, place, size, mask)

    size = width = min(n, register // byte_size(kind))
    parts: list[str] = []
    for lane in range(0, n, size):
        remaining = None if left is None else b.sub(left, ir.Constant(_I64, lane))
        here = b.gep(first, [ir.Constant(_I64, lane * step)])
        part = _load_reversed if step < 0 else _load_spaced
        parts.append(part(b, put, load, kind, here, step, size, remaining, register))
    while len(parts) > 1:
        both = range(2 * width)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [shuffled(put, kind, width, x, y, both) for x, y in pairs]
        width *= 2
    return parts[0]


def _split(count: int) -> list[tuple[int, int]]:
    """Split a number into powers of two, and return the start and the size of each."""
    first = 0
    pieces: list[tuple[int, int]] = []
    while first < count:
        size = 1 << ((count - first).bit_length() - 1)
        pieces.append((first, size))
        first += size
    return pieces


def _load_pieces(put: Put, kind: ir.Type, place: ir.Value, step: int, n: int, count: int) -> str:
    """Load the first `count` of n lanes with a stride, in pieces; the other lanes are 0."""
    result = "zeroinitializer"
    for first, size in _split(count) if step == 1 else [(k, 1) for k in range(count)]:
        at = put(f"getelementptr {kind}, ptr {place.get_reference()}, i64 {first * step}")
        loaded = put(f"load {vector(kind, size)}, ptr {at}, align {byte_size(kind)}")
        wide = shuffled(
            put, kind, size, loaded, "poison", [k if k < size else -1 for k in range(n)]
        )
        lanes = [n + k - first if first <= k < first + size else k for k in range(n)]
        result = shuffled(put, kind, n, result, wide, lanes)
    return result


def _load_reversed(
    b: ir.IRBuilder, put: Put, load: _Load, kind: ir.Type, first: ir.Value, step: int, size: int,
    remaining: ir.Value | None, register: int,
) -> str:  # fmt: skip
    mask = None if remaining is None else mask_of(b, put, remaining, size, register, at_end=True)
    place = b.gep(first, [ir.Constant(_I64, 1 - size)])
    loaded = load(place, mask)
    return shuffled(put, kind, size, loaded, "poison", range(size - 1, -1, -1))


def _load_spaced(
    b: ir.IRBuilder, put: Put, load: _Load, kind: ir.Type, first: ir.Value, step: int, size: int,
    remaining: ir.Value | None, register: int,
) -> str:  # fmt: skip
    one = ir.Constant(_I64, 1)
    reach = None  # elements from the first lane to the last needed one
    if remaining is not None:
        reach = b.add(b.mul(b.sub(remaining, one), ir.Constant(_I64, step)), one)
    result = ""
    for k in range(step):
        start = k * size
        if reach is None and k == step - 1:
            start = (size - 1) * (step - 1)  # ends with the last lane
        mask = None
        if reach is not None:
            mask = mask_of(b, put, b.sub(reach, ir.Constant(_I64, start)), size, register)
        loaded = load(b.gep(first, [ir.Constant(_I64, start)]), mask)
        lanes: list[int] = []
        for i, place in enumerate(range(0, size * step, step)):
            if place < k * size:
                lanes.append(place if k == 1 else i)
            else:
                lanes.append(size + place - start if place < start + size else -1)
        result = shuffled(put, kind, size, result, loaded, lanes) if k else loaded
    return result


def shuffled(put: Put, kind: ir.Type | str, size: int, x: str, y: str, lanes: Sequence[int]) -> str:
    """Shuffle the lanes of two vectors, which are numbered one after the other; -1 is any lane."""
    source = vector(kind, size)
    picked = ", ".join(["i32 poison" if k < 0 else f"i32 {k}" for k in lanes])
    return put(f"shufflevector {source} {x}, {source} {y}, {vector('i32', len(lanes))} <{picked}>")
