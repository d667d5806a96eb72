"""Logarithms of sums of exponentials: `nn.logsumexp` and `scipy.special.logsumexp`, with which
`logaddexp.reduce` is computed, too.

The largest exponent is subtracted first, so that no exponential overflows.
"""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, broadcast_nodes, cast, to_shape, wrap
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.numpy import reductions as red
from accnp.numpy import ufunc_rules as rules
from accnp.numpy.reductions import Axis
from accnp.numpy.ufunc_factories import inexact
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import dtype_kind

__all__ = ["float_for_masking", "logsumexp"]


def float_for_masking(x: Any, name: str, kinds: str) -> Array:
    """Convert x so that it can hold -inf, the value of masked elements: integers become the default
    float, which is float64 with 64-bit types."""
    node = as_node(x, name)
    if dtype_kind(node.aval.dtype) in kinds:
        node = cast(node, dtypes.default_float(), node.aval.weak_type)
    return wrap(node)


def _log_sum(total: Node, x: Node, top: Node, axes: tuple[int, ...]) -> Node:
    """Return log(total), for total = sum(exp(x - top)).

    Near total = 1, the terms except the largest are summed separately: added to 1 they would lose
    digits, which matter if `top` is near 0 as well.
    """
    high, all_of_it = (red.keep(v, x, axes, True) for v in (top, total))
    rest = o.reduce_sum(o.exp_near_unit_sum(x, high, all_of_it), axes=axes)
    return o.log_near_unit_sum(rest, top, total)


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any: ...
@api_boundary
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """Compute log(sum(b * exp(a))) over the given axes without overflow.

    Parameters
    ----------
    a : array_like
        Exponents. Integers become the default float dtype.
    {axes_reduced}
    b : array_like, optional
        Factors of the exponentials, which broadcast against `a`. The default is 1.
    {keepdims}
    return_sign : bool, optional
        If True, return the sign of the sum, too; the logarithm is then that of its magnitude. The
        default is False.
    {where}

    Returns
    -------
    Array or (Array, Array)
        Logarithms of the sums; with `return_sign` also their signs.

    Raises
    ------
    {raises_axis_array}

    See Also
    --------
    nn.logmeanexp : Logarithm of the mean of exponentials.
    numpy.logaddexp : Logarithm of the sum of two exponentials.
    nn.softmax : Softmax function, whose denominator this is.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.special.logsumexp(jnp.array([1000.0, 1000.0]))
    Array(1000.6932, dtype=float32)
    """
    if b is None:
        (x,) = inexact("logsumexp", a if where is None else float_for_masking(a, "logsumexp", "b"))
        scale = None
    else:
        x, scale = broadcast_nodes("logsumexp", inexact("logsumexp", a, b))
        shape = scale.aval.shape if scale.aval.ndim else x.aval.shape
        x = to_shape(x, shape)
        x = rules.select(o.ne(scale, like(scale, 0)), x, like(x, -math.inf))
    if where is not None:
        x = red.masked(x, where, -math.inf, "logsumexp")
    axes = red.axes_of(axis, x.aval.ndim, "logsumexp")
    real = rules.real(x)
    top = o.reduce_max(real, axes=axes)
    top = o.max(like(top, -math.inf), top)
    top = rules.select(o.is_finite(top), top, like(top, 0))
    top = o.stop_gradient(top)
    wide = cast(red.keep(top, x, axes, True), x.aval.dtype)
    shifted = o.exp(o.sub(x, wide))
    if scale is not None:
        shifted = o.mul(shifted, scale)
    total = o.reduce_sum(shifted, axes=axes)
    if dtype_kind(x.aval.dtype) == "c":
        sign = o.sign(total)
        y = o.log(total) if not return_sign else o.log(o.abs(total))
        y = o.add(y, cast(top, y.aval.dtype))
    else:
        sign = o.sign(total)
        exact = scale is None and x.aval.dtype in (np.float32, np.float64) and not state.named
        y = _log_sum(total, x, top, axes) if exact else o.log(o.abs(total))
        y = o.add(y, top)
        if scale is not None and not return_sign:
            y = rules.select(o.lt(sign, like(sign, 0)), like(y, math.nan), y)
    y, sign = red.keep(y, x, axes, keepdims), red.keep(sign, x, axes, keepdims)
    return (wrap(y), wrap(sign)) if return_sign else wrap(y)
