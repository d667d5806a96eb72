"""Means, variances and standard deviations over axes, which may be names of mapped axes.

Means of narrow floats are accumulated in float32, those of integers in the default float dtype.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, scalar_node, to_shape, wrap
from accnp.api.arguments.values import no_out, to_dtype
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.numpy import ufunc_rules as rules
from accnp.numpy.reductions import (
    F32,
    Axis,
    across,
    as_mask,
    collective,
    count_of,
    keep,
    named_axes,
    strong,
)  # fmt: skip
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import BOOL, dtype_kind


def _total(x: Node, axes: tuple[int, ...], names: tuple[str, ...]) -> Node:
    return across(o.reduce_sum(x, axes=axes), names, "psum")


def _count(x: Node, axes: tuple[int, ...], names: tuple[str, ...]) -> int:
    return count_of(x, axes) * (collective("axis_size")(names) if names else 1)


def _mean_node(
    x: Node, axes: tuple[int, ...], names: tuple[str, ...], keepdims: bool, where: Any, name: str
) -> Node:
    """Return the mean in the dtype of x; the caller converts narrow floats to float32."""
    if where is None:
        n = like(x, _count(x, axes, names))
    else:
        mask = to_shape(as_mask(where, name), x.aval.shape, name)
        n = keep(_total(cast(mask, x.aval.dtype), axes, names), x, axes, keepdims)
        x = rules.select(mask, x, like(x, 0))
    return o.div(keep(_total(x, axes, names), x, axes, keepdims), n)


def _convert_for_mean(x: Node, dtype: Any, name: str) -> tuple[Node, np.dtype, bool]:
    """Return x in the dtype in which a mean is computed, and the result's dtype and weak flag."""
    weak = x.aval.weak_type
    if dtype is None:
        result = dtypes.to_inexact(x.aval.dtype)
    else:
        result, weak = dtypes.requested_dtype(dtype, name), False
        if result == BOOL:
            raise TypeError(f"{name}: means cannot be bool; got dtype=bool; pass a floating dtype")
    inner = result
    if dtype_kind(result) == "f" and result.itemsize < 4:
        inner = F32
    elif dtype_kind(result) in "biu":
        inner = dtypes.to_inexact(result)
    return (cast(x, inner, True) if weak else to_dtype(x, inner)), result, weak


