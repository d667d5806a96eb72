"""Maps, folds and transposes over pytrees.

In: functions and trees. Out: trees or values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from accnp.errors import api_boundary
from accnp.pytree.paths import (
    column,
    flatten_one_level,
    flatten_one_level_with_keys,
    tree_flatten_with_path,
)
from accnp.pytree.register import register_pytree_node
from accnp.pytree.structure import (
    NODES,
    IsLeaf,
    PyTreeDef,
    a_structure,
    flatten_arrays,
    is_leaf_value,
    is_namedtuple,
    tree_flatten,
    tree_leaves,
    tree_structure,
)


@api_boundary
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply `f` to each leaf, and to the subtrees of `rest` that stand in its place.

    Raises:
        ValueError: a tree of `rest` has another structure.
        TypeError: f is no function.

    >>> import accnp as jnp
    >>> jnp.tree.map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    if not callable(f):
        raise TypeError(f"tree_map: Expected a callable value, got {f!r}; pass the function first")
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    columns = [column(treedef, "tree_map", tree, other, is_leaf) for other in rest]
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *columns)])


def map_arrays(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply `f` to each array that a program computes with: of a typed key, to its words."""
    leaves, treedef = flatten_arrays(tree)
    columns = [column(treedef, "map_arrays", tree, other, None) for other in rest]
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *columns)])


@api_boundary
def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    Raises:
        ValueError: a leaf is an array of several elements.

    >>> import accnp as jnp
    >>> jnp.tree.all({"a": True, "b": [1, 0]})
    False
    """
    return all(tree_leaves(tree, is_leaf))


_NONE_GIVEN = object()


@api_boundary
def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _NONE_GIVEN,
    is_leaf: IsLeaf = None,
) -> Any:
    """Fold the leaves from the left.

    Raises:
        TypeError: there are neither leaves nor an initializer.

    >>> import accnp as jnp
    >>> jnp.tree.reduce(lambda a, b: a - b, {"a": 10, "b": [1, 2]})
    7
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is _NONE_GIVEN:
        if not leaves:
            raise TypeError(f"tree_reduce: leaves are needed; got {tree!r}; pass an initializer")
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


@api_boundary
def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _NONE_GIVEN,
    is_leaf: IsLeaf = None,
) -> Any:
    """Fold the leaves as a balanced tree.

    Raises:
        TypeError: there are neither leaves nor an identity.

    >>> import accnp as jnp
    >>> jnp.tree.reduce_associative(lambda a, b: f"({a}{b})", list("abcd"))
    '((ab)(cd))'
    """
    values = tree_leaves(tree, is_leaf)
    if not values:
        if identity is _NONE_GIVEN:
            raise TypeError(f"tree_reduce_associative: no leaves; got {tree!r}; pass identity")
        return identity

    def fold(low: int, high: int) -> Any:
        if high - low == 1:
            return values[low]
        middle = (low + high) // 2
        return operation(fold(low, middle), fold(middle, high))

    return fold(0, len(values))


@api_boundary
def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Turn a tree of trees inside out; an inner structure of None is that of the first subtree.

    Raises:
        TypeError: the tree is none of the outer structure with trees of the inner one.

    >>> import accnp as jnp
    >>> pairs = [(1, 2), (3, 4), (5, 6)]
    >>> jnp.tree.transpose(jnp.tree.structure([0, 0, 0]), None, pairs)
    ([1, 3, 5], [2, 4, 6])
    """
    if inner_treedef is None:
        parts = outer_treedef.flatten_up_to(pytree_to_transpose)
        if not parts:
            raise IndexError(
                "tree_transpose: the inner structure is not to be seen in an empty tree; got "
                f"{pytree_to_transpose!r}; pass inner_treedef"
            )
        inner_treedef = tree_structure(parts[0])
    leaves, found = tree_flatten(pytree_to_transpose)
    size = inner_treedef.num_leaves
    if len(leaves) != size * outer_treedef.num_leaves:
        raise TypeError(
            f"tree_transpose: the tree does not have the two structures; got {found}; "
            f"pass one like {outer_treedef.compose(inner_treedef)}"
        )
    rows = [outer_treedef.unflatten(leaves[i::size]) for i in range(size)]
    return inner_treedef.unflatten(rows)


@api_boundary
def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every item is a leaf.

    Raises:
        TypeError: the argument cannot be iterated over.

    >>> import accnp as jnp
    >>> jnp.tree_util.all_leaves([1, "a"]), jnp.tree_util.all_leaves([1, (2,)])
    (True, False)
    """
    return all(is_leaf_value(item, is_leaf) for item in iterable)


def is_tree_node(typ: type) -> bool:
    """Whether values of this class are taken apart.

    Raises:
        TypeError: the argument is no class.

    >>> import accnp as jnp
    >>> jnp.tree_util.is_tree_node(list), jnp.tree_util.is_tree_node(str)
    (True, False)
    """
    if not isinstance(typ, type):
        raise TypeError(f"is_tree_node: a class is needed; got {typ!r}; pass type(x)")
    return typ in (tuple, list, dict, type(None)) or typ in NODES or is_namedtuple(typ)


@api_boundary
def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures one level down.

    Raises:
        TypeError: the argument is no structure.

    >>> import accnp as jnp
    >>> jnp.tree_util.treedef_children(jnp.tree.structure((1, [2, 3])))
    [PyTreeDef(*), PyTreeDef([*, *])]
    """
    return a_structure(treedef, "treedef_children").children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the tree is one node: a leaf, or None.

    Raises:
        TypeError: the argument is no structure.

    >>> import accnp as jnp
    >>> jnp.tree_util.treedef_is_leaf(jnp.tree.structure(1))
    True
    """
    return a_structure(treedef, "treedef_is_leaf").num_nodes == 1


@api_boundary
def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: IsLeaf = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply `f(path, leaf, ...)` to each leaf; errors as of `tree_map`.

    >>> import accnp as jnp
    >>> jnp.tree.map_with_path(lambda path, x: jnp.tree_util.keystr(path) + x, {"a": ["!"]})
    {'a': ["['a'][0]!"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [column(treedef, "tree_map_with_path", tree, other, is_leaf) for other in rest]
    leaves = [f(path, leaf, *others) for (path, leaf), *others in zip(pairs, *columns)]
    return treedef.unflatten(leaves)


class PyTreeRegistry:
    """The classes that are nodes, as one object; there is one, `default_registry`."""

    flatten = staticmethod(tree_flatten)
    flatten_with_path = staticmethod(tree_flatten_with_path)
    is_node = staticmethod(is_tree_node)
    register_node = staticmethod(register_pytree_node)

    @staticmethod
    def flatten_one_level(tree: Any) -> Any:
        """Like the function, and None of a leaf."""
        return flatten_one_level(tree) if is_tree_node(type(tree)) else None

    @staticmethod
    def flatten_one_level_with_keys(tree: Any) -> Any:
        """Like the function, and None of a leaf."""
        return flatten_one_level_with_keys(tree) if is_tree_node(type(tree)) else None


default_registry = PyTreeRegistry()
