"""Random keys: seeds come in, keys go out; keys into more keys, keys into bits.

A raw key is a uint32 array whose last axis holds the words of its generator, two by default; a
typed key (`PRNGKeyArray`) wraps one and knows its generator.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, scalar_node
from accnp.api.arguments.shapes import as_axes, as_axis, as_shape
from accnp.api.arguments.values import node_of
from accnp.api.arrays.manipulation import reshape as reshape_array
from accnp.api.arrays.manipulation import transpose
from accnp.api.indexes.indexing import read
from accnp.api.sampling.generators import (
    ThreefryWords,
    Words,
    generator,
    joined_words,
    vector_words,
)
from accnp.array import Array, is_traced, wrap
from accnp.config import config
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.random import WORD
from accnp.pytree import register_pytree_node

__all__ = [
    "PRNGKey", "PRNGKeyArray", "clone", "fold_in", "key", "key_data", "key_dtype",
    "key_impl", "key_words", "split", "wrap_key_data",
]  # fmt: skip


class PRNGKeyArray:
    """An array of random keys: shape and indexing as an array's, a dtype of its own as key<fry>, no
    arithmetic."""

    __slots__ = ("_base", "_kind")
    __hash__ = None  # type: ignore[assignment]
    _base: Any
    _kind: type[Words]

    def __init__(self, base: Any, kind: type[Words] = ThreefryWords) -> None:
        self._base = base
        self._kind = kind

    def _like(self, base: Any) -> PRNGKeyArray:
        return PRNGKeyArray(base, self._kind)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(self._base.shape[:-1])

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of keys."""
        return prod(self.shape)

    @property
    def dtype(self) -> Any:
        """key<fry>, or that of another generator."""
        return self._kind.dtype()

    @property
    def itemsize(self) -> int:
        """Bytes of one key."""
        return 4 * self._kind.count

    @property
    def nbytes(self) -> int:
        """Bytes of all keys."""
        return self.itemsize * self.size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Any:
        if not self.shape:
            raise TypeError("iteration over a 0-d key array")
        return iter([self[i] for i in range(self.shape[0])])

    def __getitem__(self, index: Any) -> PRNGKeyArray:
        parts = index if isinstance(index, tuple) else (index,)
        if Ellipsis not in [p for p in parts if p is Ellipsis]:
            parts = (*parts, Ellipsis)
        return self._like(wrap(read(self._base._node, (*parts, slice(None)))))

    def reshape(self, *shape: Any) -> PRNGKeyArray:
        """Show the keys under another shape."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        sizes = tuple(sizes)
        if -1 in sizes:
            known = prod(n for n in sizes if n != -1)
            sizes = tuple(self.size // max(known, 1) if n == -1 else n for n in sizes)
        return self._like(reshape_array(self._base, (*sizes, self._kind.count)))

    def ravel(self) -> PRNGKeyArray:
        """Show the keys along one axis."""
        return self.reshape(self.size)

    flatten = ravel

    def _ordered(self, order: tuple[int, ...]) -> PRNGKeyArray:
        """The keys with their axes in another order; the words of a key stay last."""
        return self._like(transpose(self._base, (*order, self.ndim)))

    @property
    def T(self) -> PRNGKeyArray:
        """The keys with their axes reversed."""
        return self.transpose()

    def transpose(self, *axes: Any) -> PRNGKeyArray:
        """The keys with their axes in another order: reversed, or as given one by one or as one
        tuple."""
        given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int | np.integer) else axes
        if given is None or not axes:
            return self._ordered(tuple(range(self.ndim)[::-1]))
        order = as_axes(given, self.ndim, "PRNGKeyArray.transpose")
        if len(order) != self.ndim:
            raise ValueError(
                f"PRNGKeyArray.transpose: axes must name each of the {self.ndim} axes once; "
                f"got {tuple(given)}"
            )
        return self._ordered(order)

    def swapaxes(self, axis1: int, axis2: int) -> PRNGKeyArray:
        """The keys with two axes exchanged."""
        one = as_axis(axis1, self.ndim, "PRNGKeyArray.swapaxes")
        two = as_axis(axis2, self.ndim, "PRNGKeyArray.swapaxes")
        order = [*range(self.ndim)]
        order[one], order[two] = two, one
        return self._ordered(tuple(order))

    def squeeze(self, axis: Any = None) -> PRNGKeyArray:
        """Drop axes of length 1: all, or those that are named."""
        if axis is None:
            return self.reshape(tuple(n for n in self.shape if n != 1))
        at = as_axes(axis, self.ndim, "PRNGKeyArray.squeeze")
        long = [d for d in at if self.shape[d] != 1]
        if long:
            raise ValueError(
                f"PRNGKeyArray.squeeze: only axes of length 1 can be dropped; got axis {long[0]} "
                f"of the shape {self.shape}; leave it out"
            )
        return self.reshape(tuple(n for d, n in enumerate(self.shape) if d not in at))

    def copy(self) -> PRNGKeyArray:
        """The keys in memory of their own."""
        return self._like(self._base.copy())

    def block_until_ready(self) -> PRNGKeyArray:
        """Wait for the keys."""
        self._base.block_until_ready()
        return self

    def is_ready(self) -> bool:
        """Whether the keys are there."""
        return self._base.is_ready()

    def devices(self) -> set[Any]:
        """The devices that hold the keys."""
        return self._base.devices()

    def _compare(self, other: Any, op: str) -> Any:
        if not isinstance(other, PRNGKeyArray):
            return NotImplemented
        same = getattr(o, op)(self._base._node, other._base._node)
        axes = (same.aval.ndim - 1,)
        return wrap((o.reduce_and if op == "eq" else o.reduce_or)(same, axes=axes))

    def __eq__(self, other: object) -> Any:
        return self._compare(other, "eq")

    def __ne__(self, other: object) -> Any:
        return self._compare(other, "ne")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "random key arrays cannot be converted to NumPy arrays; "
            "use random.key_data(keys) to get the integers below them"
        )

    def __repr__(self) -> str:
        if type(self._base) is not Array:
            return f"PRNGKeyArray({self._base!r})"
        if is_traced(self._base._node):
            return f"JitTracer({self.dtype}[{','.join(map(str, self.shape))}])"
        return f"Array({self.shape}, dtype={self.dtype}) overlaying:\n{self._base}"


def _flatten(x: PRNGKeyArray) -> tuple[tuple[Any], Hashable]:
    return (x._base,), x._kind


def _unflatten(kind: Any, children: Any) -> PRNGKeyArray:
    return PRNGKeyArray(next(iter(children)), kind)


register_pytree_node(PRNGKeyArray, _flatten, _unflatten)


# --- making keys ---------------------------------------------------------------------------------


def _seed_node(seed: Any, kind: type[Words], function: str) -> Node:
    """The key for a seed, of its high and low half."""
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        wide = int(seed)
        if not -(2**63) <= wide < 2**64:
            raise OverflowError(f"{function}: the seed must fit into 64 bits; got {seed}")
        high = (wide >> 32) & 0xFFFFFFFF if config.x64 else 0
        words = [high, wide & 0xFFFFFFFF]
        return node_of(np.array(words * (kind.count // 2), np.uint32))
    node = as_node(seed, function)
    if node.aval.dtype.kind == "b":
        node = cast(node, dtypes.default_int())
    if node.aval.dtype.kind not in "iu":
        raise TypeError(f"{function}: PRNG key seed must be an integer; got {node.aval.dtype.name}")
    if node.aval.ndim:
        raise TypeError(
            f"{function}: accepts a scalar seed, but was given an array of shape "
            f"{node.aval.shape}; use vmap for several"
        )
    if node.aval.dtype.itemsize == 8:
        shift = scalar_node(32, node.aval.dtype, False)
        high = cast(o.shift_right_logical(node, shift), WORD)
        low = cast(o.and_(node, scalar_node(0xFFFFFFFF, node.aval.dtype, False)), WORD)
    else:
        high, low = scalar_node(0, WORD, False), cast(node, WORD)
    return joined_words(list(kind.seeded(high, low)))


@api_boundary
def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """Make a raw key (uint32[2] by default) from an integer seed.

    Args:
        seed: an integer.
        impl: "threefry2x32", "rbg" or "unsafe_rbg"; `config.default_prng_impl` if None.

    >>> import accnp as jnp
    >>> jnp.random.PRNGKey(0)
    Array([0, 0], dtype=uint32)
    """
    kind = generator(impl, "random.PRNGKey")
    return wrap(_seed_node(seed, kind, "random.PRNGKey"))


@api_boundary
def key(seed: Any, *, impl: Any = None) -> PRNGKeyArray:
    """Make a typed key from an integer seed.

    Args:
        seed: an integer.
        impl: "threefry2x32", "rbg" or "unsafe_rbg"; `config.default_prng_impl` if None.

    >>> import accnp as jnp
    >>> jnp.random.key(0).shape
    ()
    """
    kind = generator(impl, "random.key")
    return PRNGKeyArray(wrap(_seed_node(seed, kind, "random.key")), kind)


@api_boundary
def key_data(keys: Any) -> Array:
    """Return the integers below typed keys; raw keys come back as they are.

    >>> import accnp as jnp
    >>> jnp.random.key_data(jnp.random.key(7))
    Array([0, 7], dtype=uint32)
    """
    return wrap(_based(keys, "random.key_data")[0])


@api_boundary
def wrap_key_data(key_bits_array: Any, *, impl: Any = None) -> PRNGKeyArray:
    """Make typed keys of integers.

    Args:
        key_bits_array: uint32 [..., words of a key].
        impl: "threefry2x32", "rbg" or "unsafe_rbg"; `config.default_prng_impl` if None.

    >>> import accnp as jnp
    >>> jnp.random.wrap_key_data(jnp.array([0, 7], jnp.uint32)).shape
    ()
    """
    kind = generator(impl, "random.wrap_key_data")
    return PRNGKeyArray(wrap(_raw(key_bits_array, kind, "random.wrap_key_data")), kind)


def key_impl(keys: Any) -> str:
    """Return the name of the generator of keys.

    >>> import accnp as jnp
    >>> jnp.random.key_impl(jnp.random.key(0))
    'threefry2x32'
    """
    return _based(keys, "random.key_impl")[1].name


def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of typed keys of a generator.

    Raises:
        ValueError: there is no such generator.

    Example:
        >>> import accnp as jax
        >>> jax.random.key_dtype()
        key<fry>
    """
    return generator(impl_spec, "random.key_dtype").dtype()


