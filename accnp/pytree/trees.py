"""Functions over the leaves of pytrees: map, reduce, transpose, and tests of structures.

Input: functions and pytrees. Output: pytrees or values. `tree.py` and `tree_util.py` export these
functions to users; `map_arrays` is for transformations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from accnp.docstrings import NOT_GIVEN
from accnp.errors import api_boundary
from accnp.pytree import PyTree
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
def tree_map(f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to each leaf of a pytree, and return a pytree of the results.

    Parameters
    ----------
    f : callable
        Function of one leaf of `tree` and, for each pytree of `rest`, the subtree at the same
        position.
    tree : pytree
        Structure of the result, and first argument of `f`.
    *rest : pytree
        Further pytrees, of which `tree` is a prefix.
    {is_leaf}

    Returns
    -------
    pytree
        Results of `f`, in the structure of `tree`.

    Raises
    ------
    ValueError
        If a pytree of `rest` has another structure.
    TypeError
        If `f` is not callable.

    See Also
    --------
    tree.map_with_path : Pass the path of each leaf, too.
    tree.leaves : List of the leaves.
    tree.reduce : Combine the leaves.

    Examples
    --------
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
    """Apply `f` to each array that a program computes with: for typed PRNG keys, their key data."""
    leaves, treedef = flatten_arrays(tree)
    columns = [column(treedef, "map_arrays", tree, other, None) for other in rest]
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *columns)])


@api_boundary
def tree_all(tree: PyTree, *, is_leaf: IsLeaf = None) -> bool:
    """Return whether all leaves of a pytree are true.

    Parameters
    ----------
    {pytree}
    {is_leaf}

    Returns
    -------
    bool
        True if every leaf is true or the pytree has no leaves.

    Raises
    ------
    ValueError
        If a leaf is an array of several elements.

    See Also
    --------
    tree.reduce : Combine the leaves by any function.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree.all({"a": True, "b": [1, 0]})
    False
    """
    return all(tree_leaves(tree, is_leaf))


@api_boundary
def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: PyTree,
    initializer: object = NOT_GIVEN,
    is_leaf: IsLeaf = None,
) -> Any:
    """Combine the leaves of a pytree from left to right by a function of two arguments.

    Parameters
    ----------
    function : callable
        Function of the value so far and the next leaf.
    {pytree}
    initializer : object, optional
        First value. The default is the first leaf.
    {is_leaf}

    Returns
    -------
    object
        Last value.

    Raises
    ------
    TypeError
        If there are neither leaves nor an initializer.

    See Also
    --------
    tree.reduce_associative : Combine leaves pairwise.
    tree.leaves : List of the leaves.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree.reduce(lambda a, b: a - b, {"a": 10, "b": [1, 2]})
    7
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is NOT_GIVEN:
        if not leaves:
            raise TypeError(
                f"tree_reduce: the pytree has no leaves; got {tree!r}; pass an initializer"
            )
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


@api_boundary
def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: PyTree,
    *,
    identity: object = NOT_GIVEN,
    is_leaf: IsLeaf = None,
) -> Any:
    """Combine the leaves of a pytree pairwise, as a balanced tree, by an associative function.

    Parameters
    ----------
    operation : callable
        Associative function of two leaves.
    {pytree}
    identity : object, optional
        Result for a pytree without leaves.
    {is_leaf}

    Returns
    -------
    object
        Combination of all leaves, in their order.

    Raises
    ------
    TypeError
        If there are neither leaves nor an identity.

    See Also
    --------
    tree.reduce : Combine leaves from left to right.

    Notes
    -----
    For n leaves, each leaf takes part in about log2(n) operations, so rounding errors grow more
    slowly than with `tree.reduce`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree.reduce_associative(lambda a, b: f"({a}{b})", list("abcd"))
    '((ab)(cd))'
    """
    values = tree_leaves(tree, is_leaf)
    if not values:
        if identity is NOT_GIVEN:
            raise TypeError(
                f"tree_reduce_associative: the pytree has no leaves; got {tree!r}; pass identity"
            )
        return identity

    def reduce_range(low: int, high: int) -> Any:
        if high - low == 1:
            return values[low]
        middle = (low + high) // 2
        return operation(reduce_range(low, middle), reduce_range(middle, high))

    return reduce_range(0, len(values))


@api_boundary
def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: PyTree
) -> Any:
    """Exchange the outer and the inner structure of a pytree of pytrees.

    Parameters
    ----------
    outer_treedef : PyTreeDef
        Structure of the outer pytree.
    inner_treedef : PyTreeDef or None
        Structure of each subtree. None takes that of the first subtree.
    pytree_to_transpose : pytree
        Pytree of the outer structure whose leaves have the inner structure.

    Returns
    -------
    pytree
        Pytree of the inner structure whose leaves have the outer structure.

    Raises
    ------
    TypeError
        If the pytree does not have the two structures.
    ValueError
        If the outer structure has no leaves, and the inner one has some.
    IndexError
        If `inner_treedef` is None and the pytree is empty.

    See Also
    --------
    tree.structure : Structure of a pytree.
    tree.map : Apply a function to each leaf.

    Examples
    --------
    >>> import accnp as jnp
    >>> pairs = [(1, 2), (3, 4), (5, 6)]
    >>> jnp.tree.transpose(jnp.tree.structure([0, 0, 0]), None, pairs)
    ([1, 3, 5], [2, 4, 6])
    """
    if inner_treedef is None:
        parts = outer_treedef.flatten_up_to(pytree_to_transpose)
        if not parts:
            raise IndexError(
                "tree_transpose: the inner structure cannot be derived from an empty pytree; got "
                f"{pytree_to_transpose!r}; pass inner_treedef"
            )
        inner_treedef = tree_structure(parts[0])
    leaves, actual = tree_flatten(pytree_to_transpose)
    size = inner_treedef.num_leaves
    if len(leaves) != size * outer_treedef.num_leaves:
        raise TypeError(
            f"tree_transpose: Mismatch of structures; got {actual}; "
            f"pass a pytree of structure {outer_treedef.compose(inner_treedef)}"
        )
    # As in JAX, an outer structure without leaves has no rows for the leaves of the inner one.
    rows = [outer_treedef.unflatten(leaves[i::size]) for i in range(size if leaves else 0)]
    return inner_treedef.unflatten(rows)


