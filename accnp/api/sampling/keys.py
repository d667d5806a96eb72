"""Random keys: seeds come in, keys go out; keys into more keys, keys into bits.

A raw key is a uint32 array whose last axis is 2; a typed key (`PRNGKeyArray`) wraps one.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, scalar_node
from accnp.api.arguments.shapes import as_shape
from accnp.api.arguments.values import node_of
from accnp.api.arrays.manipulation import expand_node, reshape_plain, transpose
from accnp.api.arrays.manipulation import reshape as reshape_array
from accnp.api.indexes.indexing import read
from accnp.array import Array, is_traced, wrap
from accnp.config import config
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.random import WORD
from accnp.pytree import register_pytree_node

__all__ = [
    "PRNGKey", "PRNGKeyArray", "bits_node", "clone", "fold_in", "key", "key_data", "key_dtype",
    "key_impl", "key_words", "split", "wrap_key_data",
]  # fmt: skip

IMPL = "threefry2x32"


class PRNGKeyArray:
    """An array of random keys: shape and indexing as an array's, dtype key<fry>, no arithmetic."""

    __slots__ = ("_base",)
    __hash__ = None  # type: ignore[assignment]
    _base: Any

    def __init__(self, base: Any) -> None:
        self._base = base

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
        """key<fry>."""
        return dtypes.key_dtype("fry")

    @property
    def itemsize(self) -> int:
        """Bytes of one key."""
        return 8

    @property
    def nbytes(self) -> int:
        """Bytes of all keys."""
        return 8 * self.size

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
        return PRNGKeyArray(wrap(read(self._base._node, (*parts, slice(None)))))

    def reshape(self, *shape: Any) -> PRNGKeyArray:
        """Show the keys under another shape."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        sizes = tuple(sizes)
        if -1 in sizes:
            known = prod(n for n in sizes if n != -1)
            sizes = tuple(self.size // max(known, 1) if n == -1 else n for n in sizes)
        return PRNGKeyArray(reshape_array(self._base, (*sizes, 2)))

    def ravel(self) -> PRNGKeyArray:
        """Show the keys along one axis."""
        return self.reshape(self.size)

    flatten = ravel

    @property
    def T(self) -> PRNGKeyArray:
        """The keys with their axes reversed."""
        rank = self.ndim
        return PRNGKeyArray(transpose(self._base, (*range(rank)[::-1], rank)))

    def squeeze(self) -> PRNGKeyArray:
        """Drop axes of length 1."""
        return self.reshape(tuple(n for n in self.shape if n != 1))

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
            return f"JitTracer(key<fry>[{','.join(map(str, self.shape))}])"
        return f"Array({self.shape}, dtype=key<fry>) overlaying:\n{self._base}"


def _flatten(x: PRNGKeyArray) -> tuple[tuple[Any], Hashable]:
    return (x._base,), None


def _unflatten(_: Hashable, children: Any) -> PRNGKeyArray:
    return PRNGKeyArray(next(iter(children)))


register_pytree_node(PRNGKeyArray, _flatten, _unflatten)


# --- making keys ---------------------------------------------------------------------------------


def _check_impl(impl: Any, function: str) -> None:
    name = getattr(impl, "name", impl)
    if impl is not None and name not in (IMPL, "fry", "key<fry>"):
        raise NotImplementedError(
            f"{function}: only {IMPL!r} is implemented; got {impl!r}; leave it out"
        )


def _seed_node(seed: Any, function: str) -> Node:
    """The two words of a key for a seed: its high and low half."""
    kind = dtypes.default_int()
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        wide = int(seed)
        if not -(2**63) <= wide < 2**64:
            raise OverflowError(f"{function}: the seed must fit into 64 bits; got {seed}")
        high = (wide >> 32) & 0xFFFFFFFF if config.x64 else 0
        return node_of(np.array([high, wide & 0xFFFFFFFF], np.uint32))
    node = as_node(seed, function)
    if node.aval.dtype.kind == "b":
        node = cast(node, kind)
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
    return _join(high, low)


def _join(high: Node, low: Node) -> Node:
    """Put two words into a last axis of 2."""
    shape = low.aval.shape or high.aval.shape
    parts = []
    for x in (high, low):
        if x.aval.shape != shape:
            x = o.broadcast_in_dim(x, shape=shape, broadcast_dimensions=())
        parts.append(expand_node(x, (len(shape),)))
    return o.concatenate(*parts, dimension=len(shape))


@api_boundary
def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """Make a raw key (uint32[2]) from an integer seed.

    >>> import accnp as jnp
    >>> jnp.random.PRNGKey(0)
    Array([0, 0], dtype=uint32)
    """
    _check_impl(impl, "random.PRNGKey")
    return wrap(_seed_node(seed, "random.PRNGKey"))


@api_boundary
def key(seed: Any, *, impl: Any = None) -> PRNGKeyArray:
    """Make a typed key from an integer seed.

    >>> import accnp as jnp
    >>> jnp.random.key(0).shape
    ()
    """
    _check_impl(impl, "random.key")
    return PRNGKeyArray(wrap(_seed_node(seed, "random.key")))


@api_boundary
def key_data(keys: Any) -> Array:
    """Return the integers below typed keys; raw keys come back as they are.

    >>> import accnp as jnp
    >>> jnp.random.key_data(jnp.random.key(7))
    Array([0, 7], dtype=uint32)
    """
    return wrap(_base_node(keys, "random.key_data"))


@api_boundary
def wrap_key_data(key_bits_array: Any, *, impl: Any = None) -> PRNGKeyArray:
    """Make typed keys of integers.

    >>> import accnp as jnp
    >>> jnp.random.wrap_key_data(jnp.array([0, 7], jnp.uint32)).shape
    ()
    """
    _check_impl(impl, "random.wrap_key_data")
    return PRNGKeyArray(wrap(_base_node(key_bits_array, "random.wrap_key_data")))


def key_impl(keys: Any) -> str:
    """Return the name of the generator of keys.

    >>> import accnp as jnp
    >>> jnp.random.key_impl(jnp.random.key(0))
    'threefry2x32'
    """
    _base_node(keys, "random.key_impl")
    return IMPL


def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of typed keys.

    Raises:
        NotImplementedError: another generator than threefry2x32 is meant.

    Example:
        >>> import accnp as jax
        >>> jax.random.key_dtype()
        key<fry>
    """
    _check_impl(impl_spec, "random.key_dtype")
    return dtypes.key_dtype("fry")


