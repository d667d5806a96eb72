"""Samplers of the gamma distribution and of distributions derived from it.

The algorithm is that of G. Marsaglia and W. W. Tsang, "A simple method for generating gamma
variables", ACM TOMS 26 (2000). Random bits are used in the order of JAX, so that samples equal
those of JAX.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, cast, wrap
from accnp.api.arguments.shapes import as_shape
from accnp.api.jit.small_calls import compiled_if_small
from accnp.api.mapping.vmap import vmap
from accnp.array_type import Array, ArrayLike, Shape, ShardingLike
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.lax.control_flow.loops import while_loop
from accnp.nn.normalization import softmax
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import array
from accnp.numpy.manipulation import broadcast_to
from accnp.numpy.selection import where
from accnp.primitives.custom import JvpRule, call_with_rule
from accnp.random.basic_samplers import normal, uniform
from accnp.random.distributions import exponential, rademacher
from accnp.random.generators import by_each_key
from accnp.random.keys import (
    as_parameters,
    float_dtype,
    key_data,
    like_key,
    sample_shape,
    split,
)
from accnp.sharding.device_placement import with_out_sharding

__all__ = [
    "ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t",
    "wald",
]  # fmt: skip


def _parameters(
    name: str, shape: Any, dtype: Any, *values: Any, narrowing: bool = False
) -> tuple[tuple[int, ...], np.dtype, list[Array]]:
    """Return the shape of the samples, their dtype, and the parameters as arrays of that dtype."""
    kind = float_dtype(dtype, name)
    if narrowing:
        nodes = [cast(as_node(v, f"random.{name}"), kind) for v in values]
    else:
        nodes = as_parameters(name, kind, *values)
    return sample_shape(shape, name, *nodes), kind, [wrap(n) for n in nodes]


# --- gamma ----------------------------------------------------------------------------------------


def _sample_one(key: Any, alpha: Array, log_space: bool) -> Array:
    """Draw one sample. If alpha < 1, sample with alpha + 1 and scale the result."""
    kind = alpha.dtype
    large = alpha >= 1
    raised = where(large, alpha, alpha + 1)
    third = array(1 / 3, kind)
    d = raised - third
    # XLA replaces a division by a square root by a product, unless it rounds in between.
    c = third / uf.sqrt(d) if kind.name == "bfloat16" else third * wrap(o.rsqrt(d._node))

    def rejected(state: Any) -> Array:
        _, x2, v, u = state
        outside = u >= 1 - array(0.0331, kind) * x2 * x2
        return outside & (uf.log(u) >= 0.5 * x2 + d * (1 - v + uf.log(v)))

    def draw(state: Any) -> Any:
        key = state[0]
        key, x_key, u_key = split(key, 3)

        def again(inner: Any) -> Any:
            key, _, _ = inner
            key, one = split(key)
            x = normal(one, (), kind)
            return key, x, 1 + x * c

        start = (x_key, array(0, kind), array(-1, kind))
        _, x, v = while_loop(lambda inner: inner[2] <= 0, again, start)
        return key, x * x, v * v * v, uniform(u_key, (), kind)

    key, boost_key = split(key)
    state = (key, array(0, kind), array(1, kind), array(2, kind))
    v = while_loop(rejected, draw, state)[2]
    if log_space:
        low = -exponential(boost_key, (), kind)
        boost = where(large | (low == 0), 0, low * (1 / alpha))
        return uf.log(d) + uf.log(v) + boost
    boost = where(large, 1, uf.power(1 - uniform(boost_key, (), kind), 1 / alpha))
    return d * v * boost


def _samples(key: Any, alpha: Array, log_space: bool) -> Array:
    """Draw a sample for each parameter, with a key each; derivatives are implicit."""
    shape = alpha.shape

    # The key is an operand, since under vmap the rule runs after the trace of the key has ended.
    def values(xs: list[Node]) -> list[Node]:
        keys = split(like_key(key, xs[1]), max(1, math.prod(shape)))[: math.prod(shape)]
        flat = wrap(xs[0]).reshape(-1)
        with by_each_key():
            drawn = vmap(lambda k, a: _sample_one(k, a, log_space))(keys, flat)
        return [drawn.reshape(shape)._node]

    def rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
        ys = call_with_rule(jvp_rule, xs, values)
        if ts[0] is None:
            return ys, [None]
        y = ys[0]
        if log_space:  # d log(g) = dg / g, computed from log(dg), since g may be 0
            g = o.exp(y)
            small = wrap(g) == 0
            safe = where(small, 1, wrap(g))
            derivative = where(small, 1 / wrap(xs[0]) ** 2 * -wrap(y) * wrap(xs[0]),
                          wrap(o.random_gamma_grad(xs[0], safe._node)) / safe)  # fmt: skip
            return ys, [o.mul(ts[0], derivative._node)]
        return ys, [o.mul(ts[0], o.random_gamma_grad(xs[0], y))]

    jvp_rule = JvpRule("random_gamma", rule, {"jvp": "random_gamma_jvp", "symbolic_zeros": False})
    return wrap(
        call_with_rule(jvp_rule, [alpha._node, as_node(key_data(key), "random.gamma")], values)[0]
    )


def _draw_samples(key: Any, a: Any, shape: Any, dtype: Any, name: str, log_space: bool) -> Array:
    sizes, _, (alpha,) = _parameters(name, shape, dtype, a, narrowing=True)
    return _samples(key, broadcast_to(alpha, sizes), log_space)


@api_boundary
@compiled_if_small("key", "a")
@with_out_sharding
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the gamma distribution with scale 1.

    Parameters
    ----------
    {key}
    a : array_like
        Shape parameter, positive. The samples are differentiable with respect to it.
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
    loggamma : Logarithm of the samples, also where these underflow.
    chisquare, beta, dirichlet : Distributions derived from it.
    scipy.stats.gamma.logpdf : Log of the density.

    Notes
    -----
    The density is proportional to x**(a - 1) exp(-x).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.gamma(jnp.random.key(0), 2.0, (3,)).shape
    (3,)
    """
    return _draw_samples(key, a, shape, dtype, "gamma", False)


