"""What makes bits of keys, and keys of keys: one class for each generator.

In: the words of one key. Out: nodes of bits, or of the words of more keys. Numbers are jax's.

Philox 4x32-10 and threefry 2x32 after Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
(2011). Philox' key is the first two words, which are also the high half of its counter; the other
two are the low half.
"""

from __future__ import annotations

import abc
from math import prod
from typing import ClassVar

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import cast, scalar_node, to_shape
from accnp.api.arrays.manipulation import cut, expand_node, reshape_plain
from accnp.config import config
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.random import WORD

__all__ = ["RbgWords", "ThreefryWords", "UnsafeRbgWords", "Words", "generator"]

WIDE = np.dtype(np.uint64)
_FACTORS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85
_HASHED = 10  # blocks of bits that `unsafe_rbg` makes for each key; it keeps one


class Words(tuple[Node, ...], metaclass=abc.ABCMeta):
    """The words of one key, as nodes of rank 0; what to do with them is up to the generator."""

    __slots__ = ()
    name: ClassVar[str]
    tag: ClassVar[str]
    count: ClassVar[int]

    @classmethod
    def dtype(cls) -> dtypes.ExtendedDType:
        """The dtype of typed keys."""
        return dtypes.key_dtype(cls.tag)

    @classmethod
    @abc.abstractmethod
    def seeded(cls, high: Node, low: Node) -> Words:
        """The key of a seed, whose two halves are given."""

    @abc.abstractmethod
    def bits(self, width: int, shape: tuple[int, ...]) -> Node:
        """Random bits as unsigned integers of 8, 16, 32 or 64 bits."""

    @abc.abstractmethod
    def split(self, shape: tuple[int, ...]) -> Node:
        """New keys: an array of shape (*shape, words of a key)."""

    @abc.abstractmethod
    def several(self, count: int) -> list[Words]:
        """A few new keys, as words."""

    @abc.abstractmethod
    def fold(self, data: Node) -> Words:
        """A new key of this one and a word."""


class ThreefryWords(Words):
    """jax's default: each counter is enciphered by itself."""

    __slots__ = ()
    name = "threefry2x32"
    tag = "fry"
    count = 2

    @classmethod
    def seeded(cls, high: Node, low: Node) -> Words:
        return cls((high, low))

    def bits(self, width: int, shape: tuple[int, ...]) -> Node:
        high, low = counters(shape)
        if width == 64:
            return joined(o.threefry_1(*self, high, low), o.threefry_0(*self, high, low))
        return _narrow(o.threefry_xor(*self, high, low), width)

    def split(self, shape: tuple[int, ...]) -> Node:
        high, low = counters(shape)
        return joined_words([o.threefry_0(*self, high, low), o.threefry_1(*self, high, low)])

    def several(self, count: int) -> list[Words]:
        # Each needs two calls of the generator on single numbers.
        return [self.fold(word(i)) for i in range(count)]

    def fold(self, data: Node) -> Words:
        zero = word(0)
        return type(self)((o.threefry_0(*self, zero, data), o.threefry_1(*self, zero, data)))


class RbgWords(Words):
    """Bits by philox; the two halves of a key are keys of threefry where keys are made."""

    __slots__ = ()
    name = "rbg"
    tag = "rbg"
    count = 4

    @classmethod
    def seeded(cls, high: Node, low: Node) -> Words:
        return cls((high, low, high, low))

    def bits(self, width: int, shape: tuple[int, ...]) -> Node:
        wide = width == 64
        return by_philox(self, shape, WIDE if wide else np.dtype(f"uint{width}"))[0]

    def _halves(self) -> list[ThreefryWords]:
        return [ThreefryWords(self[:2]), ThreefryWords(self[2:])]

    def split(self, shape: tuple[int, ...]) -> Node:
        return o.concatenate(*[h.split(shape) for h in self._halves()], dimension=len(shape))

    def several(self, count: int) -> list[Words]:
        return [self.fold(word(i)) for i in range(count)]

    def fold(self, data: Node) -> Words:
        first, second = (h.fold(data) for h in self._halves())
        return type(self)((*first, *second))


class UnsafeRbgWords(RbgWords):
    """Bits by philox, and keys by it as well."""

    __slots__ = ()
    name = "unsafe_rbg"
    tag = "urbg"

    def split(self, shape: tuple[int, ...]) -> Node:
        bits = by_philox(self, (prod(shape), _HASHED, 4), WORD)[0]
        return reshape_plain(cut(bits, 1, 0, 1), (*shape, 4))

    def several(self, count: int) -> list[Words]:
        return [row_words(self.split((count,)), i, type(self)) for i in range(count)]

    def fold(self, data: Node) -> Words:
        made = by_philox(self.seeded(word(0), data), (_HASHED, 4), WORD)[0]
        last = row_words(made, _HASHED - 1, type(self))
        return type(self)([o.xor(a, b) for a, b in zip(self, last, strict=True)])


