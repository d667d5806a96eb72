"""Structures of pytrees: which values are nodes, flattening and unflattening.

Input: nested tuples, lists, dictionaries, namedtuples, None and instances of registered classes.
Output: lists of leaves and `PyTreeDef`. None has no leaves, and dictionaries are ordered by sorted
key, as in JAX. Trees are walked in C (`_native/pytrees.c`).

There are two views of a pytree. `tree_flatten` returns the leaves that users see. `flatten_arrays`
returns the arrays that programs compute with: a typed random key is a leaf for users, but there a
node that contains the array of its words (`INNER`). Both views have the same number of leaves, in
the same order.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from accnp import _native
from accnp.docstrings import filled
from accnp.errors import api_boundary, hide_frames
from accnp.lazy_imports import imported

# Pytrees that users pass. Results are annotated with Any itself, because pyright treats `|` between
# values of an alias of Any as a union of types.
PyTree = Any

IsLeaf = Callable[..., bool] | None

R = TypeVar("R")

# A node of a structure is (class, static data, nodes of the children), and a leaf is None: plain
# tuples are compared and hashed in C. For dictionaries the data are the keys in order.
Structure = Any
NONE: Structure = (type(None), None, ())


class Rules(NamedTuple):
    """The functions that flatten and unflatten instances of a registered class."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]  # value -> children, static data
    unflatten: Callable[[Any, Any], Any]  # static data, tuple of children -> value
    # value -> pairs of key and child, static data
    with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None


class Inner(NamedTuple):
    """The functions that convert between a leaf of users and the array that programs use."""

    take: Callable[[Any, Callable[[Any], None]], Any]  # leaf, add -> structure
    put: Callable[[Any, Any], Any]  # static data, value in place of the array -> leaf


NODES: dict[type, Rules] = {}
INNER: dict[type, Inner] = {}
_WHOLE: dict[type, Inner] = {}  # passed in place of INNER for the leaves that users see
# Classes whose instances are always leaves. One lookup then decides the most frequent cases.
LEAVES: set[type] = {int, float, complex, bool, str, np.ndarray}


def sorted_keys(tree: dict) -> tuple[Any, ...]:
    """Return the keys of a dictionary in the order of its leaves."""
    try:
        return tuple(sorted(tree))
    except TypeError:
        raise ValueError(
            "tree_flatten: Comparator raised exception while sorting pytree dictionary keys; "
            f"got {list(tree)!r}; use keys of one type, or an OrderedDict"
        ) from None


def _flatten_ordered_dict(tree: Any) -> tuple[Iterable[Any], Any]:
    return tree.values(), tuple(tree)


def _flatten_default_dict(tree: Any) -> tuple[Iterable[Any], Any]:
    keys = sorted_keys(tree)
    return [tree[key] for key in keys], (tree.default_factory, keys)


NODES[OrderedDict] = Rules(_flatten_ordered_dict, lambda keys, xs: OrderedDict(zip(keys, xs)))
NODES[defaultdict] = Rules(
    _flatten_default_dict, lambda data, xs: defaultdict(data[0], zip(data[1], xs))
)


