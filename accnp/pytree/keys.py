"""Key paths: the entries that lead from a tree's root to a leaf, and their texts.

In: a position in a container. Out: hashable entries, and `keystr`, which writes a path as a user
would.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from accnp.errors import api_boundary


@dataclass(frozen=True)
class DictKey:
    """An entry of a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class SequenceKey:
    """A place in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """An attribute of an object."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """A child of a registered class that does not name its children."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


@api_boundary
def keystr(keys: Iterable[KeyEntry], *, simple: bool = False, separator: str = "") -> str:
    """A path as text: `['w'][0].x`, or with `simple` and a separator `w/0/x`.

    >>> from accnp.tree_util import DictKey, SequenceKey, keystr
    >>> keystr((DictKey("w"), SequenceKey(0)))
    "['w'][0]"
    """
    return separator.join(_simple(key) if simple else str(key) for key in keys)


def _simple(key: KeyEntry) -> str:
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)
