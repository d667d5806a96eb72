"""Operands that lie across the loops: their memory runs along an axis other than the innermost one.

In: the emitter of a kernel with loads whose stride is 1 along an outer or a folded axis, and long
along the innermost one. Out: lines in its writer. The loops go over tiles of 16 indices of the one
axis and 256 (in a fold along rows 1024) of the other, and each such operand is transposed into
scratch, tile by tile: read element by element it would cost a cache line for each element.
Nothing else changes, in particular no order of summation.
"""

from __future__ import annotations

from math import prod
from typing import Any

from accnp.codegen.folds import accumulator, combined, identity
from accnp.codegen.short import LANES
from accnp.ir.kernel import BLOCK, Access, KernelSpec, Phase, dtype_code

__all__ = [
    "DEEP",
    "LEAST",
    "LINE",
    "WIDE",
    "across",
    "ask_ahead",
    "crossing",
    "tiled_map",
    "tiled_row",
]

DEEP, WIDE = 16, 256  # a tile: DEEP * WIDE elements are compiler.intrinsics.memory.TILE
LEAST = LANES + 1  # shorter axes are left as they are
GROUP = 8  # tiles below each other before those beside them: pages of so many rows are at hand
AHEAD = 8192  # elements of the next row that are asked for
LINE = 64  # bytes of a cache line
SOON = 2 * LINE  # what a walk down columns asks for ahead


def across(spec: KernelSpec, inner: int, candidates: range, least: int = LEAST) -> int | None:
    """The axis along which most of the loads run that jump along the axis `inner`."""
    sizes = (*spec.outer, *spec.reduced, *spec.inner)
    if sizes[inner] < least:
        return None
    found = {}
    for d in candidates:
        if sizes[d] >= least:
            found[d] = len(crossing(spec, inner, d))
    best = max(found, key=lambda d: found[d], default=None)
    return best if best is not None and found[best] else None


def crossing(spec: KernelSpec, inner: int, d: int) -> list[Access]:
    """The loads that have stride 1 along axis d, and a longer one along the axis `inner`."""
    return [
        a
        for a in spec.accesses
        if not (a.store or a.terms) and a.strides[d] == 1 and a.strides[inner] not in (-1, 0, 1)
    ]


def ask_ahead(e: Any, base: dict[int, str]) -> None:
    """Ask for the next row of each operand: while a kernel goes over a row again and again, which
    lies in cache, memory would be idle."""
    (along,) = e.of_reduced
    row = e.of_outer[-1]
    for a in e.spec.accesses:
        if a.store or a.strides[along] != 1 or a.strides[row] == 0:
            continue
        near = e.integer("near", "near", min(e.spec.reduced[0], AHEAD))
        following = f"{base[id(a)]} + {e.stride(a, row, f'a{a.number}')}"
        with e.w.block(f"for j in range(0, {near}, {LINE // a.dtype.itemsize}):"):
            e.w.add(f"prefetch(at(a{a.number}, {following} + j))")


