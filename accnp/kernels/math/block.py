"""Reductions of a contiguous block in an order that no vector width and no fusion changes.

In: a pointer to ``n`` elements. Out: one element. Element j goes to lane j mod 32 (of a maximum or
minimum, whose steps take longer, mod 64); lanes are folded by halves. The bits are the same on
every machine, since LLVM splits the vectors without reordering.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from .ir import I32, I64, V, below, is_float, masked_load

LANES = 32
FOUND = 64  # elements looked at together in a search
Fold = Callable[[V, V], V]


def _order(op: str, signed: bool) -> Fold:
    def fold(x: V, y: V) -> V:
        b = x.b
        if is_float(x.v.type.element if isinstance(x.v.type, ir.VectorType) else x.v.type):
            take = b.or_(b.fcmp_ordered(op, y.v, x.v), b.fcmp_unordered("uno", y.v, y.v))
        else:
            take = (b.icmp_signed if signed else b.icmp_unsigned)(op, y.v, x.v)
        return V(b, b.select(take, y.v, x.v))

    return fold


def _binary(fop: str | None, iop: str) -> Fold:
    def fold(x: V, y: V) -> V:
        t = x.v.type.element if isinstance(x.v.type, ir.VectorType) else x.v.type
        if is_float(t):
            assert fop is not None
            return V(x.b, getattr(x.b, fop)(x.v, y.v, flags=("afn",)))
        return V(x.b, getattr(x.b, iop)(x.v, y.v))

    return fold


def folds(name: str, t: Any, signed: bool) -> tuple[Fold, Any]:
    """(fold, identity) of a reduction for an element type."""
    if name in ("max", "min"):
        top = name == "min"
        if is_float(t):
            edge: Any = float("inf") if top else -float("inf")
        elif signed:
            edge = (1 << (t.width - 1)) - 1 if top else -(1 << (t.width - 1))
        else:
            edge = (1 << t.width) - 1 if top else 0
        return _order("<" if top else ">", signed), edge
    table = {
        "sum": ("fadd", "add", 0),
        "prod": ("fmul", "mul", 1),
        "and": (None, "and_", -1),
        "or": (None, "or_", 0),
        "xor": (None, "xor", 0),
    }
    fop, iop, identity = table[name]
    return _binary(fop, iop), float(identity) if is_float(t) else identity


def lane_count(name: str) -> int:
    """Return the lanes of a reduction."""
    return 2 * LANES if name in ("max", "min") else LANES


def block_reduce(b: Any, p: Any, n: Any, t: Any, name: str, signed: bool) -> Any:
    """Fold of n elements of type t at p."""
    fold, identity = folds(name, t, signed)
    count = lane_count(name)
    start = ir.Constant(ir.VectorType(t, count), [ir.Constant(t, identity)] * count)
    acc = _halve(_lanes(b, p, n, start, fold), 1, fold)
    return b.extract_element(acc.v, ir.Constant(I32, 0))


def block_reduce_complex(b: Any, p: Any, n: Any, t: Any, name: str) -> tuple[Any, Any]:
    """Sum or prod of n complex numbers with parts of type t, real and imaginary in turn."""
    if name == "sum":
        fold, one = _binary("fadd", "add"), 0.0
    else:
        fold, one = _complex_product, 1.0
    start = [ir.Constant(t, one), ir.Constant(t, 0.0)] * LANES
    whole = ir.Constant(ir.VectorType(t, 2 * LANES), start)
    acc = _halve(_lanes(b, p, b.shl(n, ir.Constant(I64, 1)), whole, fold), 2, fold)
    return tuple(b.extract_element(acc.v, ir.Constant(I32, k)) for k in (0, 1))  # type: ignore[return-value]


def _complex_product(x: V, y: V) -> V:
    b, count = x.b, x.v.type.count
    pairs = range(0, count, 2)

    def pick(v: Any, even: int, odd: int) -> Any:
        order = [k + d for k in pairs for d in (even, odd)]
        mask = ir.Constant(ir.VectorType(I32, count), order)
        return b.shuffle_vector(v, ir.Constant(v.type, ir.Undefined), mask)

    t = x.v.type.element
    signs = ir.Constant(x.v.type, [ir.Constant(t, -1.0), ir.Constant(t, 1.0)] * (count // 2))
    keep = ("afn",)
    direct = b.fmul(x.v, pick(y.v, 0, 0), flags=keep)
    crossed = b.fmul(b.fmul(pick(x.v, 1, 0), pick(y.v, 1, 1), flags=keep), signs, flags=keep)
    return V(b, b.fadd(direct, crossed, flags=keep))


def _halve(acc: V, last: int, fold: Fold) -> V:
    b, width = acc.b, acc.v.type.count
    while width > last:
        width //= 2
        parts = []
        for first in (0, width):
            mask = ir.Constant(ir.VectorType(I32, width), list(range(first, first + width)))
            undef = ir.Constant(acc.v.type, ir.Undefined)
            parts.append(V(b, b.shuffle_vector(acc.v, undef, mask)))
        acc = fold(*parts)
    return acc


def _size(t: Any) -> int:
    if isinstance(t, ir.IntType):
        return max(1, t.width // 8)
    return 4 if isinstance(t, ir.FloatType) else 8


def _element(b: Any, p: Any, k: Any, t: Any) -> Any:
    return b.gep(b.bitcast(p, t.as_pointer()), [k])


def _load(b: Any, p: Any, k: Any, element: Any, t: Any) -> Any:
    v = b.load(b.bitcast(_element(b, p, k, element), t.as_pointer()))
    v.align = _size(element)
    return v


def _lanes(b: Any, p: Any, n: Any, start: Any, fold: Fold) -> V:
    """Folds whole groups of lanes, then the rest beside the identity in the other lanes."""
    lanes, t = start.type, start.type.element
    fn, size, zero = b.function, start.type.count, ir.Constant(I64, 0)
    loop, tail, fill, end = (fn.append_basic_block(s) for s in ("block", "tail", "fill", "end"))
    whole = b.and_(n, ir.Constant(I64, -size))
    rest = b.sub(n, whole)
    before = b.block
    b.cbranch(b.icmp_signed(">", whole, zero), loop, tail)

    b.position_at_end(loop)
    i, acc = b.phi(I64), b.phi(lanes)
    new = fold(V(b, acc), V(b, _load(b, p, i, t, lanes))).v
    i_next = b.add(i, ir.Constant(I64, size))
    b.cbranch(b.icmp_signed("<", i_next, whole), loop, tail)

    b.position_at_end(tail)
    mid = b.phi(lanes)
    b.cbranch(b.icmp_signed(">", rest, zero), fill, end)

    b.position_at_end(fill)
    place = b.bitcast(_element(b, p, whole, t), lanes.as_pointer())
    part = masked_load(b, place, lanes, _size(t), below(b, rest, size), start)
    padded = fold(V(b, mid), V(b, part)).v
    b.branch(end)

    b.position_at_end(end)
    out = b.phi(lanes)
    for phi, incoming in (
        (i, ((zero, before), (i_next, loop))),
        (acc, ((start, before), (new, loop))),
        (mid, ((start, before), (new, loop))),
        (out, ((mid, tail), (padded, fill))),
    ):
        for value, block in incoming:
            phi.add_incoming(value, block)
    return V(b, out)


def find(b: Any, p: Any, n: Any, value: Any, t: Any) -> Any:
    """The first place of a value among n elements of type t at p, or n; a NaN finds a NaN."""
    vector, zero = ir.VectorType(t, FOUND), ir.Constant(I64, 0)
    off = ir.Constant(vector, ir.Undefined)
    one = b.insert_element(off, value, ir.Constant(I32, 0))
    wanted = b.shuffle_vector(one, off, ir.Constant(ir.VectorType(I32, FOUND), None))
    loop, again, tail, fill, end = (
        b.function.append_basic_block(s) for s in ("look", "again", "tail", "fill", "found")
    )

    def hits(x: Any) -> Any:
        if not is_float(t):
            return b.icmp_signed("==", x, wanted)
        lost = b.and_(b.fcmp_unordered("uno", x, x), b.fcmp_unordered("uno", wanted, wanted))
        return b.or_(b.fcmp_ordered("==", x, wanted), lost)

    whole = b.and_(n, ir.Constant(I64, -FOUND))
    before = b.block
    b.cbranch(b.icmp_signed(">", whole, zero), loop, tail)
    b.position_at_end(loop)
    i = b.phi(I64)
    i.add_incoming(zero, before)
    bits = b.bitcast(hits(_load(b, p, i, t, vector)), I64)
    b.cbranch(b.icmp_unsigned("==", bits, zero), again, end)
    b.position_at_end(again)
    following = b.add(i, ir.Constant(I64, FOUND))
    i.add_incoming(following, again)
    b.cbranch(b.icmp_signed("<", following, whole), loop, tail)
    b.position_at_end(tail)
    rest = b.sub(n, whole)
    b.cbranch(b.icmp_signed(">", rest, zero), fill, end)
    b.position_at_end(fill)
    place = b.bitcast(_element(b, p, whole, t), vector.as_pointer())
    mask = below(b, rest, FOUND)
    some = b.bitcast(b.and_(hits(masked_load(b, place, vector, _size(t), mask, off)), mask), I64)
    b.branch(end)
    b.position_at_end(end)
    start, left = b.phi(I64), b.phi(I64)
    for block, where, which in ((loop, i, bits), (tail, n, zero), (fill, whole, some)):
        start.add_incoming(where, block)
        left.add_incoming(which, block)
    place = b.add(start, b.cttz(left, ir.Constant(ir.IntType(1), 0)))
    return b.select(b.icmp_unsigned("==", left, zero), n, place)
