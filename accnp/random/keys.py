"""PRNG keys: made from seeds, split into further keys, and checked for samplers.

A raw key is a uint32 array whose last axis holds the words of its generator, two by default. A
typed key (`PRNGKeyArray`) wraps a raw one and stores its generator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import (
    as_node,
    as_nodes,
    broadcast_shapes,
    cast,
    cast_safely,
    scalar_node,
    to_shape,
)
from accnp.api.arguments.shapes import as_shape
from accnp.api.arguments.values import node_of
from accnp.array_type import Array, ArrayLike, Shape, wrap
from accnp.config import config
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary, warn
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.key_array import PRNGKeyArray
from accnp.primitives.random import WORD
from accnp.random.generators import (
    Words,
    generator,
    joined_words,
    vector_words,
)

__all__ = [
    "PRNGKey", "PRNGKeyArray", "clone", "fold_in", "key", "key_data", "key_dtype",
    "key_impl", "key_words", "split", "wrap_key_data",
]  # fmt: skip


# --- making keys ---------------------------------------------------------------------------------


def _seed_node(seed: Any, kind: type[Words], function: str) -> Node:
    """Return the key for a seed from its high and low half."""
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        wide = int(seed)
        if not -(2**63) <= wide < (2**64 if type(seed) is np.uint64 else 2**63):
            raise OverflowError(
                f"{function}: the seed must fit into 64 signed bits; got {seed}; "
                "pass a smaller one, or np.uint64(seed)"
            )
        wide += config.random_seed_offset
        high = (wide >> 32) & 0xFFFFFFFF if config.x64 else 0
        words = [high, wide & 0xFFFFFFFF]
        if not kind.plain:
            return joined_words(list(kind.seeded(*[scalar_node(w, WORD, False) for w in words])))
        return node_of(np.array(words * (kind.count // 2), np.uint32))
    node = as_node(seed, function)
    if node.aval.dtype.kind == "b":
        node = cast(node, dtypes.default_int())
    if node.aval.dtype.kind not in "iu":
        raise TypeError(
            f"{function}: PRNG key seed must be an integer; got {node.aval.dtype.name}; "
            "convert it with int()"
        )
    if node.aval.ndim:
        raise TypeError(
            f"{function}: accepts a scalar seed, but was given an array of shape "
            f"{node.aval.shape}; use vmap for several"
        )
    if config.random_seed_offset:
        node = o.add(node, scalar_node(config.random_seed_offset, node.aval.dtype, False))
    if node.aval.dtype.itemsize == 8:
        shift = scalar_node(32, node.aval.dtype, False)
        high = cast(o.shift_right_logical(node, shift), WORD)
        low = cast(o.and_(node, scalar_node(0xFFFFFFFF, node.aval.dtype, False)), WORD)
    else:
        high, low = scalar_node(0, WORD, False), cast(node, WORD)
    return joined_words(list(kind.seeded(high, low)))


@api_boundary
def PRNGKey(seed: ArrayLike, *, impl: str | DTypeLike | None = None) -> Array:
    """Make a raw PRNG key from an integer seed.

    Parameters
    ----------
    seed : int or scalar integer array
        Seed. Equal seeds give equal keys. Without `jax_enable_x64`, the low 32 bits are used.
    {prng_impl}

    Returns
    -------
    Array
        Raw key, an array of dtype uint32 with one axis; of shape (2,) for the default generator.

    Raises
    ------
    TypeError
        If `seed` is not an integer, or not a scalar.
    ValueError
        If the generator is unknown.
    OverflowError
        If `seed` does not fit into a signed 64-bit integer.

    See Also
    --------
    key : Make a typed key, which new code should prefer.
    split, fold_in : Make new keys from a key.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.PRNGKey(0)
    Array([0, 0], dtype=uint32)
    """
    kind = generator(impl, "random.PRNGKey")
    return wrap(_seed_node(seed, kind, "random.PRNGKey"))


def _choose_implementation(impl: Any, dtype: Any, function: str) -> Any:
    """Return the one of the two arguments that is given."""
    if impl is not None and dtype is not None:
        raise ValueError(
            f"{function}: impl and dtype have the same meaning; got {impl!r} and {dtype!r}; "
            "pass one of them"
        )
    return impl if dtype is None else dtype


@api_boundary
def key(seed: ArrayLike, *, impl: str | DTypeLike | None = None, dtype: Any = None) -> PRNGKeyArray:
    """Make a typed PRNG key from an integer seed.

    Parameters
    ----------
    seed : int or scalar integer array
        Seed. Equal seeds give equal keys. Without `jax_enable_x64`, the low 32 bits are used.
    {prng_impl}
    {prng_dtype}

    Returns
    -------
    Array
        Typed key, an array of shape () whose dtype is the key dtype of the generator.

    Raises
    ------
    TypeError
        If `seed` is not an integer, or not a scalar.
    ValueError
        If the generator is unknown, or both `impl` and `dtype` are given.
    OverflowError
        If `seed` does not fit into a signed 64-bit integer.

    See Also
    --------
    PRNGKey : Make a raw key, an array of uint32.
    split, fold_in : Make new keys from a key.
    wrap_key_data : Make a typed key from the words of a raw one.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.key(0).shape
    ()
    """
    kind = generator(_choose_implementation(impl, dtype, "random.key"), "random.key")
    return PRNGKeyArray(wrap(_seed_node(seed, kind, "random.key")), kind.dtype())


@api_boundary
def key_data(keys: ArrayLike) -> Array:
    """Return the words of PRNG keys as integers.

    Parameters
    ----------
    keys : Array
        Typed keys of any shape. Raw keys are returned unchanged.

    Returns
    -------
    Array
        Words of the keys, of dtype uint32. The shape is that of `keys`, followed by an axis for the
        words of each key.

    Raises
    ------
    TypeError
        If `keys` are not PRNG keys.

    See Also
    --------
    wrap_key_data : The inverse.
    key_impl : Name of the generator of keys.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.key_data(jnp.random.key(7))
    Array([0, 7], dtype=uint32)
    """
    return wrap(_words_and_generator(keys, "random.key_data")[0])


@api_boundary
def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: str | DTypeLike | None = None, dtype: Any = None
) -> PRNGKeyArray:
    """Make typed PRNG keys from their words.

    Parameters
    ----------
    key_bits_array : array_like of uint32
        Words of the keys; the last axis holds the words of each key, two for the default generator.
    {prng_impl}
    {prng_dtype}

    Returns
    -------
    Array
        Typed keys, with the leading axes of `key_bits_array` as their shape.

    Raises
    ------
    TypeError
        If `key_bits_array` does not have dtype uint32, or its last axis does not have the length
        that the generator needs.
    ValueError
        If the generator is unknown, or both `impl` and `dtype` are given.

    See Also
    --------
    key_data : The inverse.
    key : Make a typed key from a seed.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.wrap_key_data(jnp.array([0, 7], jnp.uint32)).shape
    ()
    """
    kind = generator(
        _choose_implementation(impl, dtype, "random.wrap_key_data"), "random.wrap_key_data"
    )
    words = _raw_key_words(key_bits_array, kind, "random.wrap_key_data")
    return PRNGKeyArray(wrap(words), kind.dtype())


@api_boundary
def key_impl(keys: ArrayLike) -> str:
    """Return the name of the generator of PRNG keys.

    Parameters
    ----------
    keys : Array
        Typed or raw keys of any shape. Raw keys belong to the default generator.

    Returns
    -------
    str
        Name of the generator, as the `impl` argument of `key` accepts it.

    Raises
    ------
    TypeError
        If `keys` are not PRNG keys.

    See Also
    --------
    key : Make a typed key of a given generator.
    key_dtype : The dtype of typed keys.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.key_impl(jnp.random.key(0))
    'threefry2x32'
    """
    return _words_and_generator(keys, "random.key_impl")[1].name


@api_boundary
def key_dtype(impl_spec: str | DTypeLike | None = None) -> Any:
    """Return the dtype of the typed keys of a generator.

    Parameters
    ----------
    impl_spec : str or key dtype, optional
        Name of the generator, such as "threefry2x32". The default is `config.default_prng_impl`.

    Returns
    -------
    dtype
        Key dtype, which keys of any shape have.

    Raises
    ------
    ValueError
        If the generator is unknown.

    See Also
    --------
    key : Make a typed key.
    key_impl : Name of the generator of keys.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.random.key_dtype()
    key<fry>
    """
    return generator(impl_spec, "random.key_dtype").dtype()


@api_boundary
def clone(key: Array) -> Array:
    """Return a key that is allowed to be used again.

    Parameters
    ----------
    key : Array
        Keys of any shape, typed or raw.

    Returns
    -------
    Array
        The given keys, of the same shape and dtype.

    Raises
    ------
    TypeError
        If `key` is not an array.

    See Also
    --------
    split : Make new keys, which give other random numbers.

    Notes
    -----
    In JAX this marks deliberate reuse for its checker of key reuse. accnp has no such checker, so
    the argument is returned unchanged.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.clone(jnp.random.key(0)).shape
    ()
    """
    if not isinstance(key, PRNGKeyArray):
        as_node(key, "random.clone")
    return key


def _words_and_generator(keys: Any, function: str) -> tuple[Node, type[Words]]:
    """Return the words of typed or raw keys, and their generator."""
    if isinstance(keys, PRNGKeyArray):
        return keys._base._node, generator(keys.dtype, function)
    kind = generator(None, function)
    if config.legacy_prng_key != "allow":
        _warn_about_raw_key(function)
    return _raw_key_words(keys, kind, function), kind


def _warn_about_raw_key(function: str) -> None:
    """Warn about a raw key, or raise, as the option legacy_prng_key says."""
    text = (
        f"{function}: Legacy uint32 key array passed as key, while legacy_prng_key is "
        f"{config.legacy_prng_key!r}; make keys with random.key(seed), or set it to 'allow'"
    )
    if config.legacy_prng_key == "error":
        raise ValueError(text)
    warn(text)


def _raw_key_words(keys: Any, kind: type[Words], function: str) -> Node:
    if not hasattr(keys, "shape") or not hasattr(keys, "dtype"):
        raise TypeError(
            f"{function}: invalid PRNG key data: expected a key array; got {keys!r}; "
            "make one with random.key(seed)"
        )
    node = as_node(keys, function)
    if node.aval.ndim < 1 or node.aval.shape[-1] != kind.count:
        raise TypeError(
            f"{function}: invalid PRNG key data: expected a shape that ends with ({kind.count},); "
            f"got shape={node.aval.shape}; make keys with random.key(seed)"
        )
    if node.aval.dtype != WORD:
        raise TypeError(
            f"{function}: invalid PRNG key data: expected dtype uint32; "
            f"got {node.aval.dtype.name}; "
            "pass the result of key_data"
        )
    return node


def key_words(keys: Any, function: str) -> Words:
    """Return the words of a single key."""
    node, kind = _words_and_generator(keys, f"random.{function}")
    if node.aval.ndim != 1:
        shape = node.aval.shape[:-1]
        raise ValueError(
            f"random.{function} accepts a single key, but was given a key array of shape {shape}; "
            "use vmap for batching, or index it"
        )
    return vector_words(node, kind)


# --- from keys to keys ---------------------------------------------------------------------------


def like_key(keys: Any, node: Node) -> Any:
    """Return keys of the kind (typed or raw) of a given key."""
    return keys._with_words(node) if isinstance(keys, PRNGKeyArray) else wrap(node)


@api_boundary
def split(key: ArrayLike, num: Shape = 2) -> Array:
    """Split a key into several new keys.

    Parameters
    ----------
    {key_to_split}
    num : int or sequence of int, optional
        Number of new keys, or their shape. The default is 2.

    Returns
    -------
    Array
        New keys, typed if `key` is typed, of shape `num`. For a raw key the result has dtype uint32
        and one more axis for the words of each key.

    Raises
    ------
    {raises_key}
    ValueError
        If `key` is an array of several keys; use `vmap` for these.

    See Also
    --------
    fold_in : Make a new key from a key and an integer.
    key : Make a key from a seed.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.split(jnp.random.key(0)).shape
    (2,)
    """
    words = key_words(key, "split")
    return like_key(key, words.split(as_shape(num, "random.split")))


@api_boundary
def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """Make a new key from a key and an integer.

    The new keys for different integers are independent, for example one for each step of a loop.

    Parameters
    ----------
    {key}
    data : int or scalar integer array
        Number to mix into the key, converted to uint32.

    Returns
    -------
    Array
        New key with the shape and dtype of `key`.

    Raises
    ------
    TypeError
        If `key` is not a PRNG key, or `data` is not a real scalar.
    ValueError
        If `key` is an array of several keys; use `vmap` for these.
    OverflowError
        If `data` is a Python integer that is negative or does not fit into uint32.

    See Also
    --------
    split : Split a key into several new keys.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.random.fold_in(jnp.random.key(0), 3).shape
    ()
    """
    words = key_words(key, "fold_in")
    if isinstance(data, int) and not isinstance(data, bool):
        if not 0 <= data < 2**32:
            raise OverflowError(
                f"random.fold_in: data must fit into uint32; got {data}; pass 0 up to 2**32 - 1"
            )
        low = scalar_node(data, WORD, False)
    else:
        low = as_node(data, "random.fold_in")
        if isinstance(data, complex):
            raise TypeError(f"random.fold_in: data must be an integer; got {data!r}; pass one")
        if low.aval.ndim:
            raise TypeError(
                f"random.fold_in: accepts a scalar, but was given an array of shape "
                f"{low.aval.shape}; use vmap for batching"
            )
        low = cast(low, WORD)
    return like_key(key, joined_words(list(words.fold(low))))


# --- dtypes, shapes and parameters of samples -------------------------------------------------


def float_dtype(dtype: Any, function: str, kinds: str = "a float") -> np.dtype:
    """Return a user's dtype argument, checked to be floating."""
    if dtype is None:
        return dtypes.default_float()
    kind = dtypes.requested_dtype(dtype, f"random.{function}")
    if not dtypes.issubdtype(kind, np.floating):
        raise ValueError(
            f"random.{function}: dtype argument to `{function}` must be {kinds} dtype; got "
            f"{kind.name}; pass one"
        )
    return kind


