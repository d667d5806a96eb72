"""Samplers of whole numbers: Poisson, binomial and multinomial distributions.

Small means are sampled by counting (D. E. Knuth, The Art of Computer Programming 2, 3.4.1; L.
Devroye, Non-Uniform Random Variate Generation, X.4), larger ones by the transformed rejection of W.
Hoermann ("The transformed rejection method for generating Poisson random variables", 1993; "The
generation of binomial random variates", 1993). Random bits are used in the order of JAX, so that
samples equal those of JAX.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, promote_inexact, wrap
from accnp.api.arguments.values import unroll_steps
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, Shape, ShardingLike
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.op import o
from accnp.lax.control_flow.loops import scan, while_loop
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import array, full
from accnp.numpy.cumulative import cumsum
from accnp.numpy.manipulation import broadcast_to, moveaxis
from accnp.numpy.rearranging import flip
from accnp.numpy.selection import where
from accnp.random.basic_samplers import uniform
from accnp.random.keys import float_dtype, sample_shape, split
from accnp.sharding.device_placement import with_out_sharding

__all__ = ["binomial", "multinomial", "poisson"]

# log(k!) minus Stirling's approximation, for k from 0 to 9.
_TAILS = [
    math.lgamma(k + 1) - (k + 0.5) * math.log(k + 1) + (k + 1) - 0.5 * math.log(2 * math.pi)
    for k in range(10)
]


# --- Poisson --------------------------------------------------------------------------------------


def _count_uniforms(key: Any, rate: Array, whole: np.dtype) -> Array:
    """Count how many uniform numbers have a product above exp(-rate), minus one."""
    counter = dtypes.default_int()
    limit = min(np.iinfo(whole).max, np.iinfo(counter).max)

    def going(state: Any) -> Array:
        i, _, _, log_product = state
        return (log_product > -rate).any() & (i < limit)

    def step(state: Any) -> Any:
        i, k, key, log_product = state
        key, one = split(key)
        k = where(log_product > -rate, k + 1, k)
        u = uniform(one, rate.shape, np.float32)
        return i + 1, k, key, log_product + uf.log(u)

    start = (array(0, counter), full(rate.shape, 0, whole), key, full(rate.shape, 0, np.float32))
    return while_loop(going, step, start)[1] - 1


def _until_accepted(key: Any, shape: tuple[int, ...], kind: np.dtype, draw: Any) -> Array:
    """Sample numbers by rejection: `draw` maps two uniform numbers to a sample and acceptance."""

    def going(state: Any) -> Array:
        _, _, accepted, _ = state
        return (~accepted).any()

    def step(state: Any) -> Any:
        i, sample, accepted, key = state
        key, first, second = split(key, 3)
        k, fits = draw(uniform(first, shape, kind) - 0.5, uniform(second, shape, kind))
        return i + 1, where(fits, k, sample), accepted | fits, key

    start = (array(0, np.int32), full(shape, -1, kind), full(shape, False), key)
    return while_loop(going, step, start)[1]


def _poisson_rejection(key: Any, rate: Array, whole: np.dtype) -> Array:
    log_rate = uf.log(rate)
    b = 0.931 + 2.53 * uf.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def draw(u: Array, v: Array) -> tuple[Array, Array]:
        near = 0.5 - uf.abs(u)
        k = uf.floor((2 * a / near + b) * u + rate + 0.43)
        left = uf.log(v * inverse_alpha / (a / (near * near) + b))
        right = -rate + k * log_rate - wrap(o.lgamma((k + 1)._node))
        at_once = (near >= 0.07) & (v <= v_r)
        never = (k < 0) | ((near < 0.013) & (v > near))
        return k, at_once | (~never & (left <= right))

    return _until_accepted(key, rate.shape, rate.dtype, draw).astype(whole)


@api_boundary
@compiled_if_small("key", "lam")
@with_out_sharding
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the Poisson distribution.

    Parameters
    ----------
    key : Array
        PRNG key of the Threefry generator.
    lam : array_like
        Rate, the mean of the distribution.
    {sample_shape_params}
    dtype : dtype_like, optional
        Integer dtype of the samples. The default is int32 (int64 with `jax_enable_x64`).
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    ValueError
        If `dtype` is not an integer dtype, or `lam` does not broadcast to the shape.

    See Also
    --------
    exponential : Distances between the events.
    scipy.stats.poisson.logpmf : Log of the probabilities.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.poisson(jnp.random.key(0), 3.0, (3,)).dtype
    dtype('int32')
    """
    whole = dtypes.requested_dtype(np.int32 if dtype is None else dtype, "random.poisson")
    if dtype is None:
        whole = dtypes.default_int()
    if whole.kind not in "iu":
        raise ValueError(
            f"random.poisson: the dtype must be an integer dtype; got {whole.name}; pass int32"
        )
    rate = wrap(promote_inexact("random.poisson", lam)[0])
    sizes = sample_shape(shape, "poisson", rate._node)
    rate = broadcast_to(rate, sizes).astype(np.float32)
    small = uf.isnan(rate) | (rate < 10)
    counted = _count_uniforms(key, where(small, rate, 0.0), whole)
    drawn = _poisson_rejection(key, where(small, 1e5, rate), whole)
    return where(rate == 0, 0, where(small, counted, drawn)).astype(whole)


# --- binomial -------------------------------------------------------------------------------------


def _stirling_tail(k: Array) -> Array:
    near = uf.clip(k, 0, 9)
    square = (near + 1) * (near + 1)
    formula = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (near + 1)
    return where(k <= 9, array(_TAILS, k.dtype)[uf.floor(near).astype(np.int32)], formula)


