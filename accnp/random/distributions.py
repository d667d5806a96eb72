"""Samplers of continuous distributions that transform uniform or normal numbers.

The results are lazy and fuse with the operations that use them.
"""

from __future__ import annotations

import math
from math import prod
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import (
    as_node,
    as_nodes,
    broadcast_shapes,
    cast,
    promote_inexact,
    to_shape,
)  # fmt: skip
from accnp.api.arguments.shapes import as_axis, as_shape
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, Shape, ShardingLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.numpy import ufuncs as uf
from accnp.numpy.manipulation import reshape_plain, transpose_node
from accnp.primitives.elementwise import like, like_full
from accnp.primitives.random import erf_inv_single
from accnp.random.basic_samplers import bernoulli, gumbel_node, normal, normal_node, uniform_node
from accnp.random.generators import Words
from accnp.random.keys import (
    as_parameters,
    float_dtype,
    inexact_dtype,
    key_words,
    sample_shape,
    spread,
)
from accnp.sharding.device_placement import with_out_sharding

__all__ = [
    "categorical", "cauchy", "double_sided_maxwell", "exponential", "geometric", "gumbel",
    "laplace", "logistic", "lognormal", "maxwell", "pareto", "rademacher", "rayleigh", "triangular",
    "truncated_normal", "weibull_min",
]  # fmt: skip


def _start_sampling(
    key: Any, function: str, shape: Any, dtype: Any, *params: Any
) -> tuple[Words, tuple[int, ...], np.dtype, list[Node]]:
    """Return the words of the key, the shape, the dtype, and the parameters broadcast to it."""
    words = key_words(key, function)
    kind = float_dtype(dtype, function)
    nodes = as_parameters(function, kind, *params)
    sizes = sample_shape(shape, function, *nodes)
    return words, sizes, kind, [spread(n, sizes) for n in nodes]


def _exponential(words: Words, sizes: Any, kind: np.dtype) -> Node:
    return o.neg(o.log1p(o.neg(uniform_node(words, sizes, kind))))