def inexact_dtype(dtype: Any, function: str) -> np.dtype:
    """Return a user's dtype argument, checked to be floating or complex."""
    kind = None if dtype is None else dtypes.requested_dtype(dtype, f"random.{function}")
    if kind is not None and kind.kind == "c":
        return kind
    return float_dtype(kind, function, "a float or complex")


def as_parameters(function: str, kind: np.dtype, *values: Any) -> list[Node]:
    """Convert parameters to the dtype of the samples, which must represent all their values."""
    label = f"random.{function}"
    return [cast_safely(label, node, kind) for node in as_nodes(label, *values)]


def sample_shape(shape: Any, function: str, *arrays: Node) -> tuple[int, ...]:
    """Return the shape argument, or the broadcast shape of the parameters if it is None.

    The parameters must broadcast to the shape. As in JAX, None is not allowed without parameters.
    """
    own = broadcast_shapes(function, [a.aval.shape for a in arrays]) if arrays else ()
    if shape is None and arrays:
        return own
    out = as_shape(shape, f"random.{function}")
    if own and broadcast_shapes(function, [out, own]) != out:
        raise ValueError(
            f"random.{function}: parameters do not broadcast to the shape; got {own} "
            f"for {out}; make trailing axes equal, or 1"
        )
    return out


def spread(x: Node, shape: tuple[int, ...]) -> Node:
    """Broadcast a parameter; scalars stay scalars."""
    return x if x.aval.shape == () else to_shape(x, shape)
