"""Rewriting of dynamic slices that one reduction reads to gathers, which its kernel can compute.

Input: the values of a program in order. Output: the same values, in which `dot(a[i], x)` or
`a[i].max()` reads its row with a gather of one window instead of a slice. A dynamic slice has its
own kernel, which copies it. In a loop over the rows of a matrix this costs as much as the
reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from accnp.compiler.fusion.gathers import is_gather
from accnp.compiler.fusion.spaces import in_kernel, reduction_form
from accnp.ir.op import OPS
from accnp.primitives.index import GatherDimensionNumbers, GatherScatterMode

if TYPE_CHECKING:
    from accnp.compiler.fusion.program import Value

__all__ = ["replace_slices_by_gathers"]

_OUTPUT = -1  # stands for the reader of an output


def replace_slices_by_gathers(
    values: list[Value], outputs: Sequence[Value], new: Callable[..., Value]
) -> list[Value]:
    """Return the values after replacing such slices by gathers; `new` makes a value."""
    readers: dict[int, set[int]] = {id(v): {_OUTPUT} for v in outputs}
    for v in values:
        for x in v.inputs:
            readers.setdefault(id(x), set()).add(id(v))
    starts: dict[int, Value] = {}  # by id of a gather: the view of its start, which comes before it
    for reduction in values:
        if reduction.op.kind == "reduce":
            source = reduction.inputs[0]
            if reduction_form(source.aval.shape, tuple(reduction.params["axes"])) == "split":
                for v in _slices_below(source, readers):
                    start = _gather(v, new)
                    if start is not None:
                        starts[id(v)] = start
    if not starts:
        return values
    return [x for v in values for x in ((starts[id(v)], v) if id(v) in starts else (v,))]


def _slices_below(source: Value, readers: dict[int, set[int]]) -> list[Value]:
    """Return the slices of which each element is used for one element of this value only."""
    stack = [source]
    slices: list[Value] = []
    seen: set[int] = set()
    while stack:
        v = stack.pop()
        if id(v) in seen or v.aval.size != source.aval.size or len(readers[id(v)]) != 1:
            continue
        seen.add(id(v))
        if v.op.indexing == "slice":
            slices.append(v)
        elif in_kernel(v) and v.op.kind in ("view", "map"):
            stack += [x for x in v.inputs if not x.is_leaf]
    return slices


def _gather(v: Value, new: Callable[..., Value]) -> Value | None:
    """Replace a slice with one dynamic axis by a gather; return the view of its start, or None."""
    x, *starts = v.inputs
    sizes = v.params["slice_sizes"]
    moving = [d for d, size in enumerate(sizes) if size != x.aval.shape[d]]
    if len(moving) != 1:
        return None
    (axis,) = moving
    params = {"new_sizes": (1,), "dimensions": None}
    reshape = OPS["reshape"]
    aval = reshape.infer(starts[axis].aval, **params)
    start = new(reshape, params, (starts[axis],), aval, v.node)
    numbers = GatherDimensionNumbers(tuple(range(v.aval.ndim)), (), (axis,))
    params = {
        "dimension_numbers": numbers,
        "slice_sizes": tuple(sizes),
        "indices_are_sorted": False,
        "unique_indices": False,
        "mode": GatherScatterMode.CLIP,
        "fill_value": None,
    }
    gather = new(OPS["gather"], params, (x, start), v.aval, v.node)
    if not is_gather(gather):
        return None
    v.op, v.params, v.inputs = gather.op, gather.params, gather.inputs
    return start
