"""Names for the leaves of a pytree, and its structure as JSON, for checkpoints.

It takes a pytree and returns a name for each leaf, which is a relative path of a file, and the
structure as dicts and lists, if it consists of dicts, lists, tuples and None. It also rebuilds the
pytree from these.
"""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote

from accnp.pytree import tree_flatten_with_path

__all__ = ["leaf_paths", "structure_of", "tree_of"]

_LONGEST = 200  # file systems allow 255 bytes


def leaf_paths(tree: Any, function: str) -> dict[str, Any]:
    """The leaves of a tree by names.

    Raises:
        ValueError: two leaves have one name, such as those of the keys 1 and "1".
    """
    leaves: dict[str, Any] = {}
    for path, leaf in tree_flatten_with_path(tree)[0]:
        name = "/".join(map(_path_component, path)) or "value"
        if name in leaves:
            raise ValueError(
                f"{function}: each leaf needs its own name; got two of the name {name!r}; rename "
                "one of the keys"
            )
        leaves[name] = leaf
    return leaves


def _path_component(entry: Any) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(entry, attribute):
            text = quote(str(getattr(entry, attribute)), safe=" ")
            break
    else:
        text = quote(str(entry), safe="")
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}~{hashlib.sha256(text.encode()).hexdigest()[:20]}"
    # Names that mean something else to file systems and to zarr.
    hidden = text[:1] in ("", ".") or text.startswith("__") or text == "zarr.json"
    return f"%{ord(text[0]):02X}{text[1:]}" if hidden and text else text or "%"


def structure_of(tree: Any, names: Any) -> Any:
    """The structure of a tree in JSON, or None for one with other containers; `names` iterates over
    the names of the leaves."""
    if tree is None:
        return {"none": True}
    if type(tree) is dict:
        if not all(type(key) is str for key in tree):
            return None
        kind, pairs = "dict", [(key, tree[key]) for key in sorted(tree)]
    elif type(tree) in (list, tuple):
        kind, pairs = type(tree).__name__, [(None, x) for x in tree]
    else:
        (one,) = tree_flatten_with_path(tree)[0] if _is_leaf(tree) else [None]
        return None if one is None else {"leaf": next(names)}
    children = [structure_of(x, names) for _, x in pairs]
    if None in children:
        return None
    content = [[k, c] for (k, _), c in zip(pairs, children)] if kind == "dict" else children
    return {kind: content}


def _is_leaf(tree: Any) -> bool:
    leaves = tree_flatten_with_path(tree)[0]
    return len(leaves) == 1 and not leaves[0][0]


def tree_of(structure: Any, leaves: dict[str, Any]) -> Any:
    """The tree of a structure."""
    ((kind, value),) = structure.items()
    if kind == "leaf":
        return leaves[value]
    if kind == "none":
        return None
    if kind == "dict":
        return {key: tree_of(child, leaves) for key, child in value}
    children = [tree_of(child, leaves) for child in value]
    return children if kind == "list" else tuple(children)
