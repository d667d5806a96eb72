"""Structures of pytrees, on optree: `PyTreeDef`, flatten and unflatten.

In: nested tuples, lists, dicts, namedtuples, None and registered classes. Out: lists of leaves and
`PyTreeDef`. None holds no leaf; dictionaries are ordered by sorted key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import optree
from optree import _C

NAMESPACE = "accnp"
IsLeaf = Callable[..., bool] | None

_flatten = _C.flatten


def flatten_spec(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], optree.PyTreeSpec]:
    """Leaves and raw optree spec (hashable, comparable): the form for hot paths."""
    return _flatten(tree, is_leaf, False, NAMESPACE)


class PyTreeDef:
    """The structure of a tree: hashable, comparable, printed as jax prints it."""

    __slots__ = ("spec",)

    def __init__(self, spec: optree.PyTreeSpec) -> None:
        self.spec = spec

    @property
    def num_leaves(self) -> int:
        """How many leaves the tree has."""
        return self.spec.num_leaves

    @property
    def num_nodes(self) -> int:
        """How many nodes the tree has, leaves and None included."""
        return self.spec.num_nodes

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves."""
        leaves = leaves if isinstance(leaves, list | tuple) else list(leaves)
        if len(leaves) != self.spec.num_leaves:
            amount = "few" if len(leaves) < self.spec.num_leaves else "many"
            raise ValueError(
                f"tree_unflatten: too {amount} leaves; got {len(leaves)} for {self}; "
                f"pass {self.spec.num_leaves}"
            )
        return self.spec.unflatten(leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` that stand where this structure has leaves."""
        return self.spec.flatten_up_to(tree)

    def children(self) -> list[PyTreeDef]:
        """The structures one level down."""
        return [PyTreeDef(child) for child in self.spec.children()]

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with `inner` in place of each leaf."""
        return PyTreeDef(self.spec.compose(inner.spec))

    def node_data(self) -> tuple[type, Any] | None:
        """`(type, static data)` of the top node, or None for a leaf."""
        if self.is_leaf():
            return None
        found: list[tuple[type, Any]] = []
        self.spec.walk(
            [None] * self.num_leaves, lambda kind, data, _: found.append((kind, data)), None
        )
        return found[-1]

    def is_leaf(self) -> bool:
        """Whether this is the structure of a single leaf."""
        return self.spec.is_leaf()

    def __eq__(self, other: object) -> bool:
        return self.spec == other.spec if isinstance(other, PyTreeDef) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.spec)

    def __repr__(self) -> str:
        return f"PyTreeDef({_show(self.spec)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (PyTreeDef, (self.spec,))


def _show(spec: optree.PyTreeSpec) -> str:
    return spec.walk(["*"] * spec.num_leaves, _show_node, None)


def _show_node(kind: type, data: Any, children: Iterable[Any]) -> str:
    inner = [*children]
    body = ", ".join(inner)
    if kind is tuple:
        return f"({body},)" if len(inner) == 1 else f"({body})"
    if kind is list:
        return f"[{body}]"
    if kind is dict:
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in zip(data, inner)) + "}"
    if kind is type(None):
        return "None"
    if optree.is_namedtuple_class(kind):
        return f"CustomNode(namedtuple[{kind.__name__}], [{body}])"
    if kind.__name__ in ("OrderedDict", "defaultdict"):
        data = (data[0], tuple(data[1])) if isinstance(data, tuple) else tuple(data)
    return f"CustomNode({kind.__name__}[{data}], [{body}])"


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Leaves and structure."""
    leaves, spec = flatten_spec(tree, is_leaf)
    return leaves, PyTreeDef(spec)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves."""
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves in order."""
    return flatten_spec(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure without the leaves."""
    return PyTreeDef(flatten_spec(tree, is_leaf)[1])


def is_leaf_value(x: Any, is_leaf: IsLeaf = None) -> bool:
    return flatten_spec(x, is_leaf)[1].is_leaf()
