"""Analysis of updates whose indices are known at planning time.

Input: an update (`dynamic_update_slice` or a scatter), as a recorded node or as a value of a
program. Output: the `Region` that it writes, or the leaves that contain its indices. Indices are
represented as affine functions of the position in the array of start indices, so that strided
slices of any length cost the same. `updates.py` and the engine (for its cache keys) use this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from accnp.ir.node import CONST, LITERAL, Node
from accnp.ir.op import Op
from accnp.primitives.assemble import CONCATENATE
from accnp.primitives.conversion import CONVERT
from accnp.primitives.elementwise import ADD, MUL
from accnp.primitives.scatter import window_sizes
from accnp.primitives.updates import UPDATE, Region
from accnp.primitives.views import BROADCAST, RESHAPE, SQUEEZE

if TYPE_CHECKING:
    from accnp.compiler.fusion.program import Value
    from accnp.ir.aval import Aval

__all__ = ["is_update", "leaves_of_places", "numbers", "region_of"]

MOST = 32  # the maximum number of operations from literals to indices


class _Affine(NamedTuple):
    """An affine function of the index of an array: a constant, and a step along each axis."""

    constant: int
    steps: tuple[int, ...]


class _Reader:
    """Follows the operations that compute start indices back to literals."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.count = 0

    def number(self, x: Value | Node) -> _Affine | None:
        """Return the affine function that an array of integers equals; None if it is not affine or
        if its elements overflow."""
        function = self._affine_without_overflow(x)
        return function if function is not None and _fits_dtype(x.aval, function) else None

    def _affine_without_overflow(self, x: Value | Node) -> _Affine | None:
        """Return the function, ignoring overflow of the dtype."""
        self.count += 1
        if self.count > MOST or x.aval.dtype.kind not in "iu":
            return None
        if x.op.kind == "iota":
            d = x.params["dimension"]
            return _Affine(0, tuple([int(k == d) for k in range(x.aval.ndim)]))
        if x.op is LITERAL and "value" in x.params:
            self.leaves.append(x)
            return _Affine(int(x.params["value"]), (0,) * x.aval.ndim)
        if getattr(x, "value", None) is not None or not x.inputs:
            return None  # a computed node, which no longer has its operands
        rule = _RULES.get(x.op)
        parts = [self.number(y) for y in x.inputs] if rule is not None else [None]
        return None if rule is None or None in parts else rule(x, *parts)

    def coordinates(self, starts: Value | Node) -> list[_Affine] | None:
        """Return the coordinates along the last axis of the start indices, as functions of the
        other axes."""
        known = starts.params.get("places") if starts.op is CONST else None
        if known is not None:
            self.leaves.append(starts)
            return [_Affine(n, (0,) * (starts.aval.ndim - 1)) for n in known]
        last = starts.aval.ndim - 1
        parts = [starts]
        if starts.op is CONCATENATE and starts.params["dimension"] == last:
            parts = list(starts.inputs)
        if any(x.aval.shape[-1] != 1 for x in parts):
            return None
        functions = [self.number(x) for x in parts]
        return (
            None
            if None in functions
            else [_Affine(f.constant, f.steps[:-1]) for f in functions if f]
        )


def _fits_dtype(aval: Aval, f: _Affine) -> bool:
    """Return whether the dtype of an array can represent all values of a function."""
    low = high = f.constant
    for step, n in zip(f.steps, aval.shape, strict=True):
        reach = step * max(n - 1, 0)
        low, high = low + min(0, reach), high + max(0, reach)
    limits = np.iinfo(aval.dtype)
    return limits.min <= low and high <= limits.max


def _broadcast(x: Value | Node, a: _Affine) -> _Affine:
    steps = [0] * x.aval.ndim
    for k, d in enumerate(x.params["broadcast_dimensions"]):
        steps[d] = a.steps[k] if x.inputs[0].aval.shape[k] != 1 else 0
    return _Affine(a.constant, tuple(steps))


def _reshape(x: Value | Node, a: _Affine) -> _Affine | None:
    """Apply a view that only adds or drops axes of length 1; None for other reshapes."""
    before, after = x.inputs[0].aval.shape, x.aval.shape
    if [n for n in before if n != 1] != [n for n in after if n != 1]:
        return None
    long = iter([s for s, n in zip(a.steps, before, strict=True) if n != 1])
    return _Affine(a.constant, tuple([next(long) if n != 1 else 0 for n in after]))


def _add(x: Value | Node, a: _Affine, b: _Affine) -> _Affine | None:
    if not a.steps or not b.steps:  # a literal has rank 0
        steps = a.steps or b.steps
    elif len(a.steps) == len(b.steps):
        steps = tuple([p + q for p, q in zip(a.steps, b.steps, strict=True)])
    else:
        return None
    return _Affine(a.constant + b.constant, steps)


