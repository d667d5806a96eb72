"""Kernels along short axes: their indices are written out, so that the loop around them is the one
that the compiler turns into vector instructions.

In: the emitter of a kernel whose folded or inner axis is short. Out: lines in its writer. This is
the one place where a size is part of a kernel's text: a loop of three steps costs more in control
than in work, and folding three numbers by a call costs thirty times their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from accnp.codegen.folds import accumulator, combined, identity
from accnp.ir.kernel import ROWS, KernelSpec, Phase, Statement, dtype_code

__all__ = [
    "DEAR", "LANES", "fixed_in", "in_lanes", "is_permuted", "is_picked", "is_short", "permutes",
    "picked_map", "short_column", "short_map", "short_row", "taken_in",
]  # fmt: skip

# Elements of a folded or an inner axis that are written out, and statements in all.
LANES = 4
COLUMNS = 16
STATEMENTS = 400
PICKED = 16  # elements of a row that are taken at places which do not differ from row to row
ROW_BYTES = 64  # of a row that one instruction permutes, where `permutes` says that there is one
DEAR = 20  # operations of a step of which some are in a function

# Whether vectors are permuted by a register (AVX-512): the engine knows the machine.
permutes: Callable[[], bool] = lambda: False  # noqa: E731


def is_short(spec: KernelSpec) -> bool:
    """Whether a kernel's text is to be written along its short axis."""
    length = prod({"row": spec.reduced, "map": spec.inner, "column": spec.inner}.get(spec.form, ()))
    most = COLUMNS if spec.form == "column" else LANES
    count = sum(len(p.full) + len(p.folds) for p in spec.phases)
    if spec.form in ("row", "map") and not spec.outer:
        return False
    return 1 < length <= most and count * length <= STATEMENTS


@contextmanager
def runs(e: Any, tag: str = "p") -> Iterator[tuple[dict[int, str], dict[int, str]]]:
    """The loop over the outer indices from lo to hi; gives positions and the innermost index.

    Several outer axes are walked in runs along the last one: a division for each element would keep
    the loop from becoming vector instructions.
    """
    w = e.w
    dims = list(e.of_outer)
    if len(dims) == 1:
        with w.block("for o in range(lo, hi):"):
            yield {}, {dims[0]: "o"}
        return
    w.add("u = lo")
    with w.block("while u < hi:"):
        index: dict[int, str] = {}
        e.decompose("u", dims, index, "o")
        last = dims[-1]
        begin = index.pop(last)
        base = e.bases(index, e.all_accesses(), tag)
        size = e.size(last)
        w.add(f"run = {size} - {begin}", "run = run if run < hi - u else hi - u")
        with w.block(f"for o in range({begin}, {begin} + run):"):
            yield base, {last: "o"}
        w.add("u += run")


class _Copy:
    """Statements for one index of the short axis; their names get its number."""

    def __init__(
        self, e: Any, k: int, names: set[str], known: dict[tuple[int, int], str] | None = None
    ) -> None:
        self.e, self.k, self.names, self.known = e, k, names, known

    def name(self, x: str) -> str:
        return f"{x}_{self.k}" if x in self.names else x

    def statement(self, s: Statement, base: dict[int, str], index: dict[int, str]) -> None:
        if s.access is not None and not s.access.store and not s.args and self.known is not None:
            # What an earlier pass has loaded: the compiler does not see far enough.
            before = self.known.setdefault((id(s.access), self.k), self.name(s.name))
            if before != self.name(s.name):
                self.e.w.add(f"{self.name(s.name)} = {before}")
                self.e.dtypes[self.name(s.name)] = s.dtype
                return
        mine = Statement(
            self.name(s.name), s.dtype, s.text, tuple(map(self.name, s.args)), s.access, s.index
        )
        self.e.statement(mine, base, index)


def _lanes(sizes: tuple[int, ...]) -> list[tuple[str, ...]]:
    """The indices along some axes, in order, as text."""
    found: list[tuple[str, ...]] = [()]
    for n in sizes:
        found = [(*at, str(i)) for at in found for i in range(n)]
    return found


def _full_names(phase: Phase) -> set[str]:
    return {s.name for s in phase.full}


