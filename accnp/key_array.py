"""`PRNGKeyArray`, the type of arrays of random keys.

It wraps a uint32 array whose last axis contains the words of each key, and the dtype of the keys.
To users it is an array with the properties of one and a leaf of pytrees; programs compute with its
words, which `flatten_arrays` extracts. The functions of keys are in `accnp/random/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.array_type import Array, is_traced, wrap
from accnp.errors import KeyArrayError
from accnp.ir.aval import Aval
from accnp.ir.node import Node
from accnp.pytree import INNER, Inner
from accnp.trace_fn import conversion_error

__all__ = ["PRNGKeyArray", "keys_of_words"]


class PRNGKeyArray(Array):
    """Array of random keys. It has the shape and indexing of an array and a dtype such as key<fry>,
    but no arithmetic.

    It is an `Array` without a node, so that functions of numbers raise `KeyArrayError`.
    `random/key_functions.py` handles the functions that accept keys.
    """

    __slots__ = ("_base", "_keys")
    __hash__ = None  # type: ignore[assignment]
    _base: Any
    _keys: dtypes.ExtendedDType

    def __init__(self, base: Any, keys: dtypes.ExtendedDType) -> None:
        self._base = base
        self._keys = keys

    @property
    def _node(self) -> Node:  # type: ignore[override]
        raise KeyArrayError(
            f"keys of dtype {self._keys.name} are not numbers; got a key array of shape "
            f"{self.shape}; random.key_data(keys) returns the integers of the keys"
        )

    def _with_words(self, words: Node) -> PRNGKeyArray:
        """Return keys of the same dtype with other words."""
        return PRNGKeyArray(wrap(words), self._keys)

    # --- what is known without computing ---

    @property
    def aval(self) -> Aval:
        """The abstract value: shape and dtype."""
        return self._base.aval.of_keys(self._keys)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(self._base.shape[:-1])

    @property
    def dtype(self) -> Any:
        """Dtype of the keys, such as key<fry>."""
        return self._keys

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of keys."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one key."""
        return self._keys.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all keys."""
        return self.itemsize * self.size

    @property
    def weak_type(self) -> bool:
        """False: keys are never promoted."""
        return False

    # --- waiting, placement, memory: those of the words ---

    def block_until_ready(self) -> PRNGKeyArray:
        """Wait for the keys."""
        self._base.block_until_ready()
        return self

    def is_ready(self) -> bool:
        """Return whether the keys are computed."""
        return self._base.is_ready()

    def copy_to_host_async(self) -> None:
        """Start computing the keys without waiting for them."""
        self._base.copy_to_host_async()

    def is_deleted(self) -> bool:
        """Return whether the keys were donated or deleted."""
        return self._base.is_deleted()

    def delete(self) -> None:
        """Free the memory; later use raises RuntimeError."""
        self._base.delete()

    def _forget(self, what: str, site: tuple[Any, int] | None) -> None:
        self._base._forget(what, site)

    def _devices(self) -> tuple[Any, ...]:
        return self._base._devices()

    @property
    def committed(self) -> bool:
        """Whether the keys were placed on their devices explicitly."""
        return self._base.committed

    @property
    def sharding(self) -> Any:
        """Sharding that describes how the keys are distributed over devices."""
        return self._base.sharding

    def addressable_data(self, index: int) -> PRNGKeyArray:
        """Return the part of the keys that is stored on one of their devices."""
        return PRNGKeyArray(self._base.addressable_data(index), self._keys)

    @property
    def addressable_shards(self) -> list[Any]:
        """The parts of the keys, one for each device of this process."""
        return self._shards(self._base.addressable_shards)

    @property
    def global_shards(self) -> list[Any]:
        """The parts of the keys, one for each device; those of other processes have no data."""
        return self._shards(self._base.global_shards)

    def _shards(self, of_words: list[Any]) -> list[Any]:
        shards = []
        for s in of_words:
            data = None if s.data is None else PRNGKeyArray(s.data, self._keys)
            shards.append(s.of_keys(data))
        return shards

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process holds all parts of the keys."""
        return self._base.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all keys."""
        return self._base.is_fully_replicated

    @property
    def traceback(self) -> Any:
        """The line that recorded the operation, or None."""
        return self._base.traceback

    def unsafe_buffer_pointer(self) -> int:
        """The address of the first word."""
        return self._base.unsafe_buffer_pointer()

    def on_device_size_in_bytes(self) -> int:
        """Bytes of all words."""
        return self._base.on_device_size_in_bytes()

    # --- protocols ---

    def __iter__(self) -> Iterator[PRNGKeyArray]:
        if not self.shape:
            raise TypeError("iteration over a 0-d key array")
        rows: Any = [self[i] for i in range(self.shape[0])]
        return iter(rows)

    def _concrete_value(self, kind: str) -> np.ndarray:
        if kind == "array" and type(self._base) is Array and is_traced(self._base._node):
            raise conversion_error(kind, self._base._node)
        raise KeyArrayError(
            f"{kind}: random keys cannot be converted to numbers; got a key array of shape "
            f"{self.shape}; random.key_data(keys) returns the integers of the keys"
        )

    _buffer = _scalar = _concrete_value

    def __bool__(self) -> bool:
        self._concrete_value("bool")
        return False

    def __index__(self) -> int:
        self._concrete_value("index")
        return 0

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return self._concrete_value("array")

    def __copy__(self) -> PRNGKeyArray:
        return PRNGKeyArray(self._base.__copy__(), self._keys)

    def copy(self) -> PRNGKeyArray:
        """Return a copy of the keys."""
        return self.__copy__()

    def __reduce__(self) -> Any:
        return PRNGKeyArray, (self._base, self._keys)

    def __repr__(self) -> str:
        if type(self._base) is Array and is_traced(self._base._node):
            return f"JitTracer({self.dtype.name}[{','.join(map(str, self.shape))}])"
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self._base}"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


# --- keys in pytrees ------------------------------------------------------------------------------


def _take(keys: PRNGKeyArray, add: Callable[[Any], None]) -> Any:
    return PRNGKeyArray, keys._keys, (add(keys._base),)


def keys_of_words(dtype: dtypes.ExtendedDType, x: Any) -> Any:
    """Convert a value in place of the words of keys to the value in place of the keys.

    Arrays become keys, types become types of keys, and float0 zeros lose the axis of words. Other
    objects, such as names, are returned unchanged.
    """
    if type(x) is Array:
        return PRNGKeyArray(x, dtype)
    if type(x) is np.ndarray and x.dtype == dtypes.float0:
        return x[..., 0]
    of_keys = getattr(x, "of_keys", None)
    return x if of_keys is None else of_keys(dtype)


INNER[PRNGKeyArray] = Inner(_take, keys_of_words)