def _mul(x: Value | Node, a: _Affine, b: _Affine) -> _Affine | None:
    a, b = (b, a) if any(b.steps) else (a, b)
    if any(b.steps):
        return None
    steps = a.steps or (0,) * len(b.steps)
    return _Affine(a.constant * b.constant, tuple([s * b.constant for s in steps]))


def _convert(x: Value | Node, a: _Affine) -> _Affine:
    return a


_RULES: dict[Op, Callable[..., _Affine | None]] = {
    ADD: _add,
    MUL: _mul,
    BROADCAST: _broadcast,
    CONVERT: _convert,
    RESHAPE: _reshape,
    SQUEEZE: _reshape,
}


def is_update(v: Value | Node) -> bool:
    """Return whether an operation writes to positions of an array and keeps its other elements."""
    return v.op.indexing in ("update", "scatter")


def _coordinates(v: Value | Node, reader: _Reader) -> list[_Affine] | None:
    if v.op.indexing == "scatter":
        return reader.coordinates(v.inputs[1])
    functions = [reader.number(x) if x.op is LITERAL else None for x in v.inputs[2:]]
    return None if None in functions else [f for f in functions if f is not None]


def leaves_of_places(node: Node) -> list[Node]:
    """Return the leaves with the indices that a pending update writes to, if a plan may depend on
    their values.

    The list is empty if other values determine the indices, or if no other kernel can perform the
    update.
    """
    if not is_update(node):
        return []
    x, *others = node.inputs
    slices = node.op.indexing == "update"
    update = others[0] if slices else others[1]
    if not (_is_computed(update) or _is_pending(x)):
        return []
    if slices:  # the most frequent case
        leaves = others[1:]
        return leaves if all([y.op is LITERAL for y in leaves]) else []
    reader = _Reader()
    return [] if _coordinates(node, reader) is None else reader.leaves


def _is_pending(x: Node) -> bool:
    return x.value is None and x.op.kind != "leaf"


def _is_computed(x: Node) -> bool:
    """Return whether pending operations compute a node's elements; false for a view of a leaf."""
    while _is_pending(x) and x.op.kind == "view":
        (x,) = x.inputs
    return _is_pending(x) and x.aval.ndim > 0


def numbers(leaf: Node) -> int | tuple[int, ...]:
    """Return the value of such a leaf."""
    return leaf.params["value" if leaf.op is LITERAL else "places"]


def region_of(v: Value | Node) -> Region | None:
    """Return the region that an update writes; None if it is not known or partly out of bounds."""
    if v.op is UPDATE:
        return v.params["region"]
    coordinates = _coordinates(v, _Reader())
    if coordinates is None:
        return None
    if v.op.indexing == "scatter":
        return _scatter_region(v, coordinates)
    shape, sizes = v.aval.shape, v.inputs[1].aval.shape
    starts = [
        max(0, min(f.constant, n - m)) for f, n, m in zip(coordinates, shape, sizes, strict=True)
    ]
    return Region(tuple(starts), tuple([(d, 1) for d in range(len(shape))]))


def _scatter_region(v: Value | Node, coordinates: list[_Affine]) -> Region | None:
    """Return the region of a scatter whose windows form a regular grid without overlap, or None."""
    x, indices, updates = (y.aval for y in v.inputs)
    dims = v.params["dimension_numbers"]
    if dims.operand_batching_dims or not updates.size:
        return None
    sizes = window_sizes(x.shape, updates.shape, dims)
    starts = [0] * x.ndim
    moves: dict[int, tuple[int, int]] = {}
    for f, d in zip(coordinates, dims.scatter_dims_to_operand_dims, strict=True):
        starts[d] = low = high = f.constant
        for b, (step, n) in enumerate(zip(f.steps, indices.shape[:-1], strict=True)):
            if step == 0 or n == 1:
                continue
            if b in moves or sizes[d] != 1 or d in [axis for axis, _ in moves.values()]:
                return None
            moves[b] = d, step
            low, high = low + min(0, step * (n - 1)), high + max(0, step * (n - 1))
        if low < 0 or high > x.shape[d] - sizes[d]:
            return None
    if any(n != 1 and b not in moves for b, n in enumerate(indices.shape[:-1])):
        return None  # an element is written more than once
    window_axes = iter([d for d in range(x.ndim) if d not in dims.inserted_window_dims])
    batch = iter(range(indices.ndim - 1))
    axes: list[tuple[int, int]] = []
    for a in range(updates.ndim):
        if a in dims.update_window_dims:
            axes.append((next(window_axes), 1))
        else:
            axes.append(moves.get(next(batch), (-1, 0)))
    return Region(tuple(starts), tuple(axes))