def clone(key: Any) -> Any:
    """Return a key that may be used again where key reuse is checked.

    >>> import accnp as jnp
    >>> jnp.random.clone(jnp.random.key(0)).shape
    ()
    """
    return key


def _based(keys: Any, function: str) -> tuple[Node, type[Words]]:
    """The words of keys, typed or raw, and their generator."""
    if isinstance(keys, PRNGKeyArray):
        return keys._base._node, keys._kind
    kind = generator(None, function)
    return _raw(keys, kind, function), kind


def _raw(keys: Any, kind: type[Words], function: str) -> Node:
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
            f"{function}: invalid PRNG key data: expected dtype uint32; got {node.aval.dtype.name}"
        )
    return node


def key_words(keys: Any, function: str) -> Words:
    """Return the words of a single key."""
    node, kind = _based(keys, f"random.{function}")
    if node.aval.ndim != 1:
        shape = node.aval.shape[:-1]
        raise ValueError(
            f"{function} accepts a single key, but was given a key array of shape {shape} != (). "
            "Use vmap for batching."
        )
    return vector_words(node, kind)


# --- from keys to keys ---------------------------------------------------------------------------


def like_key(keys: Any, node: Node) -> Any:
    """Return keys of the kind (typed or raw) of a given key."""
    return keys._like(wrap(node)) if isinstance(keys, PRNGKeyArray) else wrap(node)


@api_boundary
def split(key: Any, num: Any = 2) -> Any:
    """Make `num` new keys (a number or a shape) from one.

    >>> import accnp as jnp
    >>> jnp.random.split(jnp.random.key(0)).shape
    (2,)
    """
    words = key_words(key, "split")
    return like_key(key, words.split(as_shape(num, "random.split")))


@api_boundary
def fold_in(key: Any, data: Any) -> Any:
    """Make a new key from a key and an integer.

    >>> import accnp as jnp
    >>> jnp.random.fold_in(jnp.random.key(0), 3).shape
    ()
    """
    words = key_words(key, "fold_in")
    if isinstance(data, int) and not isinstance(data, bool):
        if not 0 <= data < 2**32:
            raise OverflowError(f"random.fold_in: data must fit into uint32; got {data}")
        low = scalar_node(data, WORD, False)
    else:
        low = as_node(data, "random.fold_in")
        if low.aval.ndim:
            raise TypeError(
                f"random.fold_in: accepts a scalar, but was given an array of shape "
                f"{low.aval.shape}; use vmap for batching"
            )
        low = cast(low, WORD)
    return like_key(key, joined_words(list(words.fold(low))))
