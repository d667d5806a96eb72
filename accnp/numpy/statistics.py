"""Statistics of NumPy's namespace that are not plain reductions.

These public functions of `accnp.numpy` are `average`, `count_nonzero`, `cov`, `corrcoef`,
`trapezoid` and `unwrap`. They convert and promote their arguments like JAX, and are compositions of
other operations, so they are lazy, differentiable and batched. Sums, means, variances and extremes
are in `reductions.py`, and medians and percentiles in `quantiles.py`.
"""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from accnp.api.arguments.convert import (
    as_node,
    cast,
    promote,
    promote_inexact,
    wrap,
)
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.shapes import as_axis
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small, run_small
from accnp.array_type import Array, ArrayLike
from accnp.dtypes import requested_dtype
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.numpy import ufunc_rules as rules
from accnp.numpy import ufuncs as uf
from accnp.numpy.cumulative import cumsum
from accnp.numpy.joining import concatenate
from accnp.numpy.manipulation import atleast_2d, moveaxis
from accnp.numpy.means import mean
from accnp.numpy.number_parts import power_of_two
from accnp.numpy.products import dot
from accnp.numpy.reductions import (
    Axis,
    axes_of,
    axes_shape,
    count_of,
    keep,
    real_parts,
    spread_along,
    sum,
)
from accnp.numpy.selection import where
from accnp.numpy.ufunc_factories import inexact
from accnp.primitives.kinds import dtype_kind, full

__all__ = ["average", "corrcoef", "count_nonzero", "cov", "trapezoid", "unwrap"]


def _weights(w: Any, count: int, name: str, what: str) -> Array:
    out = wrap(as_node(w, name))
    if out.shape != (count,):
        raise ValueError(
            f"{name}: {what} must be a rank-1 array, one number for each of {count} observations; "
            f"got shape {out.shape}; pass a vector of that length"
        )
    return out


