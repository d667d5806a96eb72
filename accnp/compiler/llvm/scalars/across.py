"""LLVM IR for reductions over rows, whose adjacent elements belong to different results.

The functions get pointers to the rows and to the results, and 64-bit integers, and emit code that
stores the results. `columns` adds the rows to the results one after the other. `strips` reduces
each column in the order of `block.block_reduce`. Rows are processed in squares or strips of a few
columns, which do not change the bits of the results. `intrinsics/memory.py` defines the procedures
that kernels call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from accnp.compiler.llvm.scalars import cold
from accnp.compiler.llvm.scalars.block import REDUCTIONS, combine_and_identity
from accnp.compiler.llvm.scalars.ir import F32, I64, V, below, is_float, masked_load
from accnp.compiler.llvm.scalars.transpose import begin, const, loaded, loop, side, square

LANES_BYTES = 1 << 14  # memory for the lanes of a strip: half of the L1 cache
ROWS_PER_STEP = 4  # rows that are combined with a lane together
State = tuple[ir.Value, Sequence[ir.Value]]


def _extreme(b: ir.IRBuilder, name: str, signed: bool, x: ir.Value, y: ir.Value) -> ir.Value:
    """Emit the maximum or minimum of two vectors, as the functions `fmax` and `fmin` compute it."""
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
    """Return a vector of floats about whose value LLVM makes no assumptions."""
    called = f"llvm.arithmetic.fence.v{x.type.count}f{32 if x.type.element == F32 else 64}"
    fn = b.module.globals.get(called)
    return b.call(fn or ir.Function(b.module, ir.FunctionType(x.type, [x.type]), called), [x])


def columns(
    b: ir.IRBuilder, t: ir.Type, size: int, name: str, signed: bool, args: Sequence[ir.Value]
) -> None:
    """Emit ``sums[c] = combine(sums[c], source[r + c * lds])`` for each row r in order, for each
    column c. The memory of the sums has room for whole squares.
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
        if size >= 4:  # LLVM takes long to compile squares of small elements: emit them only once
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
    """Emit ``sums[c] = block_reduce(source[places[r] + c] over all rows r)`` for each column c.

    The columns are processed in strips, for which all lanes fit into the L1 cache. ROWS_PER_STEP
    rows of a lane are read together and combined with the lane. Then the lanes are combined by
    halves.
    """
    sums, source, places, rows, wide = args
    combine, identity = combine_and_identity(name, t, signed)
    n = max(2, cold.vector_bytes // size)
    lane_count = REDUCTIONS[name].lanes
    most = LANES_BYTES // (lane_count * size)
    vector = ir.VectorType(t, n)
    start = ir.Constant(vector, [ir.Constant(t, identity)] * n)
    with b.goto_entry_block():
        memory = b.alloca(ir.ArrayType(t, lane_count * most))
        memory.align = 64
        lanes = b.gep(memory, [const(0), const(0)])

    def at(p: ir.Value, *indices: ir.Value) -> ir.Value:
        for i in indices:
            p = b.gep(p, [i])
        return b.bitcast(p, vector.as_pointer())

    def join(to: ir.Value, *xs: ir.Value) -> None:
        y = b.load(to, align=size)
        for x in xs:
            y = combine(V(b, y), V(b, x)).v
        if REDUCTIONS[name].order and is_float(t):  # LLVM would store the larger ones with a mask
            y = _fence_floats(b, y)
        b.store(y, to, align=size)

    with loop(b, wide, most) as c:
        left = b.sub(wide, c)
        left = b.select(b.icmp_signed("<", left, const(most)), left, const(most))
        whole = b.and_(left, const(-n))
        rest = b.sub(left, whole)
        mask, undef = below(b, rest, n), ir.Constant(vector, ir.Undefined)
        across = b.and_(b.add(left, const(n - 1)), const(-n))
        with loop(b, b.mul(across, const(lane_count)), n) as i:
            b.store(start, at(lanes, i), align=size)

        def add_rows(first: ir.Value, number: ir.Value, count: int, c: ir.Value = c) -> None:
            lane = b.gep(lanes, [b.mul(number, across)])
            numbers = [b.add(first, b.add(number, const(k * lane_count))) for k in range(count)]
            rows_of_lane = [b.gep(source, [b.add(b.load(b.gep(places, [r])), c)]) for r in numbers]
            with loop(b, whole, n) as i:
                join(at(lane, i), *[b.load(at(row, i), align=size) for row in rows_of_lane])
            with b.if_then(b.icmp_signed("<", whole, left)):
                last = [
                    masked_load(b, at(row, whole), vector, size, mask, undef)
                    for row in rows_of_lane
                ]
                join(at(lane, whole), *last)

        whole_rows = b.and_(rows, const(-ROWS_PER_STEP * lane_count))
        with (
            loop(b, whole_rows, ROWS_PER_STEP * lane_count) as r,
            loop(b, const(lane_count), 1) as k,
        ):
            add_rows(r, k, ROWS_PER_STEP)
        with loop(b, b.sub(rows, whole_rows), 1) as r:
            lane = b.and_(r, const(lane_count - 1))
            add_rows(b.add(whole_rows, b.sub(r, lane)), lane, 1)
        for level in range(1, lane_count.bit_length()):
            half = b.mul(across, const(lane_count >> level))
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
    """Emit a loop that applies `step` to the state while `more(number of the row)` is true, and
    return the final state."""
    kinds = [x.type for x in state[1]]
    before = b.block
    body, end = (b.append_basic_block(s) for s in ("again", "end"))
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
