"""Reductions over axes: sum, prod, max, min, and, or; argmax and argmin.

The declarations contain the type rules, NumPy references and derivative rules. Kernels for the
"reduce" ops are generated from `combine`; argmax and argmin are opaque ops with kernels in
`compiler/library/scans/`. The public functions are in `accnp/numpy/`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from accnp import dtypes
from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import ZERO, Lowering, o
from accnp.primitives.kinds import (
    broadcast_to,
    check_index_dtype,
    dtype_kind,
    full,
    like_full,
    opaque,
    reduced_shape,
    reduction,
)
from accnp.primitives.reference import quiet

if TYPE_CHECKING:
    from accnp.ir.op_types import Operand


def remaining_dims(rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes that remain after a reduction."""
    return tuple(d for d in range(rank) if d not in axes)


def broadcast_back(y: Node, like: Operand, axes: tuple[int, ...]) -> Node:
    """Broadcast a reduced value back over the reduced axes."""
    return broadcast_to(y, like.aval.shape, remaining_dims(like.aval.ndim, axes))


def extreme_jvp(t: Node, y: Node, x: Node, *, axes: tuple[int, ...]) -> Node:
    """Return the mean of the tangents at all positions of the extreme value."""
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.aval.shape))
    beside = o.reshape(y, new_sizes=shape, dimensions=None)
    at = o.convert_element_type(o.eq(x, beside), new_dtype=x.aval.dtype, weak_type=False)
    return o.div(o.reduce_sum(o.mul(t, at), axes=axes), o.reduce_sum(at, axes=axes))


def _prod_jvp(t: Node, y: Node, x: Node, *, axes: tuple[int, ...]) -> Node:
    """Multiply each tangent by the product of all other elements, which is computed from exclusive
    cumulative products from both sides."""
    rank = x.aval.ndim
    other_axes = remaining_dims(rank, axes)
    order = (*other_axes, *axes)
    shape = tuple(x.aval.shape[d] for d in other_axes)
    n = prod(x.aval.shape[d] for d in axes)
    flat_x, flat_t = (
        o.reshape(o.transpose(v, permutation=order), new_sizes=(*shape, n), dimensions=None)
        for v in (x, t)
    )
    one = full((), 1, x.aval.dtype)
    k = len(shape)

    def exclusive(v: Node, reverse: bool) -> Node:
        shift = (-1, 1, 0) if reverse else (1, -1, 0)
        shifted = o.pad(v, one, padding_config=(*[(0, 0, 0)] * k, shift))
        return o.cumprod(shifted, axis=k, reverse=reverse)

    others = o.mul(exclusive(flat_x, False), exclusive(flat_x, True))
    if dtype_kind(x.aval.dtype) in "fc":
        others = _replace_lost_products(
            others, broadcast_to(y, (*shape, n), tuple(range(k))), flat_x
        )
    return o.reduce_sum(o.mul(flat_t, others), axes=(k,))


def _replace_lost_products(others: Node, y: Node, x: Node) -> Node:
    """Return the products of all elements but one. Where a cumulative product has overflowed or
    underflowed but the whole product has not, use the quotient y / x instead."""

    def usable(v: Node) -> Node:
        size = o.abs(v)
        return o.and_(o.is_finite(size), o.ne(size, like_full(size, 0)))

    lost = o.and_(o.not_(usable(others)), usable(y))
    one = like_full(x, 1)
    quotient = o.div(o.select_n(lost, one, y), o.select_n(lost, one, x))
    return o.select_n(lost, others, quotient)


def _reduce_numpy(fn: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def run(x: np.ndarray, *, axes: tuple[int, ...]) -> np.ndarray:
        return fn(x, axis=tuple(axes)).astype(x.dtype)

    return quiet(run)


def _bits_numpy(fn: np.ufunc) -> Callable[..., np.ndarray]:
    def run(x: np.ndarray, *, axes: tuple[int, ...]) -> np.ndarray:
        return fn.reduce(x, axis=tuple(axes))

    return run


def _extreme_numpy(fn: Callable[..., np.ndarray], low: bool) -> Callable[..., np.ndarray]:
    def run(x: np.ndarray, *, axes: tuple[int, ...]) -> np.ndarray:
        if x.dtype.kind == "b":
            return (np.any if low else np.all)(x, axis=tuple(axes))
        if dtype_kind(x.dtype) in "iu":
            info = dtypes.iinfo(x.dtype)
            first = info.min if low else info.max
        else:
            first = -np.inf if low else np.inf
        return fn(x, axis=tuple(axes), initial=first).astype(x.dtype)

    return quiet(run)


def _sum_jvp(t: Node, y: Node, x: Node, *, axes: tuple[int, ...]) -> Node:
    return o.reduce_sum(t, axes=axes)


def _sum_transpose(ct: Node, x: Operand, *, axes: tuple[int, ...]) -> tuple[Node]:
    return (broadcast_back(ct, x, axes),)


SUM = reduction("reduce_sum", "sum", numpy=_reduce_numpy(np.sum), dtypes="iufc",
          jvp=(_sum_jvp,), transpose=_sum_transpose, makes_nan=True,
          show=lambda p: {**p, "out_sharding": None})  # fmt: skip
reduction("reduce_prod", "prod", numpy=_reduce_numpy(np.prod), dtypes="iufc", jvp=(_prod_jvp,),
          makes_nan=True)  # fmt: skip
reduction(
    "reduce_max", "max", numpy=_extreme_numpy(np.max, True), dtypes="biuf", jvp=(extreme_jvp,)
)
reduction(
    "reduce_min", "min", numpy=_extreme_numpy(np.min, False), dtypes="biuf", jvp=(extreme_jvp,)
)
reduction("reduce_and", "and", numpy=_bits_numpy(np.bitwise_and), dtypes="biu", jvp=(ZERO,))
reduction("reduce_or", "or", numpy=_bits_numpy(np.bitwise_or), dtypes="biu", jvp=(ZERO,))
reduction("reduce_xor", "xor", numpy=_bits_numpy(np.bitwise_xor), dtypes="biu", jvp=(ZERO,))

# --- argmax, argmin -------------------------------------------------------------------------------


def _arg_infer(x: Aval, *, axes: tuple[int, ...], index_dtype: np.dtype) -> Aval:
    if x.shape[axes[0]] == 0:
        raise ValueError(
            f"argmax/argmin: the axis is empty; got axis {axes[0]} of shape {x.shape}; pass an "
            "array with elements along it"
        )
    check_index_dtype("argmax/argmin", x.shape[axes[0]], np.dtype(index_dtype))
    return make_aval(reduced_shape(x.shape, tuple(axes)), np.dtype(index_dtype))


def _declare_arg_extreme(name: str, fn: Callable[..., np.ndarray]) -> None:
    def numpy(x: np.ndarray, *, axes: tuple[int, ...], index_dtype: np.dtype) -> np.ndarray:
        return np.asarray(fn(x, axis=axes[0])).astype(index_dtype)

    opaque(
        name,
        lowering=Lowering(f"scans.extremes.{name}"),
        infer=_arg_infer,
        numpy=numpy,
        halves="float32",
        jvp=(ZERO,),
        float0=False,
        sharding="extreme",
        batch=lambda size, xs, batched, p: (
            getattr(o, name)(xs[0], axes=(p["axes"][0] + 1,), index_dtype=p["index_dtype"]),
            True,
        ),
    )


_declare_arg_extreme("argmax", np.argmax)
_declare_arg_extreme("argmin", np.argmin)
