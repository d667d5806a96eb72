"""LLVM IR for stream compaction: selected elements of an array are written to lists, in order.

`distribute` writes each element to one of several lists, and `collect` writes those in a range and
their indices. Both get an IR builder, pointers and 64-bit integers, and emit loops over vectors. A
vector is compressed once for each list, and the whole vector is stored; what it writes after the
end of a list is overwritten by the next elements. The intrinsics in `intrinsics/compaction.py` call
them, for sorts, selections and scatters.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from accnp.compiler.library.sizes import LISTS
from accnp.compiler.llvm.scalars import cold
from accnp.compiler.llvm.scalars.ir import I32, I64, below, call_external, masked_load


def _broadcast_lane(b: ir.IRBuilder, x: ir.Value, t: ir.VectorType) -> ir.Value:
    undef = ir.Constant(t, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(I32, t.count), [0] * t.count)
    return b.shuffle_vector(b.insert_element(undef, x, ir.Constant(I32, 0)), undef, zeros)


def _store(b: ir.IRBuilder, x: ir.Value, mask: ir.Value, p: ir.Value) -> None:
    """Store the lanes of x that the mask selects, without gaps."""
    t, size = x.type, x.type.element.width // 8
    if cold.vector_bytes == 32 and cold.permutes:
        packed = _compress_lanes(b, x, mask)
    else:
        args = [x, mask, ir.Constant(t, ir.Undefined)]
        name = f"llvm.experimental.vector.compress.v{t.count}i{8 * size}"
        packed = call_external(b, name, t, args)
    b.store(packed, b.bitcast(p, t.as_pointer()), align=size)


def _compress_lanes(b: ir.IRBuilder, x: ir.Value, mask: ir.Value) -> ir.Value:
    """Return x with the selected lanes at the front. AVX2 has no instruction for this, but a
    permutation of eight words, which is looked up by the mask."""
    count, words = x.type.count, x.type.element.width // 32
    eight, kind = ir.VectorType(I32, 8), ir.ArrayType(I64, 1 << count)
    name = f"accnp.packing.{count}.{words}"
    table = b.module.globals.get(name)
    if table is None:
        orders: list[int] = []
        for bits in range(1 << count):
            on = [k for k in range(count) if bits >> k & 1]
            order = [words * k + w for k in on for w in range(words)]
            orders.append(int.from_bytes(bytes([*order, *[0] * (8 - len(order))]), "little"))
        table = ir.GlobalVariable(b.module, kind, name)
        table.initializer = ir.Constant(kind, orders)
        table.global_constant, table.linkage = True, "internal"
    bits = b.zext(b.bitcast(mask, ir.IntType(count)), I64)
    order = b.load(b.gep(table, [ir.Constant(I64, 0), bits], source_etype=kind), typ=I64)
    order = b.zext(b.bitcast(order, ir.VectorType(ir.IntType(8), 8)), eight)
    words_of_x = b.bitcast(x, ir.VectorType(I32, count * words))
    if words_of_x.type != eight:
        places = ir.Constant(eight, [*range(count), *[0] * (8 - count)])
        words_of_x = b.shuffle_vector(words_of_x, words_of_x, places)
    permuted = call_external(b, "llvm.x86.avx2.permd", eight, [words_of_x, order])
    if count * words < 8:
        first = ir.Constant(ir.VectorType(I32, count), list(range(count)))
        permuted = b.shuffle_vector(permuted, permuted, first)
    return b.bitcast(permuted, x.type)


def _count(b: ir.IRBuilder, mask: ir.Value) -> ir.Value:
    word = ir.IntType(mask.type.count)
    return b.zext(call_external(b, f"llvm.ctpop.i{word.width}", word, [b.bitcast(mask, word)]), I64)


def _zero(t: ir.VectorType) -> ir.Value:
    return ir.Constant(t, [ir.Constant(t.element, 0)] * t.count)


def distribute(b: ir.IRBuilder, args: Sequence[ir.Value]) -> None:
    """Emit code that distributes the first n integers of src to lists.

    List k begins at to + k * room. It gets the integers from limits[k - 1] up to, but without,
    limits[k]; the last list gets the rest. The lengths are stored in counts. Up to a vector may be
    written after the end of a list.
    """
    to, room, src, n, limits, counts = args
    fn, t = b.function, to.type.pointee
    v = ir.VectorType(t, cold.vector_bytes * 8 // t.width)
    starts = [to]
    edges: list[ir.Value] = []
    for k in range(LISTS - 1):
        starts.append(b.gep(starts[-1], [room]))
        edges.append(_broadcast_lane(b, b.load(b.gep(limits, [ir.Constant(I64, k)])), v))
    before = b.block
    loop, done = (fn.append_basic_block(s) for s in ("distribute", "end"))
    b.cbranch(b.icmp_signed(">", n, ir.Constant(I64, 0)), loop, done)

    b.position_at_end(loop)
    i = b.phi(I64)
    ends = [b.phi(to.type) for _ in starts]
    rest = below(b, b.sub(n, i), v.count)
    x = masked_load(b, b.gep(src, [i]), v, t.width // 8, rest, _zero(v))
    less = [*[b.icmp_signed("<", x, edge) for edge in edges], rest]
    following: list[ir.Value] = []
    mask: ir.Value | None = None
    for end, upper in zip(ends, less, strict=True):
        selected = b.and_(upper, rest)
        if mask is not None:
            selected = b.and_(selected, b.not_(mask))
        mask = upper
        _store(b, x, selected, end)
        following.append(b.gep(end, [_count(b, selected)]))
    more = b.add(i, ir.Constant(I64, v.count))
    i.add_incoming(ir.Constant(I64, 0), before)
    i.add_incoming(more, loop)
    for end, start, new in zip(ends, starts, following, strict=True):
        end.add_incoming(start, before)
        end.add_incoming(new, loop)
    b.cbranch(b.icmp_signed("<", more, n), loop, done)

    b.position_at_end(done)
    size = ir.Constant(I64, t.width // 8)
    final = [b.phi(to.type) for _ in starts]
    for k, (end, start, new) in enumerate(zip(final, starts, following, strict=True)):
        end.add_incoming(start, before)
        end.add_incoming(new, loop)
        length = b.sdiv(b.sub(b.ptrtoint(end, I64), b.ptrtoint(start, I64)), size)
        b.store(length, b.gep(counts, [ir.Constant(I64, k)]))


def collect(b: ir.IRBuilder, signed: bool, args: Sequence[ir.Value]) -> ir.Value:
    """Emit code that collects elements of the first n of src, and return their number.

    The elements that are not less than `limit`, including NaN, are written to `values`, and their
    indices plus `first`, as 32-bit integers, to `places`. A last argument `end` excludes integers
    that are not less than it. Up to a vector may be written after the end of both lists.
    """
    values, places, src, n, first, limit, *ends = args
    fn, t = b.function, values.type.pointee
    is_integer = isinstance(t, ir.IntType)
    size = t.width // 8 if is_integer else (4 if isinstance(t, ir.FloatType) else 8)
    v = ir.VectorType(t, cold.vector_bytes // size)
    bits, index = ir.VectorType(ir.IntType(8 * size), v.count), ir.VectorType(I32, v.count)
    edge = _broadcast_lane(b, limit, v)
    numbers = ir.Constant(index, [ir.Constant(I32, k) for k in range(v.count)])
    before = b.block
    loop, done = (fn.append_basic_block(s) for s in ("collect", "end"))
    b.cbranch(b.icmp_signed(">", n, ir.Constant(I64, 0)), loop, done)

    b.position_at_end(loop)
    i, count = b.phi(I64), b.phi(I64)
    rest = below(b, b.sub(n, i), v.count)
    x = masked_load(b, b.gep(src, [i]), v, size, rest, _zero(v))
    if is_integer:
        compare = b.icmp_signed if signed else b.icmp_unsigned
        mask = compare(">=", x, edge)
        for end in ends:
            mask = b.and_(mask, compare("<", x, _broadcast_lane(b, end, v)))
    else:
        mask = b.fcmp_unordered(">=", x, edge)
    mask = b.and_(mask, rest)
    at = b.trunc(b.add(first, i), I32)
    _store(b, b.bitcast(x, bits), mask, b.gep(values, [count]))
    _store(b, b.add(numbers, _broadcast_lane(b, at, index)), mask, b.gep(places, [count]))
    more = b.add(i, ir.Constant(I64, v.count))
    new = b.add(count, _count(b, mask))
    for phi, following in ((i, more), (count, new)):
        phi.add_incoming(ir.Constant(I64, 0), before)
        phi.add_incoming(following, loop)
    b.cbranch(b.icmp_signed("<", more, n), loop, done)

    b.position_at_end(done)
    total = b.phi(I64)
    total.add_incoming(ir.Constant(I64, 0), before)
    total.add_incoming(new, loop)
    return total
