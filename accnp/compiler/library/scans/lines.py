"""Lines along an axis and blocks of columns, for kernels that process an axis in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from accnp.compiler.library.writing.loop_nests import Axis, Text, merged

__all__ = ["ColumnBlocks", "element_of", "split_axes"]

COLUMNS = 128


def split_axes(
    shape: tuple[int, ...], axis: int, *strides: Sequence[int]
) -> tuple[list[Axis], list[Axis]]:
    """Return the axes before and after one axis, with the strides of several arrays."""
    axes = [Axis(n, tuple([s[d] for s in strides])) for d, n in enumerate(shape)]
    return merged(axes[:axis]), merged(axes[axis + 1 :])


def element_of(text: Text, pointer: str, base: str, step: int) -> Callable[[str], str]:
    """Return a function that writes element i of a line, which starts at `base`."""
    factor = "" if step == 1 else f" * {text.integer(step)}"

    def at(i: str) -> str:
        return f"{pointer}[{base} + {f'({i})' if factor and '+' in i else i}{factor}]"

    return at


class ColumnBlocks:
    """The loop over blocks of columns: `m` columns from `start` on, in example `o` of the axes
    before.

    Steps have one entry for each array, like those of axes.
    """

    def __init__(self, text: Text, before: Sequence[Axis], after: Axis) -> None:
        self.text, self.before, self.after = text, before, after
        count = -(-after.size // COLUMNS)
        self.extent = count * (before[0].size if before else 1)
        self.work = after.size * (before[0].size if before else 1)
        size = text.integer(after.size)
        text.add("for u in range(lo, hi):")
        text.depth += 1
        if before:
            name = text.integer(count)
            text.add(f"o = u // {name}", f"start = (u - o * {name}) * {COLUMNS}")
        else:
            text.add(f"start = u * {COLUMNS}")
        text.add(f"m = {size} - start", f"m = m if m < {COLUMNS} else {COLUMNS}")

    def place(self, which: int) -> list[str]:
        """Return the terms of the index at which a block begins in one of the arrays."""
        first = self.text.times("o", self.before[0].steps[which]) if self.before else []
        return [*first, *self.text.times("start", self.after.steps[which])]
