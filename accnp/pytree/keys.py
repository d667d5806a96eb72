"""Key paths: the keys that lead from the root of a pytree to a leaf.

Each class of keys describes how a container refers to a child: by key, index or attribute.
`paths.py` makes the paths of leaves from them, and `keystr` formats a path as Python code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from accnp.errors import api_boundary


@dataclass(frozen=True)
class DictKey:
    """Key of a dictionary entry, in the path to a leaf.

    Parameters
    ----------
    key : hashable
        Key under which the child is stored.

    Examples
    --------
    >>> import accnp as jnp
    >>> str(jnp.tree_util.DictKey("w"))
    "['w']"
    """

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class SequenceKey:
    """Index into a list or tuple, in the path to a leaf.

    Parameters
    ----------
    idx : int
        Position of the child, from 0.

    Examples
    --------
    >>> import accnp as jnp
    >>> str(jnp.tree_util.SequenceKey(2))
    '[2]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """Name of an attribute, in the path to a leaf.

    Parameters
    ----------
    name : str
        Attribute that holds the child.

    Examples
    --------
    >>> import accnp as jnp
    >>> str(jnp.tree_util.GetAttrKey("bias"))
    '.bias'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """Index of a child of a registered class that does not name its children.

    Parameters
    ----------
    key : int
        Position of the child among those that the class returns, from 0.

    Examples
    --------
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
    """Format the path to a leaf as a string.

    Parameters
    ----------
    keys : iterable of keys
        Path, as `tree.leaves_with_path` returns it.
    simple : bool, optional
        If True, omit brackets and quotes. The default is False.
    separator : str, optional
        Text between the keys. The default is empty.

    Returns
    -------
    str
        Path such as `['w'][0].x`, or `w/0/x` with `simple=True` and `separator="/"`.

    Raises
    ------
    TypeError
        If `keys` is not a sequence of keys.

    See Also
    --------
    tree.leaves_with_path : Leaves with their paths.
    tree.map_with_path : Apply a function to paths and leaves.

    Examples
    --------
    >>> from accnp.tree_util import DictKey, SequenceKey, keystr
    >>> keystr((DictKey("w"), SequenceKey(0)))
    "['w'][0]"
    """
    return separator.join(_short_text(key) if simple else str(key) for key in keys)


def _short_text(key: KeyEntry) -> str:
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)
