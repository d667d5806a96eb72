"""The basic samplers of `random`: bits, uniform and normal numbers, permutations and choices.

The numbers are those of JAX. Samples are lazy functions of counters that fuse with other
operations; arrays of bits are never stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import (
    as_node,
    as_nodes,
    broadcast_nodes,
    cast,
    promote_inexact,
    scalar_node,
    to_shape,
)
from accnp.api.arguments.non_numeric import moves_elements
from accnp.api.arguments.shapes import as_axis, as_int, as_shape
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, Shape, ShardingLike, wrap
from accnp.config import config
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary, not_one_of
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.numpy.indexing import gather_axis
from accnp.numpy.manipulation import cut, reshape_plain
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import check_index_dtype
from accnp.primitives.random import erf_inv_single
from accnp.random.generators import Words
from accnp.random.keys import (
    PRNGKey,
    PRNGKeyArray,
    clone,
    float_dtype,
    fold_in,
    inexact_dtype,
    key,
    key_data,
    key_impl,
    key_words,
    sample_shape,
    split,
    spread,
    wrap_key_data,
)
from accnp.sharding.device_placement import with_out_sharding

__all__ = [
    "PRNGKey", "PRNGKeyArray", "bernoulli", "bits", "choice", "clone",
    "fold_in", "key", "key_data", "key_impl", "normal", "permutation",
    "randint", "split", "uniform", "wrap_key_data",
]  # fmt: skip


# --- bits and uniforms ---------------------------------------------------------------------------


@api_boundary
@with_out_sharding
def bits(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample random bits as unsigned integers.

    Parameters
    ----------
    {key}
    {sample_shape}
    dtype : dtype_like, optional
        Unsigned integer dtype. The default is uint32 (uint64 with `jax_enable_x64`).
    {out_sharding_samples}

    Returns
    -------
    Array
        Uniformly distributed unsigned integers of the given shape and dtype.

    Raises
    ------
    {raises_key}
    ValueError
        If `dtype` is not an unsigned integer dtype, or `key` is an array of several keys.

    See Also
    --------
    randint : Integers in a given interval.
    uniform : Floating-point numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.bits(jnp.random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    words = key_words(key, "bits")
    default = np.uint64 if config.enable_x64 else np.uint32
    kind = dtypes.requested_dtype(default if dtype is None else dtype, "random.bits")
    if kind.kind != "u":
        raise ValueError(
            f"random.bits: the dtype must be an unsigned integer; got {kind.name}; pass 'uint32'"
        )
    return wrap(words.bits(kind.itemsize * 8, as_shape(shape, "random.bits")))


def unit_node(words: Words, shape: tuple[int, ...], dtype: np.dtype) -> Node:
    """Return uniform numbers in [0, 1): random bits as mantissas of numbers in [1, 2), minus 1."""
    info = dtypes.finfo(dtype)
    width, mantissa = info.bits, info.nmant
    drawn = 8 if mantissa < 8 else width
    kind = np.dtype(f"uint{width}")
    x = cast(words.bits(drawn, shape), kind)
    x = o.shift_right_logical(x, scalar_node(drawn - mantissa, kind, False))
    one = int(np.ones((), dtype).view(kind))
    x = o.bitcast_convert_type(o.or_(x, scalar_node(one, kind, False)), new_dtype=dtype)
    return o.sub(x, like(x, 1))


def uniform_node(
    words: Words, shape: tuple[int, ...], dtype: np.dtype, low: Any = 0.0, high: Any = 1.0
) -> Node:
    """Return uniform numbers in [low, high); the bounds are Python floats or nodes of the dtype."""
    x = unit_node(words, shape, dtype)
    if isinstance(low, float) and isinstance(high, float):
        if (low, high) == (0.0, 1.0):
            return x
        a = np.asarray(low, dtype)
        span = float(np.asarray(high, dtype) - a)
        first, width = like(x, float(a)), like(x, span)
    else:
        first, last = (spread(v, shape) if isinstance(v, Node) else like(x, v) for v in (low, high))
        first, last = broadcast_nodes("uniform", [first, last])
        width = o.sub(last, first)
    if dtype.itemsize >= 4:  # a fused multiply-add, for the same bits as JAX
        return o.max(first, o.fma(x, width, first))
    return o.max(first, o.add(o.mul(x, width), first))


@api_boundary
@compiled_if_small("key", "minval", "maxval")
@with_out_sharding
def uniform(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the uniform distribution over [minval, maxval).

    Parameters
    ----------
    {key}
    {sample_shape}
    {dtype_samples}
    minval : array_like, optional
        Lower bound, included; it broadcasts to the shape. The default is 0.
    maxval : array_like, optional
        Upper bound, excluded; it broadcasts to the shape. The default is 1.
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    {raises_key}
    ValueError
        If `dtype` is not floating, the bounds do not broadcast to the shape, or `key` is an array
        of several keys.

    See Also
    --------
    randint : Uniformly distributed integers.
    normal : Normally distributed numbers.

    Notes
    -----
    Random bits become the mantissa of a number in [1, 2), from which 1 is subtracted, as in JAX.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.uniform(jnp.random.key(0), (2,))
    Array([0.947667 , 0.9785799], dtype=float32)
    """
    words = key_words(key, "uniform")
    kind = float_dtype(dtype, "uniform")
    low, high = as_nodes("uniform", minval, maxval)
    sizes = sample_shape(as_shape(shape, "random.uniform"), "uniform", low, high)
    if minval == 0.0 and maxval == 1.0 if _are_python_numbers(minval, maxval) else False:
        return wrap(uniform_node(words, sizes, kind))
    return wrap(uniform_node(words, sizes, kind, cast(low, kind), cast(high, kind)))


