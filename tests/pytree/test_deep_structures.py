"""Tree structures nested deeper than the recursion limit, which JAX supports."""

from __future__ import annotations

import collections
import copy
import pickle
from typing import Any

import jax.tree_util as theirs
import pytest

import accnp as jnp
import accnp.tree_util as ours

DEPTH = 5000


def chain(m: Any, start: Any) -> Any:
    """Return a structure of this depth composed from treedefs; flattening such a tree raises an
    error."""
    structure = m.tree_structure(start)
    for _ in range(DEPTH):
        structure = m.treedef_tuple([structure])
    return structure


def nested(leaf: Any) -> Any:
    for _ in range(DEPTH):
        leaf = (leaf,)
    return leaf


def unnested(tree: Any) -> Any:
    while isinstance(tree, tuple):
        (tree,) = tree
    return tree


@pytest.mark.parametrize("m", [theirs, ours], ids=["jax", "accnp"])
def test_deep_structures(m: Any) -> None:
    deep, same, other = chain(m, [1, None]), chain(m, [1, None]), chain(m, [1, 1])
    assert deep.num_leaves == 1
    assert deep.num_nodes == DEPTH + 3
    assert repr(deep) == f"PyTreeDef({'(' * DEPTH}[*, None]{',)' * DEPTH})"
    assert deep == same
    assert hash(deep) == hash(same)
    assert deep != other
    assert unnested(deep.unflatten([7])) == [7, None]
    assert deep.flatten_up_to(nested([7, None])) == [7]
    with pytest.raises(ValueError, match="xpected"):
        deep.flatten_up_to(nested((7, None)))
    (below,) = deep.children()
    assert (below.num_leaves, below.num_nodes) == (1, DEPTH + 2)
    assert deep.compose(m.tree_structure((1, 2))).num_leaves == 2
    assert deep.walk(lambda xs, _: sum(filter(None, xs)), lambda x: x + 1, [4]) == 5
    for copied in (pickle.loads(pickle.dumps(deep)), copy.deepcopy(deep)):
        assert (copied, copied.num_leaves) == (deep, 1)


def test_pickled_structures_keep_nodes_in_order() -> None:
    tree = {"b": [1, (2, None), ()], "a": collections.OrderedDict(z=3, y=[4])}
    leaves, structure = jnp.tree.flatten(tree)
    copied = pickle.loads(pickle.dumps(structure))
    assert (copied, copied.num_leaves) == (structure, 4)
    assert copied.unflatten(leaves) == tree


def test_deep_structures_as_protocol_buffers() -> None:
    deep = chain(ours, [1, None])
    data = deep.serialize_using_proto()
    assert type(deep).deserialize_using_proto(None, data) == deep


def test_deep_trees_raise_a_clear_error() -> None:
    """JAX raises a SystemError, or a ValueError about keys of dictionaries."""
    for f in (jnp.tree.leaves, jnp.tree.structure, lambda t: jnp.tree.map(abs, t)):
        with pytest.raises(RecursionError, match="recursion depth exceeded"):
            f(nested(1))