def is_namedtuple(kind: type) -> bool:
    """Return whether a class is a namedtuple. Namedtuples are nodes without registration."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _no_pair(kind: type, value: Any) -> ValueError:
    pair = isinstance(value, tuple) and len(value) == 2
    expected = "tuple where 'children' is iterable" if pair else "tuple"
    return ValueError(
        "tree_flatten: The to_iterable function for a custom PyTree node should return a "
        f"(children, aux_data) {expected}, got {value!r}, of {kind.__name__}; return such a pair"
    )


def one_level(tree: Any) -> tuple[Sequence[Any], Any] | None:
    """Return the children and the static data of the top node, or None for a leaf."""
    kind = type(tree)
    if kind is tuple or kind is list:
        return tree, None
    if kind is dict:
        keys = sorted_keys(tree)
        return tuple([tree[key] for key in keys]), keys
    if tree is None:
        return (), None
    rules = NODES.get(kind)
    if rules is not None:
        pair = rules.flatten(tree)
        if not isinstance(pair, tuple) or len(pair) != 2 or not hasattr(pair[0], "__iter__"):
            raise _no_pair(kind, pair)
        return tuple(pair[0]), pair[1]
    if is_namedtuple(kind):  # whose length and items may mean something else, as of rotations
        return tuple.__getitem__(tree, slice(None)), None
    return None


_native.install_pytrees(NODES, INNER, LEAVES, NONE, one_level)


# --- flatten ---


@filled
def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Split a pytree into the list of its leaves and its structure.

    None is a node without leaves, and the keys of dictionaries are sorted.

    Parameters
    ----------
    {pytree}
    {is_leaf}

    Returns
    -------
    leaves : list
        Leaves from left to right.
    treedef : PyTreeDef
        Structure, from which `tree.unflatten` rebuilds the pytree.

    Raises
    ------
    {raises_keys}

    See Also
    --------
    tree.unflatten : Inverse of this function.
    tree.leaves : Only the leaves.
    tree.structure : Only the structure.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree.flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    try:
        return _flatten(tree, is_leaf, _WHOLE)
    except Exception as error:
        hide_frames(error)
        raise


def flatten_arrays(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Return the arrays that a program computes with, and the structure, which contains the dtypes
    of typed keys."""
    return _flatten(tree, is_leaf, INNER)


def _flatten(tree: Any, is_leaf: IsLeaf, inner: dict[type, Inner]) -> tuple[list[Any], PyTreeDef]:
    leaves: list[Any] = []
    node = _native.flatten_tree(tree, leaves, inner, is_leaf)
    return leaves, PyTreeDef(node, len(leaves))


# --- flatten up to a structure ---


def _raise_misfit(node: Structure, tree: Any) -> None:
    """Raise the error for the first node of a pytree that differs from a structure."""
    stack = [(node, tree)]
    while stack:
        children = _check_level(*stack.pop())
        stack += reversed([*children])


def _check_level(node: Structure, tree: Any) -> Iterable[tuple[Structure, Any]]:
    """Return the pairs of the nodes and the children below; raise the error for another tree."""
    if node is None or node[0] in INNER:
        return ()
    kind, data, inner = node
    if type(tree) is not kind:
        name = "None" if kind is type(None) else kind.__name__
        hint = ""
        if kind is type(None):
            hint = "; to treat None as a leaf, pass is_leaf=lambda x: x is None"
        hint = hint or "; pass a tree of that structure"
        if is_namedtuple(kind) and is_namedtuple(type(tree)):
            raise ValueError(
                f"flatten_up_to: Named tuple type mismatch: expected type: {kind}, tuple: "
                f"{tree!r}{hint}"
            )
        raise ValueError(f"flatten_up_to: Expected {name}, got {tree!r}{hint}")
    level = one_level(tree)
    assert level is not None, kind
    children, other_data = level
    # Identical objects are accepted even if they do not compare equal, such as arrays.
    if kind is not tuple and kind is not list and other_data is not data and other_data != data:
        if kind is dict:
            raise ValueError(
                f"flatten_up_to: Dict key mismatch; expected keys: {list(data)}; present keys: "
                f"{list(other_data)}; pass a tree of that structure"
            )
        raise ValueError(
            f"flatten_up_to: expected {kind.__name__} with static data {data!r}; got "
            f"{other_data!r}; pass a tree of that structure"
        )
    if len(children) != len(inner):
        raise ValueError(
            f"flatten_up_to: {kind.__name__.capitalize()} arity mismatch: {len(children)} != "
            f"{len(inner)}; {kind.__name__}: {tree!r}; pass a tree of that structure"
        )
    return zip(inner, children)


# --- structures as objects ---
#
# Structures that users compose may be nested deeper than the recursion limit, so that these
# functions do not call themselves. Python's comparison of tuples does, so its limit is handled.


