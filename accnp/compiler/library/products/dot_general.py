"""Kernels of `dot_general`.

`dot_general` takes the memory layout of the operands and the parameters, and returns an
`OwnKernel`. It merges axes that are contiguous. One axis of rows, one of columns and one contracted
axis form a matrix product, which a kernel of the library computes (`compiler/library/library.py`
describes the order of summation); the other axes are loops around it. Tasks are indices of these
loops and tiles of rows and columns. Tasks convert operands of other dtypes block by block
(`operand_copies.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from accnp.compiler.library.sizes import CHAIN_BYTES, VECTOR_RUN
from accnp.compiler.library.writing.arithmetic import multiply_add
from accnp.compiler.library.writing.loop_nests import Axis, Text, merged, moved, place, total
from accnp.config import config
from accnp.ir.aval import Aval
from accnp.ir.kernel import HALVES, Operand, OwnKernel, dtype_code
from accnp.lazy_imports import imported
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.compiler.library.products.operand_copies import Copies
    from accnp.ir.op_types import Params

__all__ = ["dot_general"]

SPEED = {"f4": 1, "f8": 2, "c8": 4, "c16": 8}  # relative time of a product; these have kernels
TINY = 64  # maximum number of multiplications for which a product is written as loops
FEW = 4096  # the same for integers
SPELLED = 4  # maximum number of rows, columns and steps of products that are fully unrolled,
MANY = 64  # if there are at least this many of them
VECTOR = 1 << 14  # minimum number of elements for the summation order of matrix-vector products
ROWS = 256  # minimum number of rows of a matrix for which partial sums may be stored in memory,
ROW = 1 << 15  # and bytes of a row that a task reads at a time
TASK = 1 << 16  # minimum work of a task, in simple element operations
TASKS = 64  # maximum number of tasks
SQUARES = (256, 128)  # rows and columns of tasks that convert, if there are enough such tasks
STRIP_ROWS = 1024  # rows of other tasks; packed columns are reused for all of them
NARROW = 64  # minimum number of rows or columns of a task,
FEWEST = 16  # or of rows, if there would be fewer tasks than threads
BAND = 256  # rows of a task of large matrices; their steps of one run fit into the L2 cache
PANELS = 512  # columns that are multiplied with such a band
_FLOATS = ("f4", "f8", "c8", "c16")
_SHORT = ("b1", "i1", "u1", "i2")  # dtypes that fit into signed 16 bits
_SUMS = ("i1", "u1", "i2", "u2", "i4", "u4")  # result dtypes for which sums of 32 bits are exact
LAID_OUT = 8  # minimum number of rows for which the right operand is copied to another layout


def dot_general(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel, or None if a matrix product has several unmerged contracted axes."""
    (a, b), (result,) = operands, results
    dims: tuple[tuple[Sequence[int], Sequence[int]], ...] = p["dimension_numbers"]
    (ac, bc), (ab, bb) = dims
    # The axes of the result, with their strides in a, in b and in the result.
    walks: list[tuple[str, int, int, int]] = [
        *[("batch", a.shape[i], a.strides[i], b.strides[j]) for i, j in zip(ab, bb, strict=True)],
        *[("row", n, s, 0) for n, s in _remaining_axes(a, ac, ab)],
        *[("column", n, 0, s) for n, s in _remaining_axes(b, bc, bb)],
    ]
    steps = contiguous(result.shape)
    axes = [Axis(n, (x, y, z), kind) for (kind, n, x, y), z in zip(walks, steps, strict=True)]
    inner = [Axis(a.shape[i], (a.strides[i], b.strides[j])) for i, j in zip(ac, bc, strict=True)]
    axes, inner = merged(axes), merged(inner)
    codes = (dtype_code(a.dtype), dtype_code(b.dtype), dtype_code(result.dtype))
    work = _work_code(*codes)
    if work in SPEED or (work and prod([x.size for x in (*axes, *inner)]) > FEW):
        if not all(x.size for x in inner):
            inner = [Axis(0, (0, 0))]
        return _product(work, codes, axes, inner) if len(inner) <= 1 else None
    return _loops(codes[2], axes, inner)


def _work_code(a: str, b: str, result: str) -> str:
    """Return the dtype code in which the library computes a product, or "" for plain loops."""
    if result in _FLOATS:
        return result
    if result in HALVES:
        return "f4"
    if result in _SUMS and a in _SHORT and b in _SHORT:
        return "i2"
    return ""


def _remaining_axes(x: Operand, *used: Sequence[int]) -> list[tuple[int, int]]:
    used_axes = {d for group in used for d in group}
    sizes = zip(x.shape, x.strides, strict=True)
    return [pair for d, pair in enumerate(sizes) if d not in used_axes]


# --- products of matrices ------------------------------------------------------------------------


_NONE = Axis(1, (0, 0, 0))


