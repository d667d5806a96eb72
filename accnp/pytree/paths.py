"""Paths of leaves, and comparison of the structures of two pytrees.

Input: pytrees. Output: pairs of path and leaf, leaves of a prefix that are repeated for a full
pytree, and errors that name the path of the first difference between two structures.
"""

from __future__ import annotations

import textwrap
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from typing import Any

from accnp.errors import api_boundary
from accnp.pytree import PyTree
from accnp.pytree.keys import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyPath,
    SequenceKey,
    keystr,
)
from accnp.pytree.structure import (
    NODES,
    NONE,
    IsLeaf,
    PyTreeDef,
    Structure,
    one_level,
    tree_flatten,
    tree_leaves,
    tree_structure,
)

Pairs = list[tuple[Any, Any]]


def with_keys(tree: Any) -> tuple[Pairs, Any] | None:
    """Return `([(key, child), ...], static data)` for the top node, or None for a leaf."""
    kind = type(tree)
    rules = NODES.get(kind)
    if rules is not None and rules.with_keys is not None:
        value = rules.with_keys(tree)
        if not isinstance(value, tuple) or len(value) != 2 or not hasattr(value[0], "__iter__"):
            raise _no_pairs(kind, value)
        pairs = list(value[0])
        if not all([isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs]):
            raise _no_pairs(kind, value)
        return [(key, child) for key, child in pairs], value[1]
    level = one_level(tree)
    if level is None:
        return None
    children, data = level
    keys: Sequence[Any]
    if kind is dict or kind is OrderedDict:
        keys = [DictKey(key) for key in data]
    elif kind is defaultdict:
        keys = [DictKey(key) for key in data[1]]
    elif rules is not None:
        keys = [FlattenedIndexKey(i) for i in range(len(children))]
    elif kind is tuple or kind is list:
        keys = [SequenceKey(i) for i in range(len(children))]
    else:
        keys = [GetAttrKey(name) for name in getattr(kind, "_fields", None) or ()]
    if len(keys) != len(children):
        raise ValueError(
            "tree_flatten_with_path: A namedtuple's _fields attribute should have the same size as "
            f"the tuple; got {len(keys)} fields for {len(children)} children of {kind.__name__}; "
            "correct the fields"
        )
    return list(zip(keys, children)), data


def _no_pairs(kind: type, value: Any) -> ValueError:
    return ValueError(
        "tree_flatten_with_path: The to_iterable_with_keys function for a custom PyTree node "
        "should return a (key_leaf_pairs, aux_data) tuple where 'key_leaf_pairs' is an iterable of "
        f"pairs, got {value!r}, of {kind.__name__}; return such a pair"
    )


def _walk(
    path: KeyPath, tree: Any, is_leaf: IsLeaf, takes_path: bool, leaves: list[tuple[KeyPath, Any]]
) -> Structure:
    """Add the leaves with their paths to a list, and return the structure."""
    if is_leaf is not None and (is_leaf(path, tree) if takes_path else is_leaf(tree)):
        return leaves.append((path, tree))
    level = with_keys(tree)
    if level is None:
        return leaves.append((path, tree))
    if tree is None:
        return NONE
    pairs, data = level
    inner = []
    for key, child in pairs:  # a comprehension would double the frames of deep trees
        inner.append(_walk((*path, key), child, is_leaf, takes_path, leaves))
    return type(tree), data, tuple(inner)


