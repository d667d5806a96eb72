"""Transposition of a tile in registers: what lies across the loops of a kernel is laid along them.

In: pointers and 64-bit integers. Out: stores. A square of elements, one row of it to a vector,
goes through log2 stages, each of which swaps blocks between two rows; loads and stores are whole
vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from . import cold
from .ir import I32, I64, below, masked_load

SIDE = 16  # rows and columns of the destination are written in multiples of this at most


def _const(k: int) -> Any:
    return ir.Constant(I64, k)


def side(size: int) -> int:
    """Rows of the square for elements of this many bytes."""
    return max(2, min(SIDE, cold.vector_bytes // size))


def transpose(b: Any, t: Any, size: int, args: Sequence[Any]) -> None:
    """to[r * ldt + c] = source[r + c * lds] for r below rows and c below columns.

    `t` is an integer or float type of `size` bytes. The destination has room for whole squares;
    what lies beyond the rows and columns there is not kept.
    """
    to, ldt, source, lds, rows, columns = args
    n = side(size)
    pointer = ir.VectorType(t, n).as_pointer()
    with _loop(b, columns, n) as c, _loop(b, rows, n) as r:
        left = b.sub(rows, r)
        last = b.sub(columns, _const(1))
        places = []
        for i in range(n):
            column = b.add(c, _const(i))
            column = b.select(b.icmp_signed("<", column, last), column, last)
            places.append(b.gep(source, [b.add(r, b.mul(column, lds))]))
        whole, part, join = (b.append_basic_block(s) for s in ("whole", "part", "join"))
        b.cbranch(b.icmp_signed(">=", left, _const(n)), whole, part)
        b.position_at_end(whole)
        full = [b.load(b.bitcast(p, pointer), align=size) for p in places]
        b.branch(join)
        b.position_at_end(part)
        mask, vector = below(b, left, n), ir.VectorType(t, n)
        off = ir.Constant(vector, ir.Undefined)
        some = [masked_load(b, p, vector, size, mask, off) for p in places]
        b.branch(join)
        b.position_at_end(join)
        lanes = []
        for x, y in zip(full, some, strict=True):
            lane = b.phi(x.type)
            lane.add_incoming(x, whole)
            lane.add_incoming(y, part)
            lanes.append(lane)
        for k, lane in enumerate(_square(b, lanes)):
            row = b.gep(to, [b.add(b.mul(b.add(r, _const(k)), ldt), c)])
            b.store(lane, b.bitcast(row, pointer), align=size)


def _square(b: Any, lanes: list[Any]) -> list[Any]:
    """The transpose of a square of vectors."""
    n = len(lanes)
    step = 1
    while step < n:
        low = [k if not k & step else k - step + n for k in range(n)]
        high = [k + step if not k & step else k + n for k in range(n)]
        out = list(lanes)
        for i in range(n):
            if not i & step:
                pair = (lanes[i], lanes[i + step])
                out[i], out[i + step] = (b.shuffle_vector(*pair, _order(o)) for o in (low, high))
        lanes = out
        step *= 2
    return lanes


def _order(numbers: Sequence[int]) -> Any:
    return ir.Constant(ir.VectorType(I32, len(numbers)), list(numbers))


class _loop:
    """A loop over 0, step... below n; `with` gives the index."""

    def __init__(self, b: Any, n: Any, step: int) -> None:
        self.b, self.n, self.step = b, n, step

    def __enter__(self) -> Any:
        b = self.b
        before = b.block
        self.body, self.end = (b.append_basic_block(s) for s in ("tile", "done"))
        b.cbranch(b.icmp_signed(">", self.n, _const(0)), self.body, self.end)
        b.position_at_end(self.body)
        self.index = b.phi(I64)
        self.index.add_incoming(_const(0), before)
        return self.index

    def __exit__(self, *_: object) -> None:
        b = self.b
        following = b.add(self.index, _const(self.step), flags=("nsw",))
        self.index.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed("<", following, self.n), self.body, self.end)
        b.position_at_end(self.end)