def _are_python_numbers(*values: Any) -> bool:
    return all(isinstance(v, int | float) for v in values)


@api_boundary
@compiled_if_small("key", "minval", "maxval")
@with_out_sharding
def randint(
    key: ArrayLike,
    shape: Shape,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample uniformly distributed integers from [minval, maxval).

    Parameters
    ----------
    {key}
    shape : int or sequence of int
        Shape of the samples; () gives a single number.
    minval : array_like
        Lower bound, included; it broadcasts to the shape.
    maxval : array_like
        Upper bound, excluded; it broadcasts to the shape.
    dtype : dtype_like, optional
        Integer dtype of the samples. The default is int32 (int64 with `jax_enable_x64`).
    {out_sharding_samples}

    Returns
    -------
    {returns_samples}

    Raises
    ------
    TypeError
        If `key` is not a PRNG key, a size is negative, or `dtype` is not an integer dtype.
    ValueError
        If the bounds do not broadcast to the shape, or `key` is an array of several keys.

    See Also
    --------
    bits : Integers over the whole range of a dtype.
    uniform : Floating-point numbers.
    choice : Elements of an array.

    Notes
    -----
    If the interval is empty, all samples are `minval`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.randint(jnp.random.key(0), (4,), 0, 10)
    Array([9, 0, 2, 3], dtype=int32)
    """
    words = key_words(key, "randint")
    kind = dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, "randint")
    if not dtypes.issubdtype(kind, np.integer):
        raise TypeError(
            f"random.randint: the dtype must be an integer dtype; got {kind.name}; use "
            "random.uniform for others"
        )
    low, high = as_nodes("randint", minval, maxval)
    sizes = sample_shape(as_shape(shape, "random.randint"), "randint", low, high)
    return wrap(randint_node(words, sizes, low, high, kind))


def _clip_to(x: Node, dtype: np.dtype) -> Node:
    """Convert an integer, limited to the range of the new dtype."""
    old, new = np.iinfo(x.aval.dtype), np.iinfo(dtype)
    low, high = max(old.min, new.min), min(old.max, new.max)
    if low > old.min or high < old.max:
        x = o.clamp(like(x, low), x, like(x, high))
    return cast(x, dtype)


def randint_node(words: Words, shape: Any, low: Node, high: Node, kind: np.dtype) -> Node:
    """Return integers from two draws of bits each, which keeps the bias of the remainder small."""
    default = dtypes.default_int()
    low, high = (v if v.aval.dtype.kind in "iu" else cast(v, default) for v in (low, high))
    if kind.itemsize < 4:  # drawn as int32, so that the upper bound is representable
        info = dtypes.iinfo(kind)
        low, high = (_clip_to(v, dtypes.int32) for v in (low, high))
        low = o.clamp(like(low, info.min), low, like(low, info.max))
        high = o.clamp(like(high, info.min), high, like(high, info.max + 1))
        return cast(randint_node(words, shape, low, high, dtypes.int32), kind)
    top = min(np.iinfo(kind).max, np.iinfo(high.aval.dtype).max)
    beyond = o.gt(high, like(high, top))
    low, high = (spread(_clip_to(v, kind), shape) for v in (low, high))
    low, high, beyond = broadcast_nodes("randint", [low, high, spread(beyond, shape)])
    width = kind.itemsize * 8
    unsigned = np.dtype(f"uint{width}")
    higher, lower = (w.bits(width, shape) for w in words.several(2))
    span = cast(o.sub(high, low), unsigned)
    empty = o.le(high, low)
    span = _pick(empty, like(span, 1), span)
    more = _pick(beyond, o.not_(empty), like(empty, False))
    span = _pick(more, o.add(span, like(span, 1)), span)
    factor = o.rem(like(span, 2 ** (width // 2)), span)
    factor = o.rem(o.mul(factor, factor), span)
    offset = o.add(o.mul(o.rem(higher, span), factor), o.rem(lower, span))
    return o.add(low, cast(o.rem(offset, span), kind))


def _pick(test: Node, yes: Node, no: Node) -> Node:
    """Select `yes` where the test holds, else `no`; scalars are broadcast."""
    shape = test.aval.shape or yes.aval.shape or no.aval.shape
    return o.select_n(*[to_shape(v, shape) for v in (test, no, yes)])


@api_boundary
@compiled_if_small("key", "p")
@with_out_sharding
def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: Shape | None = None,
    mode: str = "low",
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample bools that are True with probability p.

    Parameters
    ----------
    {key}
    p : array_like of float, optional
        Probability of True. The default is 0.5.
    {sample_shape_params}
    mode : {"low", "high"}, optional
        "high" uses twice as many random bits, so that very small probabilities are exact. The
        default is "low".
    {out_sharding_samples}

    Returns
    -------
    Array
        Samples of dtype bool.

    Raises
    ------
    TypeError
        If `key` is not a PRNG key, or `p` is not floating.
    ValueError
        If `p` does not broadcast to the shape, `mode` is unknown, or `key` is an array of several
        keys.

    See Also
    --------
    binomial : Number of successes in several trials.
    rademacher : Samples of -1 and 1.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.bernoulli(jnp.random.key(0), 0.5, (4,))
    Array([False, False,  True,  True], dtype=bool)
    """
    words = key_words(key, "bernoulli")
    if mode not in ("low", "high"):
        raise not_one_of("random.bernoulli", "mode", mode, ("low", "high"))
    prob = as_node(p, "random.bernoulli")
    if prob.aval.dtype.kind in "biuc":
        raise TypeError(
            f"random.bernoulli: p must be floating; got {prob.aval.dtype.name}; pass float(p)"
        )
    prob = promote_inexact("bernoulli", p)[0]
    kind = prob.aval.dtype
    sizes = sample_shape(shape, "bernoulli", prob)
    prob = spread(prob, sizes)
    if mode == "low":
        return wrap(o.lt(uniform_node(words, sizes, kind), prob))
    both = uniform_node(words, (2, *sizes), kind)
    first, second = (o.squeeze(cut(both, 0, i, i + 1), dimensions=(0,)) for i in (0, 1))
    second = o.mul(second, like(second, 2.0 ** -dtypes.finfo(kind).nmant))
    return wrap(o.lt(second, o.sub(prob, first)))


# --- normals -------------------------------------------------------------------------------------


def normal_node(words: Words, shape: tuple[int, ...], dtype: np.dtype) -> Node:
    """Return standard normal numbers by the inverse error function."""
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)
    u = uniform_node(words, shape, dtype, float(low), 1.0)
    root = like(u, float(np.array(np.sqrt(2), dtype)))
    return o.mul(root, erf_inv_single(u) if dtype == np.float32 else o.erf_inv(u))


