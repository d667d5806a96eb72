"""Folds of elements that lie across: next to each other in memory are those that never meet.

In: pointers and 64-bit integers. Out: stores. `columns` joins rows to sums one after the other,
`strips` has the order of `block_reduce`; no square and no strip shows in a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from . import cold
from .block import folds, lane_count
from .ir import I1, I64, V, below, is_float, masked_load
from .transpose import begin, const, loaded, loop, side, square

VECTORS = 4  # of a strip: so many chains of additions do not wait for each other
State = tuple[Any, list[Any]]


def _extreme(b: Any, name: str, signed: bool, x: Any, y: Any) -> Any:
    """What `fmax` and `fmin` do, with vectors."""
    t = x.type
    if not is_float(t.element):
        op = ">" if name == "max" else "<"
        larger = (b.icmp_signed if signed else b.icmp_unsigned)(op, x, y)
        return b.select(larger, x, y)
    width = 32 if isinstance(t.element, ir.FloatType) else 64
    called = f"llvm.{name}imum.v{t.count}f{width}"
    fn = b.module.globals.get(called)
    fn = fn or ir.Function(b.module, ir.FunctionType(t, [t, t]), called)
    return b.call(fn, [x, y])


def columns(b: Any, t: Any, size: int, name: str, signed: bool, args: Sequence[Any]) -> None:
    """sums[c] joined with source[r + c * lds], for each r below rows in turn; c below columns.

    There is room for whole squares behind the sums.
    """
    sums, source, lds, rows, wide = args
    fold, identity = folds(name, t, signed)
    n = side(size)
    pointer = ir.VectorType(t, n).as_pointer()

    def join(x: Any, y: Any) -> Any:
        if name in ("max", "min"):
            return _extreme(b, name, signed, x, y)
        return fold(V(b, x), V(b, y)).v

    whole = b.and_(rows, const(-n))
    with loop(b, wide, n) as c:
        place = b.bitcast(b.gep(sums, [c]), pointer)
        starts = begin(b, size, (source, lds, wide), c)

        def step(r: Any, state: list[Any], left: Any = None, starts: list[Any] = starts) -> State:
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


def strips(b: Any, t: Any, size: int, name: str, signed: bool, args: Sequence[Any]) -> None:
    """sums[c] = the block fold of source[places[r] + c] over r below rows; c below columns.

    A strip of columns goes through the lanes of the block, each of which is a sum in registers, in
    the order in which halves meet: lanes that are a half apart follow each other, and a sum waits
    on one of few levels for the other one. There is room for a whole strip behind the sums.
    """
    sums, source, places, rows, wide = args
    fold, identity = folds(name, t, signed)
    n = max(2, cold.vector_bytes // size)
    many = lane_count(name)
    count = VECTORS if cold.vector_bytes >= 64 or size >= 4 else 1  # loads under a mask
    vector = ir.VectorType(t, n)
    pointer = vector.as_pointer()
    start = ir.Constant(vector, [ir.Constant(t, identity)] * n)
    off = ir.Constant(vector, ir.Undefined)
    levels = many.bit_length()
    with b.goto_entry_block():
        waiting = b.alloca(ir.ArrayType(vector, count * levels))
        waiting.align = min(64, size * n)

    def level(k: Any, s: int) -> Any:
        return b.gep(waiting, [const(0), b.add(b.mul(k, const(count)), const(s))])

    def join(x: Any, y: Any) -> Any:
        return fold(V(b, x), V(b, y)).v

    with loop(b, wide, n * count) as c:
        masks = [below(b, b.sub(wide, b.add(c, const(s * n))), n) for s in range(count)]

        def row(r: Any) -> list[Any]:
            first = b.add(b.load(b.gep(places, [r])), c)
            found = []
            for s, mask in enumerate(masks):
                p = b.bitcast(b.gep(source, [b.add(first, const(s * n))]), pointer)
                found.append(masked_load(b, p, vector, size, mask, off))
            return found

        with loop(b, const(many), 1) as k:
            lane = b.lshr(b.bitreverse(k), const(65 - levels))
            _, found = _repeat(
                b,
                (lane, [start] * count),
                lambda r, acc: (b.add(r, const(many)), list(map(join, acc, row(r)))),
                lambda r: b.icmp_signed("<", r, rows),
            )
            free, found = _repeat(
                b,
                (const(0), found),
                lambda up, xs: (
                    b.add(up, const(1)),
                    [join(b.load(level(up, s)), x) for s, x in enumerate(xs)],
                ),
                lambda up, k=k: b.trunc(b.lshr(k, up), I1),
            )
            for s, x in enumerate(found):
                b.store(x, level(free, s))
        for s in range(count):
            place = b.bitcast(b.gep(sums, [b.add(c, const(s * n))]), pointer)
            b.store(b.load(level(const(levels - 1), s)), place, align=size)


def _repeat(b: Any, state: State, step: Callable[[Any, list[Any]], State], more: Any) -> State:
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
