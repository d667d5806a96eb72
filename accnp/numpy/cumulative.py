"""Cumulative operations along one axis, and reductions that ignore nan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, broadcast_nodes, cast, to_shape, wrap
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.api.arguments.shapes import as_axis
from accnp.api.arguments.values import to_dtype
from accnp.api.jit.named_calls import named, shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy import means
from accnp.numpy import reductions as red
from accnp.numpy import ufunc_rules as rules
from accnp.numpy.ufunc_docstrings import cumulative_doc, reduction_doc
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import BOOL, broadcast_to, dtype_kind

Axis = red.Axis
BYTE = np.dtype(np.uint8)


if TYPE_CHECKING:  # types of the generated functions

    class CumulativeFunction(Protocol):
        def __call__(
            self,
            a: ArrayLike,
            axis: int | None = None,
            dtype: DTypeLike | None = None,
            out: None = None,
        ) -> Array: ...

    class NanReduction(Protocol):
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


def _scan(x: Node, axis: Any, op: str, of_bools: str, name: str) -> Node:
    at = as_axis(axis, x.aval.ndim, name)
    if x.aval.dtype == BOOL:  # sums of bools in dtype bool are "or", products "and"
        return cast(getattr(o, of_bools)(cast(x, BYTE), axis=at, reverse=False), BOOL)
    return getattr(o, op)(x, axis=at, reverse=False)


def _make_cumulative(
    name: str, op: str, of_bools: str, unit: Any, skip_nan: bool, example: str
) -> CumulativeFunction:
    def cumulative(
        a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        red.no_out(out, name)
        x = red.strong(a, name)
        if axis is None or not x.aval.ndim:  # a scalar is a vector of length 1
            x, axis = o.reshape(x, new_sizes=(x.aval.size,), dimensions=None), axis or 0
        if skip_nan and dtype_kind(x.aval.dtype) in "fc":
            x = rules.where_(rules.isnan(x), like(x, unit), x)
        if dtype is not None:
            x = to_dtype(x, dtypes.requested_dtype(dtype, name))
        elif dtype_kind(x.aval.dtype) == "b":
            x = cast(x, dtypes.default_int())
        return wrap(_scan(x, axis, op, of_bools, name))

    cumulative.__name__ = cumulative.__qualname__ = name
    what = "sum" if unit == 0 else "product"
    summary = f"Compute the cumulative {what} along an axis"
    if skip_nan:
        summary += f", treating nan as {'zero' if unit == 0 else 'one'}"
    whole = name.replace("cum", "")
    related = f"{whole} {op if skip_nan else 'nan' + op} cumulative_{op[3:]}"
    result = f"Cumulative {what}s"
    cumulative.__doc__ = cumulative_doc(f"{summary}.", result, name, related, example)
    function = named(cumulative)
    return api_boundary(compiled_if_small("a")(function) if skip_nan else function)


cumsum = _make_cumulative("cumsum", "cumsum", "cummax", 0, False, "[1, 2, 3] -> [1, 3, 6]")
cumprod = _make_cumulative("cumprod", "cumprod", "cummin", 1, False, "[1, 2, 3] -> [1, 2, 6]")
nancumsum = _make_cumulative(
    "nancumsum", "cumsum", "cummax", 0, True, "[1.0, jnp.nan, 2.0] -> [1., 1., 3.]"
)
nancumprod = _make_cumulative(
    "nancumprod", "cumprod", "cummin", 1, True, "[2.0, jnp.nan, 3.0] -> [2., 2., 6.]"
)


def _standard(
    x: Any, axis: Any, dtype: Any, include_initial: bool, unit: int, name: str, function: Any
) -> Array:
    node = as_node(x, name)
    if node.aval.ndim == 0:
        raise ValueError(f"{name}: expected at least one axis; got rank 0; use jnp.ravel first")
    if axis is None:
        if node.aval.ndim > 1:
            raise ValueError(
                f"{name}: axis is required for rank above 1; got shape {node.aval.shape}; pass it"
            )
        axis = 0
    at = as_axis(axis, node.aval.ndim, name)
    if dtype is None:  # also for products, unlike in JAX
        node = cast(node, red.wide_type(node.aval.dtype))
    out = function(wrap(node), at, dtype)._node
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
    """Compute the cumulative sum along an axis, as the array API standard defines it.

    Parameters
    ----------
    x : array_like
        Input array with at least one axis. Lists and tuples are not accepted.
    axis : int, optional
        Axis along which to compute. It may be left out only if `x` has one axis.
    {dtype_cumulative}
    include_initial : bool, optional
        If True, the result starts with a 0 along the axis, which becomes longer by one. The default
        is False.

    Returns
    -------
    Array
        Cumulative sums, with the shape of `x`, or longer by one along the axis with
        `include_initial`.

    Raises
    ------
    TypeError
        If `x` is neither an array nor a number.
    ValueError
        If `x` is a scalar, the axis is out of bounds, or `x` has several axes and none is given.

    See Also
    --------
    cumsum : Cumulative sum with NumPy's parameters.
    cumulative_prod : Cumulative product.
    sum : Sum of all elements.

    Examples
    --------
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
    """Compute the cumulative product along an axis, as the array API standard defines it.

    Parameters
    ----------
    x : array_like
        Input array with at least one axis. Lists and tuples are not accepted.
    axis : int, optional
        Axis along which to compute. It may be left out only if `x` has one axis.
    {dtype_cumulative}
    include_initial : bool, optional
        If True, the result starts with a 1 along the axis, which becomes longer by one. The default
        is False.

    Returns
    -------
    Array
        Cumulative products, with the shape of `x`, or longer by one along the axis with
        `include_initial`.

    Raises
    ------
    TypeError
        If `x` is neither an array nor a number.
    ValueError
        If `x` is a scalar, the axis is out of bounds, or `x` has several axes and none is given.

    See Also
    --------
    cumprod : Cumulative product with NumPy's parameters.
    cumulative_sum : Cumulative sum.
    prod : Product of all elements.

    Notes
    -----
    Narrow integers are widened, where JAX keeps their dtype.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.cumulative_prod(jnp.array([2, 3]))
    Array([2, 6], dtype=int32)
    """
    return _standard(x, axis, dtype, include_initial, 1, "cumulative_prod", cumprod)


