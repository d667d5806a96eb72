"""What the kernels that ops bring themselves are written with: nests of loops over strided arrays.

In: sizes and strides of operands and results. Out: source text, and the integers it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np

from accnp.ir.kernel import OwnKernel, dtype_code

__all__ = ["Axis", "Nest", "Text", "merged", "total"]


class Text:
    """The source of one kernel: indented lines; sizes and strides become arguments `n0`, `n1`..."""

    def __init__(self, pointers: int) -> None:
        self.pointers = [f"a{i}" for i in range(pointers)]
        self.lines: list[str] = []
        self.depth = 1
        self.ints: list[int] = []
        # Whether there is a loop as long as no range says, and whether matrices are multiplied.
        self.whiles = self.products = False

    def integer(self, value: int) -> str:
        """The name of a new argument."""
        self.ints.append(value)
        return f"n{len(self.ints) - 1}"

    def add(self, *lines: str) -> None:
        """Append lines at the present indent."""
        pad = "    " * self.depth
        self.lines.extend(pad + line for line in lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Append a head line; what is added inside is indented."""
        self.add(head)
        self.whiles |= head.startswith("while ")
        self.depth += 1
        yield
        self.depth -= 1

    def times(self, index: str, step: int) -> list[str]:
        """The terms of index * step: a step of 0 or 1 is said by the text itself."""
        if step == 0:
            return []
        return [index if step == 1 else f"{index} * {self.integer(step)}"]

    def constant(self, value: Any) -> str:
        """The text of a NumPy scalar; its bits are arguments, so that another one is no other
        kernel."""
        code = dtype_code(value.dtype)
        if value.dtype.kind == "c":
            return f"make_complex({self.constant(value.real)}, {self.constant(value.imag)})"
        if value.dtype.kind in "fV":  # bfloat16, too
            size = value.dtype.itemsize
            name = self.integer(int(np.asarray(value).view(f"i{size}")))
            return f"bitcast_{code}({name if size == 8 else f'i{size}({name})'})"
        return f"{code}({self.integer(int(np.asarray(value).astype(np.int64)))})"

    def own(self, extent: int = 1, work: int = 1, team: int = 0) -> OwnKernel:
        """The kernel; `work` is that of the whole extent, in simple element operations."""
        arguments = [*self.pointers, *[f"n{i}" for i in range(len(self.ints))]]
        head = f"def kernel({', '.join(arguments if team else ['lo', 'hi', *arguments])}):"
        source = "\n".join([head, *self.lines]) + "\n"
        each = max(1, work // max(1, extent))
        found = OwnKernel(source, tuple(self.ints), extent, each, team=team)
        found.whiles, found.products = self.whiles, self.products
        return found


def total(terms: Sequence[str]) -> str:
    """The text of a sum."""
    return " + ".join(terms) or "0"


class Axis(NamedTuple):
    """One loop: its length, and how far each of several arrays moves from index to index."""

    size: int
    steps: Sequence[int]
    kind: str = ""


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """Leave out axes of length 1; join neighbors of one kind that every array walks as one."""
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


class Nest:
    """Loops over axes, opened one after the other; the first one runs over a part of the extent."""

    def __init__(self, text: Text, axes: Sequence[Axis]) -> None:
        self.text = text
        self.axes = axes
        self.opened = 0

    def open(self, head: str = "") -> None:
        """Begin the next loop (its head may be given); its index is `j` and its number."""
        k = self.opened
        if not head:
            bounds = "lo, hi" if k == 0 else self.text.integer(self.axes[k].size)
            head = f"for j{k} in range({bounds}):"
        self.text.add(head)
        self.text.depth += 1
        self.opened += 1

    def walk(self, which: int) -> list[str]:
        """The terms by which the open loops move one of the arrays."""
        axes = self.axes[: self.opened]
        steps = [self.text.times(f"j{k}", a.steps[which]) for k, a in enumerate(axes)]
        return [term for terms in steps for term in terms]

    def own(self, work: int) -> OwnKernel:
        """The kernel, with one task for each index of the first loop; `work` is that of the
        innermost body."""
        sizes = [a.size for a in self.axes]
        return self.text.own(sizes[0] if sizes else 1, work * prod(sizes))
