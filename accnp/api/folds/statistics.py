"""Weighted means, counts, covariances, integrals by the trapezoidal rule, phases without jumps:
arrays in, Arrays out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accnp.api.algebra.products import dot
from accnp.api.arguments.convert import (
    as_node,
    cast,
    promote,
    promote_inexact,
    wrap,
)
from accnp.api.arguments.inside import promotes_inside
from accnp.api.arguments.shapes import as_axis
from accnp.api.arrays.joining import concatenate
from accnp.api.arrays.manipulation import atleast_2d, moveaxis
from accnp.api.compiled.named import shown
from accnp.api.elements import ufunc_rules as rules
from accnp.api.elements import ufuncs as uf
from accnp.api.elements.elementwise import inexact
from accnp.api.elements.parts import power_of_two
from accnp.api.elements.selecting import where
from accnp.api.folds.cumulative import cumsum
from accnp.api.folds.means import mean
from accnp.api.folds.reductions import (
    Axis,
    axes_of,
    axes_shape,
    count_of,
    keep,
    real_parts,
    spread_along,
    sum,
)
from accnp.array import Array, ArrayLike
from accnp.dtypes import requested_dtype
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.op import o
from accnp.ir.trace import state
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
    """Return the covariance matrix of variables.

    Args:
        m: variables in rows, observations in columns; rank 1 is one variable.
        y: further variables.
        rowvar: False: variables are columns.
        bias: divide by n instead of n - 1.
        ddof: divide by n - ddof; overrides `bias`.
        fweights: how often each observation was made; integers [n].
        aweights: weights of observations [n].
        dtype: of the result; the promoted inexact dtype if None.

    Returns:
        Array [k, k] of k variables; rank 0 for one variable.

    Raises:
        ValueError: more than two axes, or dtype is an integer.
        TypeError: m is a list or a text, or fweights are no integers.

    >>> import accnp as jnp
    >>> jnp.cov(jnp.array([[0., 1., 2.], [2., 1., 0.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    name = "jnp.cov"
    given = [wrap(n) for n in promote_inexact(name, *([m] if y is None else [m, y]))]
    if dtype is not None:
        kind = requested_dtype(dtype, name)
        if dtype_kind(kind) not in "fc":
            raise ValueError(
                f"{name}: covariances are floating or complex; got dtype={kind.name}; "
                "convert the result"
            )
        given = [g.astype(kind) for g in given]
    for value in given:
        if value.ndim > 2:
            raise ValueError(
                f"{name}: variables have at most 2 dimensions; got {value.ndim}; "
                "reshape to [variables, observations]"
            )
    rows = [atleast_2d(g) for g in given]
    if not rowvar:
        rows = [r if g.ndim < 2 else r.T for r, g in zip(rows, given, strict=True)]
    if not rows[0].shape[0]:  # also with a second operand, as NumPy has it
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
    if not state.named and count:  # a large mean is rounded: what is left of it is taken off
        x = x - average(x, axis=1, weights=w)[:, None]
    products = dot(x, (x if w is None else x * w[None, :]).conj().T)
    if not count:  # the sum of nothing is 0, but there is no mean
        products = products + math.nan
    return (products / free).squeeze()


def _near_one(x: Array, rowvar: bool) -> Array:
    """Variables divided by powers of two, so that their squares are in range."""
    if not 0 < x.ndim < 3 or not x.size:
        return x
    parts = [uf.abs(wrap(n)) for n in real_parts(x._node)]
    size = parts[0] if len(parts) == 1 else uf.maximum(*parts)
    axis = 0 if x.ndim == 2 and not rowvar else -1
    return x / power_of_two(size.max(axis=axis, keepdims=True)).astype(x.dtype)


@api_boundary
@shown()
@promotes_inside
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Return the correlation coefficients of variables: `cov`, divided by standard deviations.

    Args:
        x: variables in rows, observations in columns.
        y: further variables.
        rowvar: False: variables are columns.
        dtype: of the result.

    Integers become the default float.

    Raises:
        ValueError: more than two axes.
        TypeError: x is a list or a text.

    >>> import accnp as jnp
    >>> jnp.corrcoef(jnp.array([[0., 1., 2.], [4., 2., 0.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    if not state.named:  # jaxprs show it as jax does
        given = [wrap(n) for n in promote_inexact("jnp.corrcoef", *([x] if y is None else [x, y]))]
        near = [_near_one(g, rowvar) for g in given]
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
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Integrate along an axis by the trapezoidal rule.

    Args:
        y: values.
        x: places of the values: of the shape of `y`, or one line for all.
        dx: their distance, where `x` is None: a number, or an array that broadcasts against `y`
            with one element fewer, or one, along the axis.
        axis: along which.

    Integers become the default float.

    Raises:
        ValueError: the axis is out of bounds.
        TypeError: y or x is a list or a text.

    >>> import accnp as jnp
    >>> jnp.trapezoid(jnp.array([1., 2., 3.]))
    Array(4., dtype=float32)
    """
    name = "jnp.trapezoid"
    given = [y] if x is None else [y, x]
    values, *places = (wrap(n) for n in promote_inexact(name, *given))
    values = moveaxis(values, as_axis(axis, values.ndim, name), -1)
    if x is None:
        step = wrap(as_node(dx, name))
        if step.ndim and values.ndim > 1:
            step = step.reshape((1,) * (values.ndim - step.ndim) + step.shape)
            step = moveaxis(step, as_axis(axis, step.ndim, name), -1)
    elif places[0].ndim == 1:
        step = places[0][1:] - places[0][:-1]
    else:
        at = moveaxis(places[0], as_axis(axis, places[0].ndim, name), -1)
        step = at[..., 1:] - at[..., :-1]
    return 0.5 * (step * (values[..., 1:] + values[..., :-1])).sum(-1)


@api_boundary
@shown()
def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi
) -> Array:
    """Add multiples of a period, so that neighbours along an axis differ by at most half of it.

    Args:
        p: real array.
        discont: differences below this stay (at least half the period).
        axis: along which.
        period: 2 pi if not given; with an integer one, integers stay integers.

    The shape stays; the dtype is that to which p and the period are promoted.

    Raises:
        ValueError: p is complex, or the axis is out of bounds.
        TypeError: p is a list or a text.

    >>> import accnp as jnp
    >>> jnp.unwrap(jnp.array([0, 3, 6, 1]), period=8)
    Array([0, 3, 6, 9], dtype=int32)
    """
    x = wrap(as_node(p, "jnp.unwrap"))
    if x.dtype.kind == "c":
        raise ValueError("jnp.unwrap: complex numbers have no order; got complex; take jnp.angle")
    x, period = (wrap(n) for n in promote("jnp.unwrap", x, period))
    whole = dtype_kind(x.dtype) in "iu"
    if not x.shape[as_axis(axis, x.ndim, "jnp.unwrap")]:
        return x
    given = x.dtype
    if dtype_kind(given) == "f" and given.itemsize < 4:  # 16 bits would not hold the periods
        x = x.astype(np.float32)
    x = moveaxis(x, axis, -1)
    half = period // 2 if whole else period / 2
    step = x[..., 1:] - x[..., :-1]
    wrapped = (step + half) % period - half
    # exactly half a period up stays half a period up
    edge = (wrapped == -half) & (step > 0)
    wrapped = where(edge & (period % 2 == 0) if whole else edge, half, wrapped)
    correction = wrapped - step
    if discont is not None:
        correction = where(uf.abs(step) < discont, 0, correction)
    else:
        correction = where(uf.abs(step) < half, 0, correction)
    moved = concatenate([x[..., :1], x[..., 1:] + cumsum(correction, axis=-1)], axis=-1)
    return moveaxis(moved, -1, axis).astype(given)


@api_boundary
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The mean, weighted if weights are given.

    Integers become the default float.

    Raises:
        ValueError: weights have neither the shape of a nor of the axes, or an axis is out of
            bounds.
        TypeError: a or weights is a list or a text.

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
@shown()
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements are not 0 over the given axes.

    The result has the shape without these axes; the dtype is int32 (64-bit with jax_enable_x64).
    Unlike NumPy: an array, no int.

    Raises:
        TypeError: a is a list or a text.
        ValueError: an axis is out of bounds.

    >>> import accnp as jnp
    >>> jnp.count_nonzero(jnp.array([0, 3, 4]))
    Array(2, dtype=int32)
    """
    return sum(wrap(rules.as_bool(as_node(a, "count_nonzero"))), axis, keepdims=keepdims)
