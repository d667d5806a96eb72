"""Windows that move over axes of an array: how they lie, and the padding that goes with them.

In: sizes, strides, padding, dilations of each axis. Out: `Window`s, shapes, padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Window", "dilated", "pads_of", "spread_out"]


def dilated(n: int, dilation: int) -> int:
    """The length of an axis whose n elements are some places apart."""
    return (n - 1) * dilation + 1 if n else 0


class Window(NamedTuple):
    """One axis: element `place * stride + tap * dilation - low` of the dilated axis, divided by
    `base`, is what a tap of the window sees at a place; outside of the axis it sees nothing."""

    size: int  # of the axis
    taps: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base: int = 1  # dilation of the axis
    dilation: int = 1  # of the window

    @property
    def places(self) -> int:
        """How many places the window has."""
        room = dilated(self.size, self.base) + self.low + self.high
        return max(0, (room - dilated(self.taps, self.dilation)) // self.stride + 1)

    @property
    def plain(self) -> bool:
        """Whether the window sees one element at each place, in order."""
        return self[1:] == (1, 1, 0, 0, 1, 1)


def pads_of(
    sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int], kind: str
) -> list[tuple[int, int]]:
    """The (low, high) padding that "SAME", "SAME_LOWER" or "VALID" stands for."""
    if kind == "VALID":
        return [(0, 0)] * len(sizes)
    pads = []
    for n, span, stride in zip(sizes, windows, strides, strict=True):
        total = max(0, (-(-n // stride) - 1) * stride + span - n)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if kind == "SAME" else (more, less))
    return pads


def spread_out(x: Any, windows: Sequence[Window], fill: Any) -> Any:
    """All windows of an array: the axes of the places first, then those of the taps."""
    rank = x.ndim
    wide = [dilated(w.size, w.base) for w in windows]
    room = [max(0, n + w.low + w.high) for n, w in zip(wide, windows, strict=True)]
    padded = np.full(room, fill, x.dtype)
    # Where the elements go; negative padding leaves some out.
    into, out_of = [], []
    for n, w, total in zip(wide, windows, room, strict=True):
        first = -(-max(0, -w.low) // w.base)
        last = min(w.size, -(-max(0, total - w.low) // w.base))
        out_of.append(slice(first, max(first, last)))
        start = w.low + first * w.base
        into.append(slice(start, min(total, max(start, w.low + n)), w.base))
        if last <= first:
            into[-1] = slice(0, 0)
    padded[tuple(into)] = x[tuple(out_of)]
    shape = [w.places for w in windows] + [w.taps for w in windows]
    steps = [s * w.stride for s, w in zip(padded.strides, windows, strict=True)]
    steps += [s * w.dilation for s, w in zip(padded.strides, windows, strict=True)]
    if not all(shape):
        return np.zeros(shape, x.dtype)
    assert len(steps) == 2 * rank
    return np.lib.stride_tricks.as_strided(padded, shape, steps, writeable=False)
