"""Prefix reductions (scans) along an axis with an associative function, in O(log n) operations.

`prefixes` takes nodes and a function that combines two lists of nodes, and returns nodes of the
same shapes. `lax.associative_scan` and the derivative rules of cumulative reductions use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from accnp.ir.node import Node, literal
from accnp.ir.op import o
from accnp.primitives.kinds import dtype_kind

__all__ = ["AssociativeFunction", "prefixes", "slice_axis"]

AssociativeFunction = Callable[[list[Node], list[Node]], list[Node]]


def prefixes(
    combine: AssociativeFunction, xs: Sequence[Node], axis: int, reverse: bool = False
) -> list[Node]:
    """Combine neighbors, compute the prefixes of the pairs, and fill in the elements in between.

    Source: Blelloch, Prefix sums and their applications (1990), section 1.4.
    """
    if reverse:
        xs = [o.rev(x, dimensions=(axis,)) for x in xs]
    out = _forward(combine, list(xs), axis)
    return [o.rev(x, dimensions=(axis,)) for x in out] if reverse else out


def _forward(combine: AssociativeFunction, xs: list[Node], axis: int) -> list[Node]:
    n = xs[0].aval.shape[axis]
    if n < 2:
        return xs
    pairs = combine(_slice_each(xs, axis, 0, n - 1, 2), _slice_each(xs, axis, 1, n, 2))
    odd = _forward(combine, pairs, axis)
    first = odd if n % 2 else _slice_each(odd, axis, 0, odd[0].aval.shape[axis] - 1, 1)
    even = combine(first, _slice_each(xs, axis, 2, n, 2))
    heads = _slice_each(xs, axis, 0, 1, 1)
    even = [o.concatenate(h, e, dimension=axis) for h, e in zip(heads, even, strict=True)]
    return [_interleave(a, b, axis) for a, b in zip(even, odd, strict=True)]


def _slice_each(xs: Sequence[Node], axis: int, start: int, stop: int, step: int) -> list[Node]:
    return [slice_axis(x, axis, start, stop, step) for x in xs]


def slice_axis(x: Node, axis: int, start: int, stop: int, step: int = 1) -> Node:
    """Return elements start, start + step, ... of an axis."""
    shape = x.aval.shape
    if (start, stop, step) == (0, shape[axis], 1):
        return x
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    limits = tuple(stop if i == axis else n for i, n in enumerate(shape))
    steps = tuple(step if i == axis else 1 for i in range(len(shape)))
    return o.slice(x, start_indices=starts, limit_indices=limits, strides=steps)


def _interleave(a: Node, b: Node, axis: int) -> Node:
    """Return a[0], b[0], a[1], b[1], ...; `a` is as long as `b` or longer by one."""
    # The identity of addition for all floats: adding -0.0 preserves -0.0, too.
    unit = {"b": False, "f": -0.0, "c": complex(-0.0, -0.0)}.get(dtype_kind(a.aval.dtype), 0)
    pad = literal(unit, a.aval.dtype, False)
    more = a.aval.shape[axis] - b.aval.shape[axis]
    rest = ((0, 0, 0),)
    before, after = rest * axis, rest * (a.aval.ndim - axis - 1)
    a = o.pad(a, pad, padding_config=(*before, (0, 0 if more else 1, 1), *after))
    b = o.pad(b, pad, padding_config=(*before, (1, 1 if more else 0, 1), *after))
    return o.or_(a, b) if a.aval.dtype.kind == "b" else o.add(a, b)
