"""Windows that move over axes of an array: their geometry and padding.

A `Window` describes one axis: sizes, strides, padding and dilations. Pooling, convolutions and
their kernels share it. `pads_of` computes padding from names such as "SAME", and `extract_windows`
returns all windows of a NumPy array for the reference functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Window", "dilated_length", "extract_windows", "pads_of"]


def dilated_length(n: int, dilation: int) -> int:
    """Return the length of an axis of n elements after dilation."""
    return (n - 1) * dilation + 1 if n else 0


class Window(NamedTuple):
    """One axis of a window. At a position, a tap reads the element `place * stride + tap * dilation
    - low` of the axis dilated by `base`; outside of the axis it reads padding."""

    size: int  # length of the axis
    taps: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base: int = 1  # dilation of the axis
    dilation: int = 1  # of the window

    @property
    def places(self) -> int:
        """The number of positions of the window."""
        room = dilated_length(self.size, self.base) + self.low + self.high
        return max(0, (room - dilated_length(self.taps, self.dilation)) // self.stride + 1)

    @property
    def plain(self) -> bool:
        """Return whether the window has one tap and reads each element once, in order."""
        return self[1:] == (1, 1, 0, 0, 1, 1)


def pads_of(
    sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int], kind: str
) -> list[tuple[int, int]]:
    """Return the (low, high) padding of each axis for "SAME", "SAME_LOWER" or "VALID"."""
    if kind == "VALID":
        return [(0, 0)] * len(sizes)
    pads: list[tuple[int, int]] = []
    for n, span, stride in zip(sizes, windows, strides, strict=True):
        total = max(0, (-(-n // stride) - 1) * stride + span - n)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if kind == "SAME" else (more, less))
    return pads


def extract_windows(x: np.ndarray, windows: Sequence[Window], fill: float) -> np.ndarray:
    """Return all windows of an array: first the axes of positions, then those of taps."""
    rank = x.ndim
    wide = [dilated_length(w.size, w.base) for w in windows]
    room = [max(0, n + w.low + w.high) for n, w in zip(wide, windows, strict=True)]
    padded = np.full(room, fill, x.dtype)
    # Where the elements are copied; negative padding omits some.
    into: list[slice] = []
    out_of: list[slice] = []
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
