"""Build loop IR from the description of a kernel that fusion makes (`ir.kernel.KernelSpec`).

In: a `KernelSpec`. Out: a kernel, and how it is called: the integer arguments, the extent of its
range, and the partial results of a fold in chunks. The kernel contains no size: a stride is a
constant only where it is 0 or 1, so one kernel serves all shapes of a layout.

What is covered so far, of bools, integers, float32 and float64: maps whose operands lie along the
rows, and folds of one axis in one pass, in rows or in chunks, but not of integers of 1 or 2 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from accnp.codegen.folds import accumulator
from accnp.codegen.generated import Generated
from accnp.codegen.short import is_picked, is_short
from accnp.codegen.tiles import across
from accnp.compiler.formulas import Unsupported, converted, expression
from accnp.compiler.loops.builder import Builder, Loop, affine, call, plus
from accnp.compiler.loops.functions import identity
from accnp.compiler.loops.ir import Buffer, Const, Expr, Kernel, Load, Var
from accnp.compiler.loops.types import B1, F8, I8, DType, dtype_of
from accnp.ir.kernel import (
    BLOCK,
    CHUNK,
    STRIDES,
    Access,
    Fold,
    KernelSpec,
    Phase,
    Statement,
)
from accnp.primitives.conversion import EXP_BELOW

__all__ = ["build"]

_ZERO = Const(0, I8)


def build(spec: KernelSpec) -> tuple[Kernel, Generated]:
    """Return the kernel of a description, and how it is called.

    Raises
    ------
    Unsupported
        If the loop IR does not cover it yet.
    """
    return _Specs(spec).run()


def _covered(dtype: np.dtype) -> DType:
    found = dtype_of(dtype)
    if found is None:
        raise Unsupported(f"numbers of type {dtype}")
    return found


class _Specs:
    def __init__(self, spec: KernelSpec) -> None:
        self.spec = spec
        self.b = Builder()
        self.out = Generated()
        self.out.form = spec.form
        self.values: dict[str, Expr] = {}
        self.buffers: dict[int, Buffer] = {}
        self.known: dict[object, Var] = {}  # integer arguments
        # Axes are numbered from the outer ones: (outer, reduced, inner).
        self.outer = len(spec.outer)
        axes = len(spec.outer) + len(spec.reduced) + len(spec.inner)
        self.along = axes - 1 if spec.inner or spec.reduced else -1  # axis of the innermost loop

    def run(self) -> tuple[Kernel, Generated]:
        spec = self.spec
        if spec.fastmath or any(a.terms for a in spec.accesses):
            raise Unsupported("approximate functions, or computed places")
        if is_picked(spec) or is_short(spec):
            raise Unsupported("short axes")
        for a in spec.accesses:
            self.buffers[id(a)] = self.b.buffer(f"a{a.number}", _covered(a.dtype))
            self.out.pointers.append(a)
        for s in spec.scalars:
            self.statement(s, {})
        if spec.form == "map" and len(spec.inner) <= 1:
            self.map()
        elif spec.form == "row" and len(spec.phases) == 1 and self.is_plain():
            self.rows()
        elif spec.form == "split" and self.is_plain():
            self.split()
        else:
            raise Unsupported(f"the form {spec.form}")
        return self.b.kernel(), self.out

    def is_plain(self) -> bool:
        """Whether one axis is folded, whose elements lie side by side, without stores of them."""
        spec = self.spec
        (phase,) = spec.phases
        if len(spec.reduced) != 1 or spec.inner or len(spec.outer) > 1 or phase.stores:
            return False
        if len(phase.folds) != 1:
            return False
        if any(a.dtype.kind in "iu" and a.dtype.itemsize < 4 for a in spec.accesses):
            return False  # rows of int16 take 1.2 of the time of the text
        if any(s.text in EXP_BELOW.values() for s in phase.full):
            return False  # the pass is left out where a condition fails
        if spec.form == "row" and across(spec, self.outer, range(self.outer)) is not None:
            return False  # operands lie across the rows: in tiles
        loads = [s.access for s in (*spec.row_head, *phase.full) if s.access is not None]
        return all(a.strides[self.outer] in (0, 1) for a in loads)

    # --- arguments ---

    def integer(self, key: object, name: str, value: int) -> Var:
        """An argument that is an integer."""
        if key not in self.known:
            self.known[key] = self.b.integer(name)
            self.out.ints.append(value)
        return self.known[key]

    def place(self, a: Access, index: dict[int, Var]) -> Expr:
        """The index of an access at the indices of some axes."""
        terms: list[tuple[Var, int | Var]] = []
        for d, i in index.items():
            stride = a.strides[d]
            if stride in (0, 1) or (d == self.along and stride in STRIDES and not a.store):
                terms.append((i, stride))
                continue
            # Loads of one array under the same strides share them.
            whose = id(a) if a.store else (id(a.value), a.strides)
            name = f"a{a.number}s{d}" if a.number >= 0 else f"x{d}"
            terms.append((i, self.integer(("s", whose, d), name, stride)))
        return affine(*terms)

    # --- statements ---

    def value(self, s: Statement, index: dict[int, Var]) -> Expr:
        """What a statement assigns."""
        to = _covered(s.dtype)
        if s.access is not None:
            return Load(self.buffers[id(s.access)], self.place(s.access, index))
        if s.index is not None:
            offset = self.integer(("o", id(s.index)), f"x{len(self.known)}o", s.index.offset)
            return converted(plus(self.place(s.index, index), offset), to)
        return converted(expression(s.text, [self.values[a] for a in s.args]), to)

    def statement(self, s: Statement, index: dict[int, Var]) -> None:
        self.values[s.name] = self.b.let(s.name, self.value(s, index))

    def store(self, a: Access, name: str, index: dict[int, Var]) -> None:
        self.b.store(self.buffers[id(a)], self.place(a, index), self.values[name])

    # --- maps ---

    def map(self) -> None:
        spec, b = self.spec, self.b
        for s in spec.row_head:
            self.statement(s, {})
        phase = spec.phases[0] if spec.phases else Phase()
        if not spec.inner:
            with b.loop("i", b.first, b.last):
                self.body(phase, {})
                for s in phase.row:
                    self.statement(s, {})
                for a, name in phase.row_stores:
                    self.store(a, name, {})
            return
        along = self.outer
        for a in spec.accesses:
            stride = a.strides[along]
            if stride != 1 if a.store else stride not in (0, 1, *STRIDES):
                raise Unsupported("strides")
        if not spec.outer:
            self.out.extent, self.out.weight = spec.inner[0], spec.cost
            self.hoist(phase, along, {})
            with b.loop("i", b.first, b.last, independent=True) as loop:
                self.body(phase, {along: loop.index})
            return
        if across(spec, along, range(self.outer)) is not None:
            raise Unsupported("operands that lie across the rows")
        self.out.extent = prod(spec.outer)
        self.out.weight = spec.cost * spec.inner[0]
        with b.loop("o", b.first, b.last) as rows:
            index = self.outer_indices(rows.index)
            self.hoist(phase, along, index)
            total = self.integer(("n", along), f"n{along}", spec.inner[0])
            with b.loop("j", _ZERO, total, independent=True) as loop:
                self.body(phase, {**index, along: loop.index})

    def outer_indices(self, flat: Var) -> dict[int, Var]:
        """The indices of the outer axes, of which one counts all rows."""
        found: dict[int, Var] = {}
        for d in range(self.outer - 1, 0, -1):
            size = self.integer(("n", d), f"n{d}", self.spec.outer[d])
            rest = self.b.let(f"oq{d}", call("floordiv", flat, size))
            found[d] = self.b.let(f"o{d}", call("sub", flat, call("mul", rest, size)))
            flat = rest
        return {0: flat, **dict(reversed(found.items()))}

    def hoist(self, phase: Phase, along: int, index: dict[int, Var]) -> None:
        """Assign before the loop what is the same in all its steps."""
        moving: set[str] = set()
        for s in phase.full:
            place = s.access or s.index
            if (place is not None and place.strides[along]) or not moving.isdisjoint(s.args):
                moving.add(s.name)
            else:
                self.statement(s, index)

    def body(self, phase: Phase, index: dict[int, Var]) -> None:
        """The statements of one step. Results are stored as soon as they are known, but after the
        last load: they may be written over operands."""
        here = [s for s in phase.full if s.name not in self.values]
        loads = [k for k, s in enumerate(here) if s.access is not None]
        last = loads[-1] if loads else -1
        coming = {s.name for s in here[last + 1 :]}
        early = [x for x in phase.stores if x[1] not in coming]
        for k, s in enumerate(here):
            if k == last + 1:
                self.stores(early, index)
            self.statement(s, index)
            if k > last:
                self.stores([x for x in phase.stores if x[1] == s.name], index)
        if last + 1 >= len(here):
            self.stores(early, index)

    def stores(self, those: Sequence[tuple[Access, str]], index: dict[int, Var]) -> None:
        for a, name in those:
            self.store(a, name, index)

    # --- folds ---

    def rows(self) -> None:
        """Each step folds one row."""
        spec, b = self.spec, self.b
        (phase,) = spec.phases
        self.out.extent = prod(spec.outer)
        self.out.weight = spec.cost * prod(spec.reduced)
        total = self.integer(("n", self.outer), f"n{self.outer}", spec.reduced[0])
        with b.loop("o", b.first, b.last) as loop:
            index = {0: loop.index} if spec.outer else {}
            for s in spec.row_head:
                self.statement(s, index)
            found = self.one_pass(phase, index, _ZERO, total)
            for f, acc in zip(phase.folds, found, strict=True):
                self.values[f.name] = b.let(f.name, converted(acc, _covered(f.dtype)))
            for s in phase.row:
                self.statement(s, index)
            self.stores(phase.row_stores, index)

    def split(self) -> None:
        """Each step folds one chunk of one row. The fold of a row that is one chunk is a result;
        others are partial results, which another kernel folds."""
        spec, b, out = self.spec, self.b, self.out
        (phase,) = spec.phases
        chunks = max(1, -(-spec.reduced[0] // CHUNK))
        out.extent = prod(spec.outer) * chunks
        out.weight = spec.cost * min(spec.reduced[0], CHUNK)
        parts = []
        results = {name: a for a, name in phase.row_stores}
        for k, f in enumerate(phase.folds):
            acc = accumulator(f.dtype, f.combine)
            parts.append(b.buffer(f"part{k}", _covered(acc)))
            out.pointers.append((f"part{k}", k, acc))
            out.partials.append((f, results[f.name], chunks))
        count = self.integer("chunks", "chunks", chunks)
        total = self.integer(("n", self.outer), f"n{self.outer}", spec.reduced[0])
        with b.loop("u", b.first, b.last) as loop:
            u = loop.index
            o = b.let("o", call("floordiv", u, count))
            chunk = call("sub", u, call("mul", o, count))
            start = b.let("start", call("mul", chunk, Const(CHUNK, I8)))
            stop = b.let("stop", call("fmin", affine((start, 1), constant=CHUNK), total))
            index = {0: o} if spec.outer else {}
            for s in spec.row_head:
                self.statement(s, index)
            found = self.one_pass(phase, index, start, stop)
            with b.when(call("eq", count, Const(1, I8))):
                for f, acc in zip(phase.folds, found, strict=True):
                    a = results[f.name]
                    value = converted(acc, _covered(f.dtype))
                    b.store(self.buffers[id(a)], self.place(a, index), value)
            with b.otherwise():
                for part, acc in zip(parts, found, strict=True):
                    b.store(part, u, acc)

    def one_pass(self, phase: Phase, index: dict[int, Var], start: Expr, stop: Var) -> list[Expr]:
        """The folds over start..stop, block by block."""
        b = self.b
        before = dict(self.values)
        with b.loop("b", start, stop, BLOCK) as loop:
            accs = [loop.carry(f"{f.name}_acc", _identity(f)) for f in phase.folds]
            extent = b.let("m", call("fmin", affine((stop, 1), (loop.index, -1)), Const(BLOCK, I8)))
            results = []
            for f, acc in zip(phase.folds, accs, strict=True):
                part = self.block(phase, f, index, loop, extent)
                joined = _joined(f.combine, acc, part)
                results.append(loop.follow(acc, joined))
                self.values = dict(before)
        return list(results)

    def block(self, phase: Phase, f: Fold, index: dict[int, Var], loop: Loop, extent: Var) -> Expr:
        """The fold of one block."""
        b = self.b
        to = _covered(accumulator(f.dtype, f.combine))
        wide = f.direct is not None and f.direct.dtype != f.dtype
        with b.reduce("part", f.combine, extent) as made:
            at = b.let("q", affine((loop.index, 1), (made.index, 1)))
            self.needed(phase, f.source, {**index, self.outer: at}, skip_cast=wide)
            made.value = self.values[f.source]
            if wide:
                made.dtype = F8
        return converted(made.result, to)

    def needed(self, phase: Phase, source: str, index: dict[int, Var], skip_cast: bool) -> None:
        """Assign what a fold is of. With `skip_cast`, its source is a load that is converted."""
        here = {s.name: s for s in phase.full}
        wanted: set[str] = set()
        stack = [source]
        while stack:
            s = here.get(stack.pop())
            if s is not None and s.name not in wanted and s.name not in self.values:
                wanted.add(s.name)
                stack += s.args
        for s in phase.full:
            if s.name in wanted and not (skip_cast and s.name == source):
                self.statement(s, index)
        if skip_cast:
            self.values[source] = self.values[here[source].args[0]]


def _identity(f: Fold) -> Const:
    """What a fold starts from."""
    to = _covered(accumulator(f.dtype, f.combine))
    return Const(identity(f.combine, to), to)


def _joined(combine: str, x: Expr, y: Expr) -> Expr:
    """Two results of a fold as one."""
    functions = {"sum": "add", "prod": "mul", "max": "fmax", "min": "fmin"}
    if isinstance(x, Var) and x.dtype == B1:
        functions = {"max": "or", "min": "and", "sum": "or", "prod": "and"}
    return call(functions.get(combine, combine), x, y)
