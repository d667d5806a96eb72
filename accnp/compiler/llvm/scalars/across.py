"""Reductions of elements that lie across: next to each other in memory are those that never meet.

In: pointers and 64-bit integers. Out: stores. `columns` joins rows to sums one after the other,
`strips` has the order of `block_reduce`; no square and no strip shows in a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from accnp.compiler.llvm.scalars import cold
from accnp.compiler.llvm.scalars.block import REDUCTIONS, combine_and_identity, lane_count
from accnp.compiler.llvm.scalars.ir import F32, I64, V, below, is_float, masked_load
from accnp.compiler.llvm.scalars.transpose import begin, const, loaded, loop, side, square

LANES_BYTES = 1 << 14  # of the lanes of a strip: half of the nearest cache
TOGETHER = 4  # rows of a lane that are joined with it at a time
State = tuple[ir.Value, Sequence[ir.Value]]


def _extreme(b: ir.IRBuilder, name: str, signed: bool, x: ir.Value, y: ir.Value) -> ir.Value:
    """What `fmax` and `fmin` do, with vectors."""
    t = x.type
    if not is_float(t.element):
        compare = b.icmp_signed if signed else b.icmp_unsigned
        larger = compare(REDUCTIONS[name].order, x, y)
        return b.select(larger, x, y)
    width = 32 if isinstance(t.element, ir.FloatType) else 64
    called = f"llvm.{name}imum.v{t.count}f{width}"
    fn = b.module.globals.get(called)
    fn = fn or ir.Function(b.module, ir.FunctionType(t, [t, t]), called)
    return b.call(fn, [x, y])


def _fence_floats(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """A vector of floats, as something that nothing is known about."""
    called = f"llvm.arithmetic.fence.v{x.type.count}f{32 if x.type.element == F32 else 64}"
    fn = b.module.globals.get(called)
    return b.call(fn or ir.Function(b.module, ir.FunctionType(x.type, [x.type]), called), [x])


def columns(
    b: ir.IRBuilder, t: ir.Type, size: int, name: str, signed: bool, args: Sequence[ir.Value]
) -> None:
    """sums[c] joined with source[r + c * lds], for each r below rows in turn; c below columns.

    There is room for whole squares behind the sums.
    """
    sums, source, lds, rows, wide = args
    combine, identity = combine_and_identity(name, t, signed)
    n = side(size)
    pointer = ir.VectorType(t, n).as_pointer()

    def join(x: ir.Value, y: ir.Value) -> ir.Value:
        if REDUCTIONS[name].order:
            return _extreme(b, name, signed, x, y)
        return combine(V(b, x), V(b, y)).v

    whole = b.and_(rows, const(-n))
    with loop(b, wide, n) as c:
        place = b.bitcast(b.gep(sums, [c]), pointer)
        starts = begin(b, size, (source, lds, wide), c)

        def step(
            r: ir.Value,
            state: Sequence[ir.Value],
            left: ir.Value | None = None,
            starts: Sequence[ir.Value] = starts,
        ) -> State:
            (acc,) = state
            for x in square(b, loaded(b, t, size, starts, r, left, identity)):
                acc = join(acc, x)
            return b.add(r, const(n)), [acc]

        state = const(0), [b.load(place, align=size)]
        if size >= 4:  # squares of small elements take LLVM long: one text of them is enough
            state = _repeat(b, state, step, lambda r: b.icmp_signed("<", r, whole))
        state = _repeat(
            b,
            state,
            lambda r, acc: step(r, acc, b.sub(rows, r)),
            lambda r: b.icmp_signed("<", r, rows),
        )
        b.store(state[1][0], place, align=size)


def strips(
    b: ir.IRBuilder, t: ir.Type, size: int, name: str, signed: bool, args: Sequence[ir.Value]
) -> None:
    """sums[c] = the block reduction of source[places[r] + c] over r below rows; c below columns.

    Rows are read a strip of columns of each, those of a lane TOGETHER at a time, and joined with
    the lane of the block that they belong to; lanes are in the nearest cache. Then halves of the
    lanes meet.
    """
    sums, source, places, rows, wide = args
    combine, identity = combine_and_identity(name, t, signed)
    n = max(2, cold.vector_bytes // size)
    many = lane_count(name)
    most = LANES_BYTES // (many * size)
    vector = ir.VectorType(t, n)
    start = ir.Constant(vector, [ir.Constant(t, identity)] * n)
    with b.goto_entry_block():
        room = b.alloca(ir.ArrayType(t, many * most))
        room.align = 64
        lanes = b.gep(room, [const(0), const(0)])

    def at(p: ir.Value, *indices: ir.Value) -> ir.Value:
        for i in indices:
            p = b.gep(p, [i])
        return b.bitcast(p, vector.as_pointer())

    def join(to: ir.Value, *xs: ir.Value) -> None:
        y = b.load(to, align=size)
        for x in xs:
            y = combine(V(b, y), V(b, x)).v
        if REDUCTIONS[name].order and is_float(t):  # LLVM would store the larger ones under a mask
            y = _fence_floats(b, y)
        b.store(y, to, align=size)

    with loop(b, wide, most) as c:
        left = b.sub(wide, c)
        left = b.select(b.icmp_signed("<", left, const(most)), left, const(most))
        whole = b.and_(left, const(-n))
        rest = b.sub(left, whole)
        mask, off = below(b, rest, n), ir.Constant(vector, ir.Undefined)
        across = b.and_(b.add(left, const(n - 1)), const(-n))
        with loop(b, b.mul(across, const(many)), n) as i:
            b.store(start, at(lanes, i), align=size)

        def add_rows(first: ir.Value, number: ir.Value, count: int, c: ir.Value = c) -> None:
            lane = b.gep(lanes, [b.mul(number, across)])
            numbers = [b.add(first, b.add(number, const(k * many))) for k in range(count)]
            those = [b.gep(source, [b.add(b.load(b.gep(places, [r])), c)]) for r in numbers]
            with loop(b, whole, n) as i:
                join(at(lane, i), *[b.load(at(row, i), align=size) for row in those])
            with b.if_then(b.icmp_signed("<", whole, left)):
                last = [masked_load(b, at(row, whole), vector, size, mask, off) for row in those]
                join(at(lane, whole), *last)

        together = b.and_(rows, const(-TOGETHER * many))
        with loop(b, together, TOGETHER * many) as r, loop(b, const(many), 1) as k:
            add_rows(r, k, TOGETHER)
        with loop(b, b.sub(rows, together), 1) as r:
            lane = b.and_(r, const(many - 1))
            add_rows(b.add(together, b.sub(r, lane)), lane, 1)
        for level in range(1, many.bit_length()):
            half = b.mul(across, const(many >> level))
            with loop(b, half, n) as i:
                join(at(lanes, i), b.load(at(lanes, i, half), align=size))
        with loop(b, across, n) as i:
            b.store(b.load(at(lanes, i), align=size), at(sums, c, i), align=size)


def _repeat(
    b: ir.IRBuilder,
    state: State,
    step: Callable[[ir.Value, Sequence[ir.Value]], State],
    more: Callable[[ir.Value], ir.Value],
) -> State:
    """What `step` makes of the state, again and again, while `more` says so of its number."""
    kinds = [x.type for x in state[1]]
    before = b.block
    body, end = (b.append_basic_block(s) for s in ("again", "enough"))
    b.cbranch(more(state[0]), body, end)
    b.position_at_end(body)
    number, values = b.phi(I64), [b.phi(t) for t in kinds]
    following = step(number, values)
    last = b.block
    b.cbranch(more(following[0]), body, end)
    b.position_at_end(end)
    number_after, values_after = b.phi(I64), [b.phi(t) for t in kinds]
    for phis in ((number, values), (number_after, values_after)):
        for block, (k, xs) in ((before, state), (last, following)):
            phis[0].add_incoming(k, block)
            for phi, x in zip(phis[1], xs, strict=True):
                phi.add_incoming(x, block)
    return number_after, values_after