@api_boundary
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the arithmetic mean along the given axes.

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
        Means, with the shape of `a` without the reduced axes.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or `dtype` is bool.
    ValueError
        If an axis is out of bounds or given twice, or `where` is not bool or does not broadcast.
    {raises_out}

    See Also
    --------
    average : Weighted mean.
    median : Middle value.
    nanmean : Mean that ignores nan.
    var, std : Variance and standard deviation.

    Notes
    -----
    Integers and bools give the default float dtype, float32 (float64 with `jax_enable_x64`), where
    NumPy gives float64. float16 and bfloat16 keep their dtype and are accumulated in float32. The
    mean of no elements is nan, without a warning.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.mean(jnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Array([2., 3.], dtype=float32)
    """
    no_out(out, "mean")
    x, result, weak = _convert_for_mean(strong(a, "mean"), dtype, "mean")
    axes, names = named_axes(axis, x.aval.ndim, "mean")
    return wrap(cast(_mean_node(x, axes, names, keepdims, where, "mean"), result, weak))


_WIDE = np.dtype(np.float64)
_NARROW = {F32: _WIDE, np.dtype(np.complex64): np.dtype(np.complex128)}


def _size_squared(x: Node) -> Node:
    return o.real(o.mul(x, o.conj(x))) if x.aval.dtype.kind == "c" else o.square(x)


def _from_mean(
    x: Node, axes: tuple[int, ...], names: tuple[str, ...], where: Any, refine: bool, name: str
) -> tuple[Node, Node | None]:
    """Return the differences from the mean, and a zero with the derivatives of the mean.

    With `refine`, the mean of the differences is subtracted as well, to correct the rounding error
    of a large mean.

    The mean is treated as a constant in derivatives: to first order, the sum of the squares does
    not depend on it, so derivatives need no reduction for it. The second result, None if nothing
    is traced, is for second derivatives: n times its square must be subtracted from the sum.
    """
    mean = _mean_node(x, axes, names, False, where, name)
    traced = x.trace is not None
    constant = o.stop_gradient(mean) if traced else mean
    d = o.sub(x, to_shape(keep(constant, x, axes, True), x.aval.shape, name))
    if refine:
        rest = _mean_node(d, axes, names, True, where, name)
        rest = o.stop_gradient(rest) if traced else rest
        d = o.sub(d, to_shape(rest, x.aval.shape, name))
    return d, o.sub(mean, constant) if traced else None


def _var_node(
    a: Any, axis: Axis, dtype: Any, ddof: Any, keepdims: bool, where: Any, mean: Any, name: str,
    root: bool = False,
) -> Node:  # fmt: skip
    operand = strong(a, name)
    if dtype is not None:
        dtype = dtypes.requested_dtype(dtype, name)
        if dtype_kind(dtype) in "biu" and name == "std":
            raise ValueError(
                f"{name}: dtype argument must be inexact; got {dtype.name}; pass a floating dtype"
            )
        if dtype_kind(operand.aval.dtype) == "c" and dtype_kind(dtype) != "c":
            raise ValueError(
                f"{name}: complex input needs a complex dtype; got dtype={dtype.name}; cast after"
            )
    whole = dtype is not None and dtype_kind(dtype) in "iu"
    if whole:  # computed in integers; the result is a weak float, since it may be nan
        x, result, weak = cast(operand, dtype), dtypes.default_float(), True
    else:
        x, result, weak = _convert_for_mean(operand, dtype, name)
    plain = whole or state.named  # jaxprs show the formula that JAX uses
    refine = x.aval.dtype not in _NARROW and dtype_kind(operand.aval.dtype) not in "iu"
    if not plain and x.aval.dtype in _NARROW:
        # Wider, for the digits of differences from a large mean and for the range of squares.
        wide = _NARROW[x.aval.dtype]
        x = cast(operand if dtype_kind(operand.aval.dtype) in "iu" else x, wide)
    axes, names = named_axes(axis, x.aval.ndim, name)
    moved = None
    if mean is not None:
        d = o.sub(x, to_shape(cast(as_node(mean, name), x.aval.dtype), x.aval.shape, name))
    elif plain:
        centre = _mean_node(x, axes, names, True, where, name)
        d = o.sub(x, to_shape(centre, x.aval.shape, name))
    else:
        d, moved = _from_mean(x, axes, names, where, refine, name)
    if where is not None:  # before squaring: masked nan would make derivatives nan
        mask = to_shape(as_mask(where, name), x.aval.shape, name)
        d = rules.select(mask, d, like(d, 0))
    squares = _size_squared(d)
    total, kind = _total(squares, axes, names), squares.aval.dtype
    count: Any = _count(x, axes, names)
    if where is not None:
        count = _total(cast(mask, kind), axes, names)
    if moved is not None:
        n = like(total, count) if where is None else count
        total = o.sub(total, o.mul(_size_squared(moved), n))
    result = dtypes.real_part(result) if dtype is None else result
    if where is None and not isinstance(ddof, Array):
        n = count - (int(ddof) if whole else ddof)
        by = n if whole else float(n) or math.nan  # nan also in derivatives
        y = o.div(total, like(total, by))
        if n < 0 or (whole and not n):
            y = rules.filled(cast(y, result) if whole else y, math.nan)
    else:
        n = scalar_node(count, kind, False) if where is None else count
        n = o.sub(n, cast(as_node(ddof, name), kind))
        y = o.div(total, n)
        y = cast(y, result) if whole else y
        y = rules.select(o.gt(n, like(n, 0)), y, like(y, math.nan))
    y = o.sqrt(y) if root else y  # before the cast, since squares may overflow
    return cast(keep(y, x, axes, keepdims), result, weak)


def _degrees(ddof: Any, correction: Any, name: str) -> Any:
    if correction is not None and (isinstance(ddof, Array) or ddof != 0):
        raise ValueError(
            f"{name}: ddof and correction exclude each other; got {ddof} and {correction}; pass one"
        )
    return ddof if correction is None else correction


@api_boundary
@compiled_if_small("a", "ddof", "where", "mean", "correction")
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:
    """Compute the variance along the given axes.

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
    {correction}

    Returns
    -------
    Array
        Variances, with the shape of `a` without the reduced axes. The dtype is real, also for
        complex input.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or `dtype` is bool.
    ValueError
        If an axis is out of bounds, `where` is not bool, both `ddof` and `correction` are given, or
        `dtype` is real for complex input.
    {raises_out}

    See Also
    --------
    std : Standard deviation, the square root of the variance.
    mean : Arithmetic mean.
    nanvar : Variance that ignores nan.
    cov : Covariance matrix.

    Notes
    -----
    The variance is the mean of the squared differences from the mean, computed in two passes. For
    float32 input, differences and squares are in float64; for float64 input, the differences are
    corrected by their own mean. The result therefore stays accurate when the mean is much larger
    than the deviations. With an integer `dtype`, the computation is in integers and rounds toward
    zero, as in JAX.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.var(jnp.array([1.0, 2.0, 3.0, 4.0]), ddof=1)
    Array(1.6666666, dtype=float32)
    """
    no_out(out, "var")
    ddof = _degrees(ddof, correction, "var")
    return wrap(_var_node(a, axis, dtype, ddof, keepdims, where, mean, "var"))


@api_boundary
@compiled_if_small("a", "ddof", "where", "mean", "correction")
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:
    """Compute the standard deviation along the given axes.

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
    {correction}

    Returns
    -------
    Array
        Standard deviations, with the shape of `a` without the reduced axes. The dtype is real,
        also for complex input.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number.
    ValueError
        If an axis is out of bounds, `where` is not bool, both `ddof` and `correction` are given, or
        `dtype` is neither floating nor complex, or is real for complex input.
    {raises_out}

    See Also
    --------
    var : Variance, the square of the standard deviation.
    mean : Arithmetic mean.
    nanstd : Standard deviation that ignores nan.

    Notes
    -----
    The square root of `var`, taken before the result is rounded to its dtype.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    no_out(out, "std")
    ddof = _degrees(ddof, correction, "std")
    return wrap(_var_node(a, axis, dtype, ddof, keepdims, where, mean, "std", root=True))
