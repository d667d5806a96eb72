"""Evenly spaced values between two ends: `linspace`, `logspace` and `geomspace`."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import (
    broadcast_nodes,
    cast,
    promote,
    promote_inexact,
    scalar_node,
    to_shape,
)
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.shapes import as_axis, as_int
from accnp.api.arguments.values import astype_node
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, DeviceLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.kinds import broadcast_to, dtype_kind
from accnp.primitives.kinds import full as full_node
from accnp.sharding.device_placement import new_array

__all__ = ["geomspace", "linspace", "logspace"]


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
    retstep: Literal[False] = False, dtype: DTypeLike | None = None, axis: int = 0, *,
    device: DeviceLike = None,
) -> Array: ...  # fmt: skip
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, retstep: Literal[True],
    dtype: DTypeLike | None = None, axis: int = 0, *, device: DeviceLike = None,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, *,
    retstep: Literal[True], dtype: DTypeLike | None = None, axis: int = 0,
    device: DeviceLike = None,
) -> tuple[Array, Array]: ...  # fmt: skip
@api_boundary
@compiled_if_small("start", "stop", limit=4096)
@shown("_linspace", arrays=2)
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: DTypeLike | None = None, axis: int = 0, *, device: DeviceLike = None,
) -> Any:  # fmt: skip
    """Make evenly spaced numbers over an interval.

    Parameters
    ----------
    {samples_ends}
    {samples}
    retstep : bool, optional
        If True, return the distance of the samples as well. The default is False.
    {dtype_samples_spaced}
    {samples_axis}
    {device}

    Returns
    -------
    Array or tuple of Array
        Samples along a new axis beside those to which `start` and `stop` broadcast, and their
        distance if asked for. With an integer dtype they are rounded down.

    Raises
    ------
    TypeError
        If `num` is not a static integer, or `start` or `stop` is neither an array nor a number.
    ValueError
        If `num` is negative, the shapes do not broadcast, or the axis is out of bounds.

    See Also
    --------
    arange : Numbers given by their distance.
    logspace, geomspace : Geometric progressions.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linspace(0, 1, 3)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    name = "jnp.linspace"
    num = as_int(num, name, "num", "shape")
    if num < 0:
        raise ValueError(
            f"{name}: the number of samples cannot be negative; got {num}; pass 0 or more"
        )
    a, b = _convert_ends(name, start, stop, dtype)
    kind = a.aval.dtype
    out_kind = kind if dtype is None else dtypes.requested_dtype(dtype, name)
    work = kind if out_kind.kind in "biu" else _common_dtype(kind, out_kind)
    a, b = (cast(v, work) for v in (a, b))
    shape = np.broadcast_shapes(a.aval.shape, b.aval.shape)
    a, b = (to_shape(v, shape, name) for v in (a, b))
    steps = num - 1 if endpoint else num
    delta = scalar_node(math.nan, work, False)
    if num > 1 or (num == 1 and not endpoint):
        # In 16 bits the difference of the ends may overflow although the step does not.
        near = np.dtype(np.float32) if dtype_kind(work) == "f" and work.itemsize < 4 else work
        delta = o.div(o.sub(cast(b, near), cast(a, near)), scalar_node(steps, near, False))
    if num > 1:
        # Narrow floats are computed in float64: 3/5 of 25 becomes 15 and not 15.000001, which
        # would shift the edge of a bin.
        narrow = dtype_kind(work) == "f" and work.itemsize < 8
        wide = np.dtype(np.float64) if narrow else work
        real = dtypes.real_part(wide) if wide.kind == "c" else wide
        count = o.iota(dtype=real, shape=(steps,), dimension=0)
        all_ = scalar_node(steps, real, False)
        whole = (steps, *shape)
        t = broadcast_to(cast(o.div(count, all_), wide), whole, (0,))
        low, high = (cast(broadcast_to(v, whole) if shape else v, wide) for v in (a, b))
        one = scalar_node(1, wide, False)
        out = o.add(o.mul(o.sub(one, t), low), o.mul(t, high))
        if narrow:
            # Two rounded products leave 2e-16 instead of 0, e.g. 2/5 of the way from -2 to 3.
            apart = o.sub(high, low)
            moved = o.div(o.mul(broadcast_to(count, whole, (0,)), apart), all_)
            out = o.select_n(o.is_finite(apart), out, o.add(low, moved))
        out = cast(out, work)
        if endpoint:
            last = o.reshape(b, new_sizes=(1, *shape), dimensions=None)
            out = o.concatenate(out, last, dimension=0)
    elif num == 1:
        out = o.reshape(a, new_sizes=(1, *shape), dimensions=None)
    else:
        out = full_node((0, *shape), 0, work)
    out = _move_leading_axis(out, axis, name)
    if out_kind.kind in "iu":
        out = o.floor(astype_node(out, dtypes.real_part(work), name) if work.kind == "c" else out)
    out = astype_node(out, out_kind, name)
    if not retstep:
        return new_array(out, device)
    return new_array(out, device), wrap(cast(delta, dtypes.to_inexact(out_kind)))


