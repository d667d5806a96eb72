"""LLVM IR that transposes a tile in registers.

`transpose` gets an IR builder, pointers and 64-bit integers, and emits code that stores the
transposed tile. It is for operands that are contiguous across the loops of a kernel: the copy is
contiguous along them. A square of elements, with one row in each vector, goes through log2 stages,
each of which swaps blocks between two rows; loads and stores are whole vectors.
`intrinsics/memory.py` defines the procedure for kernels, and `across.py` reduces columns with the
same squares.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from accnp.compiler.llvm.scalars import cold
from accnp.compiler.llvm.scalars.ir import I32, I64, below, masked_load

SIDE = 16  # the largest number of rows of a square


def const(k: int) -> ir.Constant:
    return ir.Constant(I64, k)


def side(size: int) -> int:
    """Return the number of rows of a square of elements of `size` bytes."""
    return max(2, min(SIDE, cold.vector_bytes // size))


def transpose(b: ir.IRBuilder, t: ir.Type, size: int, args: Sequence[ir.Value]) -> None:
    """Write to[r * ldt + c] = source[r + c * lds] for r < rows and c < columns.

    `t` is an integer or float type of `size` bytes. The destination has room for whole squares, and
    elements after its rows and columns are overwritten.
    """
    to, ldt, source, lds, rows, columns = args
    n = side(size)
    pointer = ir.VectorType(t, n).as_pointer()
    with loop(b, columns, n) as c:
        starts = begin(b, size, (source, lds, columns), c)
        with loop(b, rows, n) as r:
            left = b.sub(rows, r)
            whole, part, join = (b.append_basic_block(s) for s in ("whole", "part", "join"))
            b.cbranch(b.icmp_signed(">=", left, const(n)), whole, part)
            b.position_at_end(whole)
            full = loaded(b, t, size, starts, r)
            b.branch(join)
            b.position_at_end(part)
            some = loaded(b, t, size, starts, r, left)
            b.branch(join)
            b.position_at_end(join)
            lanes: list[ir.PhiInstr] = []
            for x, y in zip(full, some, strict=True):
                lane = b.phi(x.type)
                lane.add_incoming(x, whole)
                lane.add_incoming(y, part)
                lanes.append(lane)
            for k, lane in enumerate(square(b, lanes)):
                row = b.gep(to, [b.add(b.mul(b.add(r, const(k)), ldt), c)])
                b.store(lane, b.bitcast(row, pointer), align=size)


def begin(b: ir.IRBuilder, size: int, tile: Sequence[ir.Value], c: ir.Value) -> Sequence[ir.Value]:
    """Return the addresses of the columns of a square, from c on, in a tile (source, lds,
    columns)."""
    source, lds, columns = tile
    last = b.sub(columns, const(1))
    addresses: list[ir.Value] = []
    for i in range(side(size)):
        column = b.add(c, const(i))
        column = b.select(b.icmp_signed("<", column, last), column, last)
        addresses.append(b.gep(source, [b.mul(column, lds)]))
    return addresses


def loaded(
    b: ir.IRBuilder,
    t: ir.Type,
    size: int,
    starts: Sequence[ir.Value],
    r: ir.Value,
    left: ir.Value | None = None,
    beyond: float | None = None,
) -> Sequence[ir.Value]:
    """Load a vector of each column, from row r on. If only `left` rows are left, the other lanes
    are `beyond`."""
    n = side(size)
    vector = ir.VectorType(t, n)
    places = [b.bitcast(b.gep(p, [r]), vector.as_pointer()) for p in starts]
    if left is None:
        return [b.load(p, align=size) for p in places]
    mask = below(b, left, n)
    off = ir.Constant(vector, ir.Undefined if beyond is None else [ir.Constant(t, beyond)] * n)
    return [masked_load(b, p, vector, size, mask, off) for p in places]


def square(b: ir.IRBuilder, lanes: Sequence[ir.Value]) -> Sequence[ir.Value]:
    """Return the transpose of a square of vectors."""
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


def _order(numbers: Sequence[int]) -> ir.Value:
    return ir.Constant(ir.VectorType(I32, len(numbers)), list(numbers))


class loop:
    """A context manager that writes a loop over 0, step... below n, and returns the index."""

    def __init__(self, b: ir.IRBuilder, n: ir.Value, step: int) -> None:
        self.b, self.n, self.step = b, n, step

    def __enter__(self) -> ir.Value:
        b = self.b
        before = b.block
        self.body, self.end = (b.append_basic_block(s) for s in ("tile", "done"))
        b.cbranch(b.icmp_signed(">", self.n, const(0)), self.body, self.end)
        b.position_at_end(self.body)
        self.index = b.phi(I64)
        self.index.add_incoming(const(0), before)
        return self.index

    def __exit__(self, *_: object) -> None:
        b = self.b
        following = b.add(self.index, const(self.step), flags=("nsw",))
        self.index.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed("<", following, self.n), self.body, self.end)
        b.position_at_end(self.end)
