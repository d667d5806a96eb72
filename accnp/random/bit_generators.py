"""`lax.rng_bit_generator`, `lax.rng_uniform` and the Threefry cipher.

`rng_bit_generator` takes a key of four words, which include a counter, and returns the next key and
bits that equal those of JAX on a CPU.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, scalar_node, to_shape
from accnp.api.arguments.shapes import as_shape
from accnp.api.effects.callbacks import io_callback
from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct
from accnp.array_type import Array, ArrayLike, Shape, ShardingLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.lax.enumerations import RandomAlgorithm
from accnp.numpy.composed_primitives import composed
from accnp.numpy.manipulation import cut, reshape_plain
from accnp.primitives.random import WORD
from accnp.random.basic_samplers import unit_node
from accnp.random.generators import (
    WIDE,
    ThreefryWords,
    by_philox,
    count,
    first_of,
    halves,
    joined,
    vector_words,
)
from accnp.sharding.device_placement import record_sharded

__all__ = [
    "rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "rng_uniform_p", "threefry_2x32",
]  # fmt: skip


def _stack_parts(parts: list[Node], axis: int) -> Node:
    """Stack arrays along a new axis."""
    shape = parts[0].aval.shape
    wide = (*shape[:axis], 1, *shape[axis:])
    return o.concatenate(*[reshape_plain(x, wide) for x in parts], dimension=axis)


def _by_threefry(
    words: tuple[Node, ...], shape: tuple[int, ...], dtype: np.dtype
) -> tuple[Node, int]:
    """Generate two words for each count.

    They are adjacent along the first even axis; without an even axis, along the longest axis, from
    which the last word is dropped. Returns the bits, and how many counts were used.
    """
    if dtype == WIDE:
        axis, half = None, shape
    elif not shape:
        axis, half = 0, (1,)
    else:
        even = [d for d, n in enumerate(shape) if n % 2 == 0]
        axis = even[0] if even else max(range(len(shape)), key=lambda d: shape[d])
        half = tuple((n + 1) // 2 if d == axis else n for d, n in enumerate(shape))
    used = prod(half)
    low, high = halves(o.add(count(used), joined(words[2], words[3])))
    first, second = (
        reshape_plain(f(words[0], words[1], low, high), half) for f in (o.threefry_0, o.threefry_1)
    )
    if axis is None:
        return joined(first, second), used
    whole = _stack_parts([first, second], axis + 1)
    n = half[axis]
    whole = reshape_plain(whole, (*half[:axis], 2 * n, *half[axis + 1 :]))
    length = shape[axis] if shape else 1
    return cast(reshape_plain(cut(whole, axis, 0, length), shape), dtype), used


def _generate(
    key: Array,
    *,
    shape: tuple[int, ...],
    dtype: np.dtype,
    algorithm: RandomAlgorithm,
    out_sharding: Any = None,
) -> list[Array]:
    node = key._node
    if node.aval.dtype == WIDE:
        parts = [o.squeeze(cut(node, 0, i, i + 1), dimensions=(0,)) for i in (0, 1)]
        words = tuple([w for part in parts for w in halves(part)])
    else:
        words = tuple([o.squeeze(cut(node, 0, i, i + 1), dimensions=(0,)) for i in range(4)])
    if prod(shape) == 0:
        return [key, wrap(to_shape(scalar_node(0, dtype, False), shape))]
    generate = _by_threefry if algorithm is RandomAlgorithm.RNG_THREE_FRY else by_philox
    bits, used = generate(words, shape, dtype)
    low, high = halves(o.add(joined(words[2], words[3]), scalar_node(used, WIDE, False)))
    after = _stack_parts([words[0], words[1], low, high], 0)
    if node.aval.dtype == WIDE:
        after = _stack_parts([joined(words[0], words[1]), joined(low, high)], 0)
    return [wrap(after), wrap(bits)]


def _generate_many(keys: list[Array], flags: list[bool], size: int, **params: Any) -> list[Array]:
    """Generate the bits of all examples from the first key; the other keys do not change."""
    params["shape"] = (size, *params["shape"])
    after, bits = rng_bit_generator_p.bind(first_of(keys[0], flags[0]), **params)
    rest = cut(keys[0]._node, 0, 1, size)
    first = reshape_plain(after._node, (1, *after.shape))
    return [wrap(o.concatenate(first, rest, dimension=0)), bits]


rng_bit_generator_p = composed("rng_bit_generator", _generate, several=True, batch=_generate_many)


@api_boundary
def rng_bit_generator(
    key: ArrayLike,
    shape: Shape,
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: ShardingLike = None,
) -> tuple[Array, Array]:
    """Generate random bits as unsigned integers, and the key for the next ones.

    Parameters
    ----------
    key : array_like
        State of the generator: four uint32 or two uint64 numbers.
    shape : int or sequence of int
        Shape of the bits to generate.
    dtype : dtype_like, optional
        Unsigned integer dtype. The default is uint32.
    algorithm : RandomAlgorithm, optional
        Generator to use. The default is Philox.
    {out_sharding}

    Returns
    -------
    new_key : Array
        State for the next call.
    bits : Array
        Random bits of the given shape and dtype.

    Raises
    ------
    TypeError
        If `key`, `dtype` or `algorithm` is not one of these.

    See Also
    --------
    random.bits : Random bits from a PRNG key.

    Notes
    -----
    Narrow integers are the low bits of 32-bit ones. Under `vmap` the first key generates the bits
    of all examples and is the only one that changes, as in JAX.

    Examples
    --------
    >>> import accnp as jnp
    >>> key = jnp.arange(1, 5, dtype="uint32")
    >>> key, bits = jnp.lax.rng_bit_generator(key, (2,))
    >>> key, bits
    (Array([1, 2, 4, 4], dtype=uint32), Array([ 512747620, 1298009047], dtype=uint32))
    """
    name = "lax.rng_bit_generator"
    node = as_node(key, name)
    kind = dtypes.requested_dtype(dtype, name)
    if kind.kind != "u":
        raise TypeError(f"rng_bit_generator: unsupported dtype {kind.name}; pass an unsigned one")
    if (node.aval.shape, node.aval.dtype) not in (((4,), WORD), ((2,), WIDE)):
        raise TypeError(
            f"{name}: the key must be four uint32 or two uint64; got "
            f"{node.aval.str_short()}; random.bits takes keys of `random`"
        )
    try:
        how = RandomAlgorithm(algorithm)
    except ValueError:
        raise TypeError(
            f"{name}: algorithm must be a RandomAlgorithm; got {algorithm!r}; "
            "pass one of its members"
        ) from None
    after, bits = rng_bit_generator_p.bind(
        wrap(node), shape=as_shape(shape, name), dtype=kind, algorithm=how, out_sharding=None
    )
    if out_sharding is not None:
        bits = wrap(record_sharded("rng_bit_generator", out_sharding, lambda x: x, bits._node))
    return after, bits


@api_boundary
def threefry_2x32(keypair: Any, counts: ArrayLike) -> Array:
    """Encrypt numbers by the Threefry-2x32 cipher.

    Parameters
    ----------
    keypair : pair of array_like
        Key, two scalars of dtype uint32.
    counts : array_like of uint32
        Numbers to encrypt; the first half of them is paired with the second.

    Returns
    -------
    Array
        Random bits of dtype uint32, of the shape of `counts`.

    Raises
    ------
    TypeError
        If a key or `counts` do not have dtype uint32.

    See Also
    --------
    random.bits : Random bits from a PRNG key.

    Notes
    -----
    20 rounds of the cipher of J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
    2011.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.extend.random.threefry_2x32((jax.numpy.uint32(0), jax.numpy.uint32(1)),
    ...                                 jax.numpy.arange(3, dtype="uint32"))
    Array([2441914641, 1110694964, 3819641963], dtype=uint32)
    """
    nodes = [as_node(x, "threefry_2x32") for x in (*keypair, counts)]
    for x in nodes:
        if x.aval.dtype != WORD:
            raise TypeError(
                f"threefry_2x32: keys and counts must be of uint32; got {x.aval.str_short()}; "
                "convert with astype('uint32')"
            )
    *keys, numbers = nodes
    size, half = numbers.aval.size, -(-numbers.aval.size // 2)
    flat = o.concatenate(
        reshape_plain(numbers, (size,)), cast(count(2 * half - size), WORD), dimension=0
    )
    pair = [cut(flat, 0, 0, half), cut(flat, 0, half, 2 * half)]
    out = o.concatenate(*[f(*keys, *pair) for f in (o.threefry_0, o.threefry_1)], dimension=0)
    return wrap(reshape_plain(cut(out, 0, 0, size), numbers.aval.shape))


# --- numbers from the generator of the process ---------------------------------------------------

_source: list[np.random.Generator] = []


def _fresh_words() -> np.ndarray:
    """Return two random words from a generator that is seeded once for the process."""
    if not _source:
        _source.append(np.random.default_rng())
    return _source[0].integers(0, 2**32, 2, dtype=np.uint32)


def _uniform(a: Array, b: Array, *, shape: tuple[int, ...]) -> Array:
    kind = a.dtype
    words = io_callback(_fresh_words, ShapeDtypeStruct((2,), np.uint32), ordered=True)._node
    pair = vector_words(words, ThreefryWords)
    if kind.kind in "iu":
        bits = unit_node(pair, shape, np.dtype(np.float32))
        span = o.convert_element_type(
            o.sub(b._node, a._node), new_dtype=bits.aval.dtype, weak_type=False
        )
        return wrap(o.add(cast(o.floor(o.mul(bits, span)), kind), a._node))
    unit = unit_node(pair, shape, kind)
    return wrap(o.add(o.mul(unit, o.sub(b._node, a._node)), a._node))


rng_uniform_p = composed("rng_uniform", _uniform)


@api_boundary
def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Shape) -> Array:
    """Sample uniform numbers in [a, b) from a generator of the process.

    Parameters
    ----------
    a : scalar
        Lower bound, included.
    b : scalar
        Upper bound, excluded, of the dtype of `a`.
    shape : int or sequence of int
        Shape of the samples to draw.

    Returns
    -------
    Array
        Samples of the given shape and of the dtype of the bounds.

    Raises
    ------
    ValueError
        If the bounds are not scalars of one dtype.

    See Also
    --------
    random.uniform : Reproducible samples from a key.

    Notes
    -----
    Every call gives other numbers, also every call of a jitted function.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.lax.rng_uniform(jnp.float32(2), jnp.float32(3), (100,))
    >>> bool((x >= 2).all() and (x < 3).all())
    True
    """
    low, high = as_node(a, "lax.rng_uniform"), as_node(b, "lax.rng_uniform")
    for x in (low, high):
        if x.aval.shape or x.aval.dtype != low.aval.dtype:
            raise ValueError(
                "lax.rng_uniform: the bounds must be scalars of one dtype; got "
                f"{low.aval.str_short()} and {high.aval.str_short()}; pass two numbers of one dtype"
            )
    return rng_uniform_p.bind(
        wrap(cast(low, low.aval.dtype)), wrap(cast(high, low.aval.dtype)),
        shape=as_shape(shape, "lax.rng_uniform"),
    )  # fmt: skip