@api_boundary
@compiled_if_small("key")
@with_out_sharding
def normal(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sample from the standard normal distribution, real or complex.

    Parameters
    ----------
    {key}
    {sample_shape}
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
        If `dtype` is neither floating nor complex, or `key` is an array of several keys.

    See Also
    --------
    truncated_normal : Normal numbers within bounds.
    multivariate_normal : Vectors with a covariance matrix.
    uniform : Uniformly distributed numbers.

    Notes
    -----
    Mean 0 and variance 1. Real and imaginary parts of complex samples have variance 1/2 each.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.normal(jnp.random.key(0), (2,))
    Array([1.6226422, 2.0252647], dtype=float32)
    """
    words = key_words(key, "normal")
    kind = inexact_dtype(dtype, "normal")
    sizes = as_shape(shape, "random.normal")
    if kind.kind == "c":
        real = np.dtype(np.float32 if kind.itemsize == 8 else np.float64)
        parts = [normal_node(w, sizes, real) for w in words.several(2)]
        z = o.complex(*parts)
        return wrap(o.div(z, like(z, math.sqrt(2))))
    return wrap(normal_node(words, sizes, kind))


# --- permutations and choices --------------------------------------------------------------------


def shuffle_node(words: Words, x: Node, axis: int) -> Node:
    """Sort by random numbers, in enough rounds that equal random numbers do not matter."""
    rounds = math.ceil(3 * math.log(max(1, x.aval.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        words, drawn = words.several(2)
        order = drawn.bits(32, x.aval.shape)
        x = items(o.sort(order, x, dimension=axis, is_stable=True, num_keys=1))[1]
    return x


@moves_elements("x")
@api_boundary
@compiled_if_small("key", "x", or_counts="x")
@with_out_sharding
def permutation(
    key: ArrayLike,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Shuffle an array along an axis, or the integers below a number.

    Parameters
    ----------
    {key}
    x : array_like or int
        Array to shuffle, or a number n, which stands for arange(n).
    axis : int, optional
        Axis along which to shuffle. The default is 0.
    independent : bool, optional
        If True, each line along the axis is shuffled separately. By default, whole slices change
        places.
    {out_sharding_samples}

    Returns
    -------
    Array
        Shuffled copy, with the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `key` is not a PRNG key, or `x` is a scalar that is not an integer.
    ValueError
        If `axis` is out of bounds, or `key` is an array of several keys.

    See Also
    --------
    choice : Sample some of the elements.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.permutation(jnp.random.key(0), 4)
    Array([0, 1, 3, 2], dtype=int32)
    """
    words = key_words(key, "permutation")
    node = as_node(x, "permutation")
    if not node.aval.ndim:
        if node.aval.dtype.kind not in "iu":
            raise TypeError(
                "random.permutation: x must be an integer or have axes; got a scalar "
                "array; pass int(x)"
            )
        n = as_int(x, "random.permutation", "x", "shape")
        as_axis(axis, 1, "random.permutation")
        index = o.iota(dtype=dtypes.default_int(), shape=(max(0, n),), dimension=0)
        return wrap(shuffle_node(words, index, 0))
    d = as_axis(axis, node.aval.ndim, "random.permutation")
    if independent or node.aval.ndim == 1:
        return wrap(shuffle_node(words, node, d))
    index = o.iota(dtype=dtypes.default_int(), shape=(node.aval.shape[d],), dimension=0)
    return wrap(gather_axis(node, shuffle_node(words, index, 0), d))


@moves_elements("a")
@api_boundary
@compiled_if_small("key", "a", "p", or_counts="a")
def choice(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Sample elements of an array along an axis, or integers below a number.

    Parameters
    ----------
    {key}
    a : array_like or int
        Array to sample from, or a number n, which stands for arange(n). A floating-point number is
        truncated.
    shape : sequence of int, optional
        Shape of the samples. The default, (), gives a single one.
    replace : bool, optional
        Whether an element may be sampled more than once. The default is True.
    p : array_like, optional
        Probabilities of the elements along the axis, which add up to 1. By default all elements are
        equally likely.
    axis : int, optional
        Axis of `a` along which to sample. The default is 0.
    mode : {"low", "high"}, optional
        How precisely weighted samples without replacement are drawn; see `gumbel`.

    Returns
    -------
    Array
        Samples with the dtype of `a`. Its shape is that of `a` with `shape` in the place of the
        axis.

    Raises
    ------
    TypeError
        If `key` is not a PRNG key, or `shape` is not a sequence.
    ValueError
        If `p` has the wrong shape, there is nothing to sample from, `axis` is out of bounds, or
        more samples than elements are requested without replacement.

    See Also
    --------
    permutation : Shuffle all elements.
    categorical : Sample indices by unnormalized log-probabilities.
    randint : Integers from an interval.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.choice(jnp.random.key(0), jnp.array([5, 6, 7]), (3,))
    Array([6, 5, 7], dtype=int32)
    """
    name = "random.choice"
    words = key_words(key, "choice")
    if not isinstance(shape, Sequence):
        raise TypeError(f"{name}: shape must be a sequence; got {shape}; pass a tuple of sizes")
    sizes = as_shape(shape, name)
    x = as_node(a, name)
    if x.aval.ndim:
        d = as_axis(axis, x.aval.ndim, name)
        n = x.aval.shape[d]
    else:
        d, n = 0, int(a) if x.aval.dtype.kind == "f" else as_int(a, name, "a", "shape")  # type: ignore[arg-type]
    count = prod(sizes)
    if count == 0:
        zero = scalar_node(0, x.aval.dtype, False)
        return wrap(o.broadcast_in_dim(zero, shape=sizes, broadcast_dimensions=()))
    if n <= 0:
        raise ValueError(
            f"{name}: a must be greater than 0 unless no samples are taken; got {n}; "
            "pass elements to choose from, or an integer above 0"
        )
    if not replace and count > n:
        raise ValueError(
            f"{name}: Cannot take a larger sample (size {count}) than population (size {n}) when "
            "'replace=False'; pass replace=True"
        )
    kind = dtypes.default_int()
    check_index_dtype(name, n, kind)
    if p is not None:
        index = _choose_weighted(words, p, n, sizes, replace, mode)
    elif replace:
        low, high = scalar_node(0, kind, False), scalar_node(n, kind, False)
        index = randint_node(words, sizes, low, high, kind)
    else:
        index = permutation(key, n)._node
        as_axis(axis, x.aval.ndim or 1, name)  # an integer is like a vector
        if x.aval.ndim == 1:
            x = permutation(key, a)._node
            return wrap(reshape_plain(cut(x, 0, 0, count), sizes))
        index = cut(index, 0, 0, count)
    if not x.aval.ndim:
        return wrap(reshape_plain(index, sizes))
    out = gather_axis(x, index, d)
    shape_out = (*x.aval.shape[:d], *sizes, *x.aval.shape[d + 1 :])
    return wrap(reshape_plain(out, shape_out))


def _choose_weighted(words: Words, p: Any, n: int, sizes: Any, replace: bool, mode: Any) -> Node:
    """Return indices with given probabilities."""
    probs = promote_inexact("choice", p)[0]
    if probs.aval.shape != (n,):
        raise ValueError(
            f"random.choice: p must be None or a 1D vector with the same size as a, {n}; "
            f"got shape {probs.aval.shape}; pass one probability for each element"
        )
    kind = probs.aval.dtype
    if replace:
        total = o.cumsum(probs, axis=0, reverse=False)
        last = o.squeeze(cut(total, 0, n - 1, n), dimensions=(0,))
        u = uniform_node(words, sizes, kind)
        r = o.mul(last, o.sub(like(u, 1), u))
        return cast(o.searchsorted(total, r, side="left"), dtypes.default_int())
    g = o.add(gumbel_node(words, (n,), kind, mode), o.log(probs))
    return cast(items(o.top_k(g, k=prod(sizes), axis=0))[1], dtypes.default_int())


def gumbel_node(words: Words, shape: tuple[int, ...], dtype: np.dtype, mode: Any = None) -> Node:
    """Return numbers with the standard Gumbel distribution."""
    if mode not in (None, "low", "high"):
        raise not_one_of("random.gumbel", "mode", mode, (None, "low", "high"))
    info = dtypes.finfo(dtype)
    if mode == "high":
        both = uniform_node(words, (2, *shape), dtype)
        high, low = (o.squeeze(cut(both, 0, i, i + 1), dimensions=(0,)) for i in (0, 1))
        fine = o.add(o.add(high, o.mul(like(low, 2.0**-info.nmant), low)), like(low, info.tiny))
        x = _pick(o.ge(high, like(high, 0.5)), high, fine)
        return o.neg(o.log(o.neg(o.log1p(o.neg(x)))))
    u = uniform_node(words, shape, dtype, float(info.tiny), 1.0)
    return o.neg(o.log(o.neg(o.log(u))))
