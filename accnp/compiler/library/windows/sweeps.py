"""Loops over the positions of windows and their taps, for kernels written as source.

`Sweep` writes the loops of one kernel, given the axes of the result, the windows and the strides of
the arrays. Tasks are positions along all axes except the inner one, which is contiguous in the
result. They contain loops over taps, and the innermost loop runs along the inner axis over those
positions at which the tap is inside of the array, so that it has no branch. `pooling.py` and
`convolutions.py` use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from accnp.compiler.library.writing.loop_nests import Text, total
from accnp.primitives.windows import Window

__all__ = ["Places", "Sweep"]

SHORT = 128  # for fewer elements along the inner axis, computing the position dominates


class Places(NamedTuple):
    """An axis of the result: its length, the strides of still and windowed arrays, and the number
    of its window."""

    size: int
    still: Sequence[int]
    windowed: Sequence[int] = ()
    window: int = -1


class Sweep:
    """The loops of one kernel.

    `still` and `windowed` are names of variables with offsets into arrays: the former move from
    position to position, the latter also with the taps. The last still array is the result.
    """

    def __init__(
        self,
        text: Text,
        axes: Sequence[Places],
        windows: Sequence[Window],
        still: str,
        windowed: str,
    ) -> None:
        self.text, self.windows = text, windows
        self.still, self.windowed = still, windowed
        axes = [a for a in axes if a.size != 1 or a.window >= 0]
        nothing = Places(1, (0,) * len(still), (0,) * len(windowed))
        self.along = min(axes, key=lambda a: (a.size == 1, a.still[-1]), default=nothing)
        self.outer = [a for a in axes if a is not self.along]
        self.start = text.depth

    def tasks(self, size: int) -> int:
        """Open the loops over tasks and their positions, in blocks of `size` along the inner axis;
        return the number of tasks. If rows are short and there are enough of them, a task has a
        line of rows."""
        text, rest, line = self.text, self.outer, []
        if self.along.size < SHORT and self.count(self.outer[:-1]) >= 8:
            rest, line = self.outer[:-1], self.outer[-1:]
        arrays = self.still + self.windowed
        text.add("for t in range(lo, hi):")
        text.depth += 1
        text.add(*[f"{name} = 0" for name in arrays])
        blocks = -(-self.along.size // size)
        several = text.integer(blocks)
        text.add(f"v = t // {several}")
        self.block(f"(t - v * {several})", size)
        self.place(rest, "v")
        if line:
            text.add(*[f"{name}s = {name}" for name in arrays])
            text.add(f"for q in range({text.integer(line[0].size)}):")
            text.depth += 1
            text.add(*[f"{name} = {name}s" for name in arrays])
            self.place(line, "q")
        return blocks * self.count(rest)

    def count(self, axes: Sequence[Places]) -> int:
        """Return the number of positions along some axes."""
        return prod([a.size for a in axes])

    def place(self, axes: Sequence[Places], index: str) -> None:
        """Write code that splits an index of outer axes and adds the offsets of the arrays."""
        add = self.text.add
        add(f"u = {index}")
        for k, a in reversed([*enumerate(axes)]):
            name = f"j{self.outer.index(a)}"
            if k:
                n = self.text.integer(a.size)
                add(f"above = u // {n}", f"{name} = u - above * {n}", "u = above")
            else:
                add(f"{name} = u")
            self.move(a, name)

    def move(self, a: Places, name: str) -> None:
        """Write code that adds the offsets of the arrays along an axis."""
        steps = list(zip(self.still, a.still, strict=True))
        if a.window < 0:
            steps += zip(self.windowed, a.windowed, strict=True)
        for array, step in steps:
            if step:
                self.text.add(f"{array} += {' + '.join(self.text.times(name, step))}")

    def block(self, index: str, size: int) -> int:
        """Write code that sets b0 and b1 to a block of the inner axis; return the block count."""
        n = self.text.integer(self.along.size)
        self.text.add(f"b0 = {index} * {size}", f"b1 = fmin(b0 + {size}, {n})")
        return -(-self.along.size // size)

    def taps(self, across: bool = False) -> list[list[str]]:
        """Open loops over the taps (k0, k1, ...) that are inside of the array, without those of the
        inner axis if `across`; return the terms of the windowed arrays' offsets."""
        text = self.text
        terms: list[list[str]] = [[name] for name in self.windowed]
        for d, w in enumerate(self.windows):
            if across and self.along.window == d:
                continue
            text.add(f"for k{d} in range({text.integer(w.taps)}):")
            text.depth += 1
            offset = f"k{d} * {text.integer(w.dilation)} - {text.integer(w.low)}"
            if self.along.window == d:
                text.add(f"e{d} = {offset}")
                continue
            k = next(k for k, a in enumerate(self.outer) if a.window == d)
            n, base = text.integer(w.size), text.integer(w.base)
            text.add(f"e{d} = j{k} * {text.integer(w.stride)} + {offset}")
            inside = f"e{d} >= 0 and e{d} < {n} * {base}"
            if w.base != 1:
                inside += f" and e{d} % {base} == 0"
            text.add(f"if {inside}:")
            text.depth += 1
            place = f"e{d}" if w.base == 1 else f"(e{d} // {base})"
            for addends, step in zip(terms, self.outer[k].windowed, strict=True):
                addends += text.times(place, step)
        return terms

    def inner(self, terms: Sequence[Sequence[str]]) -> tuple[list[str], str]:
        """Open the loop along the block; return the indices in the windowed arrays, and the index
        within the block."""
        text, along = self.text, self.along
        starts = [f"{name}0" for name in self.windowed]
        text.add(*[f"{s} = {total(t)}" for s, t in zip(starts, terms, strict=True)])
        if along.window < 0:
            text.add("for j in range(b0, b1):")
            text.depth += 1
            pairs = zip(starts, along.windowed, strict=True)
            return [total([s, *text.times("j", step)]) for s, step in pairs], "(j - b0)"
        # At position j = phase + m * base, tap k reads element m * stride + (e + phase * stride) /
        # base if base divides the numerator; f and h are the bounds of m.
        d = along.window
        w = self.windows[d]
        n, s = text.integer(w.size), text.integer(w.stride)
        first, low, high, index = f"e{d}", "b0", "b1", "(j - b0)"
        if w.base != 1:
            base = text.integer(w.base)
            text.add(f"for phase in range({base}):")
            text.depth += 1
            text.add(f"if (e{d} + phase * {s}) % {base} == 0:")
            text.depth += 1
            text.add(f"first = (e{d} + phase * {s}) // {base}")
            text.add(f"low = (b0 - phase + {base} - 1) // {base}")
            text.add(f"high = (b1 - phase + {base} - 1) // {base}")
            first, low, high, index = "first", "low", "high", f"(phase + j * {base} - b0)"
        text.add(f"f = fmax({low}, ({s} - 1 - {first}) // {s})", f"g = {n} - 1 - {first}")
        text.add(f"h = fmin({high}, g // {s} + 1) if g >= 0 else {low}")
        for name, step in zip(self.windowed, along.windowed, strict=True):
            text.add(f"{name}1 = {total([f'{name}0', *text.times(first, step)])}")
        text.add("for j in range(f, h):")
        text.depth += 1
        pairs = zip(self.windowed, along.windowed, strict=True)
        return [total([f"{s}1", *text.times("j", w.stride * step)]) for s, step in pairs], index

    def close(self) -> None:
        """Close all loops."""
        self.text.depth = self.start
