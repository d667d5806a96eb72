"""Scatters whose places have several coordinates, made scatters of one.

In: a scatter's operands and how to make values. Out: a value: the axes of the coordinates become
one axis, whose places an elementwise kernel computes, by vectors and on all threads. A scatter
looks at all places in each of its tasks, so it should find them ready, side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from accnp.compiler.fusion.products import Make, as_dtype, reshaped
from accnp.primitives.index import DROP

__all__ = ["FEW", "flat_scatter"]

FEW = 1024  # places that are cheaper to compute where they are used than to write down
_PLACE = np.dtype(np.int32)


def flat_scatter(
    make: Make, const: Callable[[int, np.dtype], Any], name: str, params: dict[str, Any],
    operands: tuple[Any, ...],
) -> Any | None:  # fmt: skip
    """The value that stands for a scatter, or None if it is what it should be."""
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
    place = _place(make, const, starts, [sizes[d - first] for d in mapped], mapped, params["mode"])

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


def _place(
    make: Make, const: Callable[[int, np.dtype], Any], starts: Any, sizes: list[int],
    mapped: tuple[int, ...], mode: Any,
) -> Any:  # fmt: skip
    """Places along the one axis; -1, which is dropped, where a coordinate is outside."""
    kind = starts.aval.dtype
    zero, place, inside = const(0, kind), None, None
    # The last axis moves by one element.
    for k in sorted(range(len(mapped)), key=lambda k: mapped[k]):
        at, size = _coordinate(make, starts, k), const(sizes[k], kind)
        if mode is DROP:
            for test in (make("ge", {}, (at, zero)), make("lt", {}, (at, size))):
                inside = test if inside is None else make("and", {}, (inside, test))
        else:
            at = make("clamp", {}, (zero, at, const(sizes[k] - 1, kind)))
        # As int32 from here on: what is outside may wrap around, and is not used.
        at = as_dtype(make, at, _PLACE)
        if place is not None:
            place = make("mul", {}, (place, const(sizes[k], _PLACE)))
            at = make("add", {}, (place, at))
        place = at
    if inside is not None:
        place = make("select_n", {}, (inside, const(-1, _PLACE), place))
    assert place is not None
    return reshaped(make, place, (*starts.aval.shape[:-1], 1))


def _coordinate(make: Make, starts: Any, k: int) -> Any:
    """One coordinate of all places: what it was before all were put side by side, if they were."""
    batch = starts.aval.shape[:-1]
    if starts.op.name == "concatenate" and len(starts.inputs) == starts.aval.shape[-1]:
        return reshaped(make, starts.inputs[k], batch)
    axes = len(batch)
    params = {
        "start_indices": (0,) * axes + (k,), "limit_indices": (*batch, k + 1), "strides": None,
    }  # fmt: skip
    return reshaped(make, make("slice", params, (starts,)), batch)
