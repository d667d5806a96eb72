"""Reductions of a contiguous block in an order that no vector width and no fusion changes.

In: a pointer to ``n`` elements. Out: one element. Element j goes to lane j mod 32 (of a maximum or
minimum, whose steps take longer, mod 64); lanes are folded by halves. The bits are the same on
every machine, since LLVM splits the vectors without reordering.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from .ir import F32, I32, I64, MANT, V, below, fabs, is_float, masked_load, pow2, where

LANES = 32
FOUND = 64  # elements looked at together in a search
Fold = Callable[[V, V], V]
Step = Callable[[list[Any], Any], list[Any]]


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
    if name in ("max", "min") and is_float(t):
        return _float_extreme(b, p, n, start, ">" if name == "max" else "<", fold)
    if name == "prod" and is_float(t):
        return _float_product(b, p, n, start, fold)
    return _folded(b, p, n, start, fold)


def _folded(b: Any, p: Any, n: Any, start: Any, fold: Fold) -> Any:
    (acc,) = _lanes(b, p, n, start, [start], lambda s, x: [fold(V(b, s[0]), V(b, x)).v])
    return b.extract_element(_halve(V(b, acc), 1, fold).v, ir.Constant(I32, 0))


def _float_extreme(b: Any, p: Any, n: Any, start: Any, op: str, fold: Fold) -> Any:
    """The block as if there were no NaN, while looking for one; if there is, all over again.

    One comparison finds the NaNs of two vectors, and no lane waits for it: 1.5e6 float32 by one
    thread take 0.06 ms; 0.10 where each step of a lane chooses.
    """
    count = start.type.count
    part = 64 // _size(start.type.element)
    mask = ir.VectorType(ir.IntType(1), part)
    clear = [ir.Constant(mask, [0] * part)] * (count // part // 2)
    undef = ir.Constant(start.type, ir.Undefined)

    def larger(x: V, y: V) -> V:
        return V(b, b.select(b.fcmp_ordered(op, y.v, x.v), y.v, x.v))

    def step(state: list[Any], x: Any) -> list[Any]:
        parts = [
            b.shuffle_vector(
                x, undef, ir.Constant(ir.VectorType(I32, part), list(range(k, k + part)))
            )
            for k in range(0, count, part)
        ]
        lost = [b.fcmp_unordered("uno", u, v) for u, v in zip(parts[::2], parts[1::2], strict=True)]
        lost = [b.or_(u, v) for u, v in zip(state[1:], lost, strict=True)]
        return [larger(V(b, state[0]), V(b, x)).v, *lost]

    acc, *lost = _lanes(b, p, n, start, [start, *clear], step)
    quick = b.extract_element(_halve(V(b, acc), 1, larger).v, ir.Constant(I32, 0))
    some = lost[0]
    for m in lost[1:]:
        some = b.or_(some, m)
    bits = b.bitcast(some, ir.IntType(part))
    good = b.icmp_unsigned("==", bits, ir.Constant(bits.type, 0))
    return _unless(b, good, quick, lambda: _folded(b, p, n, start, fold))


def _unless(b: Any, good: Any, quick: Any, slow: Callable[[], Any]) -> Any:
    """A value where it is known to be good, another way to it elsewhere."""
    before = b.block
    again, end = (b.function.append_basic_block(s) for s in ("again", "known"))
    b.cbranch(good, end, again)
    b.position_at_end(again)
    other = slow()
    after = b.block
    b.branch(end)
    b.position_at_end(end)
    out = b.phi(quick.type)
    out.add_incoming(quick, before)
    out.add_incoming(other, after)
    return out


def _float_product(b: Any, p: Any, n: Any, start: Any, fold: Fold) -> Any:
    """The block by lanes; where that is no normal number, all over again with the exponents apart:
    a lane may overflow, and another vanish, where the whole product and NumPy's do not."""
    quick = _folded(b, p, n, start, fold)
    t = quick.type
    info = np.finfo(np.float32 if t == F32 else np.float64)
    size = fabs(V(b, quick))
    good = (size >= float(info.tiny)) & (size < float("inf"))
    nothing = V(b, quick).eq(0.0).v

    def zero_or_scaled() -> Any:
        place = find(b, p, n, ir.Constant(t, 0.0), t)
        some = b.icmp_signed("<", place, n)
        known = b.and_(nothing, some)
        return _unless(b, known, quick, shrunk_or_scaled)

    def shrunk_or_scaled() -> Any:
        """No order of numbers of at most 1 leaves more of them than the lanes did."""
        largest = _lanes(b, p, n, start, [start], lambda s, x: [larger(s[0], b.fmul(x, x))])[0]
        most = _halve(V(b, largest), 1, lambda x, y: V(b, larger(x.v, y.v)))
        small = V(b, b.extract_element(most.v, _first())).eq(1.0).v
        return _unless(b, b.and_(nothing, small), quick, lambda: _scaled_product(b, p, n, start))

    def larger(x: Any, y: Any) -> Any:
        return b.select(b.fcmp_ordered(">", y, x), y, x)

    return _unless(b, good.v, quick, zero_or_scaled)