def short_row(e: Any) -> None:
    """Row form: every fold over the short axis is a chain of operations."""
    spec = e.spec
    e.prologue()
    e.out.extent = prod(spec.outer)
    e.out.weight = spec.cost * prod(spec.reduced)
    lanes = _lanes(spec.reduced)
    with runs(e) as (base, index):
        for s in spec.row_head:
            e.statement(s, base, index)
        known: dict[tuple[int, int], str] = {}
        for phase in spec.phases:
            _along(e, phase, base, index, list(e.of_reduced), lanes, known)
            for f in phase.folds:
                code = dtype_code(f.dtype)
                e.w.add(f"{f.name}_c = {code}({identity(f.dtype, f.combine)})")
                for k in range(len(lanes)):
                    source = f"{f.source}_{k}" if f.source in _full_names(phase) else f.source
                    e.w.add(f"{f.name}_c = {combined(f.combine, f.dtype, f'{f.name}_c', source)}")
                e.w.add(f"{f.name} = {f.name}_c")
            e.row_body(phase, base, index)


def _along(
    e: Any,
    phase: Phase,
    base: dict[int, str],
    index: dict[int, str],
    dims: list[int],
    lanes: list[tuple[str, ...]],
    known: dict[tuple[int, int], str] | None = None,
) -> None:
    """The statements and stores of a pass, once for each index of the short axis."""
    names = _full_names(phase)
    for k, at in enumerate(lanes):
        here = {**index, **dict(zip(dims, at, strict=True))}
        copy = _Copy(e, k, names, known)
        for s in phase.full:
            copy.statement(s, base, here)
    # Stores come last: a store between loads would keep them from being done together.
    for k, at in enumerate(lanes):
        here = {**index, **dict(zip(dims, at, strict=True))}
        for a, name in phase.stores:
            text = _Copy(e, k, names).name(name)
            e.w.add(f"a{a.number}[{e.place(a, base, here)}] = {text}")


def short_map(e: Any) -> None:
    """Map form with a short inner axis."""
    spec = e.spec
    e.prologue()
    e.out.extent = prod(spec.outer)
    e.out.weight = spec.cost * prod(spec.inner)
    with runs(e) as (base, index):
        for s in spec.row_head:
            e.statement(s, base, index)
        for phase in spec.phases:
            _along(e, phase, base, index, list(e.of_inner), _lanes(spec.inner))


def fixed_in(spec: KernelSpec) -> list[Statement]:
    """The statements that say the same in every row of a map."""
    moving: set[str] = set()
    found = []
    outer = range(len(spec.outer))
    for s in spec.phases[0].full if spec.phases else ():
        place = s.access or s.index
        along = place is not None and any(place.strides[d] for d in outer)
        if along or (s.access is not None and s.access.terms) or not moving.isdisjoint(s.args):
            moving.add(s.name)
        else:
            found.append(s)
    return found


def is_picked(spec: KernelSpec) -> bool:
    """Whether a map takes elements of its rows at few places, the same in every row."""
    if spec.form != "map" or not spec.outer or len(spec.phases) != 1 or len(spec.inner) != 1:
        return False
    length, (phase,) = spec.inner[0], spec.phases
    if not 1 < length <= PICKED or len(phase.full) * length > STATEMENTS or spec.row_head:
        return False
    heads = {s.name for s in (*spec.scalars, *fixed_in(spec))}
    taken = taken_in(phase)
    return bool(taken) and all(heads.issuperset(s.args) for s in taken)


def taken_in(phase: Phase) -> list[Statement]:
    """The loads at places that are computed."""
    return [s for s in phase.full if s.access is not None and s.access.terms]


def is_permuted(s: Statement, n: int) -> bool:
    """Whether one vector holds the row of which a statement takes n elements."""
    if s.access is None or len(s.access.terms) != 1 or s.dtype.kind not in "fiu":
        return False
    ((stride, largest),) = s.access.terms
    fits = max(n, largest + 1) * s.dtype.itemsize <= ROW_BYTES
    return fits and s.dtype.itemsize in (4, 8) and stride == 1