def _binomial_inversion(key: Any, n: Array, p: Array) -> Array:
    """Count how many geometric gaps fit into n."""
    log_miss = uf.log1p(-p)

    def going(state: Any) -> Array:
        return (state[2] <= n).any()

    def step(state: Any) -> Any:
        i, count, reached, key = state
        one, key = split(key)
        count = where(reached <= n, count + 1, count)
        gap = uf.ceil(uf.log(uniform(one, n.shape, n.dtype)) / log_miss)
        return i + 1, count, reached + gap, key

    nothing = full(n.shape, 0, n.dtype)
    return while_loop(going, step, (array(0, np.int32), nothing, nothing, key))[1] - 1


def _binomial_rejection(key: Any, n: Array, p: Array) -> Array:
    deviation = uf.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = uf.floor((n + 1) * p)

    def draw(u: Array, v: Array) -> tuple[Array, Array]:
        near = 0.5 - uf.abs(u)
        k = uf.floor((2 * a / near + b) * u + c)
        never = (k < 0) | (k > n)
        left = uf.log(v * alpha / (a / (near * near) + b))
        right = (
            (m + 0.5) * uf.log((m + 1) / (odds * (n - m + 1)))
            + (n + 1) * uf.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * uf.log(odds * (n - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(n - m)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        at_once = (near >= 0.07) & (v <= v_r)
        return k, at_once | (~never & (left <= right))

    return _until_accepted(key, n.shape, n.dtype, draw)


@api_boundary
@compiled_if_small("key", "n", "p")
def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Sample from the binomial distribution.

    Parameters
    ----------
    {key}
    n : array_like
        Number of trials of which successes are counted.
    p : array_like
        Probability of success in each trial.
    {sample_shape_params}
    {dtype_samples}

    Returns
    -------
    Array
        Numbers of successes, in a floating dtype; nan where `n` is negative or `p` is outside of
        [0, 1].

    Raises
    ------
    {raises_key}
    {raises_samples_params}

    See Also
    --------
    bernoulli : A single trial.
    multinomial : Trials with more than two outcomes.
    scipy.stats.binom.logpmf : Log of the probabilities.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.binomial(jnp.random.key(0), 10, 0.5, (3,)).shape
    (3,)
    """
    kind = float_dtype(dtype, "binomial")
    chances = promote_inexact("random.binomial", p)[0]  # samples are drawn in the dtype of p
    nodes = [cast(as_node(n, "random.binomial"), chances.aval.dtype), chances]
    sizes = sample_shape(shape, "binomial", *nodes)
    count, chance = (broadcast_to(wrap(v), sizes) for v in nodes)
    return _binomial(key, count, chance).astype(kind)


def _binomial(key: Any, count: Array, chance: Array) -> Array:
    likely = ~(chance < 0.5)
    rare = where(likely, 1 - chance, chance)
    bad_count = uf.isnan(count) | (count < 0)
    bad_chance = uf.isnan(rare) | (rare < 0)
    endless = uf.isinf(count)
    safe = where(bad_chance, 0.01, rare)
    few = bad_count | (count * safe <= 10)
    whole = uf.floor(count)
    counted = _binomial_inversion(key, where(few, whole, 0.0), safe)
    drawn = _binomial_rejection(key, where(few, 1e4, whole), where(few, 0.5, safe))
    samples = where(few, counted, drawn)
    invalid = bad_chance | bad_count
    samples = where(invalid, np.nan, samples)
    samples = where(endless & ~invalid, np.inf, samples)
    flipped = likely & ~(bad_count | bad_chance | endless)
    return where(flipped, whole - samples, samples).astype(count.dtype)


@api_boundary
@compiled_if_small("key", "n", "p")
def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Sample from the multinomial distribution.

    The samples count how often each of k outcomes occurs in n trials.

    Parameters
    ----------
    {key}
    n : array_like
        Number of trials, of shape (...,).
    p : array_like
        Probabilities of the outcomes, of shape (..., k). They are scaled to add up to 1.
    shape : int or sequence of int, optional
        Shape of the samples, including k. The default is the shape of `p`.
    {dtype_samples}
    unroll : int or bool, optional
        Unrolling factor of the loop over outcomes in JAX. It is accepted and has no effect, since
        the loop is native code.

    Returns
    -------
    Array
        Counts of shape (..., k) in a floating dtype, whose last axis adds up to `n`.

    Raises
    ------
    {raises_key}
    ValueError
        If `n` or `p` does not fit the shape.

    See Also
    --------
    binomial : Trials with two outcomes.
    scipy.stats.multinomial.logpmf : Log of the probabilities.

    Examples
    --------
    >>> import accnp as jnp
    >>> counts = jnp.random.multinomial(jnp.random.key(0), 10, jnp.array([0.2, 0.8]))
    >>> float(counts.sum())
    10.0
    """
    kind = dtypes.default_float()
    if dtype is not None:
        kind = dtypes.requested_dtype(dtype, "random.multinomial")
    count, chances = (wrap(v) for v in promote_inexact("random.multinomial", n, p))
    batch_shape = chances.shape if shape is None else shape
    sizes = sample_shape(batch_shape, "multinomial", count[..., None]._node, chances._node)
    count, chances = broadcast_to(count, sizes[:-1]), broadcast_to(chances, sizes)
    chances = moveaxis(chances, -1, 0)
    left = flip(cumsum(flip(chances, 0), 0), 0)
    ratios = chances / where(left == 0, 1, left)

    def step(remaining: Array, row: Any) -> tuple[Array, Array]:
        ratio, key = row
        sample = _binomial(key, remaining, uf.clip(ratio, 0, 1))
        return remaining - sample, sample

    unroll_steps("random.multinomial", unroll)
    counts = scan(step, count, (ratios, split(key, len(chances))))[1]
    return moveaxis(counts, 0, -1).astype(kind)
