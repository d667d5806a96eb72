"""Maps on GPUs: every index on its own, four side by side where memory is.

In: the emitter of a kernel of the form map. Out: lines in its writer.
"""

from __future__ import annotations

from math import prod
from typing import Any

from accnp.codegen.grid_tiles import turned_map
from accnp.codegen.grid_writer import NARROW, Copy, Grid
from accnp.codegen.tiles import across
from accnp.ir.kernel import Access, Phase

__all__ = ["grid_map"]

WIDE = 4  # elements of one load or store
CHEAP = 64  # cost of a kernel up to which four elements are written out


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
    count = e.integer("count", "count", total)
    dims = [*e.of_outer, *e.of_inner]
    if not spec.outer:
        e.hoisted(phase, {}, {})
    else:
        e.done = set()
    beside = side_by_side(e, phase)
    start = "thread()"
    if beside:
        w.add("first = 0")
        with w.block(f"if {_wide_flag(e, beside)}:"):
            w.add(f"first = {count} >> {WIDE.bit_length() - 1}")
        w.add("u = thread()")
        with w.block("while u < first:"):
            w.add(f"i = u * {WIDE}")
            _four(e, phase, dims, beside)
            w.add("u = u + threads()")
        start = f"first * {WIDE} + thread()"
    w.add(f"i = {start}")
    with w.block(f"while i < {count}:"):
        index: dict[int, str] = {}
        e.decompose("i", dims, index, "o")
        e.body(phase, {}, index)
        w.add("i = i + threads()")
    items = -(-total // WIDE) if beside and _is_wide(e, beside) else total
    e.out.blocks = max(1, -(-items // e.out.threads))
    e.out.extent, e.out.weight = total, spec.cost


def side_by_side(e: Grid, phase: Phase) -> list[Access]:
    """The operands of which four elements are one load or store; none if it is not worth it."""
    spec = e.spec
    (inner,) = e.of_inner
    if spec.cost > CHEAP:
        return []
    found = []
    for a in spec.accesses:
        if a.strides[inner] == 1 and not a.terms and a.dtype.kind != "c":
            found.append(a)
        elif a.store:
            return []
    return found


def _is_wide(e: Grid, beside: list[Access]) -> bool:
    """Whether rows begin where four elements may be loaded, if the arrays do."""
    if not e.spec.outer:
        return True
    outer = [s for a in beside for s in a.strides[: len(e.spec.outer)]]
    return not any(n % WIDE for n in (*outer, e.spec.inner[0]))


def _wide_flag(e: Grid, beside: list[Access]) -> str:
    tests = [f"aligned(a{a.number})" for a in beside]
    if e.spec.outer:
        flag = e.integer("wide", "wide", int(_is_wide(e, beside)))
        tests.insert(0, f"({flag} == 1)")
    return " & ".join(tests)


def _four(e: Grid, phase: Phase, dims: list[int], beside: list[Access]) -> None:
    """Four elements from i on."""
    w = e.w
    (inner,) = e.of_inner
    index: dict[int, str] = {}
    e.decompose("i", dims, index, "o")
    j = index[inner]
    ours = {id(a) for a in beside}
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
