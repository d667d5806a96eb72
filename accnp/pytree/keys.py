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
    """An entry of a dictionary, in the path to a leaf.

    >>> import accnp as jnp
    >>> str(jnp.tree_util.DictKey("w"))
    "['w']"
    """

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class SequenceKey:
    """A place in a list or tuple, in the path to a leaf.

    >>> import accnp as jnp
    >>> str(jnp.tree_util.SequenceKey(2))
    '[2]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """An attribute of an object, in the path to a leaf.

    >>> import accnp as jnp
    >>> str(jnp.tree_util.GetAttrKey("bias"))
    '.bias'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """A child of a registered class that does not name its children, in the path to a leaf.

    >>> import accnp as jnp
    >>> str(jnp.tree_util.FlattenedIndexKey(0))
    '[<flat index 0>]'
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


@api_boundary
def keystr(keys: Iterable[KeyEntry], *, simple: bool = False, separator: str = "") -> str:
    """A path as text: `['w'][0].x`, or with `simple` and a separator `w/0/x`.

    Raises:
        TypeError: `keys` is no path, a sequence of keys.

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