def _descend(node: Structure) -> Iterator[Structure]:
    """Yield all nodes: each before those below, and these from right to left."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if node is not None:
            stack += node[2]


def _leaves_of(node: Structure) -> int:
    return sum([x is None for x in _descend(node)])


def fold_structure(
    node: Structure,
    at_leaf: Callable[[], R],
    at_node: Callable[[Structure, tuple[R, ...]], R],
) -> R:
    """Compute a value bottom-up: for leaves, and for nodes from the values of their children, from
    left to right."""
    results: list[R] = []
    stack: list[tuple[Structure, bool]] = [(node, False)]
    while stack:
        node, is_below_done = stack.pop()
        if node is None:
            results.append(at_leaf())
        elif not is_below_done:
            stack.append((node, True))
            stack += [(x, False) for x in reversed(node[2])]
        else:
            first = len(results) - len(node[2])
            values = tuple(results[first:])
            results[first:] = [at_node(node, values)]
    return results[0]


def _are_equal(a: Structure, b: Structure) -> bool:
    """Compare structures of any depth."""
    stack = [(a, b)]
    while stack:
        a, b = stack.pop()
        if a is b:
            continue
        if a is None or b is None or a[0] != b[0] or len(a[2]) != len(b[2]):
            return False
        if a[1] is not b[1] and a[1] != b[1]:
            return False
        stack += zip(a[2], b[2])
    return True


def _structure_from_nodes(nodes: Iterable[tuple[type, Any, int] | None]) -> PyTreeDef:
    """Return a structure from its nodes, each after those below it: class, static data, and number
    of children. Pickles contain this form, since pickling nested tuples is recursive."""
    results: list[Structure] = []
    leaves = 0
    for node in nodes:
        if node is None:
            leaves += 1
            results.append(None)
        else:
            kind, data, count = node
            first = len(results) - count
            results[first:] = [(kind, data, tuple(results[first:]))]
    return PyTreeDef(results[0], leaves)


class PyTreeDef:
    """Structure of a pytree: hashable, comparable, and printed in the format of JAX.

    `unflatten(leaves)` builds the pytree. `children()`, `num_leaves` and `num_nodes` describe it.
    Users get one from `tree.structure` or `tree.flatten`.

    Parameters
    ----------
    node : Structure
        Nodes of the pytree.
    num_leaves : int
        Number of leaves below the node.

    Raises
    ------
    ValueError
        From `unflatten`, if there are too few or too many leaves.

    Examples
    --------
    >>> import accnp as jnp
    >>> structure = jnp.tree.structure({"a": 0, "b": (0, None)})
    >>> structure, structure.num_leaves
    (PyTreeDef({'a': *, 'b': (*, None)}), 2)
    """

    __slots__ = ("_node", "num_leaves")

    def __init__(self, node: Structure, num_leaves: int) -> None:
        self._node = node
        self.num_leaves = num_leaves

    @property
    def num_nodes(self) -> int:
        """Number of nodes, including leaves and None."""
        return sum([1 for _ in _descend(self._node)])

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Build the pytree of this structure with the given leaves.

        Parameters
        ----------
        leaves : iterable
            Leaves from left to right.

        Returns
        -------
        pytree
            Pytree of this structure.

        Raises
        ------
        ValueError
            If there are too few or too many leaves.
        """
        try:
            leaves = leaves if isinstance(leaves, list | tuple) else list(leaves)
            if len(leaves) != self.num_leaves:
                amount = "few" if len(leaves) < self.num_leaves else "many"
                raise ValueError(
                    f"tree_unflatten: Too {amount} leaves for PyTreeDef; got {len(leaves)} for "
                    f"{self}; pass {self.num_leaves}"
                )
            return _native.unflatten_tree(self._node, leaves)
        except Exception as error:
            hide_frames(error)
            raise

    @api_boundary
    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees of a pytree in the places where this structure has leaves.

        Parameters
        ----------
        tree : pytree
            Pytree of which this structure is a prefix.

        Returns
        -------
        list
            Subtrees from left to right.
        """
        leaves: list[Any] = []
        if not _native.flatten_up_to(self._node, tree, leaves):
            _raise_misfit(self._node, tree)
            raise ValueError(
                f"flatten_up_to: expected {self}; got another structure; pass a tree of that one"
            )
        return leaves

    def children(self) -> list[PyTreeDef]:
        """Return the structures one level down."""
        inner = () if self._node is None else self._node[2]
        return [PyTreeDef(x, _leaves_of(x)) for x in inner]

    @api_boundary
    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Return this structure with another one in place of each leaf.

        Parameters
        ----------
        inner : PyTreeDef
            Structure to insert.

        Returns
        -------
        PyTreeDef
            Composed structure.
        """
        structure = fold_structure(
            self._node, lambda: inner._node, lambda node, xs: (node[0], node[1], xs)
        )
        return PyTreeDef(structure, self.num_leaves * inner.num_leaves)

    def walk(
        self,
        f_node: Callable[[tuple[Any, ...], Any], Any],
        f_leaf: Callable[[Any], Any] | None,
        leaves: Iterable[Any],
    ) -> Any:
        """Compute a value bottom-up: `f_leaf(leaf)` for leaves, `f_node(results, static data)` for
        nodes.

        The static data of a namedtuple is its class here.
        """
        rest = iter(leaves)

        def at_leaf() -> Any:
            try:
                leaf = next(rest)
            except StopIteration:
                raise ValueError(f"walk: too few leaves; pass {self.num_leaves}") from None
            return leaf if f_leaf is None else f_leaf(leaf)

        def at_node(node: Structure, results: tuple[Any, ...]) -> Any:
            named = node[0] not in NODES and is_namedtuple(node[0])
            return f_node(results, node[0] if named else _data(node))

        result = fold_structure(self._node, at_leaf, at_node)
        if next(rest, rest) is not rest:
            raise ValueError(f"walk: too many leaves; pass {self.num_leaves}")
        return result

    def node_data(self) -> tuple[type, Any] | None:
        """Return the type and the static data of the top node, or None for a leaf."""
        return None if self._node is None else (self._node[0], _data(self._node))

    def is_leaf(self) -> bool:
        """Return whether this is the structure of a single leaf."""
        return self._node is None

    def shown(self) -> PyTreeDef:
        """Return the structure of the leaves that users see, for one of `flatten_arrays`."""
        node = _without_inner_nodes(self._node)
        return self if node is self._node else PyTreeDef(node, self.num_leaves)

    def shown_leaves(self, arrays: Iterable[Any]) -> list[Any]:
        """Convert values in place of arrays to the leaves that users see, for example types of
        words to types of keys."""
        return tree_leaves(self.unflatten(arrays))

    @api_boundary
    def serialize_using_proto(self) -> bytes:
        """Return the structure as a protocol buffer in the format of JAX.

        Raises ValueError for nodes other than tuples, lists, None and dictionaries with string
        keys.
        """
        return imported("accnp.pytree.protocol_buffers").serialize(self)

    @staticmethod
    @api_boundary
    def deserialize_using_proto(registry: Any, data: bytes) -> PyTreeDef:
        """Return the structure from bytes that `serialize_using_proto` returned."""
        return imported("accnp.pytree.protocol_buffers").deserialize(data)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        try:
            return self._node == other._node
        except RecursionError:
            return _are_equal(self._node, other._node)

    def __hash__(self) -> int:
        try:
            return hash(self._node)
        except Exception:  # static data must be comparable, but need not be hashable
            return hash(_without_data(self._node))

    def __repr__(self) -> str:
        return f"PyTreeDef({fold_structure(self._node, lambda: '*', _node_text)})"

    def __reduce__(self) -> tuple[Any, ...]:
        nodes: list[tuple[type, Any, int] | None] = []
        fold_structure(
            self._node,
            lambda: nodes.append(None),
            lambda node, _: nodes.append((node[0], node[1], len(node[2]))),
        )
        return _structure_from_nodes, (nodes,)


