"""Normalizations of neural networks, softmax, one-hot encoding."""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, wrap
from accnp.api.arguments.shapes import AxesLike, as_axis, as_int
from accnp.api.arguments.values import node_of
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike
from accnp.dtypes.names import DTypeLike
from accnp.errors import IncompatibleShapesError, api_boundary, not_one_of, warn
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.numpy import reductions as red
from accnp.numpy import ufunc_rules as rules
from accnp.numpy import ufuncs as uf
from accnp.numpy.log_sum_exp import float_for_masking, logsumexp
from accnp.numpy.manipulation import expand_node
from accnp.numpy.means import mean as mean_of
from accnp.numpy.reductions import Axis
from accnp.numpy.ufunc_factories import inexact
from accnp.primitives.elementwise import like


def _inexact_node(name: str, x: Any) -> Node:
    return inexact(name, x)[0]


@api_boundary
@shown()
@compiled_if_small("x", "where")
def logmeanexp(
    x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """Compute log(mean(exp(x))) over the given axes without overflow.

    Parameters
    ----------
    x : array_like
        Values to average. Integers become the default float dtype.
    {axes_reduced}
    {where}
    {keepdims}

    Returns
    -------
    Array
        Logarithms of the means.

    Raises
    ------
    {raises_axis_array}

    See Also
    --------
    nn.logsumexp : Logarithm of the sum of exponentials.
    numpy.mean : Arithmetic mean.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.logmeanexp(jnp.zeros(2))
    Array(0., dtype=float32)
    """
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    each = wrap(rules.filled(as_node(x, "logmeanexp"), 1, total.dtype))
    return uf.subtract(total, uf.log(red.sum(each, axis, keepdims=keepdims, where=where)))


@api_boundary
@shown()
@compiled_if_small("x")
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Gated linear unit: the first half along an axis times the sigmoid of the second half.

    Parameters
    ----------
    x : array_like
        Floating or complex values.
    axis : int, optional
        Axis to split, of even length. The default is the last axis.

    Returns
    -------
    Array
        Result of the dtype of `x`, with half the length along the axis.

    Raises
    ------
    TypeError
        If `x` is not floating or complex.
    ValueError
        If the axis is out of range or its length is odd.

    See Also
    --------
    nn.sigmoid : Logistic sigmoid.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.glu(jnp.array([1.0, 0.0]))
    Array([0.5], dtype=float32)
    """
    if not dtypes.issubdtype((node := as_node(x, "glu")).aval.dtype, np.inexact):
        raise TypeError(
            f"nn.glu: x must be floating; got {node.aval.dtype.name}; convert it with astype"
        )
    at = as_axis(axis, node.aval.ndim, "glu")
    if (n := node.aval.shape[at]) % 2:
        raise ValueError(
            f"glu: axis {axis} must have an even size; got shape {node.aval.shape}; pad or slice it"
        )

    def half(start: int) -> Node:
        low, high = [0] * node.aval.ndim, list(node.aval.shape)
        low[at], high[at] = start, start + n // 2
        return o.slice(node, start_indices=tuple(low), limit_indices=tuple(high), strides=None)

    return wrap(o.mul(half(0), o.logistic(half(n // 2))))


def _with_constant_maximum(
    x: Any, axis: Any, where: Any, name: str
) -> tuple[Node, Node, tuple[int, ...]]:
    """Return x, its maximum over the axes, which is a constant for derivatives, and the axes."""
    if where is None and as_node(x, name).aval.dtype == bool:
        raise TypeError(f"nn.{name}: bool is not supported; got dtype bool; convert to float")
    node = (
        _inexact_node(name, x)
        if where is None
        else _inexact_node(name, float_for_masking(x, name, "biu"))
    )
    if where is not None:  # fully masked lines must not have derivatives 0 / 0
        node = red.masked(node, where, -math.inf, name)
    axes = red.axes_of(axis, node.aval.ndim, name)  # after masking, since the mask may be larger
    top = red.max(wrap(node), axes, None, True, -math.inf)._node
    if node.aval.dtype != top.aval.dtype:  # reductions narrow 64-bit types that are disabled
        node = cast(node, top.aval.dtype)
    return node, o.stop_gradient(top), axes


@api_boundary
def softmax(x: ArrayLike, axis: AxesLike | None = -1, where: ArrayLike | None = None) -> Array:
    """Softmax function: exp(x) / sum(exp(x)) over the given axes, without overflow.

    Parameters
    ----------
    {x_activation}
    {axis_normalized}
    where : array_like of bool, optional
        Elements to include, which broadcasts against `x`. The result is 0 elsewhere.

    Returns
    -------
    {returns_activation}

    Raises
    ------
    TypeError
        If `x` is not an array or number, or has dtype bool and `where` is not given.
    ValueError
        If an axis is out of range.

    See Also
    --------
    nn.log_softmax : Logarithm of this function.
    nn.logsumexp : Logarithm of the denominator.
    scipy.special.softmax : The same function under SciPy's name.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.softmax(jnp.zeros(2))
    Array([0.5, 0.5], dtype=float32)
    """
    node, top, axes = _with_constant_maximum(x, axis, where, "softmax")
    # Jaxprs show JAX's formula. 16-bit types are computed in float32 and rounded at each step.
    exact = not state.named and node.aval.dtype in (np.float32, np.float64)
    raised = o.exp_difference(node, top) if exact else o.exp(o.sub(node, top))
    if where is not None:
        raised = red.masked(raised, where, 0, "softmax")
    total = red.keep(o.reduce_sum(raised, axes=axes), raised, axes, True)
    # The first form needs one division for each sum.
    out = o.mul(raised, o.div(like(total, 1), total)) if exact else o.div(raised, total)
    if where is not None:  # also in fully masked lines
        out = red.masked(out, where, 0, "softmax")
    return wrap(out)


@api_boundary
@shown()
@compiled_if_small("x", "where")
def log_softmax(x: ArrayLike, axis: AxesLike | None = -1, where: ArrayLike | None = None) -> Array:
    """Logarithm of the softmax function, computed accurately for small probabilities.

    Parameters
    ----------
    {x_activation}
    {axis_normalized}
    where : array_like of bool, optional
        Elements to include, which broadcasts against `x`. The result is -inf elsewhere.

    Returns
    -------
    {returns_activation}

    Raises
    ------
    TypeError
        If `x` is not an array or number, or has dtype bool and `where` is not given.
    ValueError
        If an axis is out of range.

    See Also
    --------
    nn.softmax : Softmax function.
    nn.logsumexp : Logarithm of the sum of exponentials.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.log_softmax(jnp.zeros(2))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    node, top, axes = _with_constant_maximum(x, axis, where, "log_softmax")
    shifted = o.sub(node, top)
    raised = o.exp(shifted)
    if where is not None:
        raised = red.masked(raised, where, 0, "log_softmax")
    total = o.log(red.keep(o.reduce_sum(raised, axes=axes), raised, axes, True))
    out = o.sub(shifted, total)
    if where is not None:
        out = red.masked(out, where, -math.inf, "log_softmax")
    return wrap(out)


@api_boundary
@shown()
@compiled_if_small("x", "mean", "variance", "epsilon", "where")
def standardize(
    x: ArrayLike,
    axis: AxesLike | None = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Shift and scale values to mean 0 and variance 1: (x - mean) / sqrt(variance + epsilon).

    Parameters
    ----------
    {x_activation}
    {axis_normalized}
    mean : array_like, optional
        Known mean, which broadcasts against `x`. The default is to compute it.
    variance : array_like, optional
        Known variance, which broadcasts against `x`. The default is to compute it.
    epsilon : array_like, optional
        Small number that avoids division by zero. The default is 1e-5.
    where : array_like of bool, optional
        Elements from which mean and variance are computed. The default is all.
    algorithm : str, optional
        How to compute the variance: "fast", the default, as the mean of the squares minus the
        square of the mean, or "stable", as the mean of squared differences, which loses no digits
        if the mean is large.

    Returns
    -------
    {returns_activation}

    Raises
    ------
    ValueError
        If an axis is out of range, or the algorithm is unknown.
    TypeError
        If `x` is not an array or number.

    See Also
    --------
    numpy.mean : Arithmetic mean.
    numpy.var : Variance.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.standardize(jnp.array([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise not_one_of("standardize", "algorithm", algorithm, ("fast", "stable"))
    (node,) = inexact("standardize", x)
    arr = wrap(node)
    if mean is None:
        mean = mean_of(arr, axis, keepdims=True, where=where)
        if not state.named:  # corrects the rounding of a large mean
            arr = uf.subtract(arr, mean)
            mean = mean_of(arr, axis, keepdims=True, where=where)
    if variance is None and algorithm == "stable":
        off = uf.square(uf.subtract(arr, mean))
        variance = mean_of(off, axis, keepdims=True, where=where)
    elif variance is None:
        squares = mean_of(uf.square(arr), axis, keepdims=True, where=where)
        variance = uf.clip(uf.subtract(squares, uf.square(mean)), 0)
    centred = uf.subtract(arr, mean)
    scale = wrap(o.rsqrt(inexact("standardize", uf.add(variance, epsilon))[0]))
    return uf.multiply(centred, scale)


@api_boundary
def one_hot(
    x: Any, num_classes: SupportsIndex, *, dtype: DTypeLike | None = None, axis: int = -1
) -> Array:
    """One-hot encode indices: 1 at the given index along a new axis, and 0 elsewhere.

    Parameters
    ----------
    x : array_like of int
        Indices of the classes. Those out of range give a row of zeros.
    num_classes : int
        Length of the new axis. It cannot be traced.
    dtype : dtype_like, optional
        Type of the encoded values. The default is the default float dtype.
    axis : int, optional
        Position of the new axis. The default is the last.

    Returns
    -------
    Array
        Encoded indices, with the shape of `x` and the new axis.

    Raises
    ------
    TypeError
        If `x` has dtype bool, or `num_classes` is not a static integer.
    ValueError
        If `num_classes` is negative, or the axis is out of range.

    See Also
    --------
    numpy.eye : Identity matrix, whose rows are one-hot encodings.
    nn.softmax : Smooth version of choosing a class.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.one_hot(jnp.array([1]), 3)
    Array([[0., 1., 0.]], dtype=float32)
    """
    n = as_int(num_classes, "one_hot", "num_classes", "shape")
    if n < 0:
        raise IncompatibleShapesError(
            f"one_hot: num_classes cannot be negative; got {n}; pass 0 or more"
        )
    node = node_of(x, function="one_hot")
    if rules.kind(node) in "fc":
        warn(
            f"one_hot: jax.nn.one_hot input should be integer-typed; got {node.aval.dtype.name}; "
            "convert with astype(int)",
            DeprecationWarning,
        )
    return _one_hot(wrap(node), n, dtype, axis)


@shown()
def _one_hot(x: Any, n: int, dtype: Any, axis: int) -> Array:
    node = node_of(x, function="one_hot")
    if node.aval.dtype.kind == "b":
        raise TypeError("one_hot: x must contain indices; got bool; convert with astype(int)")
    rank = node.aval.ndim + 1
    at = as_axis(axis, rank, "one_hot")
    wide = expand_node(node, (at,))
    places = o.iota(
        dtype=node.aval.dtype, shape=(*(1,) * at, n, *(1,) * (rank - at - 1)), dimension=at
    )
    new = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "one_hot")
    return wrap(cast(o.eq(wide, places), new))