def _permuted_map(e: Any, taken: list[Statement]) -> None:
    """Map form whose rows are permuted, each by one instruction; the rest are vectors along it."""
    spec, phase = e.spec, e.spec.phases[0]
    (inner,), n = e.of_inner, spec.inner[0]
    rows = {s.name: (e.stack(s.dtype), e.stack(np.dtype(np.int32))) for s in taken}
    wanted = {name for _, name in phase.stores}  # in the loop over rows
    for s in reversed(phase.full):
        if s.name in wanted and s.name not in rows:
            wanted.update(s.args)
    fixed = fixed_in(spec)
    with e.w.block(f"for j in range({n}):"):
        for s in fixed:
            e.statement(s, {}, {inner: "j"})
        e.w.add(*[f"{rows[s.name][1]}[j] = i4({s.args[0]})" for s in taken])
    e.w.add("o = lo")
    with e.w.block("while o < hi:"):
        index: dict[int, str] = {}
        e.begin_outer("o", index)
        base = e.bases(index, e.all_accesses(), "p")
        for s in taken:
            (row, places), a = rows[s.name], s.access
            assert a is not None
            size = e.integer(("row", id(a)), f"{row}n", a.terms[0][1] + 1)
            source = f"at(a{a.number}, {e.place(a, base, {})})"
            e.w.add(f"permute({row}, {source}, {size}, {n}, {places})")
        with e.w.block(f"for j in range({n}):"):
            for s in phase.full:
                if s.name in rows:
                    e.w.add(f"{s.name} = {rows[s.name][0]}[j]")
                    e.dtypes[s.name] = s.dtype
                elif s.name in wanted:
                    e.statement(s, base, {inner: "j"})
            for a, name in phase.stores:
                e.w.add(f"a{a.number}[{e.place(a, base, {inner: 'j'})}] = {name}")
        e.w.add("o += 1")


def picked_map(e: Any) -> None:
    """Map form that takes elements of its rows at the same few places: these are computed once, and
    a row is as many loads and stores. Vectors across rows would gather and scatter them."""
    spec, phase = e.spec, e.spec.phases[0]
    e.prologue()
    e.out.extent = prod(spec.outer)
    e.out.weight = spec.cost * prod(spec.inner)
    taken = taken_in(phase)
    if all(is_permuted(s, spec.inner[0]) for s in taken) and permutes():
        _permuted_map(e, taken)
        return
    fixed, names = fixed_in(spec), _full_names(phase)
    places = [{e.of_inner[0]: at} for (at,) in _lanes(spec.inner)]
    for k, here in enumerate(places):
        for s in fixed:
            _Copy(e, k, names).statement(s, {}, here)
    moving = [s for s in phase.full if s not in fixed]
    e.w.add("o = lo")
    with e.w.block("while o < hi:"):
        index: dict[int, str] = {}
        e.begin_outer("o", index)
        base = e.bases(index, e.all_accesses(), "p")
        for k, here in enumerate(places):
            for s in moving:
                _Copy(e, k, names).statement(s, base, here)
        for k, here in enumerate(places):
            for a, name in phase.stores:
                e.w.add(f"a{a.number}[{e.place(a, base, here)}] = {_Copy(e, k, names).name(name)}")
        e.w.add("o += 1")


def short_column(e: Any) -> None:
    """Column form with a short inner axis: one accumulator for each column, in registers."""
    spec = e.spec
    e.prologue()
    if (e.tiny or spec.cost >= DEAR) and in_lanes(spec, e.of_inner[0]):
        return _lane_column(e)
    w = e.w
    n = spec.inner[0]
    lanes = _lanes(spec.inner)
    (inner,) = e.of_inner
    e.out.extent = prod(spec.outer)
    e.out.weight = spec.cost * prod(spec.reduced) * n
    phase = spec.phases[0]
    names = _full_names(phase)
    each: Callable[[str, int], str] = lambda name, k: f"{name}_{k}"  # noqa: E731
    with w.block("for u in range(lo, hi):"):
        index: dict[int, str] = {}
        e.begin_outer("u", index)
        base = e.bases(index, e.all_accesses(), "p")
        for f in phase.folds:
            acc = accumulator(f.dtype, f.combine)
            start = f"{dtype_code(acc)}({identity(acc, f.combine)})"
            w.add(*[f"{each(f.name + 'a', k)} = {start}" for k in range(n)])
        rows = e.total()
        with w.block(f"for rb in range(0, {rows}, {ROWS}):"):
            for f in phase.folds:
                start = f"{dtype_code(f.dtype)}({identity(f.dtype, f.combine)})"
                w.add(*[f"{each(f.name + 'p', k)} = {start}" for k in range(n)])
            w.add(f"re = rb + {ROWS}", f"re = re if re < {rows} else {rows}")
            with w.block("for r in range(rb, re):"):
                inside: dict[int, str] = {}
                dims = list(e.of_reduced)
                if len(dims) == 1:
                    inside[dims[0]] = "r"
                else:
                    e.decompose("r", dims, inside, "d")
                deep = e.deepen(base, inside)
                _along(e, phase, deep, {}, [inner], lanes)
                for f in phase.folds:
                    for k in range(n):
                        source = each(f.source, k) if f.source in names else f.source
                        part = each(f.name + "p", k)
                        w.add(f"{part} = {combined(f.combine, f.dtype, part, source)}")
            for f in phase.folds:
                acc = accumulator(f.dtype, f.combine)
                for k in range(n):
                    total, part = each(f.name + "a", k), each(f.name + "p", k)
                    wide = f"{dtype_code(acc)}({part})" if acc != f.dtype else part
                    w.add(f"{total} = {combined(f.combine, acc, total, wide)}")
        row_names = {f.name for f in phase.folds} | {s.name for s in phase.row}
        for k, (at,) in enumerate(lanes):
            for f in phase.folds:
                w.add(f"{each(f.name, k)} = {dtype_code(f.dtype)}({each(f.name + 'a', k)})")
            copy = _Copy(e, k, row_names)
            for s in phase.row:
                copy.statement(s, base, {inner: at})
            for a, name in phase.row_stores:
                w.add(f"a{a.number}[{e.place(a, base, {inner: at})}] = {copy.name(name)}")


