"""Random number generators, one class for each: bits and new keys from the words of a key.

The numbers are those of JAX. Philox (10 rounds) and Threefry (20 rounds) follow Salmon et al.,
"Parallel random numbers: as easy as 1, 2, 3" (2011). For `rbg`, the first two words of the key are
the key of Philox 4x32 and the high half of the counter; the other two words are the low half.
"""

from __future__ import annotations

import abc
import contextlib
import threading
from collections.abc import Iterator
from functools import reduce
from math import prod
from typing import ClassVar

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import cast, scalar_node, to_shape
from accnp.array_type import Array, wrap
from accnp.config import config
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.composed_primitives import composed
from accnp.numpy.manipulation import cut, expand_node, reshape_plain
from accnp.primitives.random import WORD

__all__ = ["RbgWords", "ThreefryWords", "UnsafeRbgWords", "Words", "generator"]

WIDE = np.dtype(np.uint64)
_FACTORS = 0xD2511F53, 0xCD9E8D57  # multipliers of Philox 4x32
_FACTOR = 0xD256D193  # multiplier of Philox 2x32
_STEPS = 0x9E3779B9, 0xBB67AE85  # added to a Philox key after each round
_PARITY = 0x1BD11BDA  # of Threefry
_TURNS = (10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)
_MIXED = (1, 3), (3, 1)  # the words mixed into words 0 and 2, in even and odd rounds
_HASHED = 10  # `unsafe_rbg` generates this many blocks for a key and keeps one


class Words(tuple[Node, ...], metaclass=abc.ABCMeta):
    """The words of one key, as nodes of rank 0; each generator is a subclass."""

    __slots__ = ()
    name: ClassVar[str]
    tag: ClassVar[str]
    count: ClassVar[int]
    plain: ClassVar[bool] = True  # a seed's key is its two halves, repeated

    @classmethod
    def dtype(cls) -> dtypes.ExtendedDType:
        """The dtype of typed keys."""
        return dtypes.key_dtype(cls.tag)

    @classmethod
    @abc.abstractmethod
    def seeded(cls, high: Node, low: Node) -> Words:
        """Return the key of a seed, given its two halves."""

    @abc.abstractmethod
    def bits(self, width: int, shape: tuple[int, ...]) -> Node:
        """Generate random bits as unsigned integers of 8, 16, 32 or 64 bits."""

    @abc.abstractmethod
    def split(self, shape: tuple[int, ...]) -> Node:
        """Generate new keys: an array of shape (*shape, words of a key)."""

    def several(self, count: int) -> list[Words]:
        """Generate a few new keys, as words."""
        return [self.fold(word(i)) for i in range(count)]  # few scalars, so no arrays

    @abc.abstractmethod
    def fold(self, data: Node) -> Words:
        """Generate a new key from this one and a word."""