def _leaf() -> Structure:
    return None


def _without_data(node: Structure) -> Structure:
    """Return a structure without its static data."""
    return fold_structure(node, _leaf, lambda node, xs: (node[0], xs))


def _without_inner_nodes(node: Structure) -> Structure:
    """Return a structure in which nodes that only programs see (`INNER`) are leaves."""

    def at_node(node: Structure, inner: tuple[Structure, ...]) -> Structure:
        if node[0] in INNER:
            return None
        same = all([a is b for a, b in zip(inner, node[2])])
        return node if same else (node[0], node[1], inner)

    return fold_structure(node, _leaf, at_node)


def _data(node: Structure) -> Any:
    return list(node[1]) if node[0] is dict else node[1]


def _node_text(node: Structure, inner: Sequence[str]) -> str:
    """Return the text of a node from those of its children."""
    kind, data, _ = node
    if kind in INNER:
        return "*"
    body = ", ".join(inner)
    if kind is tuple:
        return f"({body},)" if len(inner) == 1 else f"({body})"
    if kind is list:
        return f"[{body}]"
    if kind is dict:
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in zip(data, inner)) + "}"
    if kind is type(None):
        return "None"
    what = f"{kind.__name__}[{data}]" if kind in NODES else f"namedtuple[{kind.__name__}]"
    return f"CustomNode({what}, [{body}])"