def _tiles(e: Any, name: str, d: int, size: int) -> tuple[str, int]:
    count = -(-(*e.spec.outer, *e.spec.reduced, *e.spec.inner)[d] // size)
    return e.integer(name, name, count), count


def _part(e: Any, name: str, d: int, start: str, most: int) -> None:
    e.w.add(f"{name} = {e.size(d)} - {start}", f"{name} = {name} if {name} < {most} else {most}")


def lay(e: Any, accesses: list[Access], base: dict[int, str], index: dict[int, str], inner: int,
        sizes: tuple[str, str], width: int, kind: str, ahead: bool = False) -> None:  # fmt: skip
    """Transpose the tile at an index of each access into scratch of its own.

    With `ahead`, ask for the tiles after the next one: the processor cannot follow so many columns.
    """
    for a in accesses:
        buffer = e.stack(a.dtype, kind)
        e.turned[id(a)] = buffer
        step = e.stride(a, inner, f"a{a.number}")
        source = f"at(a{a.number}, {e.place(a, base, index)})"
        if ahead:
            with e.w.block(f"for c in range({sizes[1]}):"):
                later = f"{e.place(a, base, index)} + {SOON // a.dtype.itemsize} + c * {step}"
                e.w.add(f"prefetch(at(a{a.number}, {later}))")
        call = f"transpose_{a.dtype.itemsize}"  # a kernel of the library
        e.w.add(f"{call}({buffer}, {width}, {source}, {step}, {sizes[0]}, {sizes[1]})")


def tiled_map(e: Any, d: int) -> None:
    """Map form in tiles along axis d and the inner one."""
    spec, w = e.spec, e.w
    e.prologue()
    phase = spec.phases[0]
    (inner,) = e.of_inner
    others = [k for k in e.of_outer if k != d]
    wide, n_wide = _tiles(e, "wide", inner, WIDE)
    deep, n_deep = _tiles(e, "deep", d, DEEP)
    e.out.extent = prod(spec.outer[k] for k in others) * n_deep * n_wide
    e.out.weight = spec.cost * min(spec.outer[d], DEEP) * min(spec.inner[0], WIDE)
    e.out.tiles = True
    w.add(f"every = {deep} * {wide}", f"full = {deep} * {GROUP}")
    with w.block("for u in range(lo, hi):"):
        w.add("o = u // every", "v = u - o * every", "g = v // full", "v = v - g * full")
        w.add(f"near = {wide} - g * {GROUP}", f"near = near if near < {GROUP} else {GROUP}")
        w.add("x = v // near", "y = v - x * near")
        w.add(f"c0 = x * {DEEP}", f"j0 = (g * {GROUP} + y) * {WIDE}")
        # The tile after this one: below it, or beside the first of the group.
        w.add(f"c1 = c0 if y + 1 < near else c0 + {DEEP}")
        w.add(f"j1 = (g * {GROUP} + (y + 1 if y + 1 < near else 0)) * {WIDE}")
        _part(e, "rows", d, "c0", DEEP)
        _part(e, "m", inner, "j0", WIDE)
        index: dict[int, str] = {}
        if others:
            e.decompose("o", others, index, "o")
        base = e.bases(index, e.all_accesses(), "p")
        begin = {d: "c0", inner: "j0"}
        for a in crossing(spec, inner, d):
            following = e.place(a, base, {d: "c1", inner: "j1"})
            with w.block("for k in range(m):"):
                line = f"{following} + k * {e.stride(a, inner, f'a{a.number}')}"
                w.add(f"prefetch(at(a{a.number}, {line}))")
                w.add(f"prefetch(at(a{a.number}, {line} + {DEEP - 1}))")
        lay(e, crossing(spec, inner, d), base, begin, inner, ("rows", "m"), WIDE, "tile")
        w.add("end = j0 + m")
        e.turned_along = "q"
        with w.block("for r in range(rows):"):
            w.add("c = c0 + r", f"turn = r * {WIDE} - j0")
            row = e.deepen(base, {d: "c"})
            e.hoisted(phase, row, {})
            with w.block("for q in range(j0, end):"):
                e.body(phase, row, {inner: "q"})


def tiled_row(e: Any, d: int) -> None:
    """Row form of one pass without stores: DEEP rows at a time, each in the order of the row
    form."""
    spec, w = e.spec, e.w
    e.prologue()
    phase: Phase = spec.phases[0]
    (inner,) = e.of_reduced
    others = [k for k in e.of_outer if k != d]
    deep, n_deep = _tiles(e, "deep", d, DEEP)
    e.out.extent = prod(spec.outer[k] for k in others) * n_deep
    e.out.weight = spec.cost * min(spec.outer[d], DEEP) * spec.reduced[0]
    accs = [accumulator(f.dtype, f.combine) for f in phase.folds]
    totals = [e.stack(acc) for acc in accs]
    with w.block("for u in range(lo, hi):"):
        w.add(f"o = u // {deep}", f"c0 = (u - o * {deep}) * {DEEP}")
        _part(e, "rows", d, "c0", DEEP)
        index: dict[int, str] = {}
        if others:
            e.decompose("o", others, index, "o")
        base = e.bases(index, e.all_accesses(), "p")
        with w.block("for r in range(rows):"):
            for t, f, acc in zip(totals, phase.folds, accs, strict=True):
                w.add(f"{t}[r] = {dtype_code(acc)}({identity(acc, f.combine)})")
        with w.block(f"for b in range(0, {e.size(inner)}, {BLOCK}):"):
            _part(e, "m", inner, "b", BLOCK)
            begin = {d: "c0", inner: "b"}
            lay(e, crossing(spec, inner, d), base, begin, inner, ("rows", "m"), BLOCK, "slab")
            with w.block("for r in range(rows):"):
                w.add("c = c0 + r", f"turn = r * {BLOCK}")
                row = e.deepen(base, {d: "c"})
                for s in spec.row_head:
                    e.statement(s, row, {})
                parts = e.block(phase, row, [inner])
                for t, f, acc, part in zip(totals, phase.folds, accs, parts, strict=True):
                    w.add(f"{t}[r] = {combined(f.combine, acc, f'{t}[r]', part)}")
        with w.block("for r in range(rows):"):
            w.add("c = c0 + r")
            e.turned.clear()
            row = e.deepen(base, {d: "c"}, "e")
            for s in spec.row_head:
                e.statement(s, row, {})
            for t, f in zip(totals, phase.folds, strict=True):
                w.add(f"{f.name} = {dtype_code(f.dtype)}({t}[r])")
            e.row_body(phase, row, {})