@api_boundary
@compiled_if_small("key")
@with_out_sharding
def exponential(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the exponential distribution with rate 1.

    Parameters
    ----------
    {key}
    {sample_shape}
    {dtype_samples}
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    {raises_samples}

    See Also
    --------
    gamma, weibull_min : Generalizations.
    laplace : Two-sided exponential distribution.
    scipy.stats.expon.logpdf : Log of the density.

    Notes
    -----
    The density is exp(-x) for x >= 0. Samples are -log1p(-u) of uniform numbers u.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.exponential(jnp.random.key(0), (2,))
    Array([2.950128 , 3.8434246], dtype=float32)
    """
    words, sizes, kind, _ = _start_sampling(key, "exponential", shape, dtype)
    return wrap(_exponential(words, sizes, kind))


@api_boundary
@compiled_if_small("key")
@with_out_sharding
def laplace(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the standard Laplace distribution.

    Parameters
    ----------
    {key}
    {sample_shape}
    {dtype_samples}
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    {raises_samples}

    See Also
    --------
    exponential : One-sided exponential distribution.
    scipy.stats.laplace.logpdf : Log of the density.

    Notes
    -----
    The density is exp(-abs(x)) / 2.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.laplace(jnp.random.key(0), (2,))
    Array([-2.2569816, -3.1502788], dtype=float32)
    """
    words, sizes, kind, _ = _start_sampling(key, "laplace", shape, dtype)
    low = -1.0 + float(dtypes.finfo(kind).epsneg)
    u = uniform_node(words, sizes, kind, low, 1.0)
    return wrap(o.mul(o.sign(u), o.log1p(o.neg(o.abs(u)))))


@api_boundary
@compiled_if_small("key")
@with_out_sharding
def logistic(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the standard logistic distribution.

    Parameters
    ----------
    {key}
    {sample_shape}
    {dtype_samples}
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    {raises_samples}

    See Also
    --------
    gumbel : Standard Gumbel distribution.
    scipy.stats.logistic.logpdf : Log of the density.

    Notes
    -----
    Samples are log(u / (1 - u)) of uniform numbers u.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.logistic(jnp.random.key(0), (2,))
    Array([2.896376 , 3.8217716], dtype=float32)
    """
    words, sizes, kind, _ = _start_sampling(key, "logistic", shape, dtype)
    u = uniform_node(words, sizes, kind, float(dtypes.finfo(kind).tiny), 1.0)
    return wrap(o.sub(o.log(u), o.log1p(o.neg(u))))


@api_boundary
@compiled_if_small("key")
@with_out_sharding
def cauchy(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the standard Cauchy distribution.

    Parameters
    ----------
    {key}
    {sample_shape}
    {dtype_samples}
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    {raises_samples}

    See Also
    --------
    t : Student's t distribution, which is this one for one degree of freedom.
    scipy.stats.cauchy.logpdf : Log of the density.

    Notes
    -----
    The density is 1 / (pi (1 + x**2)).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.cauchy(jnp.random.key(0), (2,))
    Array([ 6.0274944, 14.837895 ], dtype=float32)
    """
    words, sizes, kind, _ = _start_sampling(key, "cauchy", shape, dtype)
    u = uniform_node(words, sizes, kind, float(dtypes.finfo(kind).eps), 1.0)
    return wrap(o.tan(o.mul(like(u, math.pi), o.sub(u, like(u, 0.5)))))


_ONE = np.float32(1)  # strongly typed, as JAX's default


@api_boundary
@compiled_if_small("key", "sigma")
@with_out_sharding
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = _ONE,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample numbers whose logarithm is normally distributed.

    Parameters
    ----------
    {key}
    sigma : array_like, optional
        Standard deviation of the logarithm, whose mean is 0. The default is 1.
    {sample_shape_params}
    dtype : dtype_like, optional
        Floating or complex dtype of the samples. The default is float32 (float64 with
        `jax_enable_x64`).
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    ValueError
        If `dtype` is neither floating nor complex, `sigma` does not broadcast to the shape, or
        `key` is an array of several keys.

    See Also
    --------
    normal : The logarithm of the samples, for sigma 1.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.lognormal(jnp.random.key(0), shape=(3,)).shape
    (3,)
    """
    kind = inexact_dtype(dtype, "lognormal")
    (s,) = as_parameters("lognormal", kind, sigma)
    sizes = sample_shape(shape, "lognormal", s)
    x = normal(key, sizes, kind)._node
    return wrap(o.exp(o.mul(x, spread(s, sizes))))


@api_boundary
@compiled_if_small("key", "b")
@with_out_sharding
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the Pareto distribution with scale 1.

    Parameters
    ----------
    {key}
    b : array_like
        Exponent, positive.
    {sample_shape_params}
    {dtype_samples}
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    {raises_samples_params}

    See Also
    --------
    exponential : Distribution of the logarithm, times `b`.
    scipy.stats.pareto.logpdf : Log of the density.

    Notes
    -----
    The density is b / x**(b + 1) for x >= 1.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.pareto(jnp.random.key(0), 2.0, (3,)).shape
    (3,)
    """
    words, sizes, kind, (b_,) = _start_sampling(key, "pareto", shape, dtype, b)
    return wrap(o.exp(o.div(_exponential(words, sizes, kind), b_)))


@api_boundary
@compiled_if_small("key", "scale")
@with_out_sharding
def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the Rayleigh distribution.

    Parameters
    ----------
    {key}
    scale : array_like
        Standard deviation of the normal numbers below; it is positive.
    {sample_shape_params}
    {dtype_samples}
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    {raises_samples_params}

    See Also
    --------
    maxwell : Length of a vector of three normal numbers.
    weibull_min : A generalization.

    Notes
    -----
    The length of a vector of two normal numbers of standard deviation `scale`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.rayleigh(jnp.random.key(0), 1.0, (3,)).shape
    (3,)
    """
    words, sizes, kind, (s,) = _start_sampling(key, "rayleigh", shape, dtype, scale)
    log_u = o.log(uniform_node(words, sizes, kind))
    return wrap(o.mul(s, o.sqrt(o.mul(log_u, like(log_u, -2)))))


@api_boundary
@compiled_if_small("key", "scale", "concentration")
def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Sample from the Weibull distribution of minima.

    Parameters
    ----------
    {key}
    scale : array_like
        Scale; it broadcasts against the samples.
    concentration : array_like
        Exponent, positive; it broadcasts against the samples.
    shape : int or sequence of int, optional
        Shape of the uniform numbers that are drawn, () by default. If the parameters have more
        axes, the samples share these numbers, as in JAX.
    {dtype_samples}

    Returns
    -------
    Array
        Samples, of the shape to which `shape` and the parameters broadcast.

    Raises
    ------
    {raises_key}
    {raises_samples_params}

    See Also
    --------
    exponential : The case of scale and concentration 1.
    rayleigh : The case of concentration 2, up to the scale.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.weibull_min(jnp.random.key(0), 1.0, 2.0, (3,)).shape
    (3,)
    """
    words, sizes, kind, _ = _start_sampling(key, "weibull_min", shape, dtype)
    e = wrap(_exponential(words, sizes, kind))
    s, c = (wrap(v) for v in as_nodes("weibull_min", scale, concentration))
    return uf.power(e, 1.0 / c) * s


@api_boundary
@compiled_if_small("key", "left", "mode", "right")
@with_out_sharding
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the triangular distribution over [left, right].

    Parameters
    ----------
    {key}
    left : array_like
        Lower end of the interval.
    mode : array_like
        Position of the peak of the density, between `left` and `right`.
    right : array_like
        Upper end of the interval.
    {sample_shape_params}
    {dtype_samples}
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    {raises_samples_params}

    See Also
    --------
    uniform : Uniform distribution over an interval.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.triangular(jnp.random.key(0), 0.0, 0.5, 1.0, (3,)).shape
    (3,)
    """
    words, sizes, kind, (a, m, b) = _start_sampling(
        key, "triangular", shape, dtype, left, mode, right
    )
    a, m, b = (to_shape(v, sizes) for v in (a, m, b))
    width = o.sub(b, a)
    u = uniform_node(words, sizes, kind)
    low = o.add(a, o.sqrt(o.mul(o.mul(u, width), o.sub(m, a))))
    rest = o.mul(o.mul(o.sub(like(u, 1), u), width), o.sub(b, m))
    high = o.sub(b, o.sqrt(rest))
    return wrap(o.select_n(o.lt(u, o.div(o.sub(m, a), width)), high, low))


@api_boundary
@compiled_if_small("key", "p")
@with_out_sharding
def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample the number of trials up to and including the first success.

    Parameters
    ----------
    {key}
    p : array_like
        Probability of success in each trial.
    {sample_shape_params}
    dtype : dtype_like, optional
        Integer dtype of the samples. The default is int32 (int64 with `jax_enable_x64`).
    {out_sharding_samples}

    Returns
    -------
    Array
        Integers from 1.

    Raises
    ------
    {raises_key}
    ValueError
        If `dtype` is not an integer dtype, or `p` does not broadcast to the shape.

    See Also
    --------
    binomial : Number of successes in a fixed number of trials.
    scipy.stats.geom.logpmf : Log of the probabilities.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.geometric(jnp.random.key(0), 0.5, (4,))
    Array([1, 1, 2, 2], dtype=int32)
    """
    words = key_words(key, "geometric")
    kind = dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, "geometric")
    if kind.kind not in "iu":
        raise ValueError(f"dtype argument to `geometric` must be an int dtype, got {kind.name}")
    prob = promote_inexact("geometric", p)[0]
    sizes = sample_shape(shape, "geometric", prob)
    u = uniform_node(words, sizes, prob.aval.dtype)
    # 0 is replaced by 1, as in JAX, since its logarithm is infinite.
    u = o.select_n(o.eq(u, like(u, 0)), u, like_full(u, 1))
    whole = o.floor(o.div(o.log(u), o.log1p(o.neg(spread(prob, sizes)))))
    return wrap(cast(o.add(whole, like(whole, 1)), kind))


@api_boundary
@compiled_if_small("key")
@with_out_sharding
def maxwell(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample the length of a vector of three standard normal numbers.

    Parameters
    ----------
    {key}
    {sample_shape}
    {dtype_samples}
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    {raises_samples}

    See Also
    --------
    double_sided_maxwell : The same with a random sign.
    rayleigh : Length of a vector of two normal numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.maxwell(jnp.random.key(0), (3,)).shape
    (3,)
    """
    words, sizes, kind, _ = _start_sampling(key, "maxwell", shape, dtype)
    return wrap(_length(words, sizes, kind))


def _length(words: Words, sizes: tuple[int, ...], kind: np.dtype) -> Node:
    x = normal_node(words, (*sizes, 3), kind)
    return o.sqrt(o.reduce_sum(o.mul(x, x), axes=(len(sizes),)))


@api_boundary
@compiled_if_small("key", "loc", "scale")
def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Sample from the Maxwell distribution with a random sign, location and scale.

    Parameters
    ----------
    {key}
    loc : array_like
        Center of the distribution.
    scale : array_like
        Factor by which the standard distribution is stretched.
    shape : int or sequence of int, optional
        Leading axes of the result, before the shape of the parameters. If it is (), the default,
        the shape of the parameters is there twice, as in JAX.
    dtype : dtype_like, optional
        Floating dtype of the samples before they are scaled. The default is float32 (float64 with
        `jax_enable_x64`).

    Returns
    -------
    Array
        Samples, whose shape is `shape` followed by the shape to which the parameters broadcast.

    Raises
    ------
    {raises_key}
    {raises_samples}

    See Also
    --------
    maxwell : The one-sided distribution.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.double_sided_maxwell(jnp.random.key(0), 0.0, 1.0, (3,)).shape
    (3,)
    """
    words = key_words(key, "double_sided_maxwell")
    kind = float_dtype(dtype, "double_sided_maxwell")
    a, s = as_nodes("double_sided_maxwell", loc, scale)
    own = sample_shape(None, "double_sided_maxwell", a, s)
    # As in JAX, without `shape` the shape of the parameters occurs twice.
    sizes = (*(as_shape(shape, "random.double_sided_maxwell") or own), *own)
    first, second = words.several(2)
    u = uniform_node(second, sizes, dtypes.default_float())
    heads = cast(o.lt(u, like(u, 0.5)), kind)
    sign = o.sub(o.mul(like(heads, 2), heads), like(heads, 1))
    return wrap(o.mul(sign, _length(first, sizes, kind))) * wrap(s) + wrap(a)


@api_boundary
@compiled_if_small("key", "lower", "upper")
@with_out_sharding
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample standard normal numbers that lie between two bounds.

    Parameters
    ----------
    {key}
    lower : array_like
        Lower bound, excluded.
    upper : array_like
        Upper bound, excluded.
    {sample_shape_params}
    {dtype_samples}
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    {raises_samples_params}

    See Also
    --------
    normal : Normal numbers without bounds.
    scipy.stats.truncnorm.logpdf : Log of the density.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.truncated_normal(jnp.random.key(0), -1.0, 1.0, (2,))
    Array([0.8618594, 0.9412883], dtype=float32)
    """
    words = key_words(key, "truncated_normal")
    kind = float_dtype(dtype, "truncated_normal")
    low, high = (cast(v, kind) for v in as_nodes("truncated_normal", lower, upper))
    sizes = sample_shape(shape, "truncated_normal", low, high)
    root = like(low, float(np.array(np.sqrt(2), kind)))
    a, b = (o.erf(o.div(v, root)) for v in (low, high))
    u = uniform_node(words, sizes, kind, a, b)
    x = o.mul(root, erf_inv_single(u) if kind == np.float32 else o.erf_inv(u))
    inf = like(x, math.inf)
    far = [spread(like(x, v), sizes) for v in (math.inf, -math.inf)]  # both bounds in one tail
    ends = o.select_n(o.lt(u, like(u, 0)), *far)
    x = o.select_n(o.eq(o.abs(u), like(u, 1)), x, ends)
    first = o.nextafter(o.stop_gradient(low), inf)
    last = o.nextafter(o.stop_gradient(high), like(x, -math.inf))
    first, last = (spread(v, sizes) for v in (first, last))
    return wrap(o.min(o.max(x, first), last))


@api_boundary
@compiled_if_small("key")
@with_out_sharding
def rademacher(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample -1 and 1 with equal probability.

    Parameters
    ----------
    {key}
    {sample_shape}
    dtype : dtype_like, optional
        Dtype of the samples. The default is int32 (int64 with `jax_enable_x64`).
    {out_sharding_samples}

    Returns
    -------
    Array
        Samples of the given shape and dtype. With dtype bool all of them are True, as in JAX.

    Raises
    ------
    {raises_key}

    See Also
    --------
    bernoulli : Samples of True and False.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.rademacher(jnp.random.key(0), (4,))
    Array([-1, -1,  1,  1], dtype=int32)
    """
    kind = dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, "rademacher")
    heads = bernoulli(key, 0.5, as_shape(shape, "random.rademacher"))._node
    x = cast(heads, dtypes.default_int() if kind.kind == "b" else kind)
    return wrap(cast(o.sub(o.mul(like(x, 2), x), like(x, 1)), kind))


@api_boundary
@compiled_if_small("key")
@with_out_sharding
def gumbel(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the standard Gumbel distribution of maxima.

    Parameters
    ----------
    {key}
    {sample_shape}
    {dtype_samples}
    mode : {"low", "high"}, optional
        "high" uses more random bits, which makes the tails more precise. The default is "low".
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    {raises_samples}

    See Also
    --------
    categorical : Indices of largest sums of logits and Gumbel numbers.
    scipy.stats.gumbel_r.logpdf : Log of the density.

    Notes
    -----
    Samples are -log(-log(u)) of uniform numbers u.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.gumbel(jnp.random.key(0), (2,))
    Array([2.9233725, 3.8326175], dtype=float32)
    """
    words = key_words(key, "gumbel")
    kind = float_dtype(dtype, "gumbel")
    return wrap(gumbel_node(words, as_shape(shape, "random.gumbel"), kind, mode))


@api_boundary
@compiled_if_small("key", "logits")
@with_out_sharding
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample indices with probabilities softmax(logits).

    Parameters
    ----------
    {key}
    logits : array_like of float
        Unnormalized log-probabilities of the categories.
    axis : int, optional
        Axis of `logits` that holds the categories. The default is the last one.
    shape : int or sequence of int, optional
        Shape of the samples, to which the batch, the shape of `logits` without the axis,
        broadcasts. The default is the shape of the batch. Without replacement, the shape must end
        with it.
    replace : bool, optional
        If False, the samples for one batch element are distinct. The default is True.
    mode : {"low", "high"}, optional
        Precision of the underlying Gumbel numbers; see `gumbel`.
    {out_sharding_samples}

    Returns
    -------
    Array
        Indices along the axis, of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    TypeError
        If `key` is not a PRNG key.
    ValueError
        If `logits` are not floating, the batch does not broadcast to the shape, or more samples
        than categories are requested without replacement.
    IndexError
        If `axis` is out of bounds.

    See Also
    --------
    choice : Sample elements of an array by their probabilities.
    gumbel : Gumbel distribution.

    Notes
    -----
    A sample is the index of the largest sum of a logit and a Gumbel number. Without replacement,
    these are the indices of the k largest sums.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.categorical(jnp.random.key(0), jnp.zeros(3), shape=(4,))
    Array([1, 1, 2, 1], dtype=int32)
    """
    name = "random.categorical"
    words = key_words(key, "categorical")
    x = as_node(logits, name)
    if x.aval.dtype.kind in "biuc":
        raise ValueError(
            f"{name}: logits must be floating; got {x.aval.dtype.name}; convert with astype"
        )
    try:
        d = as_axis(axis, x.aval.ndim, name)
    except ValueError as error:  # as in JAX
        raise IndexError(*error.args) from None
    batch = (*x.aval.shape[:d], *x.aval.shape[d + 1 :])
    sizes = batch if shape is None else as_shape(shape, name)
    drawn = sizes[len(sizes) - len(batch) :]
    if broadcast_shapes(name, [sizes, batch]) != sizes or (not replace and drawn != batch):
        raise ValueError(
            "categorical parameter shapes must be broadcast-compatible with shape argument, and "
            f"the result of broadcasting the shapes must equal the shape argument; got {name} of "
            f"shape {sizes} for a batch of shape {batch}; the shape must end with that of the batch"
        )
    prefix = sizes[: len(sizes) - len(batch)]
    kind = x.aval.dtype
    index = np.dtype(np.int32)
    if replace:
        whole = (*prefix, *drawn[:d], x.aval.shape[d], *drawn[d:])
        total = o.add(gumbel_node(words, whole, kind, mode), to_shape(x, whole))
        out = o.argmax(total, axes=(len(prefix) + d,), index_dtype=dtypes.default_int())
        return wrap(out)
    count = prod(prefix)
    if count > x.aval.shape[d]:
        raise ValueError(
            f"{name}: more samples than categories without replacement; got {count} "
            f"of {x.aval.shape[d]}; pass replace=True"
        )
    total = o.add(gumbel_node(words, x.aval.shape, kind, mode), x)
    indices = cast(items(o.top_k(total, k=count, axis=d))[1], index)
    rank = indices.aval.ndim
    order = (d, *[k for k in range(rank) if k != d])
    return wrap(reshape_plain(transpose_node(indices, order), sizes))