_named = promotes_inside(promote_inexact)


def _convert_ends(name: str, start: Any, stop: Any, dtype: Any) -> list[Node]:
    """Convert both ends to one dtype; an explicit dtype disables numpy_dtype_promotion checks."""
    return (promote_inexact if dtype is None else _named)(name, start, stop)


@promotes_inside
def _common_dtype(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the promoted dtype of two dtypes in any promotion mode, since the caller chose one."""
    return dtypes.promote(((a, False), (b, False)))[0]


def _move_leading_axis(x: Node, axis: Any, function: str) -> Node:
    """Move the leading axis to `axis`."""
    to = as_axis(axis, x.aval.ndim, function)
    if to == 0:
        return x
    order = [*range(1, x.aval.ndim)]
    order.insert(to, 0)
    return o.transpose(x, permutation=tuple(order))


@api_boundary
@compiled_if_small("start", "stop", "base")
def logspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None, axis: int = 0,
) -> Array:  # fmt: skip
    """Make numbers that are evenly spaced on a logarithmic scale, given by exponents.

    Parameters
    ----------
    start : array_like
        Exponent of the first sample.
    stop : array_like
        Exponent of the last sample, or the end of the interval if `endpoint` is False.
    {samples}
    base : array_like, optional
        Base of the powers, which broadcasts against the result. The default is 10.
    {dtype_samples_spaced}
    {samples_axis}

    Returns
    -------
    Array
        Samples from `base**start` to `base**stop`, along a new axis.

    Raises
    ------
    TypeError
        If an argument is neither an array nor a number.
    ValueError
        If `num` is negative, or the shapes do not broadcast.

    See Also
    --------
    geomspace : The same with the ends themselves.
    linspace : Evenly spaced numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    first, last = (wrap(v) for v in _convert_ends("jnp.logspace", start, stop, dtype))
    x = linspace(first, last, num, endpoint, False, None, axis)
    b, e = promote("jnp.logspace", base, x)
    b, e = broadcast_nodes("jnp.logspace", [b, e])
    kind = x.dtype if dtype is None else dtypes.requested_dtype(dtype, "jnp.logspace")
    return wrap(astype_node(o.pow(b, e), kind, "jnp.logspace"))


@api_boundary
@compiled_if_small("start", "stop")
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Make numbers in a geometric progression between two ends.

    Parameters
    ----------
    {samples_ends}
    {samples}
    {dtype_samples_spaced}
    {samples_axis}

    Returns
    -------
    Array
        Samples along a new axis. Unlike in NumPy, an end of 0 gives nan between the ends, not an
        error.

    Raises
    ------
    TypeError
        If an argument is neither an array nor a number.
    ValueError
        If `num` is negative, or the shapes do not broadcast.

    See Also
    --------
    logspace : The same with exponents as ends.
    linspace : Evenly spaced numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.geomspace(1, 4, 3)
    Array([1., 2., 4.], dtype=float32)
    """
    name = "jnp.geomspace"
    a, b = (cast(v, v.aval.dtype) for v in _convert_ends(name, start, stop, dtype))
    kind = a.aval.dtype
    shape = np.broadcast_shapes(a.aval.shape, b.aval.shape)
    a, b = (to_shape(v, shape, name) for v in (a, b))
    # Logarithms in 16 bits would lose all digits of large numbers.
    near = np.dtype("float32") if kind.itemsize == 2 else kind
    ends = [cast(v, near) for v in (a, b)]
    sign = o.div(ends[0], cast(o.abs(ends[0]), kind)) if kind.kind == "c" else o.sign(ends[0])
    logs = [o.log(o.div(v, sign)) for v in ends]
    x = linspace(wrap(logs[0]), wrap(logs[1]), num, endpoint, False, None, 0)._node
    out = cast(o.mul(o.exp(x), broadcast_to(sign, x.aval.shape) if shape else sign), kind)
    # The ends are the arguments themselves, without rounding errors.
    n = out.aval.shape[0]
    first = o.reshape(a, new_sizes=(1, *shape), dimensions=None)
    last = o.reshape(b, new_sizes=(1, *shape), dimensions=None)
    if n > 1:
        hi = n - 1 if endpoint else n
        middle = o.slice(
            out,
            start_indices=(1,) + (0,) * len(shape),
            limit_indices=(hi, *shape),
            strides=None,
        )
        out = o.concatenate(first, middle, *([last] if endpoint else []), dimension=0)
    elif n == 1:
        out = first
    out = _move_leading_axis(out, axis, name)
    if dtype is not None:
        out = astype_node(out, dtypes.requested_dtype(dtype, name), name)
    return wrap(out)
