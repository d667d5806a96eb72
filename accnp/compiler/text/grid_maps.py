"""Maps on GPUs: every index on its own, four side by side where memory is.

In: the emitter of a kernel of the form map. Out: lines in its writer.
"""

from __future__ import annotations

from math import prod
from typing import Any

from accnp.compiler.specs.layouts import across
from accnp.compiler.text.grid_patches import is_patched, patched_map
from accnp.compiler.text.grid_tiles import turned_map
from accnp.compiler.text.grid_writer import NARROW, THREADS, Copy, Grid, beside
from accnp.ir.kernel import Access, KernelSpec, Phase

__all__ = ["WIDE", "blocks_of", "grid_map", "side_by_side"]

WIDE = 4  # elements of one load or store
# Waves of blocks whose threads load four side by side. More are slower, the sooner the more each
# has to do: 2, 16 and 32 waves take 102, 98.6 and 103 us for a chain of 7 operations on an H200,
# and Black-Scholes takes 74.3 us by 4 waves, 79.8 by 16.
MANY, OF_COSTLY, COSTLY = 16, 4, 64


def grid_map(e: Any) -> None:
    """Every index of (outer x inner) on its own, four side by side where memory is."""
    spec, w = e.spec, e.w
    phase = spec.phases[0] if spec.phases else Phase()
    e.prologue()
    turned = across(spec, e.of_inner[0], e.of_outer) if spec.inner else None
    if turned is not None and prod(e.sizes) < NARROW:
        return turned_map(e, turned)
    for s in spec.row_head:
        e.statement(s, {}, {})
    if not spec.inner:
        with w.block("if thread() == 0:"):
            e.body(phase, {}, {})
            e.row_body(phase, {}, {})
        return
    total = prod(e.sizes)
    e.words = e.fits()
    if not spec.outer:
        e.hoisted(phase, {}, {})
    else:
        e.done = set()
    moved = side_by_side(spec)
    if not moved and is_patched(e):
        return patched_map(e, phase)
    count = e.integer("count", "count", total)
    if moved:
        w.add("first = 0")
        with w.block(f"if {' & '.join([f'aligned(a{a.number})' for a in moved])}:"):
            w.add(f"first = {count} >> {WIDE.bit_length() - 1}")
        w.add("u = thread()")
        with w.block("while u < first:"):
            _four(e, phase, moved)
            w.add("u = u + threads()")
        w.add(f"i = first * {WIDE} + thread()")
        several, items = 1, -(-total // WIDE)
    else:
        several = beside("map", spec.cost)
        _several(e, phase, count, several)
        items = -(-total // several)
    with w.block(f"while i < {count}:"):
        _each(e, phase, ["i"])
        w.add(f"i = i + {'threads()' if several == 1 else e.out.threads}")
    e.out.blocks = blocks_of(spec, items, e.wave, bool(moved))
    e.out.extent, e.out.weight = total, spec.cost


def blocks_of(spec: KernelSpec, items: int, wave: int, adjacent: bool) -> int:
    """How many blocks of threads do the items of a map, each of which is several elements."""
    found = max(1, -(-items // THREADS))
    waves = OF_COSTLY if spec.cost > COSTLY else MANY
    return min(waves * wave, found) if adjacent else found


def _several(e: Grid, phase: Phase, count: str, several: int) -> None:
    """A thread does several indices at a time, a block of threads apart so that those of a warp lie
    side by side: what they load is asked for before any of it is waited for."""
    w, step = e.w, e.out.threads
    if several == 1:
        w.add("i = thread()")
        return
    w.add(f"i = block_of_grid() * {step * several} + thread_of_block()")
    with w.block(f"while i + {step * (several - 1)} < {count}:"):
        w.add(*[f"i{k} = i + {step * k}" for k in range(1, several)])
        _each(e, phase, ["i", *[f"i{k}" for k in range(1, several)]])
        w.add(f"i = i + blocks() * {step * several}")


def _each(e: Grid, phase: Phase, names: list[str]) -> None:
    """Elements with these numbers."""
    found: list[dict[int, str]] = []
    for k, name in enumerate(names):
        index: dict[int, str] = {}
        letter = f"o{k}_" if len(names) > 1 else "o"
        e.decompose(name, [*e.of_outer, *e.of_inner], index, letter)
        found.append(e.places(index))
    e.copies(phase, found)


def side_by_side(spec: KernelSpec) -> list[Access]:
    """The operands of which four elements are one load or store; none if it is not worth it."""
    inner = len(spec.outer)
    if beside("map", spec.cost) < WIDE:
        return []
    found = []
    for a in spec.accesses:
        if a.strides[inner] == 1 and not a.terms and a.dtype.kind != "c":
            found.append(a)
        elif a.store:
            return []
    # Rows have to begin where four elements may be loaded.
    starts = [n for a in found for n in (a.offset, *a.strides[: len(spec.outer)])]
    return [] if any(n % WIDE for n in (*starts, *spec.inner[: len(spec.outer)])) else found


def _four(e: Grid, phase: Phase, moved: list[Access]) -> None:
    """Four elements side by side, the ones of number u."""
    w = e.w
    (inner,) = e.of_inner
    w.add(f"i = u * {WIDE}")
    index: dict[int, str] = {}
    e.decompose("i", [*e.of_outer, *e.of_inner], index, "o")
    j = index[inner]
    ours = {id(a) for a in moved}
    moving: set[str] = set()
    for s in phase.full:
        place = s.access or s.index
        if s.name in e.done:
            continue
        if (place is not None and place.strides[inner]) or not moving.isdisjoint(s.args):
            moving.add(s.name)
        else:
            e.statement(s, {}, index)
    loads: dict[int, tuple[int, list[str]]] = {}
    for s in phase.full:
        a = s.access
        if s.name in moving and a is not None and id(a) in ours and id(a) not in loads:
            loads[id(a)] = _load(e, a, index)
    for k in range(WIDE):
        here = {**index, inner: j if k == 0 else f"({j} + {k})"}
        copy = Copy(e, k, moving)
        for s in phase.full:
            if s.name not in moving:
                continue
            if s.access is not None and id(s.access) in ours:
                size, names = loads[id(s.access)]
                part = f"part({names[k // size]}, {k % size})"
                part = f"b1({part})" if s.dtype.kind == "b" else part
                w.add(f"{copy.name(s.name)} = {part}")
                e.dtypes[copy.name(s.name)] = s.dtype
            else:
                copy.statement(s, {}, here)
    for a, name in phase.stores:
        values = [Copy(e, k, moving).name(name) for k in range(WIDE)]
        if id(a) not in ours:
            for k, value in enumerate(values):
                w.add(f"a{a.number}[{e.place(a, {}, {**index, inner: f'({j} + {k})'})}] = {value}")
            continue
        size, place = _side(a), e.place(a, {}, index)
        for k in range(0, WIDE, size):
            at = place if k == 0 else f"{place} + {k}"
            w.add(f"store{size}(a{a.number}, {at}, {', '.join(values[k : k + size])})")


def _side(a: Access) -> int:
    """Elements of an operand that one instruction moves: 16 bytes at most."""
    return 2 if a.dtype.itemsize == 8 else WIDE


def _load(e: Grid, a: Access, index: dict[int, str]) -> tuple[int, list[str]]:
    size, place, names = _side(a), e.place(a, {}, index), []
    for k in range(0, WIDE, size):
        names.append(f"v{a.number}" if size == WIDE else f"v{a.number}_{k}")
        at = place if k == 0 else f"{place} + {k}"
        e.w.add(f"{names[-1]} = load{size}(a{a.number}, {at})")
    return size, names
