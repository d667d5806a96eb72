"""GPU kernels that copy the windows of an array to a matrix (im2col), for convolutions as products.

`window_copy` takes a convolution as a `Case` and a part of the matrix, and returns an `OwnKernel`;
`engine/device_convolutions.py` launches it. The rows of the matrix are examples and positions, and
its terms are input features and taps. Axes are named by letters: n for examples, p0, p1, ... for
positions, c for input features, k0, k1, ... for taps.

A thread has one index of the axes that are contiguous in the result, and handles a run of indices
of the others. So an index is split once per run, and neighboring threads write neighboring
elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from accnp.compiler.library.windows.block_convolutions import index, moved, seen
from accnp.compiler.library.windows.convolutions import Case
from accnp.compiler.library.writing.loop_nests import Text
from accnp.ir.kernel import OwnKernel

__all__ = ["Part", "window_copy"]

RUN = 64  # maximum number of positions in a run
TASKS = 1 << 18  # target number of threads


class Part:
    """A part of the matrix along some axes: their names and sizes, the last one the fastest, the
    first index, and the number of indices."""

    def __init__(self, axes: Sequence[tuple[str, int]], first: int, count: int) -> None:
        self.axes, self.first, self.count = axes, first, count


def window_copy(case: Case, code: str, along: Part, over: Part) -> OwnKernel:
    """Return the kernel for a part of the matrix of each group; `along` is contiguous."""
    text, space = Text(2), range(len(case.windows))
    every = case.groups * along.count * over.count
    run = max(1, min(RUN, over.count, every // TASKS))
    runs = -(-over.count // run)
    side, down = text.integer(along.count), text.integer(over.count)
    axes = [[(name, n) for name, n in part.axes if n > 1] for part in (along, over)]
    inside, outside = ({name for name, _ in part} for part in axes)
    with text.block("for t in range(lo, hi):"):
        index(text, "t", [("g", case.groups), ("run", runs), ("u", along.count)])
        text.add(f"start = run * {text.integer(run)}")
        text.add(f"stop = fmin(start + {text.integer(run)}, {down})")
        for name, begin, part, part_axes in (
            ("i", "u", along, axes[0]),
            ("j", "start", over, axes[1]),
        ):
            if part_axes:
                text.add(f"{name} = {begin} + {text.integer(part.first)}")
                index(text, name, part_axes)
        steps = {"n": case.example[0], "c": case.input[0]}
        fixed = [(name, step) for name, step in steps.items() if name in inside]
        text.add(f"x = at(a0, {moved(text, ('g', case.group[0]), *fixed)})")
        text.add(f"y = at(a1, g * {down} * {side} + u)")
        of_axes = {f"p{d}": case.windows[d].stride for d in space}
        of_axes |= {f"k{d}": case.windows[d].dilation for d in space}
        for d in space:
            terms = [(name, of_axes[name]) for name in (f"p{d}", f"k{d}") if name in inside]
            low = case.windows[d].low
            text.add(f"s{d} = {moved(text, *terms)}" + (f" - {text.integer(low)}" if low else ""))
        with text.block("for q in range(start, stop):"):
            tests: list[str] = []
            for d in space:
                terms = [(name, of_axes[name]) for name in (f"p{d}", f"k{d}") if name in outside]
                lines, test = seen(text, d, case.windows[d], f"s{d} + {moved(text, *terms)}")
                text.add(*lines)
                tests.append(test)
            turning = [(name, step) for name, step in steps.items() if name in outside]
            where = moved(text, *turning, *[(f"z{d}", case.lhs[d]) for d in space])
            text.add(f"v = {code}(0)")
            with text.block(f"if {' & '.join(tests) or 'q >= 0'}:"):
                text.add(f"v = x[{where}]")
            text.add(f"y[q * {side}] = v")
            depth = text.depth
            for name, n in reversed(axes[1]):  # increment the index with carries
                text.add(f"{name} = {name} + 1", f"if {name} == {text.integer(n)}:")
                text.depth += 1
                text.add(f"{name} = 0")
            text.depth = depth
    count = case.groups * runs * along.count
    return text.own(count, max(count, prod((every, 4))))
