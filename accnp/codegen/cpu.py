"""KernelSpec to the source of a CPU kernel: `def kernel(lo, hi, pointers, sizes, strides)`.

In: a KernelSpec. Out: `Generated`: source text, argument signature, the integer arguments, how far
the parallel index runs. The text holds no size: a stride is spelled out only where it is 0 or 1, so
the same text serves every shape of a layout.
"""

from __future__ import annotations

import re
from functools import partial
from math import prod
from typing import Any

import numpy as np

from accnp.codegen.columns import column, row_across, walkable
from accnp.codegen.folds import accumulator, combined, guard, identity
from accnp.codegen.generated import Generated, Room
from accnp.codegen.kept import keep, kept_by
from accnp.codegen.short import (
    LANES,
    is_picked,
    is_short,
    picked_map,
    short_column,
    short_map,
    short_row,
)
from accnp.codegen.split import split
from accnp.codegen.tiles import LEAST, across, ask_ahead, tiled_map, tiled_row
from accnp.codegen.writer import Writer
from accnp.ir.kernel import (
    BLOCK,
    STRIDES,
    Access,
    KernelSpec,
    Phase,
    Statement,
    dtype_code,
)

__all__ = ["Emitter", "generate"]


_COMPARISON = re.compile(r"\{0\} (?:<=?|>=?|==|!=) \{1\}")
_NUMBER = re.compile(r"(?<![\w{])\d")


def generate(
    spec: KernelSpec, name: str = "kernel", edge: bool = False, tiny: bool = False
) -> Generated:
    """Write the source of a kernel; that of an `edge` as if it were long, as what lies beside it
    is. One that is `tiny` will have its sizes in it (`cells.with_sizes`)."""
    return Emitter(spec, name, edge, tiny).run()