@api_boundary
def tree_leaves_with_path(
    tree: PyTree, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Return the leaves of a pytree, each with its path.

    Parameters
    ----------
    {pytree}
    {is_leaf}
    {is_leaf_takes_path}

    Returns
    -------
    list of (path, leaf)
        Pairs from left to right. A path is a tuple of keys.

    Raises
    ------
    {raises_keys}

    See Also
    --------
    tree.leaves : Leaves without paths.
    tree_util.keystr : Format a path.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree.leaves_with_path([5])
    [((SequenceKey(idx=0),), 5)]
    """
    leaves: list[tuple[KeyPath, Any]] = []
    _walk((), tree, is_leaf, is_leaf_takes_path, leaves)
    return leaves


@api_boundary
def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Split a pytree into its leaves, each with its path, and its structure.

    Parameters
    ----------
    {pytree}
    {is_leaf}
    {is_leaf_takes_path}

    Returns
    -------
    leaves : list of (path, leaf)
        Pairs from left to right. A path is a tuple of keys.
    treedef : PyTreeDef
        Structure, from which `tree.unflatten` rebuilds the pytree.

    Raises
    ------
    {raises_keys}

    See Also
    --------
    tree.flatten : Leaves without paths.
    tree_util.keystr : Format a path.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree.flatten_with_path({"a": [5]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]
    """
    leaves: list[tuple[KeyPath, Any]] = []
    node = _walk((), tree, is_leaf, is_leaf_takes_path, leaves)
    return leaves, PyTreeDef(node, len(leaves))


def leaf_names(tree: Any, root: str = "") -> list[str]:
    """Return the name of each leaf as Python code, such as `x['w'][0]`."""
    return [root + keystr(path) for path, _ in tree_leaves_with_path(tree)]


@api_boundary
def flatten_one_level(tree: PyTree) -> tuple[Sequence[Any], Any]:
    """Return the children and the static data of the top node of a pytree.

    Parameters
    ----------
    {pytree}

    Returns
    -------
    children : sequence
        Subtrees one level down.
    static : hashable
        Static data of the node: the sorted keys of a dictionary, the class of a namedtuple.

    Raises
    ------
    ValueError
        If the pytree is a leaf.

    See Also
    --------
    tree_util.flatten_one_level_with_keys : Return the key of each child, too.
    tree_util.tree_flatten : Flatten all levels.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree_util.flatten_one_level({"a": (1, 2)})
    ([(1, 2)], ('a',))
    """
    pairs, data = flatten_one_level_with_keys(tree)
    return [child for _, child in pairs], data


@api_boundary
def flatten_one_level_with_keys(tree: PyTree) -> tuple[Pairs, Any]:
    """Return the children of the top node of a pytree with their keys, and its static data.

    Parameters
    ----------
    {pytree}

    Returns
    -------
    children : sequence of (key, child)
        Subtrees one level down, each with the key that leads to it.
    static : hashable
        Static data of the node: the sorted keys of a dictionary, the class of a namedtuple.

    Raises
    ------
    ValueError
        If the pytree is a leaf.

    See Also
    --------
    tree_util.flatten_one_level : Return the children without keys.
    tree_util.tree_flatten_with_path : Flatten all levels.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree_util.flatten_one_level_with_keys({"a": (1, 2)})
    ([(DictKey(key='a'), (1, 2))], ('a',))
    """
    level = with_keys(tree)
    if level is None:
        raise ValueError(
            f"flatten_one_level: a leaf cannot be flattened; got {type(tree).__name__}; pass a node"
        )
    kind = type(tree)
    plain = kind in (tuple, list, dict, type(None)) or kind in NODES
    return level if plain else (level[0], kind)


def column(treedef: PyTreeDef, name: str, tree: Any, other: Any, is_leaf: IsLeaf) -> list[Any]:
    """Return the subtrees of `other` at the leaves of `treedef`, the structure of `tree`."""
    try:
        return treedef.flatten_up_to(other)
    except ValueError as error:
        raise (mismatch(name, tree, other, is_leaf) or error) from None


@api_boundary
def tree_broadcast(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf = None) -> Any:
    """Repeat the leaves of a prefix over the subtrees of a full pytree.

    Parameters
    ----------
    prefix_tree : pytree
        Pytree whose structure is a prefix of that of `full_tree`.
    full_tree : pytree
        Pytree whose structure the result has.
    {is_leaf}

    Returns
    -------
    pytree
        Leaves of `prefix_tree` in the structure of `full_tree`.

    Raises
    ------
    ValueError
        If the first pytree is not a prefix of the second.

    See Also
    --------
    tree.map : Apply a function to leaves and subtrees.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree.broadcast((1, 2), ((3, 4), 5))
    ((1, 1), 2)
    """
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return tree_structure(full_tree).unflatten(leaves)


def broadcast_prefix(
    prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None, name: str = "broadcast_prefix"
) -> list[Any]:
    """Return a leaf of the prefix for each leaf of the full pytree."""
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    result: list[Any] = []
    for leaf, subtree in zip(leaves, column(treedef, name, prefix_tree, full_tree, is_leaf)):
        result += [leaf] * len(tree_leaves(subtree))
    return result


def mismatch(name: str, prefix: Any, full: Any, is_leaf: IsLeaf = None) -> ValueError | None:
    """Return an error that names the first path at which `prefix` is not a prefix of `full`; None
    if it is one."""
    difference = _first_difference((), prefix, full, is_leaf)
    if difference is None:
        return None
    path, what = difference
    place = f"at {keystr(path)}" if path else "at the top"
    return ValueError(
        f"{name}: pytree structure error: the trees have different structures {place}: {what}; "
        "pass trees of the same structure"
    )


def _first_difference(
    path: KeyPath, prefix: Any, full: Any, is_leaf: IsLeaf
) -> tuple[KeyPath, str] | None:
    if is_leaf is not None and is_leaf(prefix):
        return None
    first = with_keys(prefix)
    if first is None:
        return None
    second = with_keys(full)
    if second is None:
        text = textwrap.shorten(repr(full), 60)
        return path, f"the first has a {_type_name(prefix)}, the other a leaf; got {text}"
    if type(prefix) is not type(full):
        return path, f"the first has a {_type_name(prefix)}, the other a {_type_name(full)}"
    if isinstance(prefix, dict):
        missing = sorted(map(repr, prefix.keys() - full.keys()))
        extra = sorted(map(repr, full.keys() - prefix.keys()))
        if missing or extra:
            parts = [f"only the first has the keys {', '.join(missing)}"] if missing else []
            parts += [f"only the other has the keys {', '.join(extra)}"] if extra else []
            return path, " and ".join(parts)
    if len(first[0]) != len(second[0]):
        return (
            path,
            f"a {_type_name(prefix)} of length {len(first[0])} and one of length {len(second[0])}",
        )
    if first[1] is not second[1] and first[1] != second[1]:
        return path, (
            f"two {_type_name(prefix)} with different static data, {first[1]!r} and {second[1]!r}"
        )
    for (key, child), (_, other) in zip(first[0], second[0]):
        difference = _first_difference((*path, key), child, other, is_leaf)
        if difference is not None:
            return difference
    return None


def _type_name(tree: Any) -> str:
    return "None" if tree is None else type(tree).__name__
