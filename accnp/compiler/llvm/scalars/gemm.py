"""LLVM IR for matrix products: tiles of the result in registers, and copies that pack panels.

The functions get an IR builder, pointers and 64-bit integers, and emit code that stores results.
Every element of a tile is one chain of `fma` over the inner index, in order, so neither tile sizes
nor layouts change a bit. A 32-bit integer holds two 16-bit integers, of two steps; one instruction,
which most processors have, adds up their products to 32-bit sums. `intrinsics/products.py` defines
the procedures that the library kernels call. The scheme is that of Goto and van de Geijn, Anatomy
of high-performance matrix multiplication (ACM TOMS 34, 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from llvmlite import ir

from accnp.compiler.library.sizes import CHAIN_BYTES
from accnp.compiler.llvm.scalars import cold
from accnp.compiler.llvm.scalars.ir import I1, I32, I64, call_external, fetch

# Prefetch distance in bytes. The processor's own prefetcher continues past the ends of rows.
FAR = 1024


def _size(t: ir.Type) -> int:
    return t.width // 8 if isinstance(t, ir.IntType) else 8 if isinstance(t, ir.DoubleType) else 4


def _const(k: int) -> ir.Constant:
    return ir.Constant(I64, k)


def _uses_whole_vectors() -> bool:
    """Return whether loops use masks only for partial vectors. Masks of AVX2 take registers that
    sums need, and a masked store takes 12 cycles on some processors."""
    return cold.vector_bytes < 64


_Load = Callable[[ir.Value], ir.Value]


class _Vectors:
    """Loads, stores and arithmetic on vectors of one type, whose lanes may be masked."""

    def __init__(self, b: ir.IRBuilder, t: ir.Type, nbytes: int = 0) -> None:
        self.b, self.t, self.width = b, t, (nbytes or cold.vector_bytes) // _size(t)
        self.type = ir.VectorType(t, self.width)
        self.mask = ir.VectorType(I1, self.width)
        self.pairs = isinstance(t, ir.IntType)
        self.zero = ir.Constant(self.type, [ir.Constant(t, 0 if self.pairs else 0.0)] * self.width)
        self.suffix = f"v{self.width}{'i' if self.pairs else 'f'}{8 * _size(t)}"

    def _call(self, name: str, result: ir.Type, *args: ir.Value) -> ir.Value:
        return call_external(self.b, name, result, args)

    def splat(self, x: ir.Value, t: ir.VectorType | None = None) -> ir.Value:
        """Return a vector with a value in every lane."""
        t = self.type if t is None else t
        undef = ir.Constant(t, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(I32, t.count), [0] * t.count)
        one = self.b.insert_element(undef, x, ir.Constant(I32, 0))
        return self.b.shuffle_vector(one, undef, zeros)

    def below(self, n: ir.Value, first: int = 0) -> ir.Value:
        """Return the mask of lanes whose number, counted from `first`, is less than n.

        The numbers are compared as 32-bit integers. For 16 lanes of 64 bits, LLVM would join two
        masks in each step of a loop, by an instruction that occupies the port of one of the two
        `fma` units of a Xeon.
        """
        b, most = self.b, _const(first + self.width)
        low = b.trunc(b.select(b.icmp_signed("<", n, most), n, most), I32)
        t = ir.VectorType(I32, self.width)
        numbers = ir.Constant(t, [ir.Constant(I32, first + k) for k in range(self.width)])
        return b.icmp_signed("<", numbers, self.splat(low, t))

    def at(self, p: ir.Value, k: int = 0) -> ir.Value:
        """Return a pointer to the vector that starts k elements after p."""
        return self.b.bitcast(self.b.gep(p, [_const(k)]) if k else p, self.type.as_pointer())

    def load(self, p: ir.Value, mask: ir.Value) -> ir.Value:
        """Load a vector. Lanes that are not in the mask are zero, and their memory is not read."""
        align = ir.Constant(I32, _size(self.t))
        name = f"llvm.masked.load.{self.suffix}.p0"
        return self._call(name, self.type, p, align, mask, self.zero)

    def store(self, x: ir.Value, p: ir.Value, mask: ir.Value) -> None:
        align = ir.Constant(I32, _size(self.t))
        self._call(f"llvm.masked.store.{self.suffix}.p0", ir.VoidType(), x, p, align, mask)

    def load_all(self, p: ir.Value) -> ir.Value:
        return self.b.load(p, align=_size(self.t))

    def store_all(self, x: ir.Value, p: ir.Value) -> None:
        self.b.store(x, p, align=_size(self.t))

    def gather(self, p: ir.Value, offsets: ir.Value, mask: ir.Value) -> ir.Value:
        """Load the elements at offsets from a pointer. Lanes that are not in the mask are zero."""
        align = ir.Constant(I32, _size(self.t))
        size = self.splat(_const(_size(self.t)), offsets.type)
        start = self.splat(self.b.ptrtoint(p, I64), offsets.type)
        places = self.b.add(start, self.b.mul(offsets, size))
        pointers = self.b.inttoptr(places, ir.VectorType(self.t.as_pointer(), self.width))
        name = f"llvm.masked.gather.{self.suffix}.v{self.width}p0"
        return self._call(name, self.type, pointers, align, mask, self.zero)

    def fma(self, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
        if self.pairs:
            return self.b.add(z, self._of_pairs(x, y))
        return self._call(f"llvm.fma.{self.suffix}", self.type, x, y, z)

    def _of_pairs(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """Return the sum of the products of the lower halves and of the upper halves of words, in
        the form that LLVM recognizes as one instruction."""
        b, both = self.b, ir.VectorType(self.t, 2 * self.width)
        halves, places = ir.VectorType(ir.IntType(16), both.count), ir.VectorType(I32, self.width)
        left, right = [b.sext(b.bitcast(each, halves), both) for each in (x, y)]
        z = b.mul(left, right)
        lower, upper = (
            b.shuffle_vector(z, z, ir.Constant(places, [*range(k, both.count, 2)])) for k in (0, 1)
        )
        return b.add(lower, upper)

    def numbers(self, of: Callable[[int], int] = lambda k: k) -> ir.Value:
        """Return a constant vector of integers that depend on the lane."""
        t = ir.VectorType(I64, self.width)
        return ir.Constant(t, [ir.Constant(I64, of(k)) for k in range(self.width)])


class _Adding:
    """Stores that overwrite the values in memory (0), add to them (1) or, except for integers,
    subtract from them (-1)."""

    def __init__(self, v: _Vectors, how: ir.Value) -> None:
        b, self.v = v.b, v
        self.accumulates = v.splat(b.icmp_signed("!=", how, _const(0)), v.mask)
        if not v.pairs:
            minus = b.icmp_signed("<", how, _const(0))
            self.sign = v.splat(b.select(minus, ir.Constant(v.t, -1.0), ir.Constant(v.t, 1.0)))

    def __call__(self, x: ir.Value, place: ir.Value, mask: ir.Value) -> None:
        v = self.v
        old = v.load(place, v.b.and_(mask, self.accumulates))
        v.store(self.sum(x, old), place, mask)

    def sum(self, x: ir.Value, old: ir.Value) -> ir.Value:
        return self.v.b.add(old, x) if self.v.pairs else self.v.fma(self.sign, x, old)


def multiply(
    b: ir.IRBuilder, rows: int, vectors: int, parts: int, args: Sequence[ir.Value]
) -> None:
    """Write c (op)= a @ b for m rows and n columns of c, at most `rows` and `vectors` * lanes.

    a[i, p] is at a + i * rsa + p * csa. If `parts` is 2, its imaginary part is next to it, and each
    p has two rows of b. Rows of b and c are contiguous; without AVX-512, those of b are as wide as
    the tile. `how` is 0 to set c, 1 to add, -1 to subtract; c is not read if it is set.
    """
    k, a, rsa, csa, pb, ldb, c, ldc, m, n, how = args
    last = b.sub(m, _const(1))
    starts = [a]
    for i in range(1, rows):
        starts.append(b.gep(a, [b.mul(_clamp_row(b, i, m, last), rsa)]))
    step = b.mul(ldb, _const(parts))

    def reach(p: ir.Value) -> tuple[ir.Value, Sequence[ir.Value]]:
        first = b.gep(pb, [b.mul(p, step)])
        return b.mul(p, csa), [first, b.gep(first, [ldb])][:parts]

    places = [lambda i=i: b.gep(c, [b.mul(_const(i), ldc)]) for i in range(rows)]
    _tile(b, vectors, (k, m, n, how), starts, reach, places)


def multiply_indirect(b: ir.IRBuilder, rows: int, vectors: int, args: Sequence[ir.Value]) -> None:
    """Write the product of `multiply` for matrices whose rows and steps are at offsets in tables.

    a[i, p] is at a + down[i] + along[p], row p of b at b + across[p], and row i of c at c + out[i].
    """
    k, a, down, along, pb, across, c, out, m, n, how = args
    last = b.sub(m, _const(1))

    def entry(table: ir.Value, i: ir.Value) -> ir.Value:
        return b.load(b.gep(table, [i]))

    starts = [b.gep(a, [entry(down, _clamp_row(b, i, m, last))]) for i in range(rows)]

    def reach(p: ir.Value) -> tuple[ir.Value, Sequence[ir.Value]]:
        return entry(along, p), [b.gep(pb, [entry(across, p)])]

    places = [lambda i=i: b.gep(c, [entry(out, _const(i))]) for i in range(rows)]
    _tile(b, vectors, (k, m, n, how), starts, reach, places)


def _clamp_row(b: ir.IRBuilder, i: int, m: ir.Value, last: ir.Value) -> ir.Value:
    """Return the index of a row, or of the last row if there are fewer rows."""
    if i == 0:
        return _const(0)
    return b.select(b.icmp_signed("<", _const(i), m), _const(i), last)


def _tile(
    b: ir.IRBuilder,
    vectors: int,
    sizes: Sequence[ir.Value],
    starts: Sequence[ir.Value],
    reach: Callable[[ir.Value], tuple[ir.Value, Sequence[ir.Value]]],
    places: Sequence[Callable[[], ir.Value]],
) -> None:
    """Write the code of a tile of c. `starts` are the addresses of the rows of a, and `places`
    return those of the rows of c. `reach` returns, for a step, the offset in a row of a, and the
    addresses of the rows of b."""
    k, m, n, how = sizes
    fn, v = b.function, _Vectors(b, starts[0].type.pointee)
    masks = [v.below(n, j * v.width) for j in range(vectors)]
    before = b.block
    loop, done = (fn.append_basic_block(s) for s in ("inner", "done"))
    b.cbranch(b.icmp_signed(">", k, _const(0)), loop, done)

    b.position_at_end(loop)
    p = b.phi(I64)
    acc = [[b.phi(v.type) for _ in range(vectors)] for _ in starts]
    new = acc
    along, rows_b = reach(p)
    for part, row_b in enumerate(rows_b):
        ys: list[ir.Value] = []
        for j, mask in enumerate(masks):
            place = v.at(row_b, j * v.width)
            ys.append(v.load_all(place) if _uses_whole_vectors() else v.load(place, mask))
        offset = b.add(along, _const(part)) if part else along
        xs = [v.splat(b.load(b.gep(start, [offset]))) for start in starts]
        new = [
            [v.fma(x, y, z) for y, z in zip(ys, row, strict=True)]
            for x, row in zip(xs, new, strict=True)
        ]
    _count(b, p, 1, k, before, loop, done)

    b.position_at_end(done)
    sums = [[b.phi(v.type) for _ in range(vectors)] for _ in starts]
    for i in range(len(starts)):
        for j in range(vectors):
            for phi in (acc[i][j], sums[i][j]):
                phi.add_incoming(v.zero, before)
                phi.add_incoming(new[i][j], loop)
    store = partial(_store, v, (m, n), places, masks)
    if not _uses_whole_vectors():
        store(sums, _Adding(v, how))
        return
    with b.if_else(b.icmp_signed("==", how, _const(0))) as (setting, adding):
        with setting:  # adds 0, as `_Adding` does, so that no sum is -0
            store(sums if v.pairs else [[b.fadd(x, v.zero) for x in row] for row in sums], None)
        with adding:
            store(sums, _Adding(v, how))


def _store(
    v: _Vectors,
    sizes: Sequence[ir.Value],
    places: Sequence[Callable[[], ir.Value]],
    masks: Sequence[ir.Value],
    sums: Sequence[Sequence[ir.Value]],
    add: _Adding | None,
) -> None:
    """Store the rows of a tile that exist, or add them to the values in memory."""
    b, (m, n) = v.b, sizes
    end = b.append_basic_block("end")
    for i, place in enumerate(places):
        row = place()
        for j, (x, mask) in enumerate(zip(sums[i], masks, strict=True)):
            to = v.at(row, j * v.width)
            if not _uses_whole_vectors() and add:
                add(x, to, mask)
                continue
            with b.if_else(b.icmp_signed(">=", n, _const((j + 1) * v.width))) as (yes, no):
                with yes:
                    v.store_all(add.sum(x, v.load_all(to)) if add else x, to)
                with no:
                    v.store(add.sum(x, v.load(to, mask)) if add else x, to, mask)
        if i + 1 < len(places):
            below = b.append_basic_block("row")
            b.cbranch(b.icmp_signed(">", m, _const(i + 1)), below, end)
            b.position_at_end(below)
    b.branch(end)
    b.position_at_end(end)


def _count(
    b: ir.IRBuilder,
    p: ir.PhiInstr,
    step: int,
    stop: ir.Value,
    before: ir.Block,
    loop: ir.Block,
    after: ir.Block,
) -> None:
    """Write the end of a loop over p from 0 to stop."""
    p.add_incoming(_const(0), before)
    following = b.add(p, _const(step))
    p.add_incoming(following, loop)
    b.cbranch(b.icmp_signed("<", following, stop), loop, after)


def dots(b: ir.IRBuilder, rows: int, args: Sequence[ir.Value]) -> None:
    """Write c[j] (op)= the sum of x[p] * b[j, p] for j < n, where rows of b are contiguous.

    Step p goes to lane p modulo the number of lanes, and the lanes are combined by halves. The code
    prefetches what is read FAR bytes later, in these rows or at the beginning of the next ones.
    """
    k, x, pb, ldb, c, n, how = args
    v = _Vectors(b, x.type.pointee, CHAIN_BYTES)
    last = b.sub(n, _const(1))
    starts = [pb]
    for i in range(1, rows):  # for missing rows, the last one is read
        row = b.select(b.icmp_signed("<", _const(i), n), _const(i), last)
        starts.append(b.gep(pb, [b.mul(row, ldb)]))

    def step(p: ir.Value, acc: Sequence[ir.Value], load: _Load) -> Sequence[ir.Value]:
        factor = load(v.at(b.gep(x, [p])))
        far = b.add(p, _const(FAR // _size(v.t)))
        following = b.add(b.sub(far, k), b.mul(ldb, _const(rows)))
        far = b.select(b.icmp_signed("<", far, k), far, following)
        for start in starts:
            fetch(b, b.gep(start, [far]))
        return [
            v.fma(factor, load(v.at(b.gep(start, [p]))), z)
            for start, z in zip(starts, acc, strict=True)
        ]

    sums = _loop_over_vectors(v, k, [v.zero] * rows, step)
    minus, fresh = (b.icmp_signed(sign, how, _const(0)) for sign in ("<", "=="))
    for i in range(rows):
        total = b.extract_element(_add_halves(b, sums[i]), ir.Constant(I32, 0))
        total = b.select(minus, b.fneg(total), total)
        place = b.gep(c, [_const(i)])
        there = b.icmp_signed(">", n, _const(i))
        with b.if_then(there), b.if_else(fresh) as (setting, adding):
            with setting:
                b.store(total, place)
            with adding:
                b.store(b.fadd(b.load(place), total), place)


def _add_halves(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    width = x.type.count
    while width > 1:
        width //= 2
        parts: list[ir.Value] = []
        for first in (0, width):
            order = ir.Constant(ir.VectorType(I32, width), [*range(first, first + width)])
            parts.append(b.shuffle_vector(x, ir.Constant(x.type, ir.Undefined), order))
        x = b.fadd(parts[0], parts[1])
    return x


def _loop_over_vectors(
    v: _Vectors,
    n: ir.Value,
    starts: Sequence[ir.Value],
    step: Callable[
        [ir.Value, Sequence[ir.Value], Callable[[ir.Value], ir.Value]], Sequence[ir.Value]
    ],
) -> Sequence[ir.Value]:
    """Return what the values `starts` become in a loop over n elements, one vector in each step. A
    step gets a function that loads vectors: all under a mask, or whole vectors, and the remaining
    elements under a mask."""
    b, before, whole = v.b, v.b.block, _uses_whole_vectors()
    loop, done = (b.append_basic_block(s) for s in ("along", "done"))
    stop = b.sub(n, _const(v.width - 1)) if whole else n
    b.cbranch(b.icmp_signed(">", stop, _const(0)), loop, done)
    b.position_at_end(loop)
    p = b.phi(I64)
    olds = [b.phi(x.type) for x in starts]
    news = step(p, olds, v.load_all if whole else partial(v.load, mask=v.below(b.sub(n, p))))
    _count(b, p, v.width, stop, before, loop, done)
    b.position_at_end(done)
    results = [b.phi(x.type) for x in starts]
    for phis in (olds, results):
        for phi, x, new in zip(phis, starts, news, strict=True):
            phi.add_incoming(x, before)
            phi.add_incoming(new, loop)
    if not whole:
        return results
    rest, after = (b.append_basic_block(s) for s in ("rest", "after"))
    full = b.and_(n, _const(-v.width))
    b.cbranch(b.icmp_signed("<", full, n), rest, after)
    b.position_at_end(rest)
    news = step(full, results, partial(v.load, mask=v.below(b.sub(n, full))))
    b.branch(after)
    b.position_at_end(after)
    last = [b.phi(x.type) for x in starts]
    for phi, x, new in zip(last, results, news, strict=True):
        phi.add_incoming(x, done)
        phi.add_incoming(new, rest)
    return last


def add_scaled(b: ir.IRBuilder, rows: int, args: Sequence[ir.Value]) -> None:
    """Write acc[j] += x[0] * src[j] for j < n, and add the following `rows` - 1 rows likewise.

    From row to row, x and src advance by sx and lds. acc has room for whole vectors.
    """
    acc, x, sx, src, lds, n = args
    v = _Vectors(b, acc.type.pointee)
    factors: list[ir.Value] = []
    sources: list[ir.Value] = []
    for _ in range(rows):
        factors.append(v.splat(b.load(x)))
        sources.append(src)
        x, src = b.gep(x, [sx]), b.gep(src, [lds])

    def step(j: ir.Value, _: Sequence[ir.Value], load: _Load) -> Sequence[ir.Value]:
        place = v.at(b.gep(acc, [j]))
        z = v.load_all(place)
        for factor, source in zip(factors, sources, strict=True):
            z = v.fma(factor, load(v.at(b.gep(source, [j]))), z)
        v.store_all(z, place)
        return []

    _loop_over_vectors(v, n, [], step)


def copy_vector(b: ir.IRBuilder, args: Sequence[ir.Value]) -> None:
    """Copy one vector from src, whose elements are a stride apart, to dst. Only the first n
    elements are read."""
    dst, src, stride, n = args
    v = _Vectors(b, dst.type.pointee)
    if not _uses_whole_vectors():
        v.store_all(_load_strided_groups(v, src, stride, v.below(n), 1), v.at(dst))
        return
    near, full = b.icmp_signed("==", stride, _const(1)), b.icmp_signed(">=", n, _const(v.width))
    with b.if_else(b.and_(near, full)) as (yes, no):
        with yes:
            v.store_all(v.load_all(v.at(src)), v.at(dst))
        with no:
            v.store_all(_load_strided_groups(v, src, stride, v.below(n), 1), v.at(dst))


def copy_words(b: ir.IRBuilder, args: Sequence[ir.Value], signed: bool) -> None:
    """Copy n integers of 8 or 16 bits from src to dst, two in a word. The last word is filled with
    0, and dst has room for whole vectors."""
    dst, src, n = args
    v = _Vectors(b, dst.type.pointee)
    both, t = 2 * v.width, src.type.pointee
    short = _Vectors(b, t, both * _size(t))
    fn, before = b.function, b.block
    loop, done = (fn.append_basic_block(s) for s in ("words", "done"))
    b.cbranch(b.icmp_signed(">", n, _const(0)), loop, done)
    b.position_at_end(loop)
    p = b.phi(I64)
    x = short.load(short.at(b.gep(src, [p])), short.below(b.sub(n, p)))
    if _size(t) < 2:
        x = (b.sext if signed else b.zext)(x, ir.VectorType(ir.IntType(16), both))
    v.store_all(b.bitcast(x, v.type), v.at(b.gep(dst, [b.lshr(p, _const(1))])))
    _count(b, p, both, n, before, loop, done)
    b.position_at_end(done)


def copy_complex_pairs(b: ir.IRBuilder, args: Sequence[ir.Value]) -> None:
    """Copy complex numbers from src as two vectors: unchanged to dst, and times i to other."""
    dst, other, src, stride, n = args
    v = _Vectors(b, dst.type.pointee)
    x = _load_strided_groups(v, src, stride, v.below(n), 2)
    swapped = ir.Constant(ir.VectorType(I32, v.width), [k ^ 1 for k in range(v.width)])
    turned = b.shuffle_vector(x, x, swapped)
    even = ir.Constant(v.mask, [ir.Constant(I1, 1 - k % 2) for k in range(v.width)])
    v.store_all(x, v.at(dst))
    v.store_all(b.select(even, b.fneg(turned), turned), v.at(other))


def _load_strided_groups(
    v: _Vectors, src: ir.Value, stride: ir.Value, mask: ir.Value, group: int
) -> ir.Value:
    """Load the elements of src, in groups whose starts are a stride apart."""
    b = v.b
    near = b.icmp_signed("==", stride, _const(group))
    with b.if_else(near) as (yes, no):
        with yes:
            together, first = v.load(v.at(src), mask), b.block
        with no:
            steps = b.mul(v.numbers(lambda k: k // group), v.splat(stride, v.numbers().type))
            offsets = b.add(steps, v.numbers(lambda k: k % group))
            gathered, second = v.gather(src, offsets, mask), b.block
    x = b.phi(v.type)
    x.add_incoming(together, first)
    x.add_incoming(gathered, second)
    return x


def transpose_square(b: ir.IRBuilder, args: Sequence[ir.Value]) -> None:
    """Transpose a square of as many rows as a vector has lanes: dst[p, q] = src[q, p]."""
    dst, ldd, src, lds = args
    v = _Vectors(b, dst.type.pointee)
    for x in _transpose_square(v, src, lds):
        v.store_all(x, v.at(dst))
        dst = b.gep(dst, [ldd])


def _transpose_square(v: _Vectors, src: ir.Value, lds: ir.Value) -> Sequence[ir.Value]:
    """Return the columns of a square, by swapping the off-diagonal blocks of larger and larger
    squares."""
    b = v.b
    rows: list[ir.Value] = []
    for _ in range(v.width):
        rows.append(v.load_all(v.at(src)))
        src = b.gep(src, [lds])
    distance = 1
    while distance < v.width:
        for i in range(v.width):
            if not i & distance:
                pair = rows[i], rows[i + distance]
                rows[i], rows[i + distance] = (_exchange(b, *pair, distance, k) for k in (0, 1))
        distance *= 2
    return rows


def _exchange(
    b: ir.IRBuilder, upper: ir.Value, lower: ir.Value, distance: int, second: int
) -> ir.Value:
    width = upper.type.count
    order: list[int] = []
    for k in range(width):
        from_lower = bool(k & distance)
        order.append(k + distance * (second - from_lower) + width * from_lower)
    return b.shuffle_vector(upper, lower, ir.Constant(ir.VectorType(I32, width), order))