@api_boundary
def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Return whether every item of an iterable is a leaf.

    Parameters
    ----------
    iterable : iterable
        Objects to test.
    {is_leaf}

    Returns
    -------
    bool
        False if at least one item is a node of a pytree.

    Raises
    ------
    TypeError
        If the argument is not iterable.

    See Also
    --------
    tree_util.is_tree_node : Whether a class is registered as a node.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree_util.all_leaves([1, "a"]), jnp.tree_util.all_leaves([1, (2,)])
    (True, False)
    """
    return all(is_leaf_value(item, is_leaf) for item in iterable)


def is_tree_node(typ: type) -> bool:
    """Return whether instances of a class are nodes of pytrees.

    Parameters
    ----------
    typ : type
        Class to look up in the registry.

    Returns
    -------
    bool
        False if instances are leaves.

    Raises
    ------
    TypeError
        If the argument is not a class.

    See Also
    --------
    tree_util.all_leaves : Whether values are leaves.
    tree_util.register_pytree_node : Register a class.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree_util.is_tree_node(list), jnp.tree_util.is_tree_node(str)
    (True, False)
    """
    if not isinstance(typ, type):
        raise TypeError(f"is_tree_node: expected a class; got {typ!r}; pass type(x)")
    return typ in (tuple, list, dict, type(None)) or typ in NODES or is_namedtuple(typ)


@api_boundary
def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children of the top node.

    Parameters
    ----------
    treedef : PyTreeDef
        Structure of a pytree.

    Returns
    -------
    list of PyTreeDef
        One structure for each child; empty for a leaf.

    Raises
    ------
    TypeError
        If the argument is not a `PyTreeDef`.

    See Also
    --------
    tree_util.treedef_tuple : Join structures to that of a tuple.
    tree_util.treedef_is_leaf : Whether a structure is a leaf.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree_util.treedef_children(jnp.tree.structure((1, [2, 3])))
    [PyTreeDef(*), PyTreeDef([*, *])]
    """
    return a_structure(treedef, "treedef_children").children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether a pytree is a single node: a leaf, or None.

    Parameters
    ----------
    treedef : PyTreeDef
        Structure of a pytree.

    Returns
    -------
    bool
        True for a leaf and for None.

    Raises
    ------
    TypeError
        If the argument is not a `PyTreeDef`.

    See Also
    --------
    tree_util.treedef_children : Structures of the children.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree_util.treedef_is_leaf(jnp.tree.structure(1))
    True
    """
    return a_structure(treedef, "treedef_is_leaf").num_nodes == 1


@api_boundary
def tree_map_with_path(
    f: Callable[..., Any],
    tree: PyTree,
    *rest: PyTree,
    is_leaf: IsLeaf = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply a function to the path and the value of each leaf of a pytree.

    Parameters
    ----------
    f : callable
        Function of the path, the leaf and, for each pytree of `rest`, the subtree at the same
        position. The path is a tuple of keys.
    tree : pytree
        Structure of the result.
    *rest : pytree
        Further pytrees, of which `tree` is a prefix.
    {is_leaf}
    {is_leaf_takes_path}

    Returns
    -------
    pytree
        Results of `f`, in the structure of `tree`.

    Raises
    ------
    ValueError
        If a pytree of `rest` has another structure.
    TypeError
        If `f` is not callable.

    See Also
    --------
    tree.map : Apply a function without paths.
    tree_util.keystr : Format a path.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree.map_with_path(lambda path, x: jnp.tree_util.keystr(path) + x, {"a": ["!"]})
    {'a': ["['a'][0]!"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [column(treedef, "tree_map_with_path", tree, other, is_leaf) for other in rest]
    leaves = [f(path, leaf, *others) for (path, leaf), *others in zip(pairs, *columns)]
    return treedef.unflatten(leaves)


class PyTreeRegistry:
    """The registry of node classes as an object. `default_registry` is the only instance."""

    flatten = staticmethod(tree_flatten)
    flatten_with_path = staticmethod(tree_flatten_with_path)
    is_node = staticmethod(is_tree_node)
    register_node = staticmethod(register_pytree_node)

    @staticmethod
    def flatten_one_level(tree: Any) -> Any:
        """Call the function of the same name; return None for a leaf."""
        return flatten_one_level(tree) if is_tree_node(type(tree)) else None

    @staticmethod
    def flatten_one_level_with_keys(tree: Any) -> Any:
        """Call the function of the same name; return None for a leaf."""
        return flatten_one_level_with_keys(tree) if is_tree_node(type(tree)) else None


default_registry = PyTreeRegistry()
