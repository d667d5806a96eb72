"""Cumulative folds along one axis: cumsum, cumprod, cummax, cummin, cumlogsumexp."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import OPS, o
from accnp.ops.kinds import dtype_kind, like_full, opaque
from accnp.ops.prefix import Combine, prefixes
from accnp.ops.reference import quiet

__all__: list[str] = []


def _cumulative(name: str, fold: Callable[..., Any], dtypes: str, jvp: Any, **rules: Any) -> None:
    """Declare the prefixes of an axis, or with `reverse` its suffixes, folded by NumPy's `fold`."""

    def infer(x: Aval, *, axis: int, reverse: bool = False) -> Aval:
        if dtype_kind(x.dtype) not in dtypes:
            raise TypeError(f"{name} does not accept dtype {x.dtype.name}.")
        if not 0 <= axis < x.ndim:
            raise ValueError(f"{name}: axis {axis} is out of bounds for an array of rank {x.ndim}")
        return make_aval(x.shape, x.dtype, x.weak_type)

    def numpy(x: Any, *, axis: int, reverse: bool = False) -> Any:
        if reverse:
            return np.flip(fold(np.flip(x, axis), axis=axis), axis).astype(x.dtype)
        return fold(x, axis=axis).astype(x.dtype)

    def batch(size: int, xs: Sequence[Node], batched: Any, p: dict[str, Any]) -> Any:
        return getattr(o, name)(xs[0], **{**p, "axis": p["axis"] + 1}), True

    opaque(name, infer=infer, numpy=quiet(numpy), jvp=(jvp,), batch=batch, dtypes=dtypes, **rules)


def _prefix_jvp(combine: Combine) -> Any:
    """The rule of a fold: prefixes of pairs (value, tangent)."""

    def rule(t: Node, y: Node, x: Node, *, axis: int, reverse: bool = False) -> Node:
        return prefixes(combine, [x, t], axis, reverse)[1]

    return rule


def _pairs_of(op: str) -> Combine:
    """An op of two operands on values and tangents."""

    def combine(a: list[Node], b: list[Node]) -> list[Node]:
        (x, t), (z, u) = a, b
        y = getattr(o, op)(x, z)
        left, right = OPS[op].jvp
        return [y, o.add(left(t, y, x, z), right(u, y, x, z))]

    return combine


def _logaddexp(a: list[Node], b: list[Node]) -> list[Node]:
    """The logarithm of the sum of two exponentials, on values and tangents."""
    (x, t), (z, u) = a, b
    gap = o.neg(o.abs(o.sub(x, z)))
    larger = o.add(o.max(x, z), o.log1p(o.exp(gap)))
    same = o.eq(x, z)  # also where both are infinite
    y = o.select_n(same, larger, o.add(x, like_full(x, math.log(2))))

    def finite(v: Node) -> Node:
        return o.select_n(o.eq(v, like_full(v, math.inf)), v, like_full(v, 0))

    def weight(v: Node) -> Node:
        return o.exp(o.sub(finite(v), finite(y)))

    return [y, o.add(o.mul(t, weight(x)), o.mul(u, weight(z)))]


def _log_sums(x: Any, axis: int) -> Any:
    return np.logaddexp.accumulate(x, axis=axis)


_cumulative(
    "cumsum",
    np.cumsum,
    "iufc",
    lambda t, y, x, *, axis, reverse=False: o.cumsum(t, axis=axis, reverse=reverse),
    transpose=lambda ct, x, *, axis, reverse=False: (o.cumsum(ct, axis=axis, reverse=not reverse),),
)
_cumulative("cumprod", np.cumprod, "iufc", _prefix_jvp(_pairs_of("mul")))
_cumulative("cummax", np.maximum.accumulate, "iufc", _prefix_jvp(_pairs_of("max")))
_cumulative("cummin", np.minimum.accumulate, "iufc", _prefix_jvp(_pairs_of("min")))
_cumulative("cumlogsumexp", _log_sums, "f", _prefix_jvp(_logaddexp))
