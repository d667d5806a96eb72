"""Cumulative folds along one axis, and reductions that leave nan out.

In: arrays. Out: lazy Arrays.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, broadcast_nodes, cast, to_shape, wrap
from accnp.api.arguments.inside import broadcasts_inside
from accnp.api.arguments.shapes import as_axis
from accnp.api.compiled.named import named, shown
from accnp.api.elements import ufunc_rules as rules
from accnp.api.elements.doc_texts import fold_doc, running_doc
from accnp.api.folds import means
from accnp.api.folds import reductions as red
from accnp.array import Array, ArrayLike
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import BOOL, broadcast_to, dtype_kind

Axis = Any
BYTE = np.dtype(np.uint8)


if TYPE_CHECKING:  # the types of functions that are made below

    class Running(Protocol):
        def __call__(
            self,
            a: ArrayLike,
            axis: int | None = None,
            dtype: DTypeLike | None = None,
            out: None = None,
        ) -> Array: ...

    class Total(Protocol):
        def __call__(
            self,
            a: ArrayLike,
            axis: Axis = None,
            dtype: DTypeLike | None = None,
            out: None = None,
            keepdims: bool = False,
            initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
        ) -> Array: ...


def _scan(x: Node, axis: Any, op: str, name: str) -> Node:
    at = as_axis(axis, x.aval.ndim, name)
    if x.aval.dtype == BOOL:  # sums of bools that stay bools are "or", products "and"
        fold = o.cummax if op == "cumsum" else o.cummin
        return cast(fold(cast(x, BYTE), axis=at, reverse=False), BOOL)
    return getattr(o, op)(x, axis=at, reverse=False)


def _make_cumulative(name: str, op: str, unit: Any, skip_nan: bool, example: str) -> Running:
    def cumulative(
        a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        red.no_out(out, name)
        x = red.strong(a, name)
        if axis is None or not x.aval.ndim:  # a number is a row of one
            x, axis = o.reshape(x, new_sizes=(x.aval.size,), dimensions=None), axis or 0
        if skip_nan and dtype_kind(x.aval.dtype) in "fc":
            x = rules.where_(rules.isnan(x), like(x, unit), x)
        if dtype is not None:
            x = cast(x, dtypes.requested_dtype(dtype, name))
        elif dtype_kind(x.aval.dtype) == "b":
            x = cast(x, dtypes.default_int())
        return wrap(_scan(x, axis, op, name))

    cumulative.__name__ = cumulative.__qualname__ = name
    what = "sum" if unit == 0 else "product"
    text = f"The running {what} along an axis{', leaving nan out' if skip_nan else ''}."
    cumulative.__doc__ = running_doc(text, name, example)
    return api_boundary(named(cumulative))


cumsum = _make_cumulative("cumsum", "cumsum", 0, False, "[1, 2, 3] -> [1, 3, 6]")
cumprod = _make_cumulative("cumprod", "cumprod", 1, False, "[1, 2, 3] -> [1, 2, 6]")
nancumsum = _make_cumulative("nancumsum", "cumsum", 0, True, "[1.0, jnp.nan, 2.0] -> [1., 1., 3.]")
nancumprod = _make_cumulative(
    "nancumprod", "cumprod", 1, True, "[2.0, jnp.nan, 3.0] -> [2., 2., 6.]"
)


def _standard(
    x: Any, axis: Any, dtype: Any, include_initial: bool, unit: int, name: str, fold: Any
) -> Array:
    node = as_node(x, name)
    if node.aval.ndim == 0:
        raise ValueError(f"{name}: the array must have an axis; got rank 0; use jnp.ravel first")
    if axis is None:
        if node.aval.ndim > 1:
            raise ValueError(
                f"{name}: rank above 1 needs an axis; got shape {node.aval.shape}; pass axis="
            )
        axis = 0
    at = as_axis(axis, node.aval.ndim, name)
    if dtype is None:  # also for products, where jax keeps narrow integers
        node = cast(node, red.wide_type(node.aval.dtype))
    out = fold(wrap(node), at, dtype)._node
    if include_initial:
        shape = list(out.aval.shape)
        shape[at] = 1
        first = broadcast_to(like(out, unit), tuple(shape), ())
        out = o.concatenate(first, out, dimension=at)
    return wrap(out)


@api_boundary
@shown("_cumsum_with_promotion")
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """The running sum along an axis, with a 0 in front if asked for.

    The shape is that of x, the axis one longer with include_initial. Bools and narrow integers
    become int32 or uint32 (64-bit with jax_enable_x64).

    Raises:
        ValueError: x is a number, or several axes and no axis=.
        TypeError: x is a list or a text.

    >>> import accnp as jnp
    >>> jnp.cumulative_sum(jnp.arange(3), include_initial=True)
    Array([0, 0, 1, 3], dtype=int32)
    """
    return _standard(x, axis, dtype, include_initial, 0, "cumulative_sum", cumsum)


@api_boundary
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """The running product along an axis, with a 1 in front if asked for.

    Shape, dtype and errors are those of `cumulative_sum`.

    >>> import accnp as jnp
    >>> jnp.cumulative_prod(jnp.array([2, 3]))
    Array([2, 6], dtype=int32)
    """
    return _standard(x, axis, dtype, include_initial, 1, "cumulative_prod", cumprod)


# --- leaving nan out -----------------------------------------------------------------------------


def _filled(a: Any, value: Any, name: str) -> Array:
    x = as_node(a, name)
    if dtype_kind(x.aval.dtype) in "fc":
        x = rules.where_(rules.isnan(x), like(x, value), x)
    return wrap(x)


def _make_nan_fold(name: str, fold: Any, neutral: int, what: str, example: str) -> Total:
    @api_boundary
    @shown()
    def total(
        a: ArrayLike,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        return fold(_filled(a, neutral, name), axis, dtype, out, keepdims, initial, where)

    total.__name__ = total.__qualname__ = name
    text = f"The {what} over the given axes, leaving nan out."
    total.__doc__ = fold_doc(text, "total", name, example)
    return total


nansum = _make_nan_fold("nansum", red.sum, 0, "sum", "[1, jnp.nan] -> Array(1., dtype=float32)")
nanprod = _make_nan_fold(
    "nanprod", red.prod, 1, "product", "[2, jnp.nan] -> Array(2., dtype=float32)"
)


def _make_nan_extreme(name: str, fold: Any, example: str) -> red.Extreme:
    def extreme(
        a: ArrayLike,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        x = as_node(a, name)
        dtype = x.aval.dtype
        if dtype_kind(dtype) not in "fc":
            return fold(a, axis, out, keepdims, initial, where)
        y = fold(
            _filled(a, red.extreme_value(dtype, name[3:]), name),
            axis,
            out,
            keepdims,
            initial,
            where,
        )
        if initial is not None:
            return y
        axes = red.axes_of(axis, x.aval.ndim, name)
        empty = red.keep(o.reduce_and(rules.isnan(x), axes=axes), x, axes, keepdims)
        return wrap(rules.where_(empty, like(y._node, math.nan), y._node))

    extreme.__name__ = extreme.__qualname__ = name
    text = f"The {name[3:]}imum over the given axes, leaving nan out; nan where all are nan."
    extreme.__doc__ = fold_doc(text, "extreme", name, example)
    return api_boundary(named(extreme))


nanmax = _make_nan_extreme("nanmax", red.max, "[1.0, jnp.nan, 3.0] -> Array(3., dtype=float32)")
nanmin = _make_nan_extreme("nanmin", red.min, "[1.0, jnp.nan, 3.0] -> Array(1., dtype=float32)")


def _make_nan_arg(name: str, example: str) -> red.Place:
    inner = name[3:]

    def arg(
        a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        red.no_out(out, name)
        x = as_node(a, name)
        if dtype_kind(x.aval.dtype) != "f":
            return wrap(red.arg_node(x, axis, bool(keepdims), inner))
        value = red.extreme_value(x.aval.dtype, inner[3:])
        missing = rules.isnan(x)
        y = red.arg_node(rules.where_(missing, as_node(value), x), axis, bool(keepdims), inner)
        axes = red.axes_of(axis, x.aval.ndim, name)
        empty = red.keep(o.reduce_and(missing, axes=axes), x, axes, bool(keepdims))
        return wrap(rules.where_(empty, as_node(-1), y))

    arg.__name__ = arg.__qualname__ = name
    text = f"The index of the {name[6:]}imum, leaving nan out; -1 where all are nan."
    arg.__doc__ = fold_doc(text, "place", name, example)
    return api_boundary(named(arg, f"_{name}"))


nanargmax = _make_nan_arg("nanargmax", "[1.0, jnp.nan, 3.0] -> Array(2, dtype=int32)")
nanargmin = _make_nan_arg("nanargmin", "[1.0, jnp.nan, 3.0] -> Array(0, dtype=int32)")


def _not_nan(a: Any, where: Any, name: str) -> Array:
    mask = o.not_(rules.isnan(as_node(a, name)))
    if where is not None:
        mask = o.and_(*broadcast_nodes(name, [mask, red.as_mask(where, name)], any_ranks=True))
    return wrap(mask)


def _as_wide(a: Any, mask: Array) -> Any:
    """The operand with the lengths of a mask of its rank, where its own are 1."""
    x = as_node(a)
    wider = mask.shape != x.aval.shape and mask.ndim == x.aval.ndim
    return wrap(to_shape(x, mask.shape)) if wider else a


@api_boundary
@broadcasts_inside
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean over the given axes, leaving nan out.

    Shape, dtype and errors are those of `mean`; nan where all are nan, without a warning.

    >>> import accnp as jnp
    >>> jnp.nanmean(jnp.array([1, jnp.nan]))
    Array(1., dtype=float32)
    """
    mask = _not_nan(a, where, "nanmean")
    x = as_node(a)
    if mask.shape != x.aval.shape and dtype_kind(x.aval.dtype) in "fc":
        # A mask larger than the operand: as in sums, the axes are counted in the operand.
        axis = red.axes_of(axis, x.aval.ndim, "nanmean")
        a = wrap(to_shape(x, mask.shape))
    return means.mean(a, axis, dtype, out, keepdims, where=mask)


