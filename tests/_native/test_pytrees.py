"""Pytrees in C and in the Python fallback: equal structures, leaves and errors, without reference
leaks.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import accnp as jnp
from accnp._native import COMPILED, fallback
from accnp.pytree.structure import INNER, LEAVES, NODES, NONE, one_level

CORE = importlib.import_module("accnp._native._core") if COMPILED else fallback
fallback.install_pytrees(NODES, INNER, LEAVES, NONE, one_level)
Pair = namedtuple("Pair", "a b")


class Iterated(Pair):
    """A namedtuple that yields its items in another order."""

    def __iter__(self) -> Iterator[Any]:
        return iter([self[1], self[0]])

    __slots__ = ()


@jnp.tree_util.register_pytree_node_class
class Box:
    """A node with an array as static data."""

    def __init__(self, *children: Any, data: Any = None) -> None:
        self.children, self.data = children, data

    def tree_flatten(self) -> Any:
        return (child for child in self.children), self.data

    @classmethod
    def tree_unflatten(cls, data: Any, children: Any) -> Box:
        assert type(children) is tuple
        return cls(*children, data=data)


KEY = jnp.random.key(0)
DATA = np.arange(2)
TREES: dict[str, Any] = {
    "leaf": 3.0,
    "none": None,
    "empty": ((), [], {}, None),
    "nested": {"b": [1, (2, None), {"x": "text"}], "a": (jnp.ones(2), np.ones(2), object)},
    "tuples": Pair(1, Pair((2,), [])),
    "iterated": Iterated(1, 2),
    "ordered": OrderedDict(b=1, a=defaultdict(list, z=[1], y=2)),
    "classes": [Box(1, Box()), {"k": Box([2], data=DATA)}],
    "keys": {"k": [KEY, jnp.random.split(KEY, 2)], "j": KEY},
    "subclass": type("Own", (list,), {})([1, 2]),
    "shapes": [jnp.ShapeDtypeStruct((2,), np.float32)],
    "numbers": {1: 2, True + 1: 3, -1: 4},
}
LEAF: dict[str, Callable[[Any], bool] | None] = {
    "all": None,
    "none": lambda x: x is None,
    "lists": lambda x: isinstance(x, list),
    "pairs": lambda x: isinstance(x, Pair),
    "array": lambda x: np.False_,  # type: ignore[return-value]
}


def shown(x: Any) -> Any:
    """Return a value that can be compared: arrays by identity, objects by their parts."""
    if isinstance(x, Box):
        return "Box", shown(x.children), id(x.data)
    if isinstance(x, tuple | list):
        return type(x), [shown(v) for v in x]
    if isinstance(x, dict):
        return type(x), [(k, shown(v)) for k, v in x.items()]
    return id(x)


@pytest.mark.parametrize("inner", [{}, INNER], ids=["users", "arrays"])
@pytest.mark.parametrize("leaf", LEAF)
@pytest.mark.parametrize("name", TREES)
def test_extension_and_fallback_flatten_equally(name: str, leaf: str, inner: Any) -> None:
    tree, outcomes = TREES[name], []
    for module in (fallback, CORE):
        leaves: list[Any] = []
        node = module.flatten_tree(tree, leaves, inner, LEAF[leaf])
        built = module.unflatten_tree(node, leaves)
        subtrees: list[Any] = []
        fits = module.flatten_up_to(node, tree, subtrees)
        outcomes.append((shown(node), shown(leaves), shown(built), fits, shown(subtrees)))
    if name == "keys" and inner:  # keys are built again
        outcomes = [entry[:2] + entry[3:] for entry in outcomes]
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("leaf", [None, lambda x: False])
@pytest.mark.parametrize(
    ("tree", "error", "message"),
    [
        ({1: 0, "a": 0}, ValueError, "Comparator raised exception while sorting"),
        ([Box(Box(data=1)), {"a": {(): 1, 2: 3}}], ValueError, "Comparator raised"),
    ],
)
def test_extension_and_fallback_refuse_the_same_trees(
    tree: Any, error: type, message: str, leaf: Any
) -> None:
    for module in (fallback, CORE):
        with pytest.raises(error, match=message):
            module.flatten_tree(tree, [], {}, leaf)


def test_errors_of_users_functions() -> None:
    class Wrong:
        pair: Any = None

    jnp.tree_util.register_pytree_node(Wrong, lambda x: x.made(), lambda data, xs: 1 // 0)
    for pair, error, message in [
        (lambda: None, ValueError, "children, aux_data"),
        (lambda: (1, 2), ValueError, "children' is iterable"),
        (lambda: 1 // 0, ZeroDivisionError, "by zero"),
        (lambda: ((1 // 0 for _ in range(2)), 2), ZeroDivisionError, "by zero"),
    ]:
        wrong = Wrong()
        wrong.made = pair
        for module in (fallback, CORE):
            with pytest.raises(error, match=message):
                module.flatten_tree([1, wrong], [], {}, None)
            with pytest.raises(ZeroDivisionError):
                module.flatten_tree([1, wrong], [], {}, lambda x: bool(1 // 0))
            with pytest.raises(ZeroDivisionError):
                module.unflatten_tree((list, None, ((Wrong, None, ()),)), [])


def test_extension_and_fallback_report_mismatched_trees() -> None:
    node = jnp.tree.structure({"a": [1, Pair(2, None)], "b": Box(3, data="x")})._node
    good = {"b": Box([3], data="x"), "a": [(1,), Pair({}, None)]}
    bad = [
        {"a": good["a"]},
        {**good, "c": 1},
        {**good, "a": [1]},
        {**good, "a": (1, Pair(2, None))},
        {**good, "a": [1, (2, None)]},
        {**good, "a": [1, Pair(2, 3)]},
        {**good, "b": Box(3, data="y")},
        {**good, "b": Box(3, 4, data="x")},
        OrderedDict(good),
        1,
    ]
    for module in (fallback, CORE):
        subtrees: list[Any] = []
        assert module.flatten_up_to(node, good, subtrees)
        assert subtrees == [(1,), {}, [3]]
        assert not any(module.flatten_up_to(node, tree, []) for tree in bad)
    same = jnp.tree.structure(Box(1, data=DATA))
    assert same.flatten_up_to(Box(2, data=DATA)) == [2]  # which cannot be compared
    with pytest.raises(ValueError, match="truth value"):
        same.flatten_up_to(Box(2, data=DATA.copy()))


def test_trees_that_change_while_they_are_walked() -> None:
    for module in (fallback, CORE):
        tree: list[Any] = [1, [2], {"a": 3}]

        def empty(x: Any, tree: list[Any] = tree) -> bool:
            if isinstance(x, list) and x is not tree:
                tree.clear()
                x.clear()
            return False

        leaves: list[Any] = []
        module.flatten_tree(tree, leaves, {}, empty)
        assert leaves in ([1], [1, 3])


def test_incomplete_containers_are_not_visible() -> None:
    """User code that looks at all objects would crash on a container with an unset item."""

    class Looking:
        pass

    size = 1234

    def look(*_: Any) -> Any:
        for x in gc.get_objects():
            if type(x) in (list, tuple) and len(x) == size:
                assert all(type(item) is not Looking for item in x[1:])
        return Looking()

    jnp.tree_util.register_pytree_node(Looking, lambda x: (look() and (), None), look)
    for kind in (list, tuple):
        for module in (fallback, CORE):
            tree, leaves = kind([Looking(), *range(size - 1)]), []
            node = module.flatten_tree(tree, leaves, {})
            built = module.unflatten_tree(node, leaves)
            assert type(built) is kind
            assert gc.is_tracked(built)
            assert gc.is_tracked(node)


def test_deep_trees_raise_an_error_and_deep_structures_do_not() -> None:
    tree: Any = 1
    node: Any = None
    for _ in range(100_000):
        tree, node = [tree], (list, None, (node,))
    with pytest.raises(RecursionError):
        CORE.flatten_tree(tree, [], {})
    leaves: list[Any] = []
    assert CORE.flatten_up_to(node, tree, leaves)
    assert leaves == [1]
    rebuilt = CORE.unflatten_tree(node, [1])
    depth = 0
    while isinstance(rebuilt, list):
        (rebuilt,), depth = rebuilt, depth + 1
    assert (rebuilt, depth) == (1, 100_000)
    while isinstance(tree, list):  # the interpreter frees nested tuples by recursion
        tree = tree.pop()


@pytest.mark.skipif(not COMPILED, reason="the extension checks what it is given")
def test_tuples_that_are_no_structures_are_refused() -> None:
    for node in (1, (list,), (list, None, [None]), (1, None, ()), (dict, ("a",), (None, None))):
        with pytest.raises((TypeError, ValueError)):
            CORE.unflatten_tree(node, [1, 2])
    with pytest.raises(ValueError, match="few"):
        CORE.unflatten_tree((list, None, (None, None)), [1])


@pytest.mark.skipif(not COMPILED, reason="the extension counts references itself")
def test_references_balance() -> None:
    class Leaf:
        pass

    leaf = Leaf()
    tree = {"a": [leaf, Pair(leaf, None), Box(leaf, data=("x", leaf))], "b": OrderedDict(c=leaf)}
    wrong = {**tree, "b": 1}

    def work() -> None:
        leaves: list[Any] = []
        node = CORE.flatten_tree(tree, leaves, INNER)
        CORE.flatten_tree(tree, [], {}, lambda x: isinstance(x, list))
        CORE.unflatten_tree(node, leaves)
        CORE.flatten_up_to(node, tree, [])
        CORE.flatten_up_to(node, wrong, [])
        with pytest.raises(ValueError, match="Comparator"):
            CORE.flatten_tree([leaf, {1: leaf, "a": leaf}], [], {})
        with pytest.raises(ValueError, match="few"):
            CORE.unflatten_tree(node, leaves[:2])

    work()
    gc.collect()
    counts = [sys.getrefcount(x) for x in (leaf, None, (), Box, list, NONE)]
    for _ in range(3000):
        work()
    gc.collect()
    after = [sys.getrefcount(x) for x in (leaf, None, (), Box, list, NONE)]
    # Other threads hold some of None and ().
    assert all(abs(a - b) < 2000 for a, b in zip(counts, after)), (counts, after)
    assert counts[0] == after[0]
