"""Activation functions and normalisations of neural networks.

In: arrays. Out: lazy Arrays of their shape.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, wrap
from accnp.api.arguments.shapes import as_axis, as_int
from accnp.api.arguments.values import node_of
from accnp.api.arrays.manipulation import expand_node
from accnp.api.compiled.named import shown
from accnp.api.elements import ufunc_rules as rules
from accnp.api.elements import ufuncs as uf
from accnp.api.elements.elementwise import inexact
from accnp.api.folds import reductions as red
from accnp.api.folds.statistics import logsumexp
from accnp.array import Array
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.custom import JvpRule, ruled
from accnp.primitives.elementwise import like

tanh = uf.tanh


def _one(name: str, x: Any) -> Node:
    return inexact(name, x)[0]


@shown()
def identity(x: Any) -> Array:
    """x itself.

    >>> import accnp as jnp
    >>> jnp.nn.identity(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    return wrap(as_node(x, "identity"))


@api_boundary
def relu(x: Any) -> Array:
    """max(x, 0); its derivative at 0 is 0.

    >>> import accnp as jnp
    >>> jnp.nn.relu(jnp.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    return _with_slope("relu", _relu, x, lambda v: rules.compare("gt")(v, like(v, 0)))


@shown("relu")
def _relu(x: Any) -> Array:
    return uf.maximum(x, 0)


def _with_slope(name: str, fn: Any, x: Any, inside: Any) -> Array:
    """A function whose derivative is 1 where `inside` says so, and 0 elsewhere."""

    def value(xs: list[Node]) -> list[Node]:
        return [fn(wrap(xs[0]))._node]

    def rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
        (node,), (t,) = xs, ts
        return ruled(made, xs, value), [t and rules.select(inside(node), t, rules.filled(t, 0))]

    made = JvpRule(name, rule, {"jvp": "jvp", "symbolic_zeros": False})
    return wrap(ruled(made, [as_node(x, name)], value)[0])


@api_boundary
def relu6(x: Any) -> Array:
    """min(max(x, 0), 6); its derivative at both ends is 0.

    >>> import accnp as jnp
    >>> jnp.nn.relu6(jnp.array([-1.0, 8.0]))
    Array([0., 6.], dtype=float32)
    """
    above = rules.compare("gt")
    inside = lambda v: o.and_(above(v, like(v, 0)), above(like(v, 6), v))  # noqa: E731
    return _with_slope("relu6", _relu6, x, inside)


@shown("relu6")
def _relu6(x: Any) -> Array:
    return uf.minimum(uf.maximum(x, 0), 6.0)


@api_boundary
def sigmoid(x: Any) -> Array:
    """1 / (1 + exp(-x)).

    >>> import accnp as jnp
    >>> jnp.nn.sigmoid(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return wrap(o.logistic(as_node(x, "sigmoid")))


@api_boundary
@shown()
def softplus(x: Any) -> Array:
    """log(1 + exp(x)) without overflow.

    >>> import accnp as jnp
    >>> jnp.nn.softplus(jnp.array([0.0]))
    Array([0.6931472], dtype=float32)
    """
    return uf.logaddexp(x, 0)


@api_boundary
@shown()
def sparse_plus(x: Any) -> Array:
    """0 below -1, (x + 1)**2 / 4 in between, x above 1.

    >>> import accnp as jnp
    >>> jnp.nn.sparse_plus(jnp.array([0.0, 2.0]))
    Array([0.25, 2.  ], dtype=float32)
    """
    arr = wrap(as_node(x, "sparse_plus"))
    middle = uf.divide(uf.power(uf.add(arr, 1.0), 2), 4)
    high = uf.where(uf.greater_equal(arr, 1.0), arr, middle)
    return uf.where(uf.less_equal(arr, -1.0), 0.0, high)


@api_boundary
@shown()
def soft_sign(x: Any) -> Array:
    """x / (1 + abs(x)).

    >>> import accnp as jnp
    >>> jnp.nn.soft_sign(jnp.array([1.0]))
    Array([0.5], dtype=float32)
    """
    arr = wrap(as_node(x, "soft_sign"))
    return uf.divide(arr, uf.add(uf.abs(arr), 1))


@api_boundary
@shown()
def silu(x: Any) -> Array:
    """x * sigmoid(x).

    >>> import accnp as jnp
    >>> jnp.nn.silu(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return uf.multiply(x, sigmoid(x))


swish = silu


@api_boundary
@shown()
def mish(x: Any) -> Array:
    """x * tanh(softplus(x)).

    >>> import accnp as jnp
    >>> jnp.nn.mish(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return uf.multiply(x, uf.tanh(softplus(x)))


@api_boundary
@shown()
def log_sigmoid(x: Any) -> Array:
    """log(sigmoid(x)) without overflow.

    >>> import accnp as jnp
    >>> jnp.nn.log_sigmoid(jnp.array([0.0]))
    Array([-0.6931472], dtype=float32)
    """
    return uf.negative(softplus(uf.negative(x)))


@api_boundary
@shown(arrays=2)
def elu(x: Any, alpha: Any = 1.0) -> Array:
    """x above 0, alpha * (exp(x) - 1) below.

    >>> import accnp as jnp
    >>> jnp.nn.elu(jnp.array([-1.0, 2.0]))
    Array([-0.63212055,  2.        ], dtype=float32)
    """
    arr = wrap(as_node(x, "elu"))
    above = uf.greater(arr, 0)
    # exp is taken of 0 where x is positive, so that the unused branch has a finite derivative.
    safe = uf.where(uf.greater(arr, 0), 0.0, arr)
    return uf.where(above, arr, uf.multiply(alpha, uf.expm1(safe)))


@api_boundary
@shown(arrays=2)
def celu(x: Any, alpha: Any = 1.0) -> Array:
    """max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1).

    >>> import accnp as jnp
    >>> jnp.nn.celu(jnp.array([-1.0, 2.0]))
    Array([-0.63212055,  2.        ], dtype=float32)
    """
    high = uf.maximum(x, 0.0)
    low = uf.divide(uf.minimum(x, 0.0), alpha)
    return uf.add(high, uf.multiply(alpha, uf.expm1(low)))


@api_boundary
@shown()
def selu(x: Any) -> Array:
    """The self-normalising elu.

    >>> import accnp as jnp
    >>> jnp.nn.selu(jnp.array([0.0, 1.0]))
    Array([0.      , 1.050701], dtype=float32)
    """
    return uf.multiply(1.0507009873554804934193349852946, elu(x, 1.6732632423543772848170429916717))


@api_boundary
def gelu(x: Any, approximate: bool = True) -> Array:
    """x times the normal distribution function, by tanh or exactly by erf.

    >>> import accnp as jnp
    >>> jnp.nn.gelu(jnp.array([0.0, 1.0]))
    Array([0.      , 0.841192], dtype=float32)
    """
    node = _one("gelu", x)
    if approximate:
        cube = o.mul(like(node, 0.044715), o.integer_pow(node, y=3))
        inner = o.tanh(o.mul(like(node, math.sqrt(2 / math.pi)), o.add(node, cube)))
        cdf = o.mul(like(node, 0.5), o.add(like(node, 1), inner))
        return wrap(cast(o.mul(node, cdf), node.aval.dtype))
    half = o.mul(like(node, 0.5), node)
    tail = o.erfc(o.mul(o.neg(node), like(node, math.sqrt(0.5))))
    return wrap(cast(o.copy(o.mul(half, tail)), node.aval.dtype))


@api_boundary
@shown(arrays=2)
def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Array:
    """x above 0, negative_slope * x below.

    >>> import accnp as jnp
    >>> jnp.nn.leaky_relu(jnp.array([-1.0, 2.0]))
    Array([-0.01,  2.  ], dtype=float32)
    """
    arr = wrap(as_node(x, "leaky_relu"))
    return uf.where(uf.greater_equal(arr, 0), arr, uf.multiply(negative_slope, arr))


@api_boundary
@shown()
def hard_tanh(x: Any) -> Array:
    """x limited to [-1, 1].

    >>> import accnp as jnp
    >>> jnp.nn.hard_tanh(jnp.array([-2.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    arr = wrap(as_node(x, "hard_tanh"))
    return uf.where(uf.greater(arr, 1), 1, uf.where(uf.less(arr, -1), -1, arr))


@api_boundary
@shown()
def hard_sigmoid(x: Any) -> Array:
    """relu6(x + 3) / 6.

    >>> import accnp as jnp
    >>> jnp.nn.hard_sigmoid(jnp.array([-4.0, 0.0]))
    Array([0. , 0.5], dtype=float32)
    """
    return uf.divide(relu6(uf.add(x, 3.0)), 6.0)


@api_boundary
@shown()
def hard_silu(x: Any) -> Array:
    """x * hard_sigmoid(x).

    >>> import accnp as jnp
    >>> jnp.nn.hard_silu(jnp.array([-4.0, 3.0]))
    Array([-0.,  3.], dtype=float32)
    """
    return uf.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


@api_boundary
@shown()
def sparse_sigmoid(x: Any) -> Array:
    """(x + 1) / 2 limited to [0, 1].

    >>> import accnp as jnp
    >>> jnp.nn.sparse_sigmoid(jnp.array([-2.0, 0.0]))
    Array([0. , 0.5], dtype=float32)
    """
    return uf.multiply(0.5, uf.clip(uf.add(x, 1.0), 0.0, 2.0))


@api_boundary
@shown(arrays=2)
def squareplus(x: Any, b: Any = 4) -> Array:
    """(x + sqrt(x*x + b)) / 2.

    >>> import accnp as jnp
    >>> jnp.nn.squareplus(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return uf.divide(uf.add(x, uf.sqrt(uf.add(uf.square(x), b))), 2)


@api_boundary
def log1mexp(x: Any) -> Array:
    """log(1 - exp(-x)) for positive x, accurate at both ends.

    >>> import accnp as jnp
    >>> jnp.nn.log1mexp(jnp.array([1.0]))
    Array([-0.45867515], dtype=float32)
    """
    node = _one("log1mexp", x)
    near = o.lt(node, like(node, math.log(2)))
    small = o.log(o.neg(o.expm1(o.neg(rules.select(near, node, like(node, 0.5))))))
    large = o.log1p(o.neg(o.exp(o.neg(rules.select(near, like(node, 1), node)))))
    return wrap(rules.select(near, small, large))


@api_boundary
@shown()
def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))) over the given axes.

    >>> import accnp as jnp
    >>> jnp.nn.logmeanexp(jnp.zeros(2))
    Array(0., dtype=float32)
    """
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    each = wrap(rules.filled(as_node(x, "logmeanexp"), 1, total.dtype))
    return uf.subtract(total, uf.log(red.sum(each, axis, keepdims=keepdims, where=where)))


@api_boundary
@shown()
def glu(x: Any, axis: int = -1) -> Array:
    """The first half of an axis times the sigmoid of the second half.

    >>> import accnp as jnp
    >>> jnp.nn.glu(jnp.array([1.0, 0.0]))
    Array([0.5], dtype=float32)
    """
    if not dtypes.issubdtype((node := as_node(x, "glu")).aval.dtype, np.inexact):
        raise TypeError(f"nn.glu: gates are floats; got {node.aval.dtype.name} (x); convert it")
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


def _shifted(x: Any, axis: Any, where: Any, name: str) -> tuple[Node, tuple[int, ...]]:
    """x minus its maximum over the axes, which derivatives do not see."""
    if as_node(x, name).aval.dtype == bool:
        raise TypeError(f"nn.{name}: bools cannot be subtracted; got dtype bool; convert to float")
    node = _one(name, x)
    axes = red.axes_of(axis, node.aval.ndim, name)
    if where is not None:  # where nothing of a line is taken, its slope must not be 0 / 0
        node = red.masked(node, where, -math.inf, name)
    top = red.max(wrap(node), axes, None, True, -math.inf)._node
    return o.sub(node, o.stop_gradient(top)), axes


@api_boundary
def softmax(x: Any, axis: Any = -1, where: Any = None) -> Array:
    """exp(x) / sum(exp(x)) over the given axes, without overflow.

    >>> import accnp as jnp
    >>> jnp.nn.softmax(jnp.zeros(2))
    Array([0.5, 0.5], dtype=float32)
    """
    shifted, axes = _shifted(x, axis, where, "softmax")
    raised = o.exp(shifted)
    if where is not None:
        raised = red.masked(raised, where, 0, "softmax")
    total = red.keep(o.reduce_sum(raised, axes=axes), raised, axes, True)
    out = o.div(raised, total)
    if where is not None:  # also where nothing of a line is taken
        out = red.masked(out, where, 0, "softmax")
    return wrap(out)


@api_boundary
@shown()
def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Array:
    """log(softmax(x)), accurate.

    >>> import accnp as jnp
    >>> jnp.nn.log_softmax(jnp.zeros(2))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    shifted, axes = _shifted(x, axis, where, "log_softmax")
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
def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) over the given axes.

    Args:
        x: array; integers become floats.
        axis: an axis or several.
        mean, variance: known ones; computed if left out.
        epsilon: added to the variance.
        where: which elements count for mean and variance.
        algorithm: "fast" takes the mean of squares less the squared mean, "stable" the mean of
            squared differences, which loses no digits where the mean is large.

    >>> import accnp as jnp
    >>> jnp.nn.standardize(jnp.array([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable'; got {algorithm!r}")
    (node,) = inexact("standardize", x)
    arr = wrap(node)
    if mean is None:
        mean = red.mean(arr, axis, keepdims=True, where=where)
    if variance is None and algorithm == "stable":
        off = uf.square(uf.subtract(arr, mean))
        variance = red.mean(off, axis, keepdims=True, where=where)
    elif variance is None:
        squares = red.mean(uf.square(arr), axis, keepdims=True, where=where)
        variance = uf.clip(uf.subtract(squares, uf.square(mean)), 0)
    centred = uf.subtract(arr, mean)
    scale = wrap(o.rsqrt(inexact("standardize", uf.add(variance, epsilon))[0]))
    return uf.multiply(centred, scale)


@api_boundary
def one_hot(x: Any, num_classes: Any, *, dtype: Any = None, axis: int = -1) -> Array:
    """1 at the place that x names along a new axis, 0 elsewhere; places outside give zeros.

    >>> import accnp as jnp
    >>> jnp.nn.one_hot(jnp.array([1]), 3)
    Array([[0., 1., 0.]], dtype=float32)
    """
    n = as_int(num_classes, "one_hot", "num_classes", "shape")
    if n < 0:
        raise ValueError(f"one_hot: num_classes cannot be negative; got {n}; pass 0 or more")
    return _one_hot(x, n, dtype, axis)


@shown()
def _one_hot(x: Any, n: int, dtype: Any, axis: int) -> Array:
    node = node_of(x, function="one_hot")
    if node.aval.dtype.kind == "b":
        raise TypeError("one_hot: x names places; got truth values; convert with astype(int)")
    rank = node.aval.ndim + 1
    at = as_axis(axis, rank, "one_hot")
    wide = expand_node(node, (at,))
    places = o.iota(
        dtype=node.aval.dtype, shape=(*(1,) * at, n, *(1,) * (rank - at - 1)), dimension=at
    )
    new = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "one_hot")
    return wrap(cast(o.eq(wide, places), new))