# --- ignoring nan --------------------------------------------------------------------------------


def _replace_nan(a: Any, value: Any, name: str) -> Array:
    x = as_node(a, name)
    if dtype_kind(x.aval.dtype) in "fc":
        x = rules.where_(rules.isnan(x), like(x, value), x)
    return wrap(x)


def _make_nan_total(
    name: str, function: Any, neutral: int, what: str, example: str
) -> NanReduction:
    @api_boundary
    @compiled_if_small("a", "initial", "where")
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
        return function(_replace_nan(a, neutral, name), axis, dtype, out, keepdims, initial, where)

    total.__name__ = total.__qualname__ = name
    summary = f"Compute the {what} of the elements along the given axes, ignoring nan."
    result = f"{what.capitalize()}s of the elements that are not nan"
    related = f"{name[3:]} isnan nanmean nancum{name[3:]}"
    note = f"If all elements are nan, the result is {neutral}."
    total.__doc__ = reduction_doc(summary, "total", name, result, related, example, note)
    return total


nansum = _make_nan_total("nansum", red.sum, 0, "sum", "[1, jnp.nan] -> Array(1., dtype=float32)")
nanprod = _make_nan_total(
    "nanprod", red.prod, 1, "product", "[2, jnp.nan] -> Array(2., dtype=float32)"
)