def _product(
    code: str, codes: tuple[str, str, str], axes: list[Axis], inner: list[Axis]
) -> OwnKernel:
    of_a = [x for x in axes if x.kind == "row"]
    of_b = [x for x in axes if x.kind == "column"]
    # The last axis of the result, the only contiguous one, is the axis of columns. A product with a
    # vector on the right is computed as one with a vector on the left.
    left, right = (0, 1) if of_b else (1, 0)
    across = (of_b or of_a or [_NONE])[-1]
    down = max(of_a, key=lambda x: x.size) if of_a and of_b else _NONE
    along = inner[0] if inner else Axis(1, (0, 0))
    outer = [x for x in axes if x is not across and x is not down]
    count = prod([x.size for x in outer])
    m, n, k = down.size, across.size, along.size
    # A simple operation takes as long as 12 multiplications in float32, 4 if memory limits the
    # speed, and 1 if each element is read once, as in a sum.
    least = min(m, n)
    work = m * n * k * SPEED.get(code, 1) // (12 if least >= 8 else 4 if least > 1 else 1)
    real = code[0] == "f"
    copies: Copies | None = None
    module = None
    if code not in SPEED or {*codes} != {code}:
        module = imported("accnp.compiler.library.products.operand_copies")
        copies = module.Copies(code, (codes[left], codes[right], codes[2]))
    by_rows = m == count == 1 and across.steps[right] == 1 != along.steps[right]
    if by_rows and real and not copies and k >= ROWS and work >= 2 * TASK:
        return _whole_row_kernel(code, left, along, across)
    narrow = NARROW
    if m == 1 and across.steps[right] == 1:
        narrow = min(1024, max(512, -(-n // config.threads)))
    step, squares = 64 if narrow > NARROW or m > 1 else 16, SQUARES if copies else ()
    tall, wide, tiles_down, tiles_across = _tiles(m, n, work, count, narrow, step, squares)
    if copies:
        tall, wide = max(1, min(tall, copies.rows)), max(1, min(wide, copies.columns))
        tiles_down, tiles_across = max(1, -(-m // tall)), max(1, -(-n // wide))

    text = Text(3)
    sizes = [text.integer(x) for x in (m, n, k)]
    strides = (down.steps[left], along.steps[left], along.steps[right], across.steps[right])
    # Kernels of the library test strides at run time; code that copies contains strides of 1.
    named = ["1" if x == 1 and copies else text.integer(x) for x in strides]
    rsa, csa, rsb, csb = named
    ldc = text.integer(down.steps[2])
    tiny = real and m * n * k <= TINY
    if copies and not tiny:
        copies.open(text, tall, wide, k)
    with text.block("for t in range(lo, hi):"):
        if tiles_down * tiles_across > 1:
            rows, columns = text.integer(tall), text.integer(wide)
            for index, rest, name, tiles, size in (
                ("t", "u", "j", tiles_across, columns),
                ("u", "v", "i", tiles_down, rows),
            ):
                several = text.integer(tiles)
                text.add(f"{rest} = {index} // {several}")
                text.add(f"{name} = ({index} - {rest} * {several}) * {size}")
            sizes[:2] = f"fmin({sizes[0]} - i, {rows})", f"fmin({sizes[1]} - j, {columns})"
            places = place(text, outer, "v")
            places[left].append(f"i * {rsa}")
            places[right].append(f"j * {csb}")
            places[2] += [f"i * {ldc}", "j"]
        else:
            places = place(text, outer, "t")
        high, broad, deep = sizes
        x, y, z = (moved(which, places[which]) for which in (left, right, 2))
        matrices = f"{x}, {rsa}, {csa}, {y}, {rsb}, {csb}, {z}, {ldc}"
        if tiny:
            text.add(f"x = {x}", f"y = {y}", f"z = {z}")
            casts = (code, codes[2])
            if count >= MANY and max(m, n, k) <= SPELLED:
                steps = [str(v) if abs(v) <= TINY else s for v, s in zip(strides, named)]
                _write_unrolled_product(text, (m, n, k), steps, ldc, casts)
            else:
                _write_small_product(text, sizes, named, ldc, casts)
        elif copies and module:
            starts = [f"{name} = {total(places[k])}" for name, k in zip("xyz", (left, right, 2))]
            text.add(f"high = {high}", f"broad = {broad}", *starts)
            copies.multiply(
                text,
                module.Matrix(left, "x", "high", rsa, csa),
                module.Matrix(right, "y", "broad", csb, rsb),
                module.Matrix(2, "z", "high", ldc, "1"),
                deep,
            )
        elif real and m == 1 and n * k >= VECTOR:
            text.add(f"gemv_{code}({broad}, {deep}, {x}, {csa}, {y}, {rsb}, {csb}, {z}, 0)")
        else:
            text.products = True
            text.add(f"gemm_{code}({high}, {broad}, {deep}, {matrices}, 0)")
    if copies and not tiny:
        copies.close(text)
    return text.own(count * tiles_down * tiles_across, count * (work + 16))


def _whole_row_kernel(code: str, left: int, along: Axis, across: Axis) -> OwnKernel:
    """Multiply a vector by a matrix with contiguous rows. Tasks read whole rows, because hardware
    prefetching works within rows but not from one piece of a row to the next. Each task computes
    some of the chains of which sums consist, and stores their partial sums in memory."""
    (n, *_), (k, steps, *_) = across, along
    size = int(code[1:])
    chains, wide = CHAIN_BYTES // size, min(n, ROW // size)
    runs, tiles = -(-k // VECTOR_RUN), -(-n // wide)
    parts = 1
    while parts < chains and parts * runs * tiles < 2 * config.threads:
        parts *= 2
    room = -(-n // chains) * chains  # padded, because whole vectors are stored

    def text() -> tuple[Text, list[str]]:
        writer = Text(4)
        return writer, [writer.integer(x) for x in (n, k, wide, tiles, room)]

    first, (columns, deep, width, across_, lda) = text()
    several, some = first.integer(parts), first.integer(chains // parts)
    sx, rsb = (first.integer(steps[which]) for which in (left, 1 - left))
    with first.block("for t in range(lo, hi):"):
        first.add(f"u = t // {several}", f"first = (t - u * {several}) * {some}")
        first.add(
            f"r = u // {across_}", f"j = (u - r * {across_}) * {width}", f"p = r * {VECTOR_RUN}"
        )
        sizes = f"fmin({columns} - j, {width}), fmin({deep} - p, {VECTOR_RUN})"
        x, b = f"at(a{left}, p * {sx})", f"at(a{1 - left}, p * {rsb} + j)"
        ends = f"at(a3, r * {chains} * {lda} + j), {lda}"
        first.add(f"chains_{code}({sizes}, {x}, {sx}, {b}, {rsb}, {ends}, first, first + {some})")
    then, (columns, deep, width, across_, lda) = text()
    with then.block("for t in range(lo, hi):"):
        then.add(f"j = t * {width}")
        with then.block(f"for r in range(({deep} + {VECTOR_RUN - 1}) // {VECTOR_RUN}):"):
            ends = f"at(a3, r * {chains} * {lda} + j), {lda}"
            then.add(f"combine_{code}(fmin({columns} - j, {width}), {ends}, at(a2, j), fmin(r, 1))")
    own = first.own(runs * tiles * parts, n * k)
    own.memory = ((code, runs * chains * room),)
    own.then = (then.own(tiles, n * runs * chains),)
    return own


def _write_small_product(
    text: Text, sizes: Sequence[str], strides: Sequence[str], ldc: str, casts: tuple[str, str]
) -> None:
    """Write a small product as loops; `casts` are the dtype codes of operands and result."""
    rsa, csa, rsb, csb = strides
    (rows, columns, steps), (of, to) = sizes, casts
    with text.block(f"for i in range({rows}):"), text.block(f"for j in range({columns}):"):
        text.add(f"s = {of}(0)")
        with text.block(f"for p in range({steps}):"):
            text.add(f"s = fma({of}(x[i * {rsa} + p * {csa}]), {of}(y[p * {rsb} + j * {csb}]), s)")
        text.add(f"z[i * {ldc} + j] = {to}(s)")


def _write_unrolled_product(
    text: Text, sizes: Sequence[int], strides: Sequence[str], ldc: str, casts: tuple[str, str]
) -> None:
    """Write the same fully unrolled, in the same order, for many products of one size."""
    rsa, csa, rsb, csb = strides
    (m, n, k), (of, to) = sizes, casts
    for i in range(m):
        for p in range(k):
            text.add(f"x{i}_{p} = {of}(x[{i} * {rsa} + {p} * {csa}])")
    for p in range(k):
        for j in range(n):
            text.add(f"y{p}_{j} = {of}(y[{p} * {rsb} + {j} * {csb}])")
    for i in range(m):
        for j in range(n):
            text.add(f"s = fma(x{i}_0, y0_{j}, {of}(0))")
            for p in range(1, k):
                text.add(f"s = fma(x{i}_{p}, y{p}_{j}, s)")
            text.add(f"z[{i} * {ldc} + {j}] = {to}(s)")


def _tiles(
    m: int, n: int, work: int, count: int, narrow: int, step: int, squares: Sequence[int]
) -> tuple[int, int, int, int]:
    """Return the rows and columns of a tile (columns in multiples of `step`), and the number of
    tiles in both directions. Tiles are squares if `squares` fit, otherwise strips."""
    enough = 4 * config.threads
    tasks = min(TASKS, work // TASK) if count < enough else 1
    if tasks < 2:
        return m, n, 1, 1
    for side in squares:
        if min(m, n) >= side and tasks >= -(-m // side) * -(-n // side) >= enough:
            return side, side, -(-m // side), -(-n // side)
    if m >= 2 * BAND and n >= 2 * narrow and not squares:
        down = round(m / BAND)
        across = max(-(-n // PANELS), -(-min(tasks, enough) // down))
        while down * across % config.threads:  # otherwise some threads are idle at the end
            across += 1
        tall, wide = -(-m // down // 8) * 8, -(-n // min(across, n // narrow) // step) * step
        return tall, wide, -(-m // tall), -(-n // wide)
    across = max(1, min(tasks, round(n / narrow)))
    wide = -(-n // across // step) * step
    across = -(-n // wide)
    strips = max(-(-min(tasks, enough) // across), min(-(-m // STRIP_ROWS), tasks // across))
    down = max(1, min(-(-tasks // across) if squares else strips, m // NARROW))
    down = max(down, min(config.threads // across, m // FEWEST))
    tall = -(-m // down // 8) * 8
    return tall, wide, -(-m // tall), across


# --- other dtypes --------------------------------------------------------------------------------


def _loops(code: str, axes: list[Axis], inner: list[Axis]) -> OwnKernel:
    """Return the kernel that computes row by row, for integers and mixed dtypes."""
    outer, across = axes, []
    if axes and axes[-1].kind == "column":
        outer, across = axes[:-1], axes[-1:]
    rows = prod([axis.size for axis in outer if axis.kind == "row"])
    empty = not all(axis.size for axis in (*axes, *inner))
    if across and across[0].steps[1] != 1 and rows >= LAID_OUT and not empty:
        return _copied_rows_kernel(code, outer, inner, across[0])
    return _write_row_loops(Text(3), code, (outer, inner, across), "a1")


def _copied_rows_kernel(code: str, outer: list[Axis], inner: list[Axis], across: Axis) -> OwnKernel:
    """Copy the right operand to rows of columns first, because a stride between columns prevents
    vectorization."""
    others = [x for x in outer if x.kind != "row"]
    walked = [*others, *inner]
    *strides, _ = contiguous(tuple([x.size for x in (*walked, across)]))
    text = Text(4)
    with text.block("for t in range(lo, hi):"):
        _, y = place(text, [Axis(x.size, (0, x.steps[1])) for x in walked], "t", 2)
        columns = text.integer(across.size)
        text.add(f"y = {total(y)}", f"z = t * {columns}")
        with text.block(f"for j in range({columns}):"):
            other = f"a1[{total(['y', *text.times('j', across.steps[1])])}]"
            text.add(f"a3[z + j] = {code}({other})")
    tasks = prod([x.size for x in walked])
    first = text.own(tasks, tasks * across.size)
    new = {id(x): s for x, s in zip(walked, strides, strict=True)}
    outer = [Axis(x.size, (x.steps[0], new.get(id(x), 0), x.steps[2]), x.kind) for x in outer]
    inner = [Axis(x.size, (x.steps[0], new[id(x)])) for x in inner]
    across = Axis(across.size, (0, 1, 1), "column")
    first.memory = ((code, tasks * across.size),)
    first.then = (_write_row_loops(Text(4), code, (outer, inner, [across]), "a3"),)
    return first


def _write_row_loops(text: Text, code: str, axes: Sequence[list[Axis]], right: str) -> OwnKernel:
    """Write the loops; `axes` are the axes around a row, of the sum, and of the columns."""
    outer, inner, across = axes
    n, csb = (across[0].size, across[0].steps[1]) if across else (1, 0)
    with text.block("for t in range(lo, hi):"):
        x, y, z = place(text, outer, "t")
        columns = text.integer(n)
        text.add(f"z = {total(z)}", f"x = {total(x)}", f"y = {total(y)}")
        with text.block(f"for j in range({columns}):"):
            text.add(f"a2[z + j] = {code}(0)")
        for d, axis in enumerate(inner):
            text.add(f"for p{d} in range({text.integer(axis.size)}):")
            text.depth += 1
        walks = [
            [
                term
                for d, axis in enumerate(inner)
                for term in text.times(f"p{d}", axis.steps[which])
            ]
            for which in (0, 1)
        ]
        text.add(f"v = {code}(a0[{total(['x', *walks[0]])}])", f"w = {total(['y', *walks[1]])}")
        with text.block(f"for j in range({columns}):"):
            other = f"{code}({right}[{total(['w', *text.times('j', csb)])}])"
            text.add(f"a2[z + j] = {multiply_add(code, 'a2[z + j]', 'v', other)}")
        text.depth -= len(inner)
    tasks = prod([axis.size for axis in outer])
    return text.own(tasks, tasks * (4 + n * prod([axis.size for axis in inner])))
