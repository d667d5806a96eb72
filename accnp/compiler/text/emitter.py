"""What writes kernels for GPUs as text: arguments, index arithmetic, and statements.

In: a KernelSpec. Out: the emitter that `grid_writer.py` extends. The text holds no size: a stride
is spelled out only where it is 0 or 1, so the same text serves every shape of a layout.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np

from accnp.compiler.text.writer import Writer
from accnp.ir.generated import Generated, Room
from accnp.ir.kernel import Access, KernelSpec, Phase, Statement, dtype_code

__all__ = ["Emitter"]


_COMPARISON = re.compile(r"\{0\} (?:<=?|>=?|==|!=) \{1\}")
_NUMBER = re.compile(r"(?<![\w{])\d")


class Emitter:
    """Writes the text of one kernel; each form is a function of it."""

    def __init__(self, spec: KernelSpec, name: str) -> None:
        self.spec = spec
        self.name = name
        self.w = Writer()
        self.out = Generated()
        self.arguments: list[str] = []
        self.known: dict[Any, str] = {}
        self.dtypes: dict[str, np.dtype] = {}  # of the names written so far
        # Memory of a block of threads in which loads lie transposed, by access; where the present
        # row of it begins is `turn`, and the index along it `j`.
        self.turned: dict[int, str] = {}
        self.done: set[str] = set()  # names of what is the same in all steps
        n_out, n_red = len(spec.outer), len(spec.reduced)
        self.of_outer = range(n_out)
        self.of_reduced = range(n_out, n_out + n_red)
        self.of_inner = range(n_out + n_red, n_out + n_red + len(spec.inner))

    def form(self) -> None:
        """Write the body of the kernel."""
        raise NotImplementedError

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
        w.add(f"def {self.name}({', '.join([*pointers, *ints])}):")
        w.lines += body.lines
        out.source, out.whiles = w.text(), body.whiles
        codes = [dtype_code(a.dtype) for a in spec.accesses]
        codes += [dtype_code(dtype) for _, dtype in more]
        out.signature = (*[f"{c}*" for c in codes], *["i8"] * len(ints))
        return out

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
        # Loads of one array under the same strides (the points of a stencil) share them.
        whose = id(a) if a.store else (id(a.value), a.strides)
        return str(s) if 0 <= s <= 1 else self.integer(("s", whose, d), f"{tag}s{d}", s)

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
            self.w.add(f"{s.name} = {self.turned[id(s.access)]}[turn + j]")
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

    def hoisted(self, phase: Phase, base: dict[int, str], index: dict[int, str]) -> None:
        """What does not move along the inner axis is loaded and computed once before the loop."""
        self.done = set()
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
    ) -> None:
        """Statements of one step. Results are stored as soon as they are known, so that few values
        wait in registers, but behind the last load: they may be written over operands."""
        here = [s for s in phase.full if s.name not in self.done]
        loads = [k for k, s in enumerate(here) if s.access is not None]
        coming = {s.name for s in here[loads[-1] + 1 :]} if loads else {s.name for s in here}

        def store(those: list[tuple[Access, str]]) -> None:
            for a, name in those:
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

    def total(self) -> str:
        if len(self.of_reduced) == 1:
            return self.size(self.of_reduced[0])
        return self.integer("nr", "nr", prod(self.spec.reduced))

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