@api_boundary
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: float | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Compute the covariance matrix of variables.

    Parameters
    ----------
    m : array_like
        Matrix of variables in rows and observations in columns. A vector is one variable.
    y : array_like, optional
        Further variables, in the form of `m`.
    rowvar : bool, optional
        If True, the default, rows are variables. If False, columns are.
    bias : bool, optional
        If True, sums are divided by n, the number of observations. The default, False, divides by
        n - 1.
    ddof : int, optional
        Delta degrees of freedom: sums are divided by n - ddof, whatever `bias` is.
    fweights : array_like of int, optional
        Number of times that each observation was made; a vector.
    aweights : array_like, optional
        Relative weight of each observation; a vector.
    dtype : dtype_like, optional
        Floating or complex dtype of the result. The default is the promoted inexact dtype.

    Returns
    -------
    Array
        Matrix of shape (k, k) for k variables, or a scalar for one variable.

    Raises
    ------
    TypeError
        If `m` is neither an array nor a number, or `fweights` does not hold integers.
    ValueError
        If there are more than two axes, weights do not fit, or `dtype` is an integer dtype.

    See Also
    --------
    corrcoef : Correlation coefficients.
    var : Variance of the elements.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.cov(jnp.array([[0., 1., 2.], [2., 1., 0.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    if fweights is None and aweights is None:
        arrays, rest = ((m,), (None,)) if y is None else ((m, y), ())
        return run_small(_cov, arrays, (*rest, rowvar, bias, ddof, None, None, dtype))
    return _cov(m, y, rowvar, bias, ddof, fweights, aweights, dtype)


def _cov(  # noqa: C901
    m: ArrayLike,
    y: ArrayLike | None,
    rowvar: bool,
    bias: bool,
    ddof: float | None,
    fweights: ArrayLike | None,
    aweights: ArrayLike | None,
    dtype: DTypeLike | None,
) -> Array:
    name = "jnp.cov"
    arrays = [wrap(n) for n in promote_inexact(name, *([m] if y is None else [m, y]))]
    if dtype is not None:
        kind = requested_dtype(dtype, name)
        if dtype_kind(kind) not in "fc":
            raise ValueError(
                f"{name}: the dtype must be floating or complex; got dtype={kind.name}; "
                "convert the result"
            )
        arrays = [g.astype(kind) for g in arrays]
    for value in arrays:
        if value.ndim > 2:
            raise ValueError(
                f"{name}: variables must have at most 2 dimensions; got {value.ndim}; "
                "reshape to [variables, observations]"
            )
    rows = [atleast_2d(g) for g in arrays]
    if not rowvar:
        rows = [r if g.ndim < 2 else r.T for r, g in zip(rows, arrays, strict=True)]
    if not rows[0].shape[0]:  # as in NumPy, also with a second operand
        return wrap(full((0, 0), 0, rows[0].dtype))
    x = concatenate(rows, axis=0) if len(rows) > 1 else rows[0]
    if ddof is None:
        ddof = 0 if bias else 1
    count, w = x.shape[1], None
    if fweights is not None:
        w = _weights(fweights, count, name, "fweights")
        if w.dtype.kind not in "iu":
            raise TypeError(
                f"{name}: fweights must be integers; got {w.dtype.name}; "
                "pass aweights= for fractions, or convert with astype"
            )
        w, x = uf.abs(w), wrap(cast(x._node, x.dtype))
    if aweights is not None:
        more = uf.abs(_weights(aweights, count, name, "aweights"))
        w = more if w is None else w * more
    mean, total = average(x, axis=1, weights=w, returned=True)
    total = total[0]
    if w is None:
        free: Any = count - ddof
    elif ddof == 0:
        free = total
    elif aweights is None:
        free = total - ddof
    else:
        free = total - ddof * (w * more).sum() / total
    x = x - mean[:, None]
    if not state.named and count:  # corrects the rounding of a large mean
        x = x - average(x, axis=1, weights=w)[:, None]
    products = dot(x, (x if w is None else x * w[None, :]).conj().T)
    if not count:  # an empty mean is nan, not 0
        products = products + math.nan
    return (products / free).squeeze()


def _near_one(x: Array, rowvar: bool) -> Array:
    """Divide variables by powers of two, so that their squares do not overflow."""
    if not 0 < x.ndim < 3 or not x.size:
        return x
    parts = [uf.abs(wrap(n)) for n in real_parts(x._node)]
    size = parts[0] if len(parts) == 1 else uf.maximum(*parts)
    axis = 0 if x.ndim == 2 and not rowvar else -1
    return x / power_of_two(size.max(axis=axis, keepdims=True)).astype(x.dtype)


@api_boundary
@shown()
@promotes_inside
@compiled_if_small("x", "y")
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Compute the matrix of Pearson correlation coefficients of variables.

    Parameters
    ----------
    x : array_like
        Matrix of variables in rows and observations in columns. A vector is one variable.
    y : array_like, optional
        Further variables, in the form of `x`.
    rowvar : bool, optional
        If True, the default, rows are variables. If False, columns are.
    dtype : dtype_like, optional
        Floating or complex dtype of the result. The default is the promoted inexact dtype.

    Returns
    -------
    Array
        Matrix of shape (k, k) for k variables: the covariances divided by the standard deviations.

    Raises
    ------
    TypeError
        If `x` is neither an array nor a number.
    ValueError
        If there are more than two axes.

    See Also
    --------
    cov : Covariance matrix.
    correlate : Correlation of sequences.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.corrcoef(jnp.array([[0., 1., 2.], [4., 2., 0.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    if not state.named:  # jaxprs show the formula that JAX uses
        arrays = [wrap(n) for n in promote_inexact("jnp.corrcoef", *([x] if y is None else [x, y]))]
        near = [_near_one(g, rowvar) for g in arrays]
        x, y = near[0], near[1] if len(near) > 1 else None
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    deviation = uf.sqrt(c.diagonal().real)
    c = c / deviation[:, None] / deviation[None, :]
    if c.dtype.kind == "c":
        return c.real.clip(-1, 1) + 1j * c.imag.clip(-1, 1)
    return c.clip(-1, 1)


@api_boundary
@shown()
@compiled_if_small("y", "x", "dx")
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Integrate along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : array_like
        Values of the integrand. Lists and tuples are not accepted.
    x : array_like, optional
        Positions of the values: an array with the shape of `y`, or one vector for all.
    dx : array_like, optional
        Distance of the positions if `x` is not given: a number, or an array that broadcasts against
        `y` with one element fewer along the axis. The default is 1.
    {axis_last}

    Returns
    -------
    Array
        Integrals, with the shape of `y` without the axis. Integers give the default float dtype.

    Raises
    ------
    TypeError
        If `y` or `x` is neither an array nor a number.
    ValueError
        If the axis is out of bounds.

    See Also
    --------
    sum, cumsum : Sums of elements.
    scipy.integrate.trapezoid : The same under SciPy's name.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.trapezoid(jnp.array([1., 2., 3.]))
    Array(4., dtype=float32)
    """
    name = "jnp.trapezoid"
    arrays = [y] if x is None else [y, x]
    values, *places = (wrap(n) for n in promote_inexact(name, *arrays))
    values = moveaxis(values, as_axis(axis, values.ndim, name), -1)
    if x is None:
        step = wrap(as_node(dx, name))
        if step.ndim and values.ndim > 1:
            step = step.reshape((1,) * (values.ndim - step.ndim) + step.shape)
            step = moveaxis(step, as_axis(axis, step.ndim, name), -1)
    elif places[0].ndim == 1:
        step = places[0][1:] - places[0][:-1]
        if step.shape == (1,):
            step = step[0]  # a scalar needs no broadcasting
    else:
        at = moveaxis(places[0], as_axis(axis, places[0].ndim, name), -1)
        step = at[..., 1:] - at[..., :-1]
    return 0.5 * (step * (values[..., 1:] + values[..., :-1])).sum(-1)


@api_boundary
@shown()
def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi
) -> Array:
    """Remove jumps between neighbors by adding multiples of a period.

    Parameters
    ----------
    p : array_like
        Real numbers, such as angles in radians.
    discont : array_like, optional
        Size of a jump; smaller differences are kept. The default, and the least that counts, is
        half the period.
    {axis_last}
    period : array_like, optional
        Range over which values wrap. The default is 2 pi. With an integer, integers stay integers.

    Returns
    -------
    Array
        Array with the shape of `p` and the dtype to which `p` and `period` promote, whose neighbors
        differ by half a period at most.

    Raises
    ------
    TypeError
        If `p` is neither an array nor a number.
    ValueError
        If `p` is complex, or the axis is out of bounds.

    See Also
    --------
    angle : Angles of complex numbers.
    diff : Differences of neighbors.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.unwrap(jnp.array([0, 3, 6, 1]), period=8)
    Array([0, 3, 6, 9], dtype=int32)
    """
    return run_small(_unwrap, (p, period), (discont, axis))


def _unwrap(p: ArrayLike, period: ArrayLike, discont: ArrayLike | None, axis: int) -> Array:
    x = wrap(as_node(p, "jnp.unwrap"))
    if x.dtype.kind == "c":
        raise ValueError("jnp.unwrap: complex numbers have no order; got complex; take jnp.angle")
    x, each = (wrap(n) for n in promote("jnp.unwrap", x, period))
    whole = dtype_kind(x.dtype) in "iu"
    if not x.shape[as_axis(axis, x.ndim, "jnp.unwrap")]:
        return x
    dtype = x.dtype
    if dtype_kind(dtype) == "f" and dtype.itemsize < 4:  # too narrow for many periods
        x = x.astype(np.float32)
    x = moveaxis(x, axis, -1)
    half = each // 2 if whole else each / 2
    step = x[..., 1:] - x[..., :-1]
    wrapped = (step + half) % each - half
    # Steps of exactly half a period up are kept.
    edge = (wrapped == -half) & (step > 0)
    wrapped = where(edge & (each % 2 == 0) if whole else edge, half, wrapped)
    correction = wrapped - step
    if discont is not None:
        correction = where(uf.abs(step) < discont, 0, correction)
    else:
        correction = where(uf.abs(step) < half, 0, correction)
    moved = concatenate([x[..., :1], x[..., 1:] + cumsum(correction, axis=-1)], axis=-1)
    return moveaxis(moved, -1, axis).astype(dtype)


@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    keepdims: bool = False,
) -> Array: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Array, Array]: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any: ...
@api_boundary
@compiled_if_small("a", "weights")
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """Compute the weighted mean along the given axes.

    Parameters
    ----------
    {a}
    axis : int or sequence of int, optional
        Axis or axes along which to average. None, the default, averages all elements.
    weights : array_like, optional
        Weights of the elements, with the shape of `a` or of the averaged axes. The default, None,
        gives the mean.
    returned : bool, optional
        If True, return the sums of the weights as well. The default is False.
    {keepdims}

    Returns
    -------
    Array or tuple of Array
        Averages, with the shape of `a` without the averaged axes, and the sums of the weights if
        asked for. Integers give the default float dtype.

    Raises
    ------
    TypeError
        If `a` or `weights` is neither an array nor a number.
    ValueError
        If the weights have another shape, or an axis is out of bounds.

    See Also
    --------
    mean : Mean without weights.
    median : Middle value.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.average(jnp.array([1.0, 2.0]), weights=jnp.array([3.0, 1.0]))
    Array(1.25, dtype=float32)
    """
    if weights is None:
        out = mean(a, axis, keepdims=keepdims)
        x = as_node(a, "average")
        n = count_of(x, axes_of(axis, x.aval.ndim, "average"))
        return (out, wrap(rules.filled(out._node, n))) if returned else out
    x, w = inexact("average", a, weights)
    axes = axes_of(axis, x.aval.ndim, "average")
    if w.aval.shape != x.aval.shape:
        if axis is None or w.aval.shape != axes_shape(x, axis, "average"):
            raise ValueError(
                f"average: weights must have the shape of the array or of the averaged axes; got "
                f"{w.aval.shape} for shape {x.aval.shape} and axis={axis}; reshape them"
            )
        w = spread_along(w, x, axis, "average")
    total = keep(o.reduce_sum(w, axes=axes), x, axes, keepdims)
    y = o.div(keep(o.reduce_sum(o.mul(x, w), axes=axes), x, axes, keepdims), total)
    y, total = (cast(v, v.aval.dtype) for v in (y, total))
    return (wrap(y), wrap(total)) if returned else wrap(y)


@api_boundary
@compiled_if_small("a")
@shown()
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """Count the elements that are not zero along the given axes.

    Parameters
    ----------
    {a}
    {axes_reduced}
    {keepdims}

    Returns
    -------
    Array
        Counts, with the shape of `a` without the reduced axes, of dtype int32 (int64 with
        `jax_enable_x64`). NumPy returns an int if there are no axes.

    Raises
    ------
    {raises_not_array}
    ValueError
        If an axis is out of bounds.

    See Also
    --------
    nonzero : Indices of these elements.
    any, all : Tests of all elements.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.count_nonzero(jnp.array([0, 3, 4]))
    Array(2, dtype=int32)
    """
    return sum(wrap(rules.as_bool(as_node(a, "count_nonzero"))), axis, keepdims=keepdims)
