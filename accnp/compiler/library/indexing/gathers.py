"""Kernels of gather and dynamic slices, and helpers of the scatter kernels.

The functions take the memory layout of operands and results and the dimension numbers, and return
an `OwnKernel`. Each kernel is one loop nest: over the windows (axes of the start indices, kinds
"row" and "free") and within a window (kinds "whole" and "part", depending on whether the window
covers that axis of the operand). Coordinates are read at the start of the last loop over windows
and clamped, so no mode reads or writes outside of the operand. `index.py` declares the ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from accnp.compiler.library.writing.loop_nests import Axis, Nest, Text, merged, total
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code
from accnp.primitives.index import (
    DROP,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    fill_value_of,
)
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = [
    "Load", "Windows", "axes_of", "find_last_row_axis", "firsts", "gather_kernel",
    "single_window_kernel", "slice_kernel", "start_loads",
]  # fmt: skip

Load = tuple[str, np.dtype, int, int]  # a coordinate: expression, dtype, largest valid one, stride


class Windows(Nest):
    """Loops over some axes that read the coordinates of a window at one level."""

    def __init__(self, text: Text, axes: Sequence[Axis], drop: bool = False) -> None:
        super().__init__(text, axes)
        self.drop = drop  # whether windows that are out of bounds are skipped
        self.inside = False  # whether the code computes a variable `inside`
        self.base: list[str] = []  # terms of the index at which a window begins

    def coordinates(self, loads: Sequence[Load]) -> list[str]:
        """Write code that reads the coordinates of a window; return the names of the variables."""
        t = self.text
        places: list[str] = []
        tests: list[str] = []
        names: list[str] = []
        for load, dtype, top, stride in loads:
            if not (top or self.drop):  # the window covers the axis, so it starts at 0
                names.append("0")
                continue
            c, n = f"k{len(tests)}", t.integer(top)
            t.add(f"{c} = {load if dtype_code(dtype) == 'i8' else f'i8({load})'}")
            if dtype_code(dtype) == "u8":  # numbers beyond int64 are beyond the end
                t.add(f"{c} = {c} if {c} >= 0 else {n} + 1")
            tests.append(f"({c} >= 0) & ({c} <= {n})")
            if self.drop:
                t.add(f"inside = {'inside & ' if self.inside else ''}{tests[-1]}")
                self.inside = True
            t.add(f"{c} = {c} if {c} < {n} else {n}", f"{c} = {c} if {c} > 0 else 0")
            places += t.times(c, stride)
            names.append(c)
        if len(places) > 1:
            t.add(f"base = {total(places)}")
            places = ["base"]
        self.base = places
        return names


# --- dynamic slices ------------------------------------------------------------------------------


def firsts(
    starts: Sequence[Operand], shape: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> list[Load]:
    """Return the loads of the starts of a dynamic slice, which are one array each."""
    return [
        (f"a{k + 1}[0]", s.dtype, shape[k] - sizes[k], strides[k]) for k, s in enumerate(starts)
    ]


def single_window_kernel(
    text: Text,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    other: tuple[int, ...],
    loads: Sequence[Load],
    store: Callable[[str, str], str],
) -> OwnKernel:
    """Return a kernel that processes one window, element by element, with an array of its size."""
    axes = [Axis(n, (s, w)) for n, s, w in zip(sizes, strides, other, strict=True)]
    nest = Windows(text, merged(axes))
    nest.coordinates(loads)
    for _ in nest.axes:
        nest.open()
    text.add(store(total([*nest.base, *nest.walk(0)]), total(nest.walk(1))))
    text.depth = 1
    return nest.own(1)


def slice_kernel(operands: Sequence[Operand], sizes: tuple[int, ...]) -> OwnKernel:
    """Return the kernel of `dynamic_slice`: (operand, starts...) -> window."""
    x, *starts = operands
    text = Text(len(starts) + 2)
    return single_window_kernel(
        text, sizes, x.strides, contiguous(sizes), firsts(starts, x.shape, sizes, x.strides),
        lambda window, place: f"{text.pointers[-1]}[{place}] = a0[{window}]",
    )  # fmt: skip


# --- gather -----------------------------------------------------------------------------


def start_loads(
    nest: Windows,
    starts: Operand,
    pointer: str,
    dims: GatherDimensionNumbers | ScatterDimensionNumbers,
    shape: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
) -> list[Load]:
    """Return the loads of coordinates: elements of the last axis of the starts."""
    step, number = starts.strides[-1], len(dims[2])
    at: list[str] = []
    for k, axis in enumerate(nest.axes[: nest.opened]):
        # If coordinates are contiguous, their number is a constant, so that loops are vectorized.
        near = step == 1 and number == axis.steps[0] > 1
        at += [f"j{k} * {number}"] if near else nest.text.times(f"j{k}", axis.steps[0])
    loads: list[Load] = []
    for k, d in enumerate(dims[2]):
        place = total([*at, *(nest.text.times(str(k), step) if k else ())])
        loads.append((f"{pointer}[{place}]", starts.dtype, shape[d] - sizes[d], strides[d]))
    return loads


def axes_of(
    shape: tuple[int, ...],
    own: tuple[int, ...],
    starts: Operand,
    dims: GatherDimensionNumbers | ScatterDimensionNumbers,
    within: tuple[int, ...],
    strides: tuple[int, ...],
    free: bool,
) -> list[Axis]:
    """Return the axes of the gathered array, or of the updates, with this shape and these strides.

    `within` and `strides` are the shape and strides of the array that contains the windows. Rows
    are "free" (independent) if no two windows overlap. Steps: starts, array with the windows, own.
    """
    window_dims, dropped, _, batching, starts_batching = dims
    window_axes = [d for d in range(len(within)) if d not in dropped and d not in batching]
    windows = dict(zip(window_dims, window_axes, strict=True))
    rows = iter(range(len(starts.shape) - 1))
    axes: list[Axis] = []
    for i, (n, step) in enumerate(zip(shape, own, strict=True)):
        if i in windows:
            d = windows[i]
            kind = "whole" if n == within[d] else "part"
            axes.append(Axis(n, (0, strides[d], step), kind))
        else:
            k = next(rows)
            shared = [d for d, a in zip(batching, starts_batching, strict=True) if a == k]
            kind = "free" if free or shared else "row"
            moved = strides[shared[0]] if shared else 0
            axes.append(Axis(n, (starts.strides[k], moved, step), kind))
    return merged(axes)


def find_last_row_axis(axes: Sequence[Axis]) -> int:
    return max([k for k, a in enumerate(axes) if a.kind in ("row", "free")], default=-1)


def gather_kernel(
    operands: Sequence[Operand],
    out: Aval,
    dims: GatherDimensionNumbers,
    sizes: tuple[int, ...],
    fill: np.generic | None,
) -> OwnKernel | None:
    """Return the kernel of `gather`; `fill` is the value outside, None if windows are clamped."""
    x, starts = operands
    if 0 in x.shape:
        return None
    text = Text(3)
    if fill is not None:
        text.add(f"fill = {text.constant(fill)}")
    axes = axes_of(out.shape, contiguous(out.shape), starts, dims, x.shape, x.strides, True)
    nest = Windows(text, axes, fill is not None)
    last = find_last_row_axis(axes)
    for k in range(len(axes) + 1):
        if k == last + 1:
            nest.coordinates(start_loads(nest, starts, "a1", dims, x.shape, sizes, x.strides))
        if k < len(axes):
            nest.open()
    value = f"a0[{total([*nest.base, *nest.walk(1)])}]"
    value = f"select(inside, {value}, fill)" if nest.inside else value
    text.add(f"a2[{total(nest.walk(2))}] = {value}")
    return nest.own(2)


def gather(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `gather`."""
    fill: np.generic | None = None
    if p["mode"] is DROP:
        dtype = results[0].dtype
        filled = np.asarray(fill_value_of(dtype, p["fill_value"])).astype(dtype)
        fill = cast("np.generic", filled[()])
    return gather_kernel(operands, results[0], p["dimension_numbers"], p["slice_sizes"], fill)


def dynamic_slice(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `dynamic_slice`."""
    return slice_kernel(operands, p["slice_sizes"])
