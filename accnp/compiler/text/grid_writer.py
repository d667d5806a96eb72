"""What all forms of kernels for GPUs use: index arithmetic, and statements side by side.

In: a KernelSpec. Out: the emitter that `grid_rows.py` and others write with.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from accnp.compiler.specs.grid import NARROW, THREADS
from accnp.compiler.text.emitter import Emitter
from accnp.ir.kernel import KernelSpec, Statement

__all__ = ["Copy", "Grid"]


class Grid(Emitter):
    """Writes the text of one kernel for GPUs; each form is a function of it."""

    def __init__(self, spec: KernelSpec, name: str, wave: int) -> None:
        super().__init__(spec, name)
        self.wave = wave  # blocks of THREADS threads that the device holds at a time
        self.sizes = (*spec.outer, *spec.reduced, *spec.inner)
        self.out.threads = THREADS

    def decompose(self, flat: str, dims: list[int], index: dict[int, str], letter: str) -> None:
        """As for the processor, but division is a product where indices are small."""
        if prod([self.sizes[d] for d in dims]) >= NARROW:
            return super().decompose(flat, dims, index, letter)
        rest = flat
        for d in reversed(dims[1:]):
            n, q = self.size(d), f"{letter}q{d}"
            self.w.add(f"{q} = {self.divided(rest, d)}", f"{letter}{d} = {rest} - {q} * {n}")
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
