"""What all forms of kernels for GPUs use: index arithmetic, and statements side by side.

In: a KernelSpec. Out: the emitter that `grid_maps.py` and others write with.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from accnp.compiler.text.emitter import Emitter
from accnp.ir.kernel import Access, KernelSpec, Phase, Statement

__all__ = ["NARROW", "THREADS", "WAVE", "Copy", "Grid", "beside"]

THREADS = 256  # of a block
WAVE = 132 * 8  # such blocks that an H100 or H200 holds at a time
# How many elements (of columns: rows) a thread does at a time, their loads first, by the form and
# up to which cost of a kernel: more of the simple ones, as each needs registers.
BESIDE = {
    "map": ((160, 4),),
    "patch": ((16, 8),),
    "row": ((60, 4), (1 << 62, 2)),
    "column": ((12, 16), (40, 8), (1 << 62, 4)),
}
NARROW = 1 << 31  # indices below this are divided by a product of 64 bits


def beside(form: str, cost: float) -> int:
    """How many elements a thread of a kernel does at a time."""
    return next((n for most, n in BESIDE[form] if cost <= most), 1)


class Grid(Emitter):
    """Writes the text of one kernel for GPUs; each form is a function of it."""

    def __init__(self, spec: KernelSpec, name: str, wave: int) -> None:
        super().__init__(spec, name)
        self.wave = wave  # blocks of THREADS threads that the device holds at a time
        self.sizes = (*spec.outer, *spec.reduced, *spec.inner)
        self.out.threads = THREADS
        self.words = False  # whether places are computed by 32 bits

    def fits(self) -> bool:
        """Whether all indices and places are numbers of 32 bits."""
        ways = [sum([abs(s) * (n - 1) for s, n in zip(a.strides, self.sizes, strict=True)])
                for a in self.spec.accesses]  # fmt: skip
        return max([prod(self.sizes), *ways]) < NARROW

    def term(self, a: Access, tag: str, index: dict[int, str]) -> str:
        text = super().term(a, tag, index)
        return text if not self.words or text.isalnum() else f"i4({text})"

    def places(
        self, index: dict[int, str], base: Mapping[int, str] | None = None
    ) -> dict[int, str]:
        """Where the operands' elements of these indices are, on from a base."""
        accesses = enumerate(self.all_accesses(), -len(self.spec.accesses))
        return {id(a): self.place(a, dict(base or {}), index, k) for k, a in accesses}

    def decompose(self, flat: str, dims: list[int], index: dict[int, str], letter: str) -> None:
        """As for the processor, but division is a product where indices are small."""
        if prod([self.sizes[d] for d in dims]) >= NARROW:
            return super().decompose(flat, dims, index, letter)
        rest = flat
        for d in reversed(dims[1:]):
            n, q = self.size(d), f"{letter}q{d}"
            rest_of = f"{rest} - {q} * {n}"
            rest_of = f"i4({rest_of})" if self.words else rest_of
            self.w.add(f"{q} = {self.divided(rest, d)}", f"{letter}{d} = {rest_of}")
            index[d] = f"{letter}{d}"
            rest = q
        index[dims[0]] = rest

    def divided(self, text: str, d: int) -> str:
        """An index below 2^31 divided by the size of an axis."""
        return self.quotient(text, self.size(d), self.sizes[d])

    def quotient(self, text: str, name: str, n: int) -> str:
        """The same for any number, an argument of that name."""
        if name not in self.known.values():
            self.integer((name,), name, n)
        bits = 31 + (n - 1).bit_length()
        m = self.integer(("m", name), f"{name}m", (1 << bits) // n + 1)
        return f"quotient({text}, {m}, {self.integer(('b', name), f'{name}b', bits)})"

    def copies(self, phase: Phase, places: Sequence[dict[int, str]]) -> None:
        """The statements of a map for several elements, whose operands are at these places: first
        what they load."""
        several = len(places) > 1
        moving = {s.name for s in phase.full if s.name not in self.done}
        early = [s for s in phase.full if s.name in moving and s.access and not s.access.terms]
        each = [Copy(self, k, moving if several else set()) for k in range(len(places))]
        for copy, base in zip(each, places, strict=True):
            for s in early:
                copy.statement(s, base, {})
        for copy, base in zip(each, places, strict=True):
            for s in phase.full:
                if s.name in moving and s not in early:
                    copy.statement(s, base, {})
            for a, name in phase.stores:
                self.w.add(f"a{a.number}[{base[id(a)]}] = {copy.name(name)}")


class Copy:
    """Statements for one of several elements side by side; their names get its number."""

    def __init__(self, e: Grid, k: int | str, names: Collection[str]) -> None:
        self.e, self.k, self.names = e, k, names

    def name(self, x: str) -> str:
        return f"{x}_{self.k}" if x in self.names else x

    def statement(self, s: Statement, base: dict[int, str], index: dict[int, str]) -> None:
        args = tuple(map(self.name, s.args))
        mine = Statement(self.name(s.name), s.dtype, s.text, args, s.access, s.index)
        self.e.statement(mine, base, index)
