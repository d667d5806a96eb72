"""Helpers that write the source of ops' own kernels: loop nests over strided arrays.

`Text` collects the lines of a kernel and its integer arguments; `Nest` writes loops over `Axis`
objects, which describe sizes and strides. Both return an `OwnKernel`. The writers of
`compiler/library/` use them; the source is restricted Python, which `compiler/frontend/` parses.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from accnp.compiler.library.writing.source_lines import SourceLines
from accnp.ir.kernel import OwnKernel, dtype_code

__all__ = ["Axis", "Nest", "Text", "merged", "moved", "place", "total"]


class Text(SourceLines):
    """The source of a kernel: indented lines. Sizes and strides are arguments `n0`, `n1`, ..."""

    def __init__(self, pointers: int) -> None:
        super().__init__()
        self.pointers = [f"a{i}" for i in range(pointers)]
        self.depth = 1
        self.ints: list[int] = []
        self.products = False  # whether matrices are multiplied

    def integer(self, value: int) -> str:
        """Add an integer argument and return its name."""
        self.ints.append(value)
        return f"n{len(self.ints) - 1}"

    def times(self, index: str, step: int) -> list[str]:
        """Return the terms of index * step; steps of 0 and 1 become part of the source."""
        if step == 0:
            return []
        return [index if step == 1 else f"{index} * {self.integer(step)}"]

    def constant(self, value: np.ndarray | np.generic) -> str:
        """Return the expression of a NumPy scalar. Its bits are arguments, so that kernels do not
        depend on the value."""
        code = dtype_code(value.dtype)
        if value.dtype.kind == "c":
            return f"make_complex({self.constant(np.real(value))}, {self.constant(np.imag(value))})"
        if value.dtype.kind in "fV":  # includes bfloat16
            size = value.dtype.itemsize
            name = self.integer(int(np.asarray(value).view(f"i{size}")))
            return f"bitcast_{code}({name if size == 8 else f'i{size}({name})'})"
        return f"{code}({self.integer(int(np.asarray(value).astype(np.int64)))})"

    def own(self, extent: int = 1, work: int = 1, block_threads: int = 0) -> OwnKernel:
        """Return the kernel; `work` is that of the whole extent, in simple element operations."""
        arguments = [*self.pointers, *[f"n{i}" for i in range(len(self.ints))]]
        head = f"def kernel({', '.join(arguments if block_threads else ['lo', 'hi', *arguments])}):"
        source = "\n".join([head, *self.lines]) + "\n"
        each = max(1, work // max(1, extent))
        kernel = OwnKernel(source, tuple(self.ints), extent, each, block_threads=block_threads)
        kernel.whiles, kernel.products = self.whiles, self.products
        return kernel


def total(terms: Sequence[str]) -> str:
    """Return the expression of a sum."""
    return " + ".join(terms) or "0"


class Axis(NamedTuple):
    """A loop: its length, and the stride of each of several arrays."""

    size: int
    steps: Sequence[int]
    kind: str = ""


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """Remove axes of length 1, and merge neighbors of a kind that are contiguous in all arrays."""
    out: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        last = out[-1] if out else None
        if (
            last is not None
            and last.kind == axis.kind
            and all(a == axis.size * b for a, b in zip(last.steps, axis.steps, strict=True))
        ):
            out[-1] = Axis(last.size * axis.size, axis.steps, axis.kind)
        else:
            out.append(axis)
    return out


def place(text: Text, axes: Sequence[Axis], index: str, arrays: int = 3) -> list[list[str]]:
    """Write code that splits an index of all axes; return the terms of each array's offset."""
    terms: list[list[str]] = [[] for _ in range(arrays)]
    for d, axis in reversed([*enumerate(axes)]):
        name = index
        if d:
            rest, n = f"t{d}", text.integer(axis.size)
            text.add(f"{rest} = {index} // {n}", f"q{d} = {index} - {rest} * {n}")
            name, index = f"q{d}", rest
        for which, step in enumerate(axis.steps):
            terms[which] += text.times(name, step)
    return terms


def moved(pointer: int, terms: Sequence[str]) -> str:
    """Return the expression of a pointer plus a sum of terms."""
    return f"at(a{pointer}, {total(terms)})" if terms else f"a{pointer}"


class Nest:
    """Loops over axes, opened in order; the first one runs over a part of the extent."""

    def __init__(self, text: Text, axes: Sequence[Axis]) -> None:
        self.text = text
        self.axes = axes
        self.opened = 0

    def open(self, head: str = "") -> None:
        """Open loop number k with the index `jk`; a header may be given."""
        k = self.opened
        if not head:
            bounds = "lo, hi" if k == 0 else self.text.integer(self.axes[k].size)
            head = f"for j{k} in range({bounds}):"
        self.text.add(head)
        self.text.depth += 1
        self.opened += 1

    def walk(self, which: int) -> list[str]:
        """Return the terms of the index in one of the arrays, for the open loops."""
        axes = self.axes[: self.opened]
        steps = [self.text.times(f"j{k}", a.steps[which]) for k, a in enumerate(axes)]
        return [term for terms in steps for term in terms]

    def own(self, work: int) -> OwnKernel:
        """Return the kernel, with one task per index of the first loop; `work` is that of the
        innermost body."""
        sizes = [a.size for a in self.axes]
        return self.text.own(sizes[0] if sizes else 1, work * prod(sizes))