def in_lanes(spec: KernelSpec, d: int) -> bool:
    """Whether the columns, along axis d, can be the lanes of one short vector.

    That gains where they call functions (means of exp of 3 columns: 770 -> 360 us) and where a loop
    is tiny; elsewhere LLVM does as well or, where it may change the order of a fold, better.
    """
    here = (*spec.phases[0].full, *spec.phases[0].row)
    return (
        spec.inner[0] <= LANES
        and all(s.access is None or (s.access.strides[d] in (0, 1) and not s.args) for s in here)
        and not any(s.index is not None or s.dtype.kind == "c" for s in here)
    )


def _lane_column(e: Any) -> None:
    """Columns side by side in one vector, which scratch stands for: of three columns LLVM did two
    in a vector and one apart."""
    spec, w, phase = e.spec, e.w, e.spec.phases[0]
    (inner,) = e.of_inner
    n = spec.inner[0]
    e.out.extent = prod(spec.outer)
    e.out.weight = spec.cost * prod(spec.reduced) * n
    accs = [accumulator(f.dtype, f.combine) for f in phase.folds]
    totals = [e.stack(a) for a in accs]
    parts = [e.stack(f.dtype) for f in phase.folds]
    columns = f"for j in range({n}):"

    def start(those: list[str], dtypes: list[Any]) -> None:
        for name, dtype, f in zip(those, dtypes, phase.folds, strict=True):
            w.add(f"{name}[j] = {dtype_code(dtype)}({identity(dtype, f.combine)})")

    with w.block("for u in range(lo, hi):"):
        index: dict[int, str] = {}
        e.begin_outer("u", index)
        base = e.bases(index, e.all_accesses(), "p")
        with w.block(columns):
            start(totals, accs)
        rows = e.total()
        with w.block(f"for rb in range(0, {rows}, {ROWS}):"):
            with w.block(columns):
                start(parts, [f.dtype for f in phase.folds])
            w.add(f"re = rb + {ROWS}", f"re = re if re < {rows} else {rows}")
            with w.block("for r in range(rb, re):"):
                inside: dict[int, str] = {}
                dims = list(e.of_reduced)
                if len(dims) == 1:
                    inside[dims[0]] = "r"
                else:
                    e.decompose("r", dims, inside, "d")
                deep = e.deepen(base, inside)
                with w.block(columns):
                    e.body(phase, deep, {inner: "j"})
                    for f, part in zip(phase.folds, parts, strict=True):
                        w.add(f"{part}[j] = {combined(f.combine, f.dtype, f'{part}[j]', f.source)}")
            with w.block(columns):
                for f, acc, total, part in zip(phase.folds, accs, totals, parts, strict=True):
                    wide = f"{dtype_code(acc)}({part}[j])" if acc != f.dtype else f"{part}[j]"
                    w.add(f"{total}[j] = {combined(f.combine, acc, f'{total}[j]', wide)}")
        with w.block(columns):
            for f, total in zip(phase.folds, totals, strict=True):
                w.add(f"{f.name} = {dtype_code(f.dtype)}({total}[j])")
            e.row_body(phase, base, {inner: "j"})
