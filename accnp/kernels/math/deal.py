"""Vector code that deals elements out: each goes to the end of one of several lists.

In: pointers and 64-bit integers. Out: stores. A vector is compressed once for each list, and stored
whole: what is behind the end of a list is overwritten by its next elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from . import cold
from .ir import I32, I64, below, masked_load

LISTS = 8


def _call(b: Any, name: str, result: Any, args: Sequence[Any]) -> Any:
    kind = ir.FunctionType(result, [a.type for a in args])
    return b.call(b.module.globals.get(name) or ir.Function(b.module, kind, name), args)


def _splat(b: Any, x: Any, t: Any) -> Any:
    undef = ir.Constant(t, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(I32, t.count), [0] * t.count)
    return b.shuffle_vector(b.insert_element(undef, x, ir.Constant(I32, 0)), undef, zeros)


def _append(b: Any, x: Any, mask: Any, p: Any) -> Any:
    """Store the lanes of x that are on, one after the other; where the next one goes."""
    t, bits = x.type, x.type.element.width
    args = [x, mask, ir.Constant(t, ir.Undefined)]
    packed = _call(b, f"llvm.experimental.vector.compress.v{t.count}i{bits}", t, args)
    b.store(packed, b.bitcast(p, t.as_pointer()), align=bits // 8)
    word = ir.IntType(t.count)
    count = _call(b, f"llvm.ctpop.i{t.count}", word, [b.bitcast(mask, word)])
    return b.gep(p, [b.zext(count, I64)])


def deal(b: Any, args: Sequence[Any]) -> None:
    """List k, which begins at to + k * room, gets the first n integers of src that are less than
    limits[k] but not than limits[k - 1], the last one what is left; counts[k] says how many.

    A list may be written to up to a vector behind its end.
    """
    to, room, src, n, limits, counts = args
    fn, t = b.function, to.type.pointee
    v = ir.VectorType(t, cold.vector_bytes * 8 // t.width)
    starts, edges = [to], []
    for k in range(LISTS - 1):
        starts.append(b.gep(starts[-1], [room]))
        edges.append(_splat(b, b.load(b.gep(limits, [ir.Constant(I64, k)])), v))
    before = b.block
    loop, done = (fn.append_basic_block(s) for s in ("dealing", "dealt"))
    b.cbranch(b.icmp_signed(">", n, ir.Constant(I64, 0)), loop, done)

    b.position_at_end(loop)
    i = b.phi(I64)
    ends = [b.phi(to.type) for _ in starts]
    rest = below(b, b.sub(n, i), v.count)
    off = ir.Constant(v, [ir.Constant(t, 0)] * v.count)
    x = masked_load(b, b.gep(src, [i]), v, t.width // 8, rest, off)
    less = [*[b.icmp_signed("<", x, edge) for edge in edges], rest]
    following, mask = [], None
    for end, upper in zip(ends, less, strict=True):
        mine = b.and_(upper, rest)
        if mask is not None:
            mine = b.and_(mine, b.not_(mask))
        mask = upper
        following.append(_append(b, x, mine, end))
    more = b.add(i, ir.Constant(I64, v.count))
    i.add_incoming(ir.Constant(I64, 0), before)
    i.add_incoming(more, loop)
    for end, start, new in zip(ends, starts, following, strict=True):
        end.add_incoming(start, before)
        end.add_incoming(new, loop)
    b.cbranch(b.icmp_signed("<", more, n), loop, done)

    b.position_at_end(done)
    size = ir.Constant(I64, t.width // 8)
    found = [b.phi(to.type) for _ in starts]
    for k, (end, start, new) in enumerate(zip(found, starts, following, strict=True)):
        end.add_incoming(start, before)
        end.add_incoming(new, loop)
        length = b.sdiv(b.sub(b.ptrtoint(end, I64), b.ptrtoint(start, I64)), size)
        b.store(length, b.gep(counts, [ir.Constant(I64, k)]))