def _make_nan_extreme(name: str, function: Any, example: str) -> red.ExtremeReduction:
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
            return function(a, axis, out, keepdims, initial, where)
        y = function(
            _replace_nan(a, red.extreme_value(dtype, name[3:]), name),
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
    kind = name[3:]
    summary = f"Find the {kind}imum along the given axes, ignoring nan."
    result = f"{kind.capitalize()}ima of the elements that are not nan"
    related = f"{kind} f{kind} nanarg{kind} isnan"
    note = "If all elements are nan, the result is nan, without a warning."
    extreme.__doc__ = reduction_doc(summary, "extreme", name, result, related, example, note)
    return api_boundary(compiled_if_small("a", "initial", "where")(named(extreme)))


nanmax = _make_nan_extreme("nanmax", red.max, "[1.0, jnp.nan, 3.0] -> Array(3., dtype=float32)")
nanmin = _make_nan_extreme("nanmin", red.min, "[1.0, jnp.nan, 3.0] -> Array(1., dtype=float32)")


def _make_nan_arg(name: str, example: str) -> red.ArgReduction:
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
    kind = name[6:]
    summary = f"Find the index of the {kind}imum along an axis, ignoring nan."
    result = f"Indices of the {kind}ima"
    related = f"{inner} nan{kind} isnan"
    note = "If all elements are nan, the index is -1, where NumPy raises an error."
    arg.__doc__ = reduction_doc(summary, "place", name, result, related, example, note)
    return api_boundary(compiled_if_small("a")(named(arg, f"_{name}")))


nanargmax = _make_nan_arg("nanargmax", "[1.0, jnp.nan, 3.0] -> Array(2, dtype=int32)")
nanargmin = _make_nan_arg("nanargmin", "[1.0, jnp.nan, 3.0] -> Array(0, dtype=int32)")


def _not_nan(a: Any, where: Any, name: str) -> Array:
    mask = o.not_(rules.isnan(as_node(a, name)))
    if where is not None:
        mask = o.and_(*broadcast_nodes(name, [mask, red.as_mask(where, name)], any_ranks=True))
    return wrap(mask)


def _as_wide(a: Any, mask: Array) -> Any:
    """Broadcast the operand to the shape of a mask of the same rank."""
    x = as_node(a)
    wider = mask.shape != x.aval.shape and mask.ndim == x.aval.ndim
    return wrap(to_shape(x, mask.shape)) if wider else a


@api_boundary
@broadcasts_inside
@compiled_if_small("a", "where")
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the arithmetic mean along the given axes, ignoring nan.

    Parameters
    ----------
    {a}
    {axes_reduced}
    {dtype_mean}
    {out}
    {keepdims}
    {where}

    Returns
    -------
    Array
        Means of the elements that are not nan, with the shape of `a` without the reduced axes.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or `dtype` is bool.
    ValueError
        If an axis is out of bounds or given twice, or `where` is not bool or does not broadcast.
    {raises_out}

    See Also
    --------
    mean : Mean of all elements.
    nanmedian : Median that ignores nan.
    nanvar, nanstd : Variance and standard deviation that ignore nan.

    Notes
    -----
    If all elements are nan, the result is nan, without a warning. Dtypes are those of `mean`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nanmean(jnp.array([1, jnp.nan]))
    Array(1., dtype=float32)
    """
    mask = _not_nan(a, where, "nanmean")
    x = as_node(a)
    if mask.shape != x.aval.shape and dtype_kind(x.aval.dtype) in "fc":
        # The mask may be larger than the operand; as in `sum`, axes refer to the operand.
        axis = red.axes_of(axis, x.aval.ndim, "nanmean")
        a = wrap(to_shape(x, mask.shape))
    return means.mean(a, axis, dtype, out, keepdims, where=mask)


@api_boundary
@broadcasts_inside
@compiled_if_small("a", "where", "mean")
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
    """Compute the variance along the given axes, ignoring nan.

    Parameters
    ----------
    {a}
    {axes_reduced}
    {dtype_mean}
    {out}
    {ddof}
    {keepdims}
    {where}
    {known_mean}

    Returns
    -------
    Array
        Variances of the elements that are not nan, with the shape of `a` without the reduced axes.
        The dtype is real, also for complex input.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or `dtype` is bool.
    ValueError
        If an axis is out of bounds, `where` is not bool, or `dtype` is real for complex input.
    {raises_out}

    See Also
    --------
    var : Variance of all elements.
    nanmean : Mean that ignores nan.
    nanstd : Standard deviation that ignores nan.

    Notes
    -----
    If no more than `ddof` elements are left, the result is nan, without a warning. With an integer
    `dtype`, nan is not ignored and the result has that dtype.

    Examples
    --------
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
@compiled_if_small("a", "where", "mean")
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
    """Compute the standard deviation along the given axes, ignoring nan.

    Parameters
    ----------
    {a}
    {axes_reduced}
    {dtype_mean}
    {out}
    {ddof}
    {keepdims}
    {where}
    {known_mean}

    Returns
    -------
    Array
        Standard deviations of the elements that are not nan, with the shape of `a` without the
        reduced axes. The dtype is real, also for complex input.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or `dtype` is an integer dtype or bool.
    ValueError
        If an axis is out of bounds, `where` is not bool, or `dtype` is real for complex input.
    {raises_out}

    See Also
    --------
    std : Standard deviation of all elements.
    nanmean : Mean that ignores nan.
    nanvar : Variance that ignores nan.

    Notes
    -----
    If no more than `ddof` elements are left, the result is nan, without a warning.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nanstd(jnp.array([1, jnp.nan]))
    Array(0., dtype=float32)
    """
    kind = None if dtype is None else dtypes.requested_dtype(dtype, "nanstd")
    if kind is not None and kind.kind in "iu":
        raise TypeError(
            f"nanstd: the result is not an integer; got dtype={kind.name}; pass a floating dtype"
        )
    mask = _not_nan(a, where, "nanstd")
    a = _as_wide(a, mask)
    return means.std(a, axis, dtype, out, ddof, keepdims, where=mask, mean=mean)