@api_boundary
@compiled_if_small("key", "a")
@with_out_sharding
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample the logarithm of a gamma distributed variable.

    Parameters
    ----------
    {key}
    a : array_like
        Shape parameter of the gamma distribution, positive.
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
    gamma : The variable itself.

    Notes
    -----
    The result is accurate also for small `a`, where samples of `gamma` underflow to 0.

    Examples
    --------
    >>> import accnp as jnp
    >>> bool(jnp.isfinite(jnp.random.loggamma(jnp.random.key(0), 1e-6)))
    True
    """
    return _draw_samples(key, a, shape, dtype, "loggamma", True)


@api_boundary
@compiled_if_small("key", "a", "b")
@with_out_sharding
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the beta distribution.

    Parameters
    ----------
    {key}
    a : array_like
        First shape parameter, positive.
    b : array_like
        Second shape parameter, positive.
    {sample_shape_params}
    {dtype_samples}
    {out_sharding_samples}

    Returns
    -------
    Array
        Samples between 0 and 1.

    Raises
    ------
    {raises_key}
    {raises_samples_params}

    See Also
    --------
    dirichlet : The generalization to vectors.
    scipy.stats.beta.logpdf : Log of the density.

    Notes
    -----
    The density is proportional to x**(a - 1) (1 - x)**(b - 1).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.beta(jnp.random.key(0), 2.0, 3.0, (3,)).shape
    (3,)
    """
    sizes, kind, (p, q) = _parameters("beta", shape, dtype, a, b)
    first, second = split(key)
    x = loggamma(first, broadcast_to(p, sizes), sizes, kind)
    y = loggamma(second, broadcast_to(q, sizes), sizes, kind)
    top = uf.maximum(x, y)
    left, right = uf.exp(x - top), uf.exp(y - top)
    return left / (left + right)


@api_boundary
@compiled_if_small("key", "alpha")
@with_out_sharding
def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the Dirichlet distribution.

    Parameters
    ----------
    {key}
    alpha : array_like
        Concentrations, positive, of shape (..., k).
    shape : int or sequence of int, optional
        Shape of the batch. The default is the shape of `alpha` without its last axis.
    {dtype_samples}
    {out_sharding_samples}

    Returns
    -------
    Array
        Samples of shape (*shape, k), whose last axis adds up to 1.

    Raises
    ------
    {raises_key}
    ValueError
        If `alpha` is a scalar or does not broadcast to the shape, or `dtype` is not floating.

    See Also
    --------
    beta : The case of two categories.
    scipy.stats.dirichlet.logpdf : Log of the density.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.dirichlet(jnp.random.key(0), jnp.ones(3), (2,)).shape
    (2, 3)
    """
    kind = float_dtype(dtype, "dirichlet")
    weights = wrap(cast(as_node(alpha, "random.dirichlet"), kind))
    if not weights.ndim:
        raise ValueError(
            "random.dirichlet: alpha must have at least one axis; got a scalar; pass a vector"
        )
    batch = weights.shape[:-1] if shape is None else as_shape(shape, "random.dirichlet")
    logs = loggamma(key, weights, batch + weights.shape[-1:], kind)
    return softmax(logs, axis=-1)


@api_boundary
@compiled_if_small("key", "df")
@with_out_sharding
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the chi-squared distribution.

    Parameters
    ----------
    {key}
    df : array_like
        Degrees of freedom, positive.
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
    gamma : The gamma distribution with a = df / 2, scaled by 2.
    scipy.stats.chi2.logpdf : Log of the density.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.chisquare(jnp.random.key(0), 3.0, (3,)).shape
    (3,)
    """
    sizes, kind, (free,) = _parameters("chisquare", shape, dtype, df)
    half = 0.5 * free
    return 2 * uf.exp(loggamma(key, half, sizes, kind))