class Emitter:
    """Writes the text of one kernel; each form is a function of it."""

    ends: tuple[str, ...] = ("lo", "hi")  # arguments before the pointers

    def __init__(self, spec: KernelSpec, name: str, edge: bool = False, tiny: bool = False) -> None:
        self.spec = spec
        self.name = name
        self.edge, self.tiny = edge, tiny
        self.w = Writer()
        self.out = Generated()
        self.arguments: list[str] = []
        self.known: dict[Any, str] = {}
        self.stacks: list[str] = []
        self.dtypes: dict[str, np.dtype] = {}  # of the names written so far
        self.literal = 1  # strides up to this are spelled out
        self.turned: dict[int, str] = {}  # scratch in which loads lie transposed, by access
        self.turn = "turn"  # where the present row of it begins
        self.turned_along = "j"  # and the index that goes along it
        self.own_rows: dict[int, str] = {}  # memory for a row of what later passes want, by access
        n_out, n_red = len(spec.outer), len(spec.reduced)
        self.of_outer = range(n_out)
        self.of_reduced = range(n_out, n_out + n_red)
        self.of_inner = range(n_out + n_red, n_out + n_red + len(spec.inner))
        last = self.of_inner or self.of_reduced
        self.along = last[-1] if last else None  # the axis of the innermost loop

    def run(self) -> Generated:
        spec, w, out = self.spec, self.w, self.out
        out.form = spec.form
        for a in spec.accesses:
            self.arguments.append(f"a{a.number}")
            out.pointers.append(a)
        body = Writer()
        body.depth = 1
        self.w = body
        self.form()
        self.w = w
        more = [
            (p.name, p.dtype) if isinstance(p, Room) else (p[0], p[2])
            for p in out.pointers
            if not isinstance(p, Access)
        ]
        pointers = [f"a{a.number}" for a in spec.accesses] + [name for name, _ in more]
        ints = [n for n in self.arguments if n not in pointers]
        with w.block(f"def {self.name}({', '.join([*self.ends, *pointers, *ints])}):"):
            w.add(*self.stacks)
        w.lines += body.lines
        out.source, out.whiles = w.text(), body.whiles
        codes = [dtype_code(a.dtype) for a in spec.accesses]
        codes += [dtype_code(dtype) for _, dtype in more]
        out.signature = (*[f"{c}*" for c in codes], *["i8"] * len(ints))
        return out

    def form(self) -> None:
        """Write the body of the kernel."""
        if not self.edge and is_picked(self.spec):
            picked_map(self)
        elif not self.edge and is_short(self.spec):
            self.literal = LANES
            if self.spec.form == "column" and not self.tiny:
                self.out.tiny = partial(generate, self.spec, self.name, tiny=True)
            SHORT_FORMS[self.spec.form](self)
        else:
            FORMS[self.spec.form](self)

    # --- arguments ---

    def integer(self, key: Any, name: str, value: int) -> str:
        """An int64 argument."""
        if key not in self.known:
            self.known[key] = name
            self.arguments.append(name)
            self.out.ints.append(value)
        return self.known[key]

    def size(self, d: int) -> str:
        sizes = (*self.spec.outer, *self.spec.reduced, *self.spec.inner)
        return self.integer(("n", d), f"n{d}", sizes[d])

    def stride(self, a: Access, d: int, tag: str) -> str:
        s = a.strides[d]
        spelled = 0 <= s <= self.literal or (d == self.along and s in STRIDES and not a.store)
        # Loads of one array under the same strides (the points of a stencil) share them.
        whose = id(a) if a.store else (id(a.value), a.strides)
        return str(s) if spelled else self.integer(("s", whose, d), f"{tag}s{d}", s)

    def stack(self, dtype: np.dtype, kind: str = "stack") -> str:
        name = f"buf{len(self.stacks)}"
        self.stacks.append(f"{name} = {kind}_{dtype_code(dtype)}()")
        return name

    # --- index arithmetic ---

    def term(self, a: Access, tag: str, index: dict[int, str]) -> str:
        """The position of an access as text: the sum over the given loop indices."""
        terms = []
        for d, i in index.items():
            s = self.stride(a, d, tag)
            if s == "0":
                continue
            terms.append(i if s == "1" else f"{i} * {s}")
        return " + ".join(terms) or "0"

    def begin_outer(self, flat: str, index: dict[int, str]) -> None:
        """Decompose the flat outer index into one for each outer axis."""
        dims = list(self.of_outer)
        if len(dims) == 1:
            index[dims[0]] = flat
        elif dims:
            self.decompose(flat, dims, index, "o")

    def decompose(self, flat: str, dims: list[int], index: dict[int, str], letter: str) -> None:
        rest = flat
        for d in reversed(dims[1:]):
            n = self.size(d)
            self.w.add(
                f"{letter}q{d} = {rest} // {n}", f"{letter}{d} = {rest} - {letter}q{d} * {n}"
            )
            index[d] = f"{letter}{d}"
            rest = f"{letter}q{d}"
        index[dims[0]] = rest

    def bases(self, index: dict[int, str], accesses: list[Access], tag: str) -> dict[int, str]:
        """Positions that the outer indices fix, each in a variable."""
        found, named = {}, {}
        for k, a in enumerate(accesses, -len(self.spec.accesses)):
            name = f"a{a.number}" if a.number >= 0 else f"x{k}"
            text = self.term(a, name, index)
            if text != "0" and not text.isidentifier():
                if text not in named:
                    named[text] = f"{tag}{name}"
                    self.w.add(f"{tag}{name} = {text}")
                text = named[text]
            found[id(a)] = text
        return found

    # --- statements ---

    def place(self, a: Access, base: dict[int, str], index: dict[int, str], k: int = 0) -> str:
        name = f"a{a.number}" if a.number >= 0 else f"x{k}"
        rest = self.term(a, name, index)
        start = base.get(id(a), "0")
        if start == "0":
            return rest
        return start if rest == "0" else f"{start} + {rest}"

    def element(self, s: Statement, base: dict[int, str], index: dict[int, str]) -> str:
        """The position of a load, with the terms that are computed."""
        assert s.access is not None
        terms = [self.place(s.access, base, index)]
        for k, (name, (stride, _)) in enumerate(zip(s.args, s.access.terms, strict=True)):
            number = f"a{s.access.number}m{k}"
            step = "" if stride == 1 else f" * {self.integer((number,), number, stride)}"
            terms.append(name + step)
        return " + ".join([t for t in terms if t != "0"] or ["0"])

    def statement(self, s: Statement, base: dict[int, str], index: dict[int, str]) -> None:
        code = dtype_code(s.dtype)
        if s.access is not None and id(s.access) in self.turned:
            self.w.add(f"{s.name} = {self.turned[id(s.access)]}[{self.turn} + {self.turned_along}]")
        elif s.access is not None and id(s.access) in self.own_rows:
            self.w.add(f"{s.name} = {self.own_rows[id(s.access)]}[{index[self.of_reduced[0]]}]")
        elif s.access is not None:
            self.w.add(f"{s.name} = a{s.access.number}[{self.element(s, base, index)}]")
        elif s.index is not None:
            k = self.iotas().index(s.index)
            offset = self.integer(("o", id(s.index)), f"x{k}o", s.index.offset)
            self.w.add(f"{s.name} = {code}({self.place(s.index, base, index, k)} + {offset})")
        else:
            text = s.text.format(*s.args)
            self.w.add(f"{s.name} = {text}" if self.is_typed(s) else f"{s.name} = {code}({text})")
        self.dtypes[s.name] = s.dtype

    def is_typed(self, s: Statement) -> bool:
        """Whether an expression has its dtype without a cast (a cast costs 0.4 ms of compile time).

        Floating arithmetic on operands of one dtype keeps it, comparisons give bool; integers and
        literals widen, and so does half precision: the cast rounds.
        """
        if s.dtype.kind == "b":
            return bool(_COMPARISON.fullmatch(s.text))
        if s.dtype.kind != "f" or s.dtype.itemsize == 2 or _NUMBER.search(s.text):
            return False
        kinds = {self.dtypes.get(a) for a in s.args} - {np.dtype(bool)}
        return kinds == {s.dtype}

    def iotas(self) -> list[Access]:
        if not hasattr(self, "_iotas"):
            found = []
            for section in (
                self.spec.scalars,
                self.spec.row_head,
                *[x for p in self.spec.phases for x in (p.full, p.row)],
            ):
                found += [s.index for s in section if s.index is not None]
            self._iotas = list(dict.fromkeys(found))
        return self._iotas

    def prologue(self) -> None:
        for s in self.spec.scalars:
            self.statement(s, {}, {})

    def all_accesses(self) -> list[Access]:
        return [*self.spec.accesses, *self.iotas()]

    # --- map ---

    def map(self) -> None:
        spec = self.spec
        if spec.inner:
            d = across(spec, self.of_inner[0], self.of_outer, 2 if self.edge else LEAST)
            if d is not None:
                return tiled_map(self, d)
        self.prologue()
        for s in spec.row_head:
            self.statement(s, {}, {})
        phase = spec.phases[0] if spec.phases else Phase()
        if not spec.inner:
            self.out.extent = 1
            with self.w.block("for i in range(lo, hi):"):
                self.body(phase, {}, {})
                self.row_body(phase, {}, {})
            return
        if not spec.outer:
            self.out.extent = spec.inner[0]
            self.out.weight = spec.cost
            self.hoisted(phase, {}, {})
            with self.w.block("for i in range(lo, hi):"):
                self.body(phase, {}, {self.of_inner[0]: "i"})
            return
        self.out.extent = prod(spec.outer)
        self.out.weight = spec.cost * prod(spec.inner)
        with self.w.block("for o in range(lo, hi):"):
            index: dict[int, str] = {}
            self.begin_outer("o", index)
            base = self.bases(index, self.all_accesses(), "p")
            self.hoisted(phase, base, {})
            with self.w.block(f"for j in range({self.size(self.of_inner[0])}):"):
                self.body(phase, base, {self.of_inner[0]: "j"})

    def hoisted(self, phase: Phase, base: dict[int, str], index: dict[int, str]) -> None:
        """What does not move along the inner axis is loaded and computed once before the loop."""
        self.done: set[str] = set()
        d = self.of_inner[0]
        moving: set[str] = set()
        for s in phase.full:
            place = s.access or s.index
            if (place is not None and place.strides[d]) or not moving.isdisjoint(s.args):
                moving.add(s.name)
            else:
                self.statement(s, base, index)
                self.done.add(s.name)

    def body(
        self,
        phase: Phase,
        base: dict[int, str],
        index: dict[int, str],
        skip: frozenset[str] = frozenset(),
    ) -> None:
        """Statements of one step. Results are stored as soon as they are known, so that few values
        wait in registers, but behind the last load: they may be written over operands."""
        done = getattr(self, "done", set())
        here = [s for s in phase.full if s.name not in done and s.name not in skip]
        loads = [k for k, s in enumerate(here) if s.access is not None]
        coming = {s.name for s in here[loads[-1] + 1 :]} if loads else {s.name for s in here}

        def store(those: list[tuple[Access, str]]) -> None:
            for a, name in those:
                if id(a) in self.own_rows and phase is not self.spec.phases[-1]:
                    self.w.add(f"{self.own_rows[id(a)]}[{index[self.of_reduced[0]]}] = {name}")
                else:
                    self.w.add(f"a{a.number}[{self.place(a, base, index)}] = {name}")

        for s in here:
            self.statement(s, base, index)
            if loads and s is here[loads[-1]]:
                store([x for x in phase.stores if x[1] not in coming])
            elif s.name in coming:
                store([x for x in phase.stores if x[1] == s.name])
        if not loads:
            store([x for x in phase.stores if x[1] not in coming])

    def row_body(self, phase: Phase, base: dict[int, str], index: dict[int, str]) -> None:
        for s in phase.row:
            self.statement(s, base, index)
        for a, name in phase.row_stores:
            self.w.add(f"a{a.number}[{self.place(a, base, index)}] = {name}")

    # --- row ---

    def row(self) -> None:
        spec = self.spec
        if len(spec.phases) == 1 and spec.reduced and not spec.phases[0].stores:
            d = across(spec, self.of_reduced[-1], self.of_outer)
            if d is not None and walkable(spec, d):
                return row_across(self, d)
            if d is not None and len(spec.reduced) == 1:
                return tiled_row(self, d)
        self.prologue()
        self.out.extent = prod(spec.outer)
        self.out.weight = spec.cost * prod(spec.reduced)
        several = len(spec.phases) > 1 == len(spec.reduced) and bool(spec.outer)
        if several:
            keep(self)
        with self.w.block("for o in range(lo, hi):"):
            index: dict[int, str] = {}
            self.begin_outer("o", index)
            base = self.bases(index, self.all_accesses(), "p")
            for s in spec.row_head:
                self.statement(s, base, {})
            for k, phase in enumerate(spec.phases):
                if several and k == 1:  # the first pass waits for memory itself
                    ask_ahead(self, base)
                self.one_pass(phase, base, "0", None)
                self.row_body(phase, base, {})
        self.w.add(*[f"release({name})" for name in self.own_rows.values()])

    def one_pass(self, phase: Phase, base: dict[int, str], start: str, stop: str | None) -> None:
        """A pass over the reduced indices from start to stop; leaves each fold in its name."""
        accs = []
        for f in phase.folds:
            acc = accumulator(f.dtype, f.combine)
            self.w.add(f"{f.name}_acc = {dtype_code(acc)}({identity(acc, f.combine)})")
            accs.append(acc)
        dims = list(self.of_reduced)
        self.done = set()
        if not dims:
            self.body(phase, base, {})
            for f, acc in zip(phase.folds, accs, strict=True):
                self.w.add(f"{f.name}_acc = {dtype_code(acc)}({f.source})")
        elif not phase.folds:
            if phase.stores:
                self.plain_pass(phase, base, dims)
        else:
            total, depth = stop or self.total(), self.w.depth
            if (condition := guard(self, phase, base)) is not None:
                self.w.add(f"if {condition}:")
                self.w.depth += 1
            with self.w.block(f"for b in range({start}, {total}, {BLOCK}):"):
                self.w.add(f"m = {total} - b", f"m = m if m < {BLOCK} else {BLOCK}")
                parts = self.block(phase, base, dims)
                for f, acc, part in zip(phase.folds, accs, parts, strict=True):
                    total = f"{f.name}_acc"
                    self.w.add(f"{total} = {combined(f.combine, acc, total, part)}")
            self.w.depth = depth
        for f, acc in zip(phase.folds, accs, strict=True):
            if stop is None:
                cast = dtype_code(f.dtype) if acc != f.dtype else ""
                self.w.add(f"{f.name} = {cast}({f.name}_acc)")

    def total(self) -> str:
        if len(self.of_reduced) == 1:
            return self.size(self.of_reduced[0])
        return self.integer("nr", "nr", prod(self.spec.reduced))

    def plain_pass(self, phase: Phase, base: dict[int, str], dims: list[int]) -> None:
        index = {}
        depth = self.w.depth
        for d in dims:
            self.w.add(f"for q{d} in range({self.size(d)}):")
            self.w.depth += 1
            index[d] = f"q{d}"
        self.body(phase, base, index)
        self.w.depth = depth

    def block(self, phase: Phase, base: dict[int, str], dims: list[int]) -> list[str]:
        """Compute a block's values into scratch (or take them from memory); the texts of their
        folds."""
        sources: dict[str, str] = {}
        skip: set[str] = set()
        used = {x for s in phase.full for x in s.args} | {n for _, n in phase.stores}
        for f in phase.folds:
            if f.source in sources:
                continue
            direct = f.direct
            along = direct is not None and len(dims) == 1 and direct.strides[dims[0]] == 1
            kept = kept_by(self, phase, direct, f.source)
            if kept is not None:
                sources[f.source] = f"at({kept}, b)"
                if f.source not in used:
                    skip.add(f.source)
            elif direct is not None and (along or id(direct) in self.turned):
                memory = self.turned.get(id(direct), f"a{direct.number}")
                start = self.place(direct, base, {dims[0]: "b"}) if along else self.turn
                sources[f.source] = f"at({memory}, {start})"
                if f.source not in used:
                    skip.add(f.source)
            else:
                sources[f.source] = self.stack(f.dtype)
        scratch = {n: b for n, b in sources.items() if not b.startswith("at(")}
        # Loads of which only a skipped conversion makes use.
        used = set(scratch) | {n for _, n in phase.stores}
        used |= {x for s in phase.full if s.name not in skip for x in s.args}
        skip |= {s.name for s in phase.full if s.access is not None and s.name not in used}
        needs_loop = bool(scratch or phase.stores or any(s.name not in skip for s in phase.full))
        if needs_loop and len(dims) == 1:
            with self.w.block("for j in range(m):"):
                self.w.add("q = b + j")
                self.body(phase, base, {dims[0]: "q"}, frozenset(skip))
                self.w.add(*[f"{b}[j] = {n}" for n, b in scratch.items()])
        elif needs_loop:
            # Several axes that do not coalesce: fill the block by runs along the last one.
            last = dims[-1]
            self.w.add("k = 0")
            with self.w.block("while k < m:"):
                index: dict[int, str] = {}
                self.decompose("(b + k)", dims, index, "d")
                self.w.add(
                    f"run = {self.size(last)} - {index[last]}",
                    "run = run if run < m - k else m - k",
                )
                with self.w.block("for j in range(run):"):
                    self.w.add(f"q = {index[last]} + j")
                    self.body(phase, base, {**index, last: "q"}, frozenset(skip))
                    self.w.add(*[f"{b}[k + j] = {n}" for n, b in scratch.items()])
                self.w.add("k += run")
        parts = []
        for f in phase.folds:
            source = sources[f.source]
            widened = f.direct is not None and f.direct.dtype != f.dtype
            fold = "wide_sum" if widened and source.startswith("at(") else f.combine
            part = f"block_{fold}({source}, m)"
            acc = accumulator(f.dtype, f.combine)
            parts.append(f"{dtype_code(acc)}({part})" if acc != f.dtype else part)
        return parts

    def deepen(self, base: dict[int, str], index: dict[int, str], tag: str = "d") -> dict[int, str]:
        """Positions with further indices added to those of the outer ones."""
        found, named = {}, {}
        for k, a in enumerate(self.all_accesses()):
            name = f"a{a.number}" if a.number >= 0 else f"x{k - len(self.spec.accesses)}"
            text = self.place(a, base, index, k - len(self.spec.accesses))
            if text != "0" and not text.isidentifier():
                if text not in named:
                    named[text] = f"{tag}{name}"
                    self.w.add(f"{tag}{name} = {text}")
                text = named[text]
            found[id(a)] = text
        return found


FORMS = {"map": Emitter.map, "row": Emitter.row, "split": split, "column": column}
SHORT_FORMS = {"map": short_map, "row": short_row, "column": short_column}