class ThreefryWords(Words):
    """Threefry 2x32, the default of JAX.

    Each counter is encrypted separately. If `threefry_partitionable` is off, the two words of one
    encryption are half of the array apart, as in older versions of JAX.
    """

    __slots__ = ()
    name = "threefry2x32"
    tag = "fry"
    count = 2

    @classmethod
    def seeded(cls, high: Node, low: Node) -> Words:
        return cls((high, low))

    def bits(self, width: int, shape: tuple[int, ...]) -> Node:
        if not config.threefry_partitionable:
            return reshape_plain(self._bits_in_halves(width, prod(shape)), shape)
        high, low = counters(shape)
        if width == 64:
            return joined(o.threefry_1(*self, high, low), o.threefry_0(*self, high, low))
        return _narrow_words(o.threefry_xor(*self, high, low), width)

    def split(self, shape: tuple[int, ...]) -> Node:
        if not config.threefry_partitionable:
            return reshape_plain(self._in_halves(2 * prod(shape)), (*shape, 2))
        high, low = counters(shape)
        return joined_words([o.threefry_0(*self, high, low), o.threefry_1(*self, high, low)])

    def several(self, count: int) -> list[Words]:
        if config.threefry_partitionable:
            return super().several(count)
        return [row_words(self.split((count,)), i, type(self)) for i in range(count)]

    def fold(self, data: Node) -> Words:
        zero = word(0)
        return type(self)((o.threefry_0(*self, zero, data), o.threefry_1(*self, zero, data)))

    def _in_halves(self, size: int) -> Node:
        """Generate `size` words; each encryption has a counter of the first and the second half."""
        if size >= 2**32:
            raise ValueError(
                f"random bits: threefry_partitionable=False is limited to 2**32 words; got {size}; "
                "enable it for more"
            )
        half = -(-size // 2)
        first_half = o.iota(dtype=WORD, shape=(half,), dimension=0)
        second_half = o.add(first_half, to_shape(word(half), (half,)))
        if size % 2:  # the last counter is unpaired
            second_half = o.concatenate(
                cut(second_half, 0, 0, half - 1), to_shape(word(0), (1,)), dimension=0
            )
        pair = first_half, second_half
        words = [o.threefry_0(*self, *pair), o.threefry_1(*self, *pair)]
        return cut(o.concatenate(*words, dimension=0), 0, 0, size)

    def _bits_in_halves(self, width: int, size: int) -> Node:
        words = self._in_halves(-(-width * size // 32))
        if width == 64:
            return joined(cut(words, 0, size, 2 * size), cut(words, 0, 0, size))
        if width == 32:
            return words
        each = 32 // width
        turned = [o.shift_right_logical(words, word(width * i)) for i in range(each)]
        parts = reshape_plain(joined_words(turned), (-(-width * size // 32) * each,))
        return _narrow_words(cut(parts, 0, 0, size), width)


class RbgWords(Words):
    """Bits by Philox; new keys by Threefry, from the two halves of a key."""

    __slots__ = ()
    name = "rbg"
    tag = "rbg"
    count = 4

    @classmethod
    def seeded(cls, high: Node, low: Node) -> RbgWords:
        return cls((high, low, high, low))

    def bits(self, width: int, shape: tuple[int, ...]) -> Node:
        return self._draw_bits(shape, np.dtype(f"uint{width}"))

    def _draw_bits(self, shape: tuple[int, ...], dtype: np.dtype) -> Node:
        if _mapping.by_each:
            return by_philox(self, shape, dtype)[0]
        return philox_bits_p.bind(*map(wrap, self), shape=shape, dtype=dtype)._node

    def _halves(self) -> list[ThreefryWords]:
        return [ThreefryWords(self[:2]), ThreefryWords(self[2:])]

    def split(self, shape: tuple[int, ...]) -> Node:
        return o.concatenate(*[h.split(shape) for h in self._halves()], dimension=len(shape))

    def fold(self, data: Node) -> Words:
        first, second = (h.fold(data) for h in self._halves())
        return type(self)((*first, *second))


class UnsafeRbgWords(RbgWords):
    """Bits and new keys by Philox."""

    __slots__ = ()
    name = "unsafe_rbg"
    tag = "urbg"

    def split(self, shape: tuple[int, ...]) -> Node:
        bits = self._draw_bits((prod(shape), _HASHED, 4), WORD)
        return reshape_plain(cut(bits, 1, 0, 1), (*shape, 4))

    def several(self, count: int) -> list[Words]:
        return [row_words(self.split((count,)), i, type(self)) for i in range(count)]

    def fold(self, data: Node) -> Words:
        bits = self.seeded(word(0), data)._draw_bits((_HASHED, 4), WORD)
        last = row_words(bits, _HASHED - 1, type(self))
        return type(self)([o.xor(a, b) for a, b in zip(self, last, strict=True)])


class _Counting(Words):
    """Base class of generators that encrypt each counter separately, also to make keys."""

    __slots__ = ()
    plain = False

    @abc.abstractmethod
    def cipher(self, high: Node, low: Node) -> list[Node]:
        """Encrypt counters for bits."""

    def keyed(self, high: Node, low: Node) -> list[Node]:
        """Encrypt counters for keys."""
        return self.cipher(high, low)

    def bits(self, width: int, shape: tuple[int, ...]) -> Node:
        c = self.cipher(*counters(shape))
        if width == 64:
            return joined(*self.pair(c))
        return _narrow_words(reduce(o.xor, c), width)

    def pair(self, c: list[Node]) -> tuple[Node, Node]:
        """Return the low and the high word for 64 bits."""
        return c[1], c[0]

    def split(self, shape: tuple[int, ...]) -> Node:
        return joined_words(self.keyed(*counters(shape))[: self.count])

    def fold(self, data: Node) -> Words:
        return type(self)(self.keyed(word(0), data)[: self.count])


class Philox2Words(_Counting):
    """Philox 2x32: keys of one word."""

    __slots__ = ()
    name = "philox2x32"
    tag = "phx2"
    count = 1

    @classmethod
    def seeded(cls, high: Node, low: Node) -> Words:
        return cls(cls((word(0),)).cipher(high, low)[:1])

    def cipher(self, high: Node, low: Node) -> list[Node]:
        key = self[0]
        for _ in range(10):
            product, above = halves(o.mul(cast(high, WIDE), _wide_scalar(_FACTOR)))
            high, low = o.xor(o.xor(above, low), key), product
            key = o.add(key, word(_STEPS[0]))
        return [high, low]


class _Four(_Counting):
    """Counters of four words: those for bits are in the first two, those for keys in the last."""

    __slots__ = ()

    @staticmethod
    @abc.abstractmethod
    def rounds(key: tuple[Node, ...], words: list[Node]) -> list[Node]:
        """Encrypt four words with a key."""

    def cipher(self, high: Node, low: Node) -> list[Node]:
        return self.rounds(self, [high, low, word(0), word(0)])

    def keyed(self, high: Node, low: Node) -> list[Node]:
        return self.rounds(self, [word(0), word(0), high, low])


class Philox4Words(_Four):
    """Philox 4x32: keys of two words."""

    __slots__ = ()
    name = "philox4x32"
    tag = "phx4"
    count = 2

    @classmethod
    def seeded(cls, high: Node, low: Node) -> Words:
        zero = word(0)
        return cls(cls.rounds((zero, zero), [high, low, zero, zero])[:2])

    @staticmethod
    def rounds(key: tuple[Node, ...], words: list[Node]) -> list[Node]:
        return _philox(key, words)


class Threefry4Words(_Four):
    """Threefry 4x32: keys of four words."""

    __slots__ = ()
    name = "threefry4x32"
    tag = "fry4"
    count = 4

    @classmethod
    def seeded(cls, high: Node, low: Node) -> Words:
        zero = word(0)
        return cls(cls.rounds((high, low, zero, zero), [zero] * 4))

    @staticmethod
    def rounds(key: tuple[Node, ...], words: list[Node]) -> list[Node]:
        return _threefry(key, words)

    def pair(self, c: list[Node]) -> tuple[Node, Node]:
        return o.xor(c[1], c[3]), o.xor(c[0], c[2])


_GENERATORS = (
    ThreefryWords, RbgWords, UnsafeRbgWords, Philox2Words, Philox4Words, Threefry4Words
)  # fmt: skip
_NAMED = {key: g for g in _GENERATORS for key in (g.name, g.tag, g.dtype().name)}


def generator(impl: object, function: str) -> type[Words]:
    """Return the generator of a name, a tag or a dtype of keys; the default for None.

    Raises:
        ValueError: the name is unknown.
        TypeError: it is neither a name nor a dtype.
    """
    requested = config.default_prng_impl if impl is None else getattr(impl, "name", impl)
    words_type = _NAMED.get(requested) if isinstance(requested, str) else None
    if words_type is None:
        names = ", ".join([g.name for g in _GENERATORS])
        kind = ValueError if isinstance(requested, str) else TypeError
        raise kind(f"{function}: unrecognized PRNG implementation {impl!r}; pass one of {names}")
    return words_type


# --- words and counters ---------------------------------------------------------------------------


def word(value: int) -> Node:
    """Return the node of a number as a word."""
    return scalar_node(value, WORD, False)


def _wide_scalar(value: int) -> Node:
    return scalar_node(value, WIDE, False)


def halves(x: Node) -> tuple[Node, Node]:
    """Return the low and the high word of 64-bit integers."""
    return cast(x, WORD), cast(o.shift_right_logical(x, _wide_scalar(32)), WORD)


def joined(low: Node, high: Node) -> Node:
    """Return 64-bit integers of two words each."""
    return o.or_(o.shift_left(cast(high, WIDE), _wide_scalar(32)), cast(low, WIDE))


def joined_words(parts: list[Node]) -> Node:
    """Stack words along a last axis."""
    shape = max((x.aval.shape for x in parts), key=len)
    out = []
    for x in parts:
        if x.aval.shape != shape:
            x = o.broadcast_in_dim(x, shape=shape, broadcast_dimensions=())
        out.append(expand_node(x, (len(shape),)))
    return o.concatenate(*out, dimension=len(shape))


def vector_words(node: Node, kind: type[Words]) -> Words:
    """Return the words of a key that is a vector."""
    return kind([o.squeeze(cut(node, 0, i, i + 1), dimensions=(0,)) for i in range(kind.count)])


def row_words(keys: Node, i: int, kind: type[Words]) -> Words:
    """Return the words of one row of keys."""
    return vector_words(o.squeeze(cut(keys, 0, i, i + 1), dimensions=(0,)), kind)


def _narrow_words(x: Node, width: int) -> Node:
    return cast(x, np.dtype(f"uint{width}")) if width < 32 else x


def counters(shape: tuple[int, ...]) -> tuple[Node, Node]:
    """Return the high and low words of the positions in an array, in row-major order."""
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


# --- Philox ---------------------------------------------------------------------------------------


def count(size: int) -> Node:
    """Return the numbers 0, 1, ..., size - 1."""
    return o.iota(dtype=WIDE, shape=(size,), dimension=0)


def _philox(key: tuple[Node, ...], c: list[Node]) -> list[Node]:
    """Encrypt counters of four words with a key of two, in 10 rounds."""
    key = key[:2]
    for _ in range(10):
        p, q = (o.mul(cast(c[2 * i], WIDE), _wide_scalar(_FACTORS[i])) for i in (0, 1))
        (p_low, p_high), (q_low, q_high) = halves(p), halves(q)
        c = [o.xor(o.xor(q_high, c[1]), key[0]), q_low, o.xor(o.xor(p_high, c[3]), key[1]), p_low]
        key = tuple([o.add(k, word(step)) for k, step in zip(key, _STEPS, strict=True)])
    return c


def _blocks(words: tuple[Node, ...], blocks: int) -> list[Node]:
    """Generate blocks of four words for a key of four words."""
    start = joined(words[2], words[3])
    low = o.add(count(blocks), start)
    carry = o.lt(low, start)
    high = o.add(joined(words[0], words[1]), cast(carry, WIDE))
    return _philox(words, [*halves(low), *halves(high)])


def by_philox(words: tuple[Node, ...], shape: tuple[int, ...], dtype: np.dtype) -> tuple[Node, int]:
    """Generate bits; also return how far the counter advanced."""
    size = prod(shape)
    if size == 0:
        return to_shape(scalar_node(0, dtype, False), shape), 0
    each = 2 if dtype == WIDE else 4
    blocks = -(-size // each)
    c = _blocks(words, blocks)
    if dtype == WIDE:
        c = [joined(c[0], c[1]), joined(c[2], c[3])]
    flat = reshape_plain(joined_words(c), (blocks * each,))
    return cast(reshape_plain(cut(flat, 0, 0, size), shape), dtype), blocks


class _Mapping(threading.local):
    by_each = False


_mapping = _Mapping()


@contextlib.contextmanager
def by_each_key() -> Iterator[None]:
    """Let the examples of a vmap generate bits from their own keys, as those of a loop do."""
    before, _mapping.by_each = _mapping.by_each, True
    try:
        yield
    finally:
        _mapping.by_each = before


def first_of(x: Array, batched: bool) -> Array:
    """Return the first example of a batched value."""
    return wrap(o.squeeze(cut(x._node, 0, 0, 1), dimensions=(0,))) if batched else x


def _bits(*words: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    return wrap(by_philox(tuple([w._node for w in words]), shape, dtype)[0])


def _bits_of_many(
    words: list[Array], flags: list[bool], size: int, *, shape: tuple[int, ...], dtype: np.dtype
) -> list[Array]:
    """Generate the bits of all examples from the first key, as JAX does, with one counter."""
    first = [first_of(w, f) for w, f in zip(words, flags, strict=True)]
    return [philox_bits_p.bind(*first, shape=(size, *shape), dtype=dtype)]


philox_bits_p = composed("philox_bits", _bits, batch=_bits_of_many)


# --- Threefry -------------------------------------------------------------------------------------


def _threefry(key: tuple[Node, ...], c: list[Node]) -> list[Node]:
    """Encrypt counters of four words with a key of four, in 20 rounds."""
    keys = [*key, o.xor(reduce(o.xor, key), word(_PARITY))]
    c = [o.add(x, k) for x, k in zip(c, keys, strict=False)]
    for i in range(20):
        for into, of, turn in zip((0, 2), _MIXED[i % 2], _TURNS[i % 8], strict=True):
            c[into] = o.add(c[into], c[of])
            c[of] = o.xor(c[into], _rotate_left(c[of], turn))
        if i % 4 == 3:
            step = i // 4 + 1
            c = [o.add(x, keys[(step + j) % 5]) for j, x in enumerate(c)]
            c[3] = o.add(c[3], word(step))
    return c


def _rotate_left(x: Node, n: int) -> Node:
    """Rotate a word to the left by n bits."""
    return o.or_(o.shift_left(x, word(n)), o.shift_right_logical(x, word(32 - n)))
