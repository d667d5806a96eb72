"""Reductions of an axis, or of windows along it, with an associative function on nodes.

`MONOIDS` lists the functions with an identity that have ops of their own, for `lax.reduce` and
`lax.reduce_window`. `reduce_windows` records the reduction of windows with any associative
function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

import numpy as np

from accnp.ir.node import Node
from accnp.ir.op import Op, o
from accnp.primitives.elementwise import ADD, AND, MAX, MIN, MUL, OR, XOR
from accnp.primitives.kinds import dtype_kind
from accnp.primitives.prefix import slice_axis

__all__ = ["MONOIDS", "Monoid", "largest_value", "reduce_windows", "smallest_value"]


@dataclass(frozen=True)
class Monoid:
    """An associative op with an identity.

    Attributes:
        combine: the op on two nodes; of equal extremes, the first one has the derivative.
        identity: (dtype) -> the identity element.
        reduce: name of the op that reduces whole axes, or "".
        windows: name of the op that reduces windows, or "".
    """

    combine: Callable[[Node, Node], Node]
    identity: Callable[[np.dtype], float]
    reduce: str = ""
    windows: str = ""


def _prefer_first(better: str, extreme: str) -> Callable[[Node, Node], Node]:
    def combine(a: Node, b: Node) -> Node:
        if dtype_kind(a.aval.dtype) == "c":
            return getattr(o, extreme)(a, b)
        takes_a = getattr(o, better)(a, b)
        if dtype_kind(a.aval.dtype) == "f":
            takes_a = o.or_(takes_a, o.ne(a, a))  # propagate nan
        return o.select_n(takes_a, b, a)

    return combine


def smallest_value(dtype: np.dtype) -> float:
    """Return the smallest value of a dtype."""
    kind = dtype_kind(dtype)
    return False if kind == "b" else int(np.iinfo(dtype).min) if kind in "iu" else -math.inf


def largest_value(dtype: np.dtype) -> float:
    """Return the largest value of a dtype."""
    kind = dtype_kind(dtype)
    return True if kind == "b" else int(np.iinfo(dtype).max) if kind in "iu" else math.inf


def _zero(dtype: np.dtype) -> float:
    return 0


def _all_bits_set(dtype: np.dtype) -> float:
    """Return the number with all bits set."""
    if dtype_kind(dtype) == "b":
        return True
    return int(np.iinfo(dtype).max) if dtype_kind(dtype) == "u" else -1


MONOIDS: dict[Op, Monoid] = {
    ADD: Monoid(lambda a, b: o.add(a, b), _zero, "reduce_sum", "reduce_window_sum"),
    MUL: Monoid(lambda a, b: o.mul(a, b), lambda dtype: 1, "reduce_prod"),
    MAX: Monoid(_prefer_first("ge", "max"), smallest_value, "reduce_max", "reduce_window_max"),
    MIN: Monoid(_prefer_first("le", "min"), largest_value, "reduce_min", "reduce_window_min"),
    AND: Monoid(lambda a, b: o.and_(a, b), _all_bits_set, "reduce_and"),
    OR: Monoid(lambda a, b: o.or_(a, b), _zero, "reduce_or"),
    XOR: Monoid(lambda a, b: o.xor(a, b), _zero, "reduce_xor"),
}


def reduce_windows(
    combine: Callable[[Node, Node], Node],
    x: Node,
    axis: int,
    width: int,
    stride: int = 1,
    dilation: int = 1,
    start: int = 0,
    count: int = 1,
) -> Node:
    """Reduce windows of `width` elements, `dilation` apart, that start at `count` positions,
    `stride` apart. `combine` is applied about log(width) times, to whole arrays, in the order of
    elements.

    Windows of even width are windows of half the width over reduced pairs: over every second pair
    if all windows start at the same parity, otherwise over all pairs.
    """
    if width == 1:
        return slice_axis(x, axis, start, start + stride * (count - 1) + 1, stride)
    n = x.aval.shape[axis]
    if count == 1:
        stride = 0  # a single window has no other window whose parity could differ
    step = gcd(stride, dilation)
    if step > 1:
        x = slice_axis(x, axis, start % step, n, step)
        n = x.aval.shape[axis]
        start, stride, dilation = start // step, stride // step, dilation // step
    rest = (max(stride, 1), dilation, start, count)
    if width % 2:
        head = reduce_windows(combine, x, axis, width - 1, *rest)
        last = start + dilation * (width - 1)
        return combine(head, reduce_windows(combine, x, axis, 1, max(stride, 1), 1, last, count))
    if stride % 2 == 0:
        first = start % 2
        m = (n - 1 - first - dilation) // 2 + 1
        pairs = [slice_axis(x, axis, k, k + 2 * m - 1, 2) for k in (first, first + dilation)]
        rest = (max(stride // 2, 1), dilation, start // 2, count)
    else:
        pairs = [slice_axis(x, axis, k, k + n - dilation) for k in (0, dilation)]
        rest = (stride, 2 * dilation, start, count)
    return reduce_windows(combine, combine(*pairs), axis, width // 2, *rest)