@api_boundary
@compiled_if_small("key", "df")
@with_out_sharding
def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from Student's t distribution.

    Parameters
    ----------
    {key}
    df : array_like
        Degrees of freedom, positive.
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
    normal : The limit for many degrees of freedom.
    cauchy : The case of one degree of freedom.
    scipy.stats.t.logpdf : Log of the density.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.t(jnp.random.key(0), 3.0, (3,)).shape
    (3,)
    """
    sizes, kind, (free,) = _parameters("t", shape, dtype, df)
    first, second = split(key)
    n = normal(first, sizes, kind)
    half = free / 2
    return n * uf.sqrt(half / gamma(second, half, sizes, kind))


@api_boundary
@compiled_if_small("key", "dfnum", "dfden")
@with_out_sharding
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the F distribution.

    Parameters
    ----------
    {key}
    dfnum : array_like
        Degrees of freedom of the numerator, positive.
    dfden : array_like
        Degrees of freedom of the denominator, positive.
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
    chisquare : Distribution of numerator and denominator.

    Notes
    -----
    The ratio of two chi-squared variables, each divided by its degrees of freedom.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.f(jnp.random.key(0), 3.0, 5.0, (3,)).shape
    (3,)
    """
    sizes, kind, (up, down) = _parameters("f", shape, dtype, dfnum, dfden)
    first, second = split(key)
    over = chisquare(second, broadcast_to(up, sizes), sizes, kind) / up
    return over / (chisquare(first, broadcast_to(down, sizes), sizes, kind) / down)


@api_boundary
@compiled_if_small("key", "p")
@with_out_sharding
def generalized_normal(
    key: ArrayLike,
    p: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the generalized normal distribution.

    Parameters
    ----------
    {key}
    p : array_like
        Exponent of the density, positive.
    {sample_shape}
    dtype : dtype_like, optional
        Floating dtype of the samples, promoted with that of `p`. The default is float32 (float64
        with `jax_enable_x64`).
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    ValueError
        If `dtype` is not floating, or `p` does not broadcast to the shape.

    See Also
    --------
    normal : The case of exponent 2, up to the scale.
    laplace : The case of exponent 1.
    scipy.stats.gennorm.logpdf : Log of the density.

    Notes
    -----
    The density is proportional to exp(-abs(x)**p).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.generalized_normal(jnp.random.key(0), 2.0, (3,)).shape
    (3,)
    """
    kind = float_dtype(dtype, "generalized_normal")
    sizes = as_shape(shape, "random.generalized_normal")
    power = wrap(as_node(p, "random.generalized_normal"))
    first, second = split(key)
    size = gamma(first, 1 / power, sizes, kind)
    return rademacher(second, sizes, kind) * size ** (1 / power).astype(kind)


@api_boundary
@compiled_if_small("key", "p")
@with_out_sharding
def ball(
    key: ArrayLike,
    d: int,
    p: ArrayLike = 2,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample points of the unit ball of a p-norm.

    Parameters
    ----------
    {key}
    d : int
        Dimension of the ball.
    p : array_like, optional
        Order of the norm. The default, 2, is the Euclidean norm.
    {sample_shape}
    {dtype_samples}
    {out_sharding_samples}

    Returns
    -------
    Array
        Uniformly distributed points, of shape (*shape, d).

    Raises
    ------
    {raises_key}
    ValueError
        If `dtype` is not floating, or `p` does not broadcast to the shape.

    See Also
    --------
    generalized_normal : Distribution from which the directions are drawn.
    orthogonal : Random orthogonal matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.ball(jnp.random.key(0), 3, shape=(2,)).shape
    (2, 3)
    """
    kind = float_dtype(dtype, "ball")
    sizes = as_shape(shape, "random.ball")
    power = wrap(as_node(p, "random.ball"))
    first, second = split(key)
    g = generalized_normal(first, power, (*sizes, d), kind)
    e = exponential(second, sizes, kind)
    norm = ((uf.abs(g) ** power).sum(axis=-1) + e) ** (1 / power)
    return g / norm[..., None]


@api_boundary
@compiled_if_small("key", "mean")
@with_out_sharding
def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the Wald (inverse Gaussian) distribution with scale 1.

    Parameters
    ----------
    {key}
    mean : array_like
        Mean of the distribution, positive.
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
    normal : Normal distribution.

    Notes
    -----
    Algorithm of J. R. Michael, W. R. Schucany and R. W. Haas, "Generating random variates using
    transformations with multiple roots", The American Statistician 30 (1976).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.wald(jnp.random.key(0), 2.0, (3,)).shape
    (3,)
    """
    sizes, kind, (m,) = _parameters("wald", shape, dtype, mean)
    m = broadcast_to(m, sizes)
    first, second = split(key)
    v, z = normal(first, sizes, kind), uniform(second, sizes, kind)
    y = v**2
    squares = m**2
    x = m + squares * y / 2 - m / 2 * uf.sqrt(4 * m * y + squares * y**2)
    return where(z <= m / (m + x), x, squares / x)
