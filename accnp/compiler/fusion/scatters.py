"""Rewriting of scatters with several coordinates to scatters with one coordinate.

Input: the operands of a scatter, and a function that makes values. Output: a value in which the
scattered axes are merged into one. An elementwise kernel computes the indices along this axis, with
vectors and on all threads. Each task of a scatter reads all indices, so they should be computed
before and be contiguous. `program.py` calls this.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from accnp.compiler.fusion.products import Make, as_dtype, reshaped
from accnp.primitives.assemble import CONCATENATE
from accnp.primitives.index import DROP

if TYPE_CHECKING:
    from accnp.compiler.fusion.program import Value
    from accnp.ir.op_types import Params

__all__ = ["FEW", "flat_scatter"]

FEW = 1024  # up to this many indices, computing them in the scatter is cheaper than storing them
_PLACE = np.dtype(np.int32)


def flat_scatter(
    make: Make, const: Callable[[int, np.dtype], Value], name: str, params: Params,
    operands: tuple[Value, ...],
) -> Value | None:  # fmt: skip
    """Return the value that replaces a scatter, or None to keep it."""
    x, starts, updates = operands
    dims = params["dimension_numbers"]
    mapped, batch = dims.scatter_dims_to_operand_dims, starts.aval.shape[:-1]
    first, count = min(mapped, default=0), len(mapped)
    sizes = x.aval.shape[first : first + count]
    if (
        count < 2
        or sorted(mapped) != list(range(first, first + count))
        or not set(mapped) <= set(dims.inserted_window_dims)
        or starts.aval.dtype not in (_PLACE, np.dtype(np.int64))
        or prod(batch) < FEW
        or not 0 < prod(sizes) < 1 << 31
    ):
        return None
    shape = x.aval.shape
    flat = (*shape[:first], prod(sizes), *shape[first + count :])
    place = _merged_index(
        make, const, starts, [sizes[d - first] for d in mapped], mapped, params["mode"]
    )

    def renamed(axes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted({d if d < first else max(first, d - count + 1) for d in axes}))

    numbers = dims._replace(
        inserted_window_dims=renamed(dims.inserted_window_dims),
        scatter_dims_to_operand_dims=(first,),
        operand_batching_dims=tuple(
            [d if d < first else d - count + 1 for d in dims.operand_batching_dims]
        ),
    )
    changed = {**params, "dimension_numbers": numbers, "indices_are_sorted": False}
    y = make(name, changed, (reshaped(make, x, flat), place, updates))
    return reshaped(make, y, shape)


def _merged_index(
    make: Make, const: Callable[[int, np.dtype], Value], starts: Value, sizes: list[int],
    mapped: tuple[int, ...], mode: object,
) -> Value:  # fmt: skip
    """Return the indices along the merged axis; -1, which is dropped, if a coordinate is out of
    bounds."""
    kind = starts.aval.dtype
    zero, place, inside = const(0, kind), None, None
    # In the order of the axes, so that the last one has stride 1.
    for k in sorted(range(len(mapped)), key=lambda k: mapped[k]):
        at, size = _coordinate(make, starts, k), const(sizes[k], kind)
        if mode is DROP:
            for test in (make("ge", {}, (at, zero)), make("lt", {}, (at, size))):
                inside = test if inside is None else make("and", {}, (inside, test))
        else:
            at = make("clamp", {}, (zero, at, const(sizes[k] - 1, kind)))
        # int32 from here on. Coordinates out of bounds may overflow, but are not used.
        at = as_dtype(make, at, _PLACE)
        if place is not None:
            place = make("mul", {}, (place, const(sizes[k], _PLACE)))
            at = make("add", {}, (place, at))
        place = at
    assert place is not None
    if inside is not None:
        place = make("select_n", {}, (inside, const(-1, _PLACE), place))
    return reshaped(make, place, (*starts.aval.shape[:-1], 1))


def _coordinate(make: Make, starts: Value, k: int) -> Value:
    """Return one coordinate of all indices, directly from a concatenation of coordinates if the
    start indices are one."""
    batch = starts.aval.shape[:-1]
    if starts.op is CONCATENATE and len(starts.inputs) == starts.aval.shape[-1]:
        return reshaped(make, starts.inputs[k], batch)
    axes = len(batch)
    params = {
        "start_indices": (0,) * axes + (k,), "limit_indices": (*batch, k + 1), "strides": None,
    }  # fmt: skip
    return reshaped(make, make("slice", params, (starts,)), batch)
