"""Windows of an array laid out as a matrix on a GPU, for products that are convolutions.

In: a convolution by its axes, and which part of the matrix is wanted. Out: an `OwnKernel`. The rows
of the matrix are examples and places, its terms input features and taps; an axis of either is named
by a letter: n for examples, p0, p1... for places, c for input features, k0, k1... for taps.

A thread stays at one index of the axes that lie side by side in the result, and goes along a run of
the others: an index is taken apart once for each run, and threads side by side write side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from accnp.ir.kernel import OwnKernel
from accnp.primitives.block_convolutions import index, moved, seen
from accnp.primitives.convolution_kernels import Case
from accnp.primitives.nests import Text

__all__ = ["Part", "window_copy"]

RUN = 64  # places of a run at most
TASKS = 1 << 18  # threads that there should be


class Part(NamedTuple):
    """Axes of the matrix, names and sizes, the last one the fastest; the first index of them, and
    how many there are from there on."""

    axes: Sequence[tuple[str, int]]
    first: int
    count: int


def window_copy(case: Case, code: str, along: Part, over: Part) -> OwnKernel:
    """The kernel that lays out part of the matrix, of each group: `along` is side by side."""
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
        for name, begin, part, given in (("i", "u", along, axes[0]), ("j", "start", over, axes[1])):
            if given:
                text.add(f"{name} = {begin} + {text.integer(part.first)}")
                index(text, name, given)
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
            tests = []
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
            for name, n in reversed(axes[1]):  # the next index, as on an odometer
                text.add(f"{name} = {name} + 1", f"if {name} == {text.integer(n)}:")
                text.depth += 1
                text.add(f"{name} = 0")
            text.depth = depth
    count = case.groups * runs * along.count
    return text.own(count, max(count, prod((every, 4))))