@api_boundary
@broadcasts_inside
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance over the given axes, leaving nan out; with an integer dtype it is one.

    Shape, dtype and errors are those of `var`; nan where too few are left, without a warning.

    >>> import accnp as jnp
    >>> jnp.nanvar(jnp.array([1, jnp.nan]))
    Array(0., dtype=float32)
    """
    kind = None if dtype is None else dtypes.requested_dtype(dtype, "nanvar")
    if kind is None or kind.kind not in "iu":
        mask = _not_nan(a, where, "nanvar")
        a = _as_wide(a, mask)
        return means.var(a, axis, dtype, out, ddof, keepdims, where=mask, mean=mean)
    return means.var(a, axis, kind, out, ddof, keepdims, where=where, mean=mean).astype(kind)


@api_boundary
@broadcasts_inside
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The standard deviation over the given axes, leaving nan out.

    Shape and dtype are those of `std`.

    Raises:
        TypeError: dtype is an integer, or a is a list or a text.
        ValueError: an axis is out of bounds.

    >>> import accnp as jnp
    >>> jnp.nanstd(jnp.array([1, jnp.nan]))
    Array(0., dtype=float32)
    """
    kind = None if dtype is None else dtypes.requested_dtype(dtype, "nanstd")
    if kind is not None and kind.kind in "iu":
        raise TypeError(f"nanstd: roots are no integers; got dtype={kind.name}; pass a float dtype")
    mask = _not_nan(a, where, "nanstd")
    a = _as_wide(a, mask)
    return means.std(a, axis, dtype, out, ddof, keepdims, where=mask, mean=mean)