def _scaled_product(b: Any, p: Any, n: Any, start: Any) -> Any:
    """The product of mantissas, times two to the sum of exponents, which are apart from them after
    each step; rounded once more where it is subnormal."""
    t, count = start.type.element, start.type.count
    one = t == F32
    mantissa, whole = MANT[one], I32 if one else I64
    bias = 127 if one else 1023
    vector = ir.VectorType(whole, count)

    def const(k: int) -> Any:
        return ir.Constant(vector, [ir.Constant(whole, k)] * count)

    up = ir.Constant(start.type, [ir.Constant(t, 2.0**mantissa)] * count)

    def apart(x: Any) -> tuple[Any, Any]:
        """(mantissa of 1 to 2, exponent); zeros, infinite and no numbers are as they are."""
        field = b.lshr(b.bitcast(x, vector), const(mantissa))
        tiny = b.icmp_signed("==", b.and_(field, const(2 * bias + 1)), const(0))
        x = b.select(tiny, b.fmul(x, up, flags=("afn",)), x)
        bits = b.bitcast(x, vector)
        field = b.and_(b.lshr(bits, const(mantissa)), const(2 * bias + 1))
        odd = b.or_(
            b.icmp_signed("==", field, const(0)), b.icmp_signed("==", field, const(2 * bias + 1))
        )
        shift = b.select(odd, const(0), b.sub(field, const(bias)))
        left = b.bitcast(b.sub(bits, b.shl(shift, const(mantissa))), start.type)
        lost = b.select(b.and_(tiny, b.not_(odd)), const(mantissa), const(0))
        return left, b.sub(shift, lost)

    def step(state: list[Any], x: Any) -> list[Any]:
        acc, total = state
        part, first = apart(x)
        acc, second = apart(b.fmul(acc, part, flags=("afn",)))
        return [acc, b.add(total, b.add(first, second))]

    acc, total = _lanes(b, p, n, start, [start, const(0)], step)
    # 32 numbers below 2 cannot overflow.
    product = V(b, b.extract_element(_halve(V(b, acc), 1, _binary("fmul", "mul")).v, _first()))
    power = V(b, b.extract_element(_halve(V(b, total), 1, _binary(None, "add")).v, _first()))
    return _raised(product, power, bias).v


def _first() -> Any:
    return ir.Constant(I32, 0)


def _raised(x: V, power: V, bias: int) -> V:
    """x times 2 to an integer, of a number between 1 and 2^32, in three exact factors but for the
    last."""
    power = where(power > 3 * bias, 3 * bias, power)
    power = where(power < -3 * bias, -3 * bias, power)
    third = power / 3
    return x * pow2(third) * pow2(third) * pow2(power - third - third)


def block_reduce_complex(b: Any, p: Any, n: Any, t: Any, name: str) -> tuple[Any, Any]:
    """Sum or prod of n complex numbers with parts of type t, real and imaginary in turn."""
    if name == "sum":
        fold, one = _binary("fadd", "add"), 0.0
    else:
        fold, one = _complex_product, 1.0
    start = [ir.Constant(t, one), ir.Constant(t, 0.0)] * LANES
    whole = ir.Constant(ir.VectorType(t, 2 * LANES), start)
    twice = b.shl(n, ir.Constant(I64, 1))
    (found,) = _lanes(b, p, twice, whole, [whole], lambda s, x: [fold(V(b, s[0]), V(b, x)).v])
    acc = _halve(V(b, found), 2, fold)
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


def _lanes(b: Any, p: Any, n: Any, pad: Any, start: list[Any], step: Step) -> list[Any]:
    """What `step` makes of the start and whole groups of lanes, then of the rest, with the other
    lanes as in `pad`."""
    lanes, t = pad.type, pad.type.element
    fn, size, zero = b.function, pad.type.count, ir.Constant(I64, 0)
    loop, tail, fill, end = (fn.append_basic_block(s) for s in ("block", "tail", "fill", "end"))
    whole = b.and_(n, ir.Constant(I64, -size))
    rest = b.sub(n, whole)
    before = b.block
    b.cbranch(b.icmp_signed(">", whole, zero), loop, tail)

    b.position_at_end(loop)
    i, acc = b.phi(I64), [b.phi(x.type) for x in start]
    new = step(acc, _load(b, p, i, t, lanes))
    i_next = b.add(i, ir.Constant(I64, size))
    b.cbranch(b.icmp_signed("<", i_next, whole), loop, tail)

    b.position_at_end(tail)
    mid = [b.phi(x.type) for x in start]
    b.cbranch(b.icmp_signed(">", rest, zero), fill, end)

    b.position_at_end(fill)
    place = b.bitcast(_element(b, p, whole, t), lanes.as_pointer())
    padded = step(mid, masked_load(b, place, lanes, _size(t), below(b, rest, size), pad))
    b.branch(end)

    b.position_at_end(end)
    out = [b.phi(x.type) for x in start]
    for phi, incoming in (
        (i, ((zero, before), (i_next, loop))),
        *[(x, ((s, before), (y, loop))) for x, s, y in zip(acc, start, new, strict=True)],
        *[(x, ((s, before), (y, loop))) for x, s, y in zip(mid, start, new, strict=True)],
        *[(x, ((s, tail), (y, fill))) for x, s, y in zip(out, mid, padded, strict=True)],
    ):
        for value, block in incoming:
            phi.add_incoming(value, block)
    return out


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
    for block, spot, which in ((loop, i, bits), (tail, n, zero), (fill, whole, some)):
        start.add_incoming(spot, block)
        left.add_incoming(which, block)
    place = b.add(start, b.cttz(left, ir.Constant(ir.IntType(1), 0)))
    return b.select(b.icmp_unsigned("==", left, zero), n, place)
