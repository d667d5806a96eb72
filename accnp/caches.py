"""Bounded caches, and the list of all caches that `accnp.memory_stats` and `clear_caches` use.

`BoundedCache` is a dictionary that evicts the least recently used entries. Other caches register
functions that count and clear them. The bounds are options (`trace_cache_size`, and so on), which
are read whenever an entry is added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from accnp.config import config

__all__ = ["BoundedCache", "Cache", "caches", "register_cache"]

K = TypeVar("K")
V = TypeVar("V")


class Cache(NamedTuple):
    """A cache of the process, as `accnp.memory_stats` reports it."""

    what: str
    option: str  # the option that has the bound
    size: Callable[[], int]  # entries, or bytes
    evicted: Callable[[], int]
    clear: Callable[[], object]
    in_bytes: bool  # whether the bound and the counts are bytes, not entries


caches: dict[str, Cache] = {}
_of_operations: list[BoundedCache[Any, Any]] = []  # `grouped` caches, one or a few per operation


def register_cache(
    name: str,
    what: str,
    option: str,
    count: Callable[[], int],
    evicted: Callable[[], int],
    clear: Callable[[], object],
    in_bytes: bool = False,
) -> None:
    """Add a cache to the list."""
    caches[name] = Cache(what, option, count, evicted, clear, in_bytes)


class BoundedCache(dict[K, V]):
    """A dictionary of at most as many entries as an option says.

    It has two generations of entries. `get` finds those of the younger one and costs as much as
    that of any dictionary. If it finds none, `recall` looks in the older generation. `store` adds
    an entry. When the younger generation has half of the allowed entries, it becomes the older one,
    and what is left of the former older one is evicted. An evicted entry was therefore used less
    recently than every entry that is kept.
    """

    __slots__ = ("_older", "evicted", "option")

    def __init__(self, option: str, grouped: bool = False) -> None:
        super().__init__()
        self.option = option
        self.evicted = 0
        self._older: dict[K, V] = {}
        if grouped:
            _of_operations.append(self)

    def recall(self, key: K) -> V | None:
        """Return an entry that `get` does not find, or None. `get` finds it from now on."""
        value = self._older.pop(key, None)
        if value is not None:
            self.store(key, value)
        return value

    def store(self, key: K, value: V) -> None:
        """Add an entry, after evicting others if there are too many."""
        if len(self) >= max(1, getattr(config, self.option) // 2):
            self.evicted += len(self._older)
            self._older = self.copy()
            super().clear()
        self[key] = value

    @property
    def count(self) -> int:
        """The number of entries."""
        return len(self) + len(self._older)

    def clear(self) -> None:
        """Remove all entries."""
        self._older = {}
        super().clear()

    def register(self, name: str, what: str) -> BoundedCache[K, V]:
        """Add the cache to the list of all caches, and return it."""
        register_cache(
            name, what, self.option, lambda: self.count, lambda: self.evicted, self.clear
        )
        return self


def _clear_operations() -> None:
    for cache in _of_operations:
        cache.clear()


register_cache(
    "operations",
    "types of results, by the types of the operands; the bound is that of one operation",
    "type_cache_size",
    lambda: sum([cache.count for cache in _of_operations]),
    lambda: sum([cache.evicted for cache in _of_operations]),
    _clear_operations,
)
