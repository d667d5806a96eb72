"""The column form: folds over the middle axes, for a tile of inner indices at once.

In: the emitter of a kernel. Out: lines in its writer. The sums of a tile lie in scratch; several
rows are joined to them at a time, each in its turn, so that a sum is loaded and stored less often
than once for each row. Operands that lie across the loops are folded in registers
(`kernels/math/across.py`), or along memory into scratch first.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accnp.codegen.folds import (
    accumulator,
    any_column,
    combined,
    identity,
    is_product,
    joined,
    lanes,
)
from accnp.codegen.tiles import DEEP, LINE, WIDE, across, crossing, lay
from accnp.config import default_threads
from accnp.ir.kernel import BLOCK, ROWS, Access, Fold, KernelSpec, Statement, dtype_code

__all__ = [
    "GROUP", "SOON", "column", "is_plain", "is_straight", "row_across", "tile_width", "walk_shape",
    "walkable",
]  # fmt: skip

TILES = 2  # for each processor: wide tiles read longer pieces of memory
LEAST = 4  # tiles in all, if the axis is long enough
GROUP = 4  # rows joined at a time
SOON = 8  # rows from now that a short fold asks for
NARROW = 512  # bytes of a row of a tile whose rows lie apart: a block of them fits the second cache
REDONE, PITCH = 15, 1088  # columns of a slab, whose elements do not share places of a cache
SHORT = 12  # statements, above which a text for a group of rows would be too long


def column(e: Any) -> None:
    """Each step folds over all reduced indices for one tile of inner indices."""
    spec = e.spec
    e.prologue()
    (inner,) = e.of_inner
    turned = across(spec, inner, e.of_reduced) if len(spec.reduced) == 1 else None
    straight = turned is not None and is_straight(spec, turned)
    width, tiles = tile_width(spec, BLOCK if turned is None else WIDE)
    e.out.extent = prod(spec.outer) * tiles
    e.out.weight = spec.cost * prod(spec.reduced) * min(spec.inner[0], width)
    count = e.integer("tiles", "tiles", tiles)
    across_tile = e.integer("width", "width", width)
    phase = spec.phases[0]
    accs = [accumulator(f.dtype, f.combine) for f in phase.folds]
    totals = [e.stack(a) for a in accs]
    sums = [e.stack(f.dtype) for f in phase.folds]
    parts = [f"{p}[" for p in sums]
    w = e.w
    with w.block("for u in range(lo, hi):"):
        w.add(f"o = u // {count}", f"j0 = (u - o * {count}) * {across_tile}")
        w.add(f"m = {e.size(inner)} - j0", f"m = m if m < {across_tile} else {across_tile}")
        index: dict[int, str] = {}
        e.begin_outer("o", index)
        base = e.bases(index, e.all_accesses(), "p")
        with w.block("for j in range(m):"):
            for t, a, f in zip(totals, accs, phase.folds, strict=True):
                w.add(f"{t}[j] = {dtype_code(a)}({identity(a, f.combine)})")
        rows = e.total()
        if (some := any_column(e, phase, base, inner)) is not None:
            w.add(f"limit = {rows} if {some} else 0")
            rows = "limit"
        with w.block(f"for rb in range(0, {rows}, {ROWS}):"):
            with w.block("for j in range(m):"):
                for p, f in zip(sums, phase.folds, strict=True):
                    w.add(f"{p}[j] = {dtype_code(f.dtype)}({identity(f.dtype, f.combine)})")
            w.add(f"re = rb + {ROWS}", f"re = re if re < {rows} else {rows}")
            if turned is None:
                _rows(e, base, parts, "rb", "re")
            elif straight:
                _squares(e, base, sums, turned)
            else:
                with w.block(f"for rt in range(rb, re, {DEEP}):"):
                    w.add("rows = re - rt", f"rows = rows if rows < {DEEP} else {DEEP}")
                    start = {turned: "rt", inner: "j0"}
                    those = crossing(spec, inner, turned)
                    lay(e, those, base, start, inner, ("rows", "m"), WIDE, "tile", True)
                    _rows(e, base, parts, "rt", "rt + rows")
            with w.block("for j in range(m):"):
                for t, p, a, f in zip(totals, sums, accs, phase.folds, strict=True):
                    wide = f"{dtype_code(a)}({p}[j])" if a != f.dtype else f"{p}[j]"
                    w.add(f"{t}[j] = {combined(f.combine, a, f'{t}[j]', wide)}")
        e.turned.clear()
        with w.block("for j in range(m):"):
            w.add("q = j0 + j")
            _results(e, totals, "j", base, {inner: "q"})


def is_straight(spec: KernelSpec, d: int) -> bool:
    """Whether all that is folded lies along the folded axis d in memory."""
    phase = spec.phases[0]
    return (
        all(a.strides[d] in (0, 1) for a in _loads(phase.full))
        and not phase.stores
        and not any(f.dtype.kind == "c" for f in phase.folds)
    )


def _squares(e: Any, base: dict[int, str], sums: list[str], along: int) -> None:
    """Join the rows from rb to re to the sums where memory runs along the folded axis: some
    columns at a time are read, or computed, along it, and turned in registers."""
    w, phase = e.w, e.spec.phases[0]
    (inner,) = e.of_inner
    plain = {f.source: f.direct for f in phase.folds if is_plain(f, along)}
    tiles = {f.source: f.dtype for f in phase.folds if f.source not in plain}
    tiles = {name: e.stack(dtype, "tile") for name, dtype in tiles.items()}
    used = {x for s in phase.full for x in s.args}
    with w.block(f"for c in range(0, m, {DEEP}):"):
        w.add("cs = m - c", f"cs = cs if cs < {DEEP} else {DEEP}")
        with w.block(f"for rt in range(rb, re, {WIDE}):"):
            w.add("rows = re - rt", f"rows = rows if rows < {WIDE} else {WIDE}")
            if tiles:
                with w.block("for i in range(cs):"):
                    w.add("k = j0 + c + i", f"p = i * {WIDE}")
                    row = e.deepen(base, {inner: "k"}, "c")
                    with w.block("for j in range(rows):"):
                        w.add("q = rt + j")
                        e.body(phase, row, {along: "q"}, frozenset(plain.keys() - used))
                        w.add(*[f"{tile}[p + j] = {name}" for name, tile in tiles.items()])
            for s, f in zip(sums, phase.folds, strict=True):
                a = plain.get(f.source)
                if a is None:
                    source, step = tiles[f.source], str(WIDE)
                else:
                    place = e.place(a, base, {along: "rt", inner: "(j0 + c)"})
                    source, step = f"at(a{a.number}, {place})", e.stride(a, inner, f"a{a.number}")
                w.add(f"columns_{f.combine}(at({s}, c), {source}, {step}, rows, cs)")


def is_plain(f: Fold, d: int) -> bool:
    """Whether what is folded is an operand as it lies in memory, along axis d."""
    return f.direct is not None and f.direct.dtype == f.dtype and f.direct.strides[d] == 1


def _tiles() -> int:
    """Into how many tiles the inner axis is cut; no bit of a result depends on it."""
    return max(LEAST, TILES * default_threads())


def tile_width(spec: KernelSpec, most: int) -> tuple[int, int]:
    """The columns of a tile, at most so many, and the tiles of the inner axis."""
    width = -(-spec.inner[0] * prod(spec.outer) // _tiles())
    width = min(most, max(64, -(-width // 64) * 64))
    return width, -(-spec.inner[0] // width)


def walkable(spec: KernelSpec, d: int) -> bool:
    """Whether `row_across` can do a row kernel: no load of it jumps along axis d."""
    folds = spec.phases[0].folds
    return (
        len({lanes(f.combine) for f in folds}) == 1
        and not any(f.dtype.kind == "c" for f in folds)
        and all(a.strides[d] in (0, 1) for a in _loads(spec.phases[0].full))
        and not any(s.index is not None for s in spec.phases[0].full)
        and not any(a.strides[d] for a in _loads(spec.row_head))
    )


def _loads(statements: list[Statement]) -> list[Access]:
    return [s.access for s in statements if s.access is not None]


def _in_a_row(spec: KernelSpec, d: int) -> list[int]:
    """Axis d and the kept ones that follow it in the memory of all that is folded: together they
    are one axis of a walk, however the results lie."""
    loads = _loads([*spec.phases[0].full, *spec.row_head])
    chain, size = [d], spec.outer[d]
    while True:
        more = [
            k
            for k in range(len(spec.outer))
            if k not in chain and all(a.strides[k] == size * a.strides[d] for a in loads)
        ]
        if not more:
            return chain
        chain.append(more[0])
        size *= spec.outer[more[0]]


def walk_shape(spec: KernelSpec, d: int) -> tuple[list[int], int, int]:
    """The axes that are one axis of a walk along axis d, its size, and the columns of a tile."""
    chain = _in_a_row(spec, d)
    size = prod(spec.outer[k] for k in chain)
    width = -(-prod(spec.outer) // _tiles())
    narrow = NARROW // min(f.dtype.itemsize for f in spec.phases[0].folds)
    most = narrow if len(spec.reduced) > 1 else WIDE
    return chain, size, min(most, max(64, -(-width // 64) * 64))


def row_across(e: Any, d: int) -> None:
    """Row form of one pass where memory runs along the outer axis d: a walk as over columns, in the
    order of rows. Each lane of `block_*` is a row of scratch."""
    spec, w = e.spec, e.w
    e.prologue()
    phase = spec.phases[0]
    chain, size, width = walk_shape(spec, d)
    others = [k for k in e.of_outer if k not in chain]
    flat = e.size(d) if len(chain) == 1 else e.integer("flat", "flat", size)
    several = len(spec.reduced) > 1
    tiles = -(-size // width)
    e.out.extent = prod(spec.outer) // size * tiles
    e.out.weight = spec.cost * prod(spec.reduced) * min(size, width)
    count = e.integer("tiles", "tiles", tiles)
    across_tile = e.integer("width", "width", width)
    accs = [accumulator(f.dtype, f.combine) for f in phase.folds]
    totals = [e.stack(a) for a in accs]
    plain = all(is_plain(f, d) for f in phase.folds)
    sums = [e.stack(f.dtype, "stack" if plain else "slab") for f in phase.folds]
    many = lanes(phase.folds[0].combine)
    n = e.total()
    with w.block("for u in range(lo, hi):"):
        w.add(f"o = u // {count}", f"j0 = (u - o * {count}) * {across_tile}")
        w.add(f"m = {flat} - j0", f"m = m if m < {across_tile} else {across_tile}")
        index: dict[int, str] = {}
        if others:
            e.decompose("o", others, index, "o")
        base = e.bases(index, e.all_accesses(), "p")
        for s in spec.row_head:
            e.statement(s, base, {})
        with w.block("for j in range(m):"):
            for t, a, f in zip(totals, accs, phase.folds, strict=True):
                w.add(f"{t}[j] = {dtype_code(a)}({identity(a, f.combine)})")
        with w.block(f"for b in range(0, {n}, {BLOCK}):"):
            w.add(f"stop = b + {BLOCK}", f"stop = stop if stop < {n} else {n}")
            if several:
                _fetch(e, base, d)
            if plain:
                _strips(e, base, sums, d)
            else:
                _walk(e, base, sums, d, many)
            for s, f in zip(sums, phase.folds, strict=True):
                if is_product(f):
                    _again(e, base, s, f, d)
            with w.block("for j in range(m):"):
                for t, s, a, f in zip(totals, sums, accs, phase.folds, strict=True):
                    wide = f"{dtype_code(a)}({s}[j])" if a != f.dtype else f"{s}[j]"
                    w.add(f"{t}[j] = {combined(f.combine, a, f'{t}[j]', wide)}")
        if len(chain) == 1:
            with w.block("for j in range(m):"):
                w.add("q = j0 + j")
                _results(e, totals, "j", base, {d: "q"})
        else:
            w.add("k = 0")
            with w.block("while k < m:"):
                index = {}
                e.decompose("(j0 + k)", chain[::-1], index, "c")
                w.add(f"run = {e.size(d)} - {index[d]}", "run = run if run < m - k else m - k")
                with w.block("for j in range(run):"):
                    w.add(f"q = {index[d]} + j")
                    _results(e, totals, "k + j", base, {**index, d: "q"})
                w.add("k += run")


def _strips(e: Any, base: dict[int, str], sums: list[str], d: int) -> None:
    """Fold a block of rows that lie in memory as they are: lanes are sums in registers."""
    w, dims = e.w, list(e.of_reduced)
    last = dims[-1]
    tables: dict[tuple[int, ...], str] = {}
    for s, f in zip(sums, e.spec.phases[0].folds, strict=True):
        a = f.direct
        steps = tuple(a.strides[k] for k in dims)
        if steps not in tables:
            table = tables[steps] = e.stack(np.dtype(np.int64))
            w.add("k = b")
            with w.block("while k < stop:"):
                index: dict[int, str] = {}
                e.decompose("k", dims, index, "d")
                w.add(f"run = {e.size(last)} - {index[last]}")
                w.add("run = run if run < stop - k else stop - k")
                with w.block("for j in range(run):"):
                    w.add(f"q = {index[last]} + j")
                    w.add(f"{table}[k - b + j] = {e.term(a, f'a{a.number}', {**index, last: 'q'})}")
                w.add("k += run")
        start = f"at(a{a.number}, {e.place(a, base, {d: 'j0'})})"
        w.add(f"strips_{f.combine}({s}, {start}, {tables[steps]}, stop - b, m)")


def _walk(e: Any, base: dict[int, str], slabs: list[str], d: int, many: int) -> None:
    """Fold a block of rows that are computed: each lane of `block_*` is a row of scratch."""
    w, phase = e.w, e.spec.phases[0]
    with w.block(f"for l in range({many}):"):
        w.add(f"p = l * {WIDE}")
        with w.block("for j in range(m):"):
            for s, f in zip(slabs, phase.folds, strict=True):
                start = f"{dtype_code(f.dtype)}({identity(f.dtype, f.combine)})"
                w.add(f"{s}[p + j] = {start}")
    lane = [f"{s}[p + " for s in slabs]
    group = GROUP * many
    w.add(f"rest = b + (stop - b) // {group} * {group}")
    with w.block(f"for g in range(b, rest, {group}):"):
        head = (f"p = (r - g) * {WIDE}",)
        _group(e, base, lane, "g", f"g + {many}", GROUP, d, many, head, joined)
    # What is left of a block, two rows at a time, then one. Short folds are nothing else:
    # they ask for rows themselves, where the processor sees no direction.
    group = 2 * many
    w.add(f"last = rest + (stop - rest) // {group} * {group}")
    with w.block(f"for g in range(rest, last, {group}):"):
        head = (f"p = (r - g) * {WIDE}",)
        _group(e, base, lane, "g", f"g + {many}", 2, d, many, head, joined, SOON)
    head = (f"p = (r - last) % {many} * {WIDE}",)
    _group(e, base, lane, "last", "stop", 1, d, 1, head, joined, SOON)
    w.add(f"h = {many // 2}")
    with w.block("while h > 0:"):
        with w.block("for l in range(h):"):
            w.add(f"p = l * {WIDE}", f"other = (l + h) * {WIDE}")
            with w.block("for j in range(m):"):
                for s, f in zip(slabs, phase.folds, strict=True):
                    value = joined(f.combine, f.dtype, f"{s}[p + j]", f"{s}[other + j]")
                    w.add(f"{s}[p + j] = {value}")
        w.add("h = h // 2")


def _again(e: Any, base: dict[int, str], sums: str, f: Fold, d: int) -> None:
    """Columns whose product is no normal number, a block of rows, unless it is 0 as one of them is:
    some at a time are laid along memory, and done by `block_prod`."""
    w, dims = e.w, list(e.of_reduced)
    left, slab = e.stack(f.dtype), e.stack(f.dtype, "slab")
    code = dtype_code(f.dtype)

    def elements(columns: str, text: str) -> None:
        with w.block("for r in range(b, stop):"):
            index: dict[int, str] = {}
            e.decompose("r", dims, index, "d")
            row = e.deepen(base, index, "e")
            with w.block(f"for j in range({columns}):"):
                w.add("q = j0 + j")
                for s in e.spec.phases[0].full:
                    e.statement(s, row, {d: "q"})
                w.add(text)

    with w.block(f"if block_odd({sums}, m) < m:"):
        with w.block("for j in range(m):"):
            w.add(f"{left}[j] = {code}(1)")
        elements("m", f"{left}[j] = {code}(0) if {f.source} == 0 else {left}[j]")
        with w.block("for j in range(m):"):
            known = f"({sums}[j] == 0) & ({left}[j] == 0)"
            w.add(f"{left}[j] = {code}(1) if {known} else {sums}[j]")
        w.add(f"k = block_odd({left}, m)")
        with w.block("while k < m:"):
            w.add(f"last = k + {REDONE}", "last = last if last < m else m")
            elements("k, last", f"{slab}[(j - k) * {PITCH} + r - b] = {f.source}")
            with w.block("for j in range(k, last):"):
                w.add(f"{sums}[j] = block_prod(at({slab}, (j - k) * {PITCH}), stop - b)")
            w.add(f"k = last + block_odd(at({left}, last), m - last)")


def _results(
    e: Any, totals: list[str], j: str, base: dict[int, str], index: dict[int, str]
) -> None:
    """The end of a tile: what was gathered gets its dtype, and what becomes of it."""
    phase = e.spec.phases[0]
    for t, f in zip(totals, phase.folds, strict=True):
        e.w.add(f"{f.name} = {dtype_code(f.dtype)}({t}[{j}])")
    e.row_body(phase, base, index)


def _fetch(e: Any, base: dict[int, str], d: int) -> None:
    """Ask for a block of rows in the order of memory, in which the walk over several folded axes
    does not go."""
    first = e.of_reduced[0]
    behind = prod(e.spec.reduced[1:])
    e.w.add(
        f"low = b // {e.integer('behind', 'behind', behind)}", "high = (stop - 1) // behind + 1"
    )
    for a in _loads(e.spec.phases[0].full):
        depth, index = e.w.depth, {d: "j0"}
        for k in sorted(e.of_reduced, key=lambda k: -a.strides[k]):
            index[k] = f"i{k}"
            e.w.add(f"for i{k} in range({'low, high' if k == first else e.size(k)}):")
            e.w.depth += 1
        with e.w.block(f"for j in range(0, m, {LINE // a.dtype.itemsize}):"):
            e.w.add(f"prefetch(at(a{a.number}, {e.place(a, base, index)} + j))")
        e.w.depth = depth


def _rows(e: Any, base: dict[int, str], parts: list[str], start: str, stop: str) -> None:
    """Join the rows from start to stop to the sums, several at a time."""
    if len(e.spec.phases[0].full) > SHORT // GROUP:
        return _group(e, base, parts, start, stop, 1)
    e.w.add(f"rest = {start} + ({stop} - {start}) // {GROUP} * {GROUP}")
    _group(e, base, parts, start, "rest", GROUP)
    _group(e, base, parts, "rest", stop, 1)


def _group(
    e: Any, base: dict[int, str], parts: list[str], start: str, stop: str, n: int,
    inner: int | None = None, apart: int = 1, head: tuple[str, ...] = (), join: Any = combined,
    ahead: int = 0,
) -> None:  # fmt: skip
    """A loop that joins n rows to the sums in each step; names of the k-th row end in _k.

    The rows are some rows apart. `parts` are the places of the sums, up to the index along `inner`.
    """
    w, phase = e.w, e.spec.phases[0]
    inner = e.of_inner[0] if inner is None else inner
    dims = list(e.of_reduced)
    full = {s.name for s in phase.full}
    still = [s for s in phase.full if s.access and s.access.strides[inner] == 0]
    still = [s for s in still if not s.args and id(s.access) not in e.turned]
    moving = [s for s in phase.full if s not in still]

    def name(x: str, k: int) -> str:
        return f"{x}_{k}" if x in full and n > 1 else x

    def write(s: Statement, k: int) -> None:
        args = tuple(name(x, k) for x in s.args)
        e.turn = f"turn{k}"
        copy = Statement(name(s.name, k), s.dtype, s.text, args, s.access, s.index)
        e.statement(copy, deep[k], {} if s in still else {inner: "q"})

    with w.block(f"for r in range({start}, {stop}{f', {n}' if n > apart else ''}):"):
        deep: list[dict[int, str]] = []
        w.add(*head)
        for k in range(n):
            row = "r" if k == 0 else f"row{k}"
            if k:
                w.add(f"{row} = r + {k * apart}")
            if e.turned:
                w.add(f"turn{k} = ({row} - rt) * {WIDE}")
            inside = {dims[0]: row}
            if len(dims) > 1:
                e.decompose(row, dims, inside, f"d{k}")
            deep.append(e.deepen(base, inside, f"d{k}"))
            for a in _loads(moving) if ahead and len(dims) == 1 else ():
                start = e.place(a, base, {dims[0]: f"({row} + {ahead})", inner: "j0"})
                with w.block(f"for j in range(0, m, {LINE // a.dtype.itemsize}):"):
                    w.add(f"prefetch(at(a{a.number}, {start} + j))")
            for s in still:
                write(s, k)
        with w.block("for j in range(m):"):
            w.add("q = j0 + j")
            for k in range(n):
                for s in moving:
                    write(s, k)
            for k in range(n):
                for a, value in phase.stores:
                    w.add(f"a{a.number}[{e.place(a, deep[k], {inner: 'q'})}] = {name(value, k)}")
            for p, f in zip(parts, phase.folds, strict=True):
                value = f"{p}j]"
                for k in range(n):
                    value = join(f.combine, f.dtype, value, name(f.source, k))
                w.add(f"{p}j] = {value}")
    e.turn = "turn"