_GENERATORS = (ThreefryWords, RbgWords, UnsafeRbgWords)
_NAMED = {key: g for g in _GENERATORS for key in (g.name, g.tag, g.dtype().name)}


def generator(impl: object, function: str) -> type[Words]:
    """The generator that a name, a tag or a dtype of keys stands for; without one, the default.

    Raises:
        ValueError: there is none of this name.
        TypeError: it is neither a name nor a dtype.
    """
    asked = config.default_prng_impl if impl is None else getattr(impl, "name", impl)
    found = _NAMED.get(asked) if isinstance(asked, str) else None
    if found is None:
        names = ", ".join([g.name for g in _GENERATORS])
        kind = ValueError if isinstance(asked, str) else TypeError
        raise kind(f"{function}: unknown random generator; got {impl!r}; pass one of {names}")
    return found


# --- words and counters ---------------------------------------------------------------------------


def word(value: int) -> Node:
    """A number as a word."""
    return scalar_node(value, WORD, False)


def _wide(value: int) -> Node:
    return scalar_node(value, WIDE, False)


def halves(x: Node) -> tuple[Node, Node]:
    """The low and the high word of 64-bit integers."""
    return cast(x, WORD), cast(o.shift_right_logical(x, _wide(32)), WORD)


def joined(low: Node, high: Node) -> Node:
    """64-bit integers of two words each."""
    return o.or_(o.shift_left(cast(high, WIDE), _wide(32)), cast(low, WIDE))


def joined_words(parts: list[Node]) -> Node:
    """Put words side by side along a last axis."""
    shape = max((x.aval.shape for x in parts), key=len)
    out = []
    for x in parts:
        if x.aval.shape != shape:
            x = o.broadcast_in_dim(x, shape=shape, broadcast_dimensions=())
        out.append(expand_node(x, (len(shape),)))
    return o.concatenate(*out, dimension=len(shape))


def vector_words(node: Node, kind: type[Words]) -> Words:
    """The words of a key that is a vector."""
    return kind([o.squeeze(cut(node, 0, i, i + 1), dimensions=(0,)) for i in range(kind.count)])


def row_words(keys: Node, i: int, kind: type[Words]) -> Words:
    """The words of one row of keys."""
    return vector_words(o.squeeze(cut(keys, 0, i, i + 1), dimensions=(0,)), kind)


def _narrow(x: Node, width: int) -> Node:
    return cast(x, np.dtype(f"uint{width}")) if width < 32 else x


def counters(shape: tuple[int, ...]) -> tuple[Node, Node]:
    """The high and low words of the positions in an array, in row-major order."""
    size = prod(shape)
    if size >= 2**32:
        index = reshape_plain(o.iota(dtype=WIDE, shape=(size,), dimension=0), shape)
        low, high = halves(index)
        return high, low
    zero = word(0)
    if not shape:
        return zero, zero
    low = reshape_plain(o.iota(dtype=WORD, shape=(size,), dimension=0), shape)
    return zero, low


# --- philox ---------------------------------------------------------------------------------------


def count(size: int) -> Node:
    """The numbers from 0 on."""
    return o.iota(dtype=WIDE, shape=(size,), dimension=0)


def _philox(words: tuple[Node, ...], blocks: int) -> list[Node]:
    """Four words for each of so many blocks."""
    key, start = words[:2], joined(words[2], words[3])
    low = o.add(count(blocks), start)
    carry = o.lt(low, start)
    high = o.add(joined(key[0], key[1]), cast(carry, WIDE))
    c = [*halves(low), *halves(high)]
    for _ in range(10):
        p, q = (o.mul(cast(c[2 * i], WIDE), _wide(_FACTORS[i])) for i in (0, 1))
        (p_low, p_high), (q_low, q_high) = halves(p), halves(q)
        c = [o.xor(o.xor(q_high, c[1]), key[0]), q_low, o.xor(o.xor(p_high, c[3]), key[1]), p_low]
        key = tuple([o.add(k, word(step)) for k, step in zip(key, _STEPS, strict=True)])
    return c


def by_philox(words: tuple[Node, ...], shape: tuple[int, ...], dtype: np.dtype) -> tuple[Node, int]:
    """Bits, and how far the counter went for them."""
    size = prod(shape)
    if size == 0:
        return to_shape(scalar_node(0, dtype, False), shape), 0
    each = 2 if dtype == WIDE else 4
    blocks = -(-size // each)
    c = _philox(words, blocks)
    if dtype == WIDE:
        c = [joined(c[0], c[1]), joined(c[2], c[3])]
    flat = reshape_plain(joined_words(c), (blocks * each,))
    return cast(reshape_plain(cut(flat, 0, 0, size), shape), dtype), blocks