def a_structure(x: Any, name: str) -> PyTreeDef:
    """Return an argument that must be a `PyTreeDef`; raise TypeError for others."""
    if not isinstance(x, PyTreeDef):
        raise TypeError(
            f"{name}: expected a PyTreeDef; got {x!r} of type {type(x).__name__}; make one with "
            "tree_structure"
        )
    return x


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Build a pytree from its structure and its leaves.

    Parameters
    ----------
    treedef : PyTreeDef
        Structure, as returned by `tree.flatten`.
    leaves : iterable
        Leaves from left to right.

    Returns
    -------
    pytree
        Pytree of this structure.

    Raises
    ------
    ValueError
        If there are too few or too many leaves.
    TypeError
        If `treedef` is not a `PyTreeDef`, or `leaves` is not iterable.

    See Also
    --------
    tree.flatten : Inverse of this function.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree.unflatten(jnp.tree.structure((0, [0])), [5, 6])
    (5, [6])
    """
    try:
        return a_structure(treedef, "tree_unflatten").unflatten(leaves)
    except Exception as error:
        hide_frames(error)
        raise


@filled
def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the list of the leaves of a pytree, from left to right.

    Parameters
    ----------
    {pytree}
    {is_leaf}

    Returns
    -------
    list
        Leaves. None is not a leaf, and the keys of dictionaries are sorted.

    Raises
    ------
    {raises_keys}

    See Also
    --------
    tree.flatten : Leaves and structure.
    tree.leaves_with_path : Leaves with their paths.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree.leaves({"b": 1, "a": (2, None)})
    [2, 1]
    """
    try:
        return _flatten(tree, is_leaf, _WHOLE)[0]
    except Exception as error:
        hide_frames(error)
        raise


@api_boundary
def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """Return the structure of a pytree, without its leaves.

    Parameters
    ----------
    {pytree}
    {is_leaf}

    Returns
    -------
    PyTreeDef
        Structure of the pytree.

    Raises
    ------
    {raises_keys}

    See Also
    --------
    tree.flatten : Leaves and structure.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree.structure({"b": 1, "a": (2, None)})
    PyTreeDef({'a': (*, None), 'b': *})
    """
    return tree_flatten(tree, is_leaf)[1]


def array_leaves(tree: Any) -> list[Any]:
    """Return the leaves of `flatten_arrays`."""
    return flatten_arrays(tree)[0]


def array_structure(tree: Any) -> PyTreeDef:
    """Return the structure of `flatten_arrays`."""
    return flatten_arrays(tree)[1]


def is_leaf_value(x: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether a value is a leaf. None is not a leaf."""
    return (is_leaf is not None and is_leaf(x)) or one_level(x) is None


@api_boundary
def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple of pytrees with the given structures.

    Parameters
    ----------
    treedefs : iterable of PyTreeDef
        Structures of the elements of the tuple.

    Returns
    -------
    PyTreeDef
        Structure of the tuple.

    Raises
    ------
    TypeError
        If an element is not a `PyTreeDef`.

    See Also
    --------
    tree_util.treedef_children : Structures of the children.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tree_util.treedef_tuple([jnp.tree.structure(1), jnp.tree.structure([1])])
    PyTreeDef((*, [*]))
    """
    parts = [a_structure(d, "treedef_tuple") for d in treedefs]
    node = (tuple, None, tuple([d._node for d in parts]))
    return PyTreeDef(node, sum([d.num_leaves for d in parts]))
