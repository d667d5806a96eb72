"""Key paths of leaves, and the first place where two trees differ.

In: trees. Out: pairs of path and leaf; errors that name the path where structures differ.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from typing import Any

import optree

from accnp.pytree.keys import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyPath,
    SequenceKey,
    keystr,
)
from accnp.pytree.structure import (
    NAMESPACE,
    IsLeaf,
    PyTreeDef,
    flatten_spec,
    is_leaf_value,
    tree_structure,
)

# class -> function from a value to ((key, child), ...), for classes that name their children
WITH_KEYS: dict[type, Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]]] = {}


def one_level(tree: Any) -> tuple[list[tuple[Any, Any]], Any] | None:
    """`([(key, child), ...], static data)` of the top node, or None for a leaf."""
    kind = type(tree)
    named = WITH_KEYS.get(kind)
    if named is not None:
        pairs, data = named(tree)
        return [(key, child) for key, child in pairs], data
    if is_leaf_value(tree):
        return None
    level = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    children, data, entries = level[0], level[1], level[2]
    if isinstance(tree, dict):
        keys = [DictKey(key) for key in entries]
        data = tuple(entries)
    elif optree.is_namedtuple(tree):
        keys = [GetAttrKey(name) for name in kind._fields]
    elif isinstance(tree, list | tuple) or kind.__name__ == "deque":
        keys = [SequenceKey(i) for i in range(len(children))]
    else:
        keys = [FlattenedIndexKey(i) for i in range(len(children))]
    return list(zip(keys, children)), data


def _walk(
    path: KeyPath, tree: Any, is_leaf: IsLeaf, takes_path: bool, found: list[tuple[KeyPath, Any]]
) -> None:
    if is_leaf is not None and (is_leaf(path, tree) if takes_path else is_leaf(tree)):
        found.append((path, tree))
        return
    level = one_level(tree)
    if level is None:
        found.append((path, tree))
        return
    for key, child in level[0]:
        _walk((*path, key), child, is_leaf, takes_path, found)


def tree_leaves_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Pairs of key path and leaf."""
    found: list[tuple[KeyPath, Any]] = []
    _walk((), tree, is_leaf, is_leaf_takes_path, found)
    return found


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Pairs of key path and leaf, and the structure."""
    if is_leaf is None:
        return tree_leaves_with_path(tree), tree_structure(tree)
    # optree's predicate sees no path, but it visits the nodes in this walk's order.
    answers: list[bool] = []

    def remember(path: KeyPath, node: Any) -> bool:
        answers.append(bool(is_leaf(path, node) if is_leaf_takes_path else is_leaf(node)))
        return answers[-1]

    pairs = tree_leaves_with_path(tree, remember, True)
    replay = iter(answers)
    return pairs, tree_structure(tree, lambda _: next(replay))


def leaf_names(tree: Any, root: str = "") -> list[str]:
    """The name of each leaf as a user writes it: `x['w'][0]`."""
    return [root + keystr(path) for path, _ in tree_leaves_with_path(tree)]


def flatten_one_level(tree: Any) -> tuple[Any, Any]:
    """`(children, static data)` of the top node; a ValueError for a leaf."""
    pairs, data = _level_or_error("flatten_one_level", tree)
    children = [child for _, child in pairs]
    return children, data


def flatten_one_level_with_keys(tree: Any) -> tuple[Any, Any]:
    """`([(key, child), ...], static data)` of the top node; a ValueError for a leaf."""
    return _level_or_error("flatten_one_level_with_keys", tree)


def _level_or_error(function: str, tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    level = one_level(tree)
    if level is None:
        raise ValueError(
            f"{function}: a leaf cannot be taken apart; got {type(tree).__name__}; pass a node"
        )
    return level


def column(spec: optree.PyTreeSpec, name: str, tree: Any, other: Any, is_leaf: IsLeaf) -> list[Any]:
    """The subtrees of `other` at the leaves of `spec`, the structure of `tree`."""
    try:
        return spec.flatten_up_to(other)
    except ValueError as error:
        raise (mismatch(name, tree, other, is_leaf) or error) from None


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Repeat the leaves of a prefix over the subtrees of the full tree."""
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return tree_structure(full_tree).unflatten(leaves)


def broadcast_prefix(
    prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None, name: str = "broadcast_prefix"
) -> list[Any]:
    """One leaf of the prefix for each leaf of the full tree."""
    leaves, spec = flatten_spec(prefix_tree, is_leaf)
    result: list[Any] = []
    for leaf, subtree in zip(leaves, column(spec, name, prefix_tree, full_tree, is_leaf)):
        result += [leaf] * flatten_spec(subtree)[1].num_leaves
    return result


def mismatch(name: str, prefix: Any, full: Any, is_leaf: IsLeaf = None) -> ValueError | None:
    """The error that names the first place where `prefix` is not a prefix of `full`, or None."""
    found = _first_difference((), prefix, full, is_leaf)
    if found is None:
        return None
    path, what = found
    place = f"at {keystr(path)}" if path else "at the top"
    return ValueError(
        f"{name}: the trees have different structures {place}: {what}; pass trees of one structure"
    )


def _first_difference(
    path: KeyPath, prefix: Any, full: Any, is_leaf: IsLeaf
) -> tuple[KeyPath, str] | None:
    if is_leaf is not None and is_leaf(prefix):
        return None
    first = one_level(prefix)
    if first is None:
        return None
    second = one_level(full)
    if second is None:
        text = textwrap.shorten(repr(full), 60)
        return path, f"the first has a {_kind(prefix)}, the other a leaf; got {text}"
    if type(prefix) is not type(full) and not (isinstance(prefix, dict) and isinstance(full, dict)):
        return path, f"the first has a {_kind(prefix)}, the other a {_kind(full)}"
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
            f"a {_kind(prefix)} of length {len(first[0])} and one of length {len(second[0])}",
        )
    if not isinstance(prefix, dict) and first[1] != second[1]:
        return path, f"two {_kind(prefix)} with unlike static data, {first[1]!r} and {second[1]!r}"
    others = dict(zip([key for key, _ in first[0]], [child for _, child in second[0]]))
    for key, child in first[0]:
        other = full[key.key] if isinstance(prefix, dict) else others[key]
        found = _first_difference((*path, key), child, other, is_leaf)
        if found is not None:
            return found
    return None


def _kind(tree: Any) -> str:
    return "None" if tree is None else type(tree).__name__
