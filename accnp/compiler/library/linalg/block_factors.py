"""GPU kernels of factorizations and linear systems of small matrices: cholesky, triangular_solve,
lu, linear_solve, det, slogdet, qr.

The functions, which the declarations of the ops name, take the memory layout of the operands. They
return an `OwnKernel` in which one thread block processes each matrix in shared memory, or None if
the matrix does not fit; then cuSOLVER or cuBLAS computes the op. Plans and loops in machine code
launch these kernels like generated ones, whereas calls of the libraries go through Python. The
order of summation differs from that on CPUs, so results agree up to rounding.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import prod
from typing import TYPE_CHECKING

from accnp.compiler.library.linalg.small_matrices import Batch
from accnp.compiler.library.writing.loop_nests import moved, place
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["Block", "cholesky", "det", "lu", "qr", "solve", "triangular_solve"]

# The algorithms are those of LAPACK without blocking: one column, then the update of the rest of
# the matrix by all threads (Golub and Van Loan, Matrix Computations, 4th edition, 3.1.1, 3.4.4,
# 4.2.5, 5.2.2).
#
# In the sources, `me` is the number of the thread in the block, `u` its lane, and `w` its warp. `f`
# is the matrix in row-major order. The distance between rows is an odd number of elements, so that
# lanes that read a column access different banks.

PIVOTS = 128  # more than the rows of a square matrix that fits
ROOM = (48 << 10) - 4 * PIVOTS  # bytes of shared memory without a special request
CLASSES = (1 << 10, 1 << 12, 1 << 14, ROOM)  # sizes of it, so that few kernels cover all matrices
SIDES = 32  # right sides of a system that a block solves
SMALL = 32  # rows up to which a block has fewer threads
_PARTS = {"c8": "f4", "c16": "f8"}


class Block(Batch):
    """A source with one thread block for each matrix of several arrays and, if systems have
    `sides`, for each tile of the right sides."""

    def __init__(
        self, operands: Sequence[Operand], results: Sequence[Aval], ranks: str, sides: int = 0
    ) -> None:
        super().__init__(operands, results, ranks)
        self.code = dtype_code(operands[0].dtype)
        self.part = _PARTS.get(self.code, self.code)
        self.complex = self.part != self.code
        self.sides = sides
        self.width = min(SIDES, 1 << max(0, sides - 1).bit_length())
        self.tiles = -(-sides // self.width) if sides else 1
        self.threads = 256 if max(operands[0].shape[-2:]) > SMALL else 128
        self.offsets: list[int] = []

    def fits(self, *elements: int) -> bool:
        """Return whether arrays of these sizes, the matrix first, fit into shared memory."""
        sizes = [n for x in self.arrays for n in x.shape]
        if self.code not in ("f4", "f8", "c8", "c16") or not all(sizes):
            return False
        nbytes = sum(elements) * self.arrays[0].dtype.itemsize
        self.room = next((c for c in CLASSES if c >= nbytes), 0)
        self.offsets = [sum(elements[:k]) for k in range(1, len(elements))]
        return bool(self.room)

    @contextmanager
    def each(self, names: str, beside: str = "", pivots: bool = False) -> Generator[None]:
        """Open the loop over tasks. Each of `names` is a pointer to the task's part of one array,
        and `beside` names pointers to shared memory other than the matrix."""
        text = self.text
        count = text.integer(self.count)
        text.add("me = thread_of_block()", "u = lane()", "w = warp()")
        text.add(f"f = shared_{self.code}({self.room // self.arrays[0].dtype.itemsize})")
        for name, offset in zip(beside, self.offsets, strict=True):
            text.add(f"{name} = at(f, {text.integer(offset)})")
        text.add(*[f"p = shared_i4({PIVOTS})"] * pivots)
        text.add("task = block_of_grid()")
        with text.block(f"while task < {count}:"):
            text.add("t = task")
            if self.tiles > 1:
                tiles = text.integer(self.tiles)
                text.add(f"t = task // {tiles}", f"begin = (task - t * {tiles}) * {self.width}")
            places = place(text, self.axes, "t", len(self.arrays))
            for which, name in enumerate(names):
                text.add(f"{name} = {moved(which, places[which])}")
            yield
            text.add("barrier()", "task = task + blocks()")

    @property
    def count(self) -> int:
        return prod([a.size for a in self.axes]) * self.tiles

    def own(self, work: int) -> OwnKernel:
        return self.text.own(self.count, self.count * (work + 64), self.threads)

    def strides(self, which: int) -> tuple[str, str]:
        """Return the strides of a matrix. Both are arguments, so that one source is valid for
        row-major and column-major matrices."""
        rows, columns = self.arrays[which].strides[-2:]
        return self.text.integer(rows), self.text.integer(columns)

    # --- loops ---

    def rows(self, start: str, stop: str) -> AbstractContextManager[None]:
        """Open a loop over i that is distributed over the warps."""
        return self.text.block(f"for i in range({start} + w, {stop}, {self.threads // 32}):")

    def lanes(self, j: str, start: str, stop: str) -> AbstractContextManager[None]:
        """Open a loop over `j` that is distributed over the lanes of a warp."""
        return self.text.block(f"for {j} in range({start} + u, {stop}, 32):")

    def alone(self, e: str, start: str, stop: str) -> AbstractContextManager[None]:
        """Open a loop over `e` that is distributed over all threads."""
        return self.text.block(f"for {e} in range({start} + me, {stop}, {self.threads}):")

    # --- expressions ---

    def minus(self, to: str, x: str, y: str) -> str:
        """Return the statement to = to - x * y."""
        return f"{to} = " + (f"{to} - cmul({x}, {y})" if self.complex else f"fma(-{x}, {y}, {to})")

    def over(self, x: str, y: str) -> str:
        return f"cdiv({x}, {y})" if self.complex else f"{x} / {y}"

    def conj(self, x: str) -> str:
        return f"make_complex({x}.real, -{x}.imag)" if self.complex else x

    def sum_of_warp(self, *names: str) -> None:
        """Replace each of these values by its sum over all lanes."""
        for d in (16, 8, 4, 2, 1):
            self.text.add(*[f"{x} = {x} + shuffle_xor({x}, {d})" for x in names])

    def extreme_of_warp(self, sign: str) -> None:
        """Set `best` and `where` to the extreme value of all lanes, the largest (>) or the smallest
        (<), and its first position."""
        text = self.text
        for d in (16, 8, 4, 2, 1):
            text.add(f"size = shuffle_xor(best, {d})", f"other = shuffle_xor(where, {d})")
            text.add(f"take = (size {sign} best) | ((size == best) & (other < where))")
            text.add("best = size if take else best", "where = other if take else where")

    # --- parts that several have ---

    def load(
        self, source: str, which: int, m: str, n: str, ld: str, conjugate: bool = False
    ) -> None:
        """Copy a matrix of an array to f."""
        rows, columns = self.strides(which)
        with self.rows("0", m), self.lanes("j", "0", n):
            self.text.add(f"v = {source}[i * {rows} + j * {columns}]")
            self.text.add(f"f[i * {ld} + j] = {self.conj('v') if conjugate else 'v'}")

    def tile(self, pointer: str, rows: str, columns: str, n: str, store: bool = False) -> None:
        """Copy the right sides of a tile to g, or with `store` from g."""
        text, begin = self.text, "begin + c" if self.tiles > 1 else "c"
        sides = text.integer(self.sides)
        with self.alone("e", "0", f"{n} * {self.width}"):
            text.add(f"i = e // {self.width}", f"c = e - i * {self.width}")
            place = f"{pointer}[i * {rows} + ({begin}) * {columns}]"
            text.add(*[] if store else [f"g[e] = {self.code}(0)"])
            with text.block(f"if {begin} < {sides}:"):
                text.add(f"{place} = g[e]" if store else f"g[e] = {place}")

    def substitute(self, n: str, ld: str, upper: str, unit: str) -> None:
        """Replace g by the solution x of f @ x = g with triangular f; `upper` and `unit` are texts
        of 0 or 1."""
        text, width = self.text, self.width
        with text.block(f"for q in range({n}):"):
            text.add(f"k = {n} - 1 - q if {upper} != 0 else q")
            text.add("barrier()")
            with text.block(f"if {unit} == 0:"), self.alone("c", "0", str(width)):
                text.add(
                    f"g[k * {width} + c] = {self.over(f'g[k * {width} + c]', f'f[k * {ld} + k]')}"
                )
            text.add("barrier()")
            text.add(f"first = 0 if {upper} != 0 else k + 1", f"last = k if {upper} != 0 else {n}")
            with self.alone("e", f"first * {width}", f"last * {width}"):
                text.add(f"i = e // {width}", f"c = e - i * {width}", f"v = f[i * {ld} + k]")
                text.add(self.minus("g[e]", "v", f"g[k * {width} + c]"))
        text.add("barrier()")

    def factorize(self, m: str, n: str, least: str, ld: str) -> None:
        """Replace f by its factors, with exchanged rows; p[k] is the row that was exchanged with
        row k. Each warp searches a column for its largest element."""
        text, code, part = self.text, self.code, self.part
        size = "abs(f[i * {0} + k])" if not self.complex else (
            "abs(f[i * {0} + k].real) + abs(f[i * {0} + k].imag)"
        )  # fmt: skip
        with text.block(f"for k in range({least}):"):
            text.add("barrier()", f"best = {part}(-1)", "where = k")
            with self.lanes("i", "k", m):
                text.add(f"size = {size.format(ld)}")
                text.add("where = i if size > best else where")
                text.add("best = size if size > best else best")
            self.extreme_of_warp(">")
            text.add("barrier()")
            with text.block("if me == 0:"):
                text.add("p[k] = i4(where)")
            with text.block("if where != k:"), self.alone("j", "0", n):
                text.add(f"v = f[k * {ld} + j]", f"f[k * {ld} + j] = f[where * {ld} + j]")
                text.add(f"f[where * {ld} + j] = v")
            text.add("barrier()", f"d = f[k * {ld} + k]")
            with text.block(f"if d != {code}(0):"), self.alone("i", "k + 1", m):
                text.add(f"f[i * {ld} + k] = {self.over(f'f[i * {ld} + k]', 'd')}")
            text.add("barrier()")
            with self.rows("k + 1", m):
                text.add(f"v = f[i * {ld} + k]")
                with self.lanes("j", "k + 1", n):
                    text.add(self.minus(f"f[i * {ld} + j]", "v", f"f[k * {ld} + j]"))
        text.add("barrier()")


def cholesky(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `cholesky`: a matrix that is not positive definite gives NaN."""
    (a,) = operands
    size, b = a.shape[-1], Block([a], results, "22")
    if not b.fits(size * (size | 1)):
        return None
    text, code, part = b.text, b.code, b.part
    n, ld = text.integer(size), text.integer(size | 1)
    real = ".real" if b.complex else ""
    with b.each("xy"):
        b.load("x", 0, n, n, ld)
        text.add(f"good = {part}(1)")
        with text.block(f"for k in range({n}):"):
            text.add("barrier()", f"d = f[k * {ld} + k]{real}")
            text.add(f"good = good if d > {part}(0) else {part}(0)", "d = sqrt(d)", "barrier()")
            with b.alone("i", "k", n):
                text.add(f"v = f[i * {ld} + k]")
                whole = "make_complex(v.real / d, v.imag / d)" if b.complex else "v / d"
                text.add(f"f[i * {ld} + k] = {code}(d) if i == k else {whole}")
            text.add("barrier()")
            with b.rows("k + 1", n):
                text.add(f"v = f[i * {ld} + k]")
                with b.lanes("j", "k + 1", "i + 1"):
                    text.add(f"z = f[j * {ld} + k]")
                    text.add(b.minus(f"f[i * {ld} + j]", "v", b.conj("z")))
        text.add("barrier()")
        with b.rows("0", n), b.lanes("j", "0", n):
            text.add(f"v = f[i * {ld} + j] if good > {part}(0) else {code}(sqrt({part}(-1)))")
            text.add(f"y[i * {n} + j] = v if j <= i else {code}(0)")
    return b.own(size**3 // 3)


def triangular_solve(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `triangular_solve`; systems X A = B are transposed."""
    a, x = operands
    left, lower = p["left_side"], p["lower"]
    size, sides = x.shape[-2:] if left else x.shape[:-3:-1]
    b = Block([a, x], results, "222", sides)
    if not b.fits(size * (size | 1), size * b.width):
        return None
    text, turned = b.text, p["transpose_a"] == left
    n, ld = text.integer(size), text.integer(size | 1)
    upper, unit = (text.integer(int(v)) for v in (lower == turned, p["unit_diagonal"]))
    with b.each("axy", "g"):
        rows, columns = b.strides(0)
        rows, columns = (columns, rows) if turned else (rows, columns)
        with b.rows("0", n), b.lanes("j", "0", n):
            text.add(f"v = a[i * {rows} + j * {columns}]")
            text.add(f"f[i * {ld} + j] = {b.conj('v') if p['conjugate_a'] else 'v'}")
        for which, store in ((1, False), (2, True)):
            if store:
                b.substitute(n, ld, upper, unit)
            down, across = b.strides(which)
            down, across = (down, across) if left else (across, down)
            b.tile("xy"[store], down, across, n, store)
    return b.own(size * size * b.width)


def lu(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `lu`: factors, pivots and the resulting permutation."""
    (a,) = operands
    rows, columns = a.shape[-2:]
    b = Block([a], results, "2211")
    if not b.fits(rows * (columns | 1)):
        return None
    text = b.text
    m, n, least = (text.integer(x) for x in (rows, columns, min(rows, columns)))
    ld = text.integer(columns | 1)
    with b.each("xyrq", pivots=True):
        b.load("x", 0, m, n, ld)
        b.factorize(m, n, least, ld)
        with b.rows("0", m), b.lanes("j", "0", n):
            text.add(f"y[i * {n} + j] = f[i * {ld} + j]")
        with b.alone("i", "0", least):
            text.add("r[i] = p[i]")
        with text.block("if me == 0:"):
            b.permutation(m, least)
    return b.own(min(rows, columns) * rows * columns)


def solve(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `linear_solve`."""
    a, x = operands
    size, sides = x.shape[-2:]
    b = Block([a, x], results, "222", sides)
    if not b.fits(size * (size | 1), size * b.width):
        return None
    text, width = b.text, b.width
    n, ld = text.integer(size), text.integer(size | 1)
    with b.each("axy", "g", pivots=True):
        b.load("a", 0, n, n, ld)
        b.tile("x", *b.strides(1), n)
        b.factorize(n, n, n, ld)
        with b.alone("c", "0", str(width)), text.block(f"for i in range({n}):"):
            text.add(f"k = i8(p[i]) * {width} + c", f"v = g[i * {width} + c]")
            text.add(f"g[i * {width} + c] = g[k]", "g[k] = v")
        b.substitute(n, ld, "0", "1")
        b.substitute(n, ld, "1", "0")
        b.tile("y", *b.strides(2), n, True)
    return b.own(size**3 + 2 * size * size * width)


def det(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `det`, or of `slogdet` if there are two results."""
    (a,) = operands
    several, size = len(results) > 1, a.shape[-1]
    b = Block([a], results, "2" + "0" * len(results))
    if not b.fits(size * size):
        return None
    text, n = b.text, b.text.integer(size)
    with b.each("xyz"[: 1 + len(results)], pivots=True):
        b.load("x", 0, n, n, n)
        b.factorize(n, n, n, n)
        with text.block("if me == 0:"):
            b.determinant(n, several)
    return b.own(size**3)


def qr(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `qr` by reflections, with LAPACK's signs. In the source, f contains R
    and the reflections, g becomes Q, and h contains the factors of the reflections. Each warp
    processes a column."""
    (a,) = operands
    rows, columns = a.shape[-2:]
    least, width = min(rows, columns), results[0].shape[-1]
    b = Block([a], results, "222")
    if p["pivoting"] or not b.fits(rows * (columns | 1), rows * (width | 1), least):
        return None
    text, code = b.text, b.code
    m, n, k_all, r = (text.integer(x) for x in (rows, columns, least, width))
    ld, lg = text.integer(columns | 1), text.integer(width | 1)
    warps = b.threads // 32

    def reflect(to: str, step: str, stop: str, factor: str, beside: str) -> None:
        """Reflect the columns of an array after k, and k where `beside` says so."""
        with text.block(f"for j in range(w, {stop}, {warps}):"), text.block(f"if j {beside} k:"):
            text.add(f"s = {code}(0)")
            with b.lanes("i", "k", m):
                text.add(f"v = {code}(1) if i == k else f[i * {ld} + k]")
                if b.complex:
                    text.add(f"s = s + cmul({b.conj('v')}, {to}[i * {step} + j])")
                else:
                    text.add(f"s = fma(v, {to}[i * {step} + j], s)")
            b.sum_of_warp("s")
            text.add("s = " + (f"cmul(s, {factor})" if b.complex else f"s * {factor}"))
            with b.lanes("i", "k", m):
                text.add(f"v = {code}(1) if i == k else f[i * {ld} + k]")
                text.add(b.minus(f"{to}[i * {step} + j]", "s", "v"))

    with b.each("xyz", "gh"):
        b.load("x", 0, m, n, ld)
        with b.rows("0", m), b.lanes("j", "0", r):
            text.add(f"g[i * {lg} + j] = {code}(1) if i == j else {code}(0)")
        with text.block(f"for k in range({k_all}):"):
            text.add("barrier()")
            _reflection(b, m, ld)
            text.add("barrier()")
            with text.block("if bent:"), b.alone("i", "k + 1", m):
                text.add(f"f[i * {ld} + k] = {b.over(f'f[i * {ld} + k]', f'(top - {code}(beta))')}")
            with text.block("if me == 0:"):
                text.add("h[k] = tau", f"f[k * {ld} + k] = {code}(beta) if bent else top")
            text.add("barrier()")
            reflect("f", ld, n, b.conj("tau"), ">")
        text.add("barrier()")
        with text.block(f"for q in range({k_all}):"):
            text.add("barrier()", f"k = {k_all} - 1 - q", "tau = h[k]")
            reflect("g", lg, r, "tau", ">=")
        text.add("barrier()")
        with b.rows("0", m), b.lanes("j", "0", r):
            text.add(f"y[i * {r} + j] = g[i * {lg} + j]")
        with b.rows("0", r), b.lanes("j", "0", n):
            text.add(f"v = {code}(0)")
            with text.block("if j >= i:"):
                text.add(f"v = f[i * {ld} + j]")
            text.add(f"z[i * {n} + j] = v")
    return b.own(4 * rows * least * max(columns, width))


def _reflection(b: Block, m: str, ld: str) -> None:
    """Write the reflection that maps column k to a multiple of a unit vector (LAPACK's larfg):
    `top` is the first element, `beta` its new value, `tau` the factor, and `bent` whether a
    reflection is needed. Each warp computes it, with squares of numbers up to 1."""
    text, code, part = b.text, b.code, b.part
    text.add(f"large = {part}(0)", f"s = {code}(0)", f"square = {part}(0)")
    sizes = ["abs(v.real)", "abs(v.imag)"] if b.complex else ["abs(v)"]
    with b.lanes("i", "k", m):
        text.add(f"v = f[i * {ld} + k]", *[f"large = fmax(large, {x})" for x in sizes])
    for d in (16, 8, 4, 2, 1):
        text.add(f"large = fmax(large, shuffle_xor(large, {d}))")
    text.add(f"unit = large if large > {part}(0) else {part}(1)")
    with b.lanes("i", "k + 1", m):
        text.add(f"v = f[i * {ld} + k]")
        for x in ["v.real", "v.imag"] if b.complex else ["v"]:
            text.add(f"part = {x} / unit", "square = fma(part, part, square)")
    b.sum_of_warp("square")
    text.add(f"top = f[k * {ld} + k]")
    first = "top.real" if b.complex else "top"
    text.add(f"part = {first} / unit", "whole = fma(part, part, square)")
    bent = f"square != {part}(0)"
    if b.complex:
        text.add("part = top.imag / unit", "whole = fma(part, part, whole)")
        bent = f"({bent}) | (top.imag != {part}(0))"
    text.add(f"bent = {bent}", "beta = -copysign(unit * sqrt(whole), " + first + ")")
    text.add(f"low = beta if bent else {part}(1)")
    if b.complex:
        text.add("tau = make_complex((low - top.real) / low, -top.imag / low)")
        text.add(f"tau = tau if bent else {code}(0)")
    else:
        text.add(f"tau = (low - top) / low if bent else {part}(0)")