def clone(key: Any) -> Any:
    """Return a key that may be used again where key reuse is checked.

    >>> import accnp as jnp
    >>> jnp.random.clone(jnp.random.key(0)).shape
    ()
    """
    return key


def _base_node(keys: Any, function: str) -> Node:
    if isinstance(keys, PRNGKeyArray):
        return keys._base._node
    if not hasattr(keys, "shape") or not hasattr(keys, "dtype"):
        raise TypeError(
            f"{function}: invalid PRNG key data: expected a key array; got {keys!r}; "
            "make one with random.key(seed)"
        )
    node = as_node(keys, function)
    if node.aval.ndim < 1 or node.aval.shape[-1] != 2:
        raise TypeError(
            f"{function}: invalid PRNG key data: expected a shape that ends with (2,); "
            f"got shape={node.aval.shape}; make keys with random.key(seed)"
        )
    if node.aval.dtype != WORD:
        raise TypeError(
            f"{function}: invalid PRNG key data: expected dtype uint32; got {node.aval.dtype.name}"
        )
    return node


def key_words(keys: Any, function: str) -> tuple[Node, Node]:
    """Return the two words of a single key."""
    node = _base_node(keys, f"random.{function}")
    if node.aval.ndim != 1:
        shape = node.aval.shape[:-1]
        raise ValueError(
            f"{function} accepts a single key, but was given a key array of shape {shape} != (). "
            "Use vmap for batching."
        )
    words = [
        o.slice(node, start_indices=(i,), limit_indices=(i + 1,), strides=None) for i in (0, 1)
    ]
    first, second = (o.squeeze(w, dimensions=(0,)) for w in words)
    return first, second


# --- from keys to keys and bits ------------------------------------------------------------------


def counters(shape: tuple[int, ...]) -> tuple[Node, Node]:
    """The high and low words of the positions in an array, in row-major order."""
    size = prod(shape)
    if size >= 2**32:
        wide = np.dtype(np.uint64)
        index = reshape_plain(o.iota(dtype=wide, shape=(size,), dimension=0), shape)
        high = o.shift_right_logical(index, scalar_node(32, wide, False))
        return cast(high, WORD), cast(index, WORD)
    zero = scalar_node(0, WORD, False)
    if not shape:
        return zero, zero
    low = reshape_plain(o.iota(dtype=WORD, shape=(size,), dimension=0), shape)
    return zero, low


def bits_node(words: tuple[Node, Node], width: int, shape: tuple[int, ...]) -> Node:
    """Random bits as unsigned integers of 8, 16, 32 or 64 bits."""
    high, low = counters(shape)
    if width == 64:
        wide = np.dtype(np.uint64)
        a = cast(o.threefry_0(*words, high, low), wide)
        b = cast(o.threefry_1(*words, high, low), wide)
        out = o.or_(o.shift_left(a, scalar_node(32, wide, False)), b)
    else:
        out = o.threefry_xor(*words, high, low)
        if width < 32:
            out = cast(out, np.dtype(f"uint{width}"))
    return out


def split_words(words: tuple[Node, Node], shape: tuple[int, ...]) -> Node:
    """New keys from one: an array of shape (*shape, 2)."""
    high, low = counters(shape)
    return _join(o.threefry_0(*words, high, low), o.threefry_1(*words, high, low))


def split_two(words: tuple[Node, Node]) -> list[tuple[Node, Node]]:
    """Two keys from one, as words; each needs two calls of the generator on single numbers."""
    out = []
    zero = scalar_node(0, WORD, False)
    for i in (0, 1):
        low = scalar_node(i, WORD, False)
        out.append((o.threefry_0(*words, zero, low), o.threefry_1(*words, zero, low)))
    return out


def like_key(keys: Any, node: Node) -> Any:
    """Return keys of the kind (typed or raw) of a given key."""
    return PRNGKeyArray(wrap(node)) if isinstance(keys, PRNGKeyArray) else wrap(node)


@api_boundary
def split(key: Any, num: Any = 2) -> Any:
    """Make `num` new keys (a number or a shape) from one.

    >>> import accnp as jnp
    >>> jnp.random.split(jnp.random.key(0)).shape
    (2,)
    """
    words = key_words(key, "split")
    return like_key(key, split_words(words, as_shape(num, "random.split")))


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
    zero = scalar_node(0, WORD, False)
    out = _join(o.threefry_0(*words, zero, low), o.threefry_1(*words, zero, low))
    return like_key(key, out)
