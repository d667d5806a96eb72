"""Random pytrees: every function compared with `jax.tree_util`, in its results and in the errors it
raises.
"""

import collections
import dataclasses
import pickle

import jax
import jax.flatten_util
import jax.tree_util as theirs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import accnp as jnp
import accnp.tree_util as ours
from accnp.flatten_util import ravel_pytree

Point = collections.namedtuple("Point", "x y")
Other = collections.namedtuple("Other", "x y")


class Pair:
    def __init__(self, a, b, note="n"):
        self.a, self.b, self.note = a, b, note

    def __eq__(self, other):
        return repr(self) == repr(other)

    def __hash__(self):
        return hash(repr(self))

    def __repr__(self):
        return f"{type(self).__name__}({self.a!r}, {self.b!r}, {self.note!r})"


class Named(Pair):
    pass


@dataclasses.dataclass
class Layer:
    w: object
    b: object
    name: str = "layer"


@dataclasses.dataclass(frozen=True)
class Setting:
    n: int


class Plain(list):
    """A subclass of a container is a leaf."""


def register(module):
    module.register_pytree_node(
        Pair, lambda p: ([p.a, p.b], p.note), lambda note, children: Pair(*children, note)
    )
    module.register_pytree_with_keys(
        Named,
        lambda p: (((module.GetAttrKey("a"), p.a), (module.GetAttrKey("b"), p.b)), p.note),
        lambda note, children: Named(*children, note),
    )
    module.register_dataclass(Layer, ["w", "b"], ["name"])
    module.register_static(Setting)


register(ours)
register(theirs)

names = st.sampled_from("zyxabc")


def containers(inner):
    keyed = st.dictionaries(names, inner, max_size=3)
    numbered = st.dictionaries(st.integers(-3, 3), inner, max_size=3)
    few = st.lists(inner, max_size=3)
    notes = st.sampled_from(["n", "m"])
    return st.one_of(
        few,
        few.map(tuple),
        keyed,
        numbered,
        keyed.map(collections.OrderedDict),
        keyed.map(lambda d: collections.defaultdict(list, d)),
        few.map(collections.deque),
        few.map(Plain),
        st.builds(Point, inner, inner),
        st.builds(Other, inner, inner),
        st.builds(Pair, inner, inner, notes),
        st.builds(Named, inner, inner, notes),
        st.builds(Layer, inner, inner, notes),
    )


leaves = st.one_of(
    st.integers(0, 9), st.none(), st.text("ab", max_size=1), st.integers(0, 1).map(Setting)
)
trees = st.recursive(leaves, containers, max_leaves=8)
quick = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def outcome(function, *args, **kwargs):
    """Return the result as text, or the class of the error."""
    try:
        return repr(function(*args, **kwargs))
    except (ValueError, TypeError, IndexError) as error:
        return type(error)


def wraps_lists(x):
    return isinstance(x, list)


@quick
@given(trees)
def test_flatten_and_structures(x):
    flattened, treedef = ours.tree_flatten(x)
    expected, other = theirs.tree_flatten(x)
    assert repr(flattened) == repr(expected) == repr(ours.tree_leaves(x))
    assert repr(treedef) == repr(other)
    assert (treedef.num_leaves, treedef.num_nodes) == (other.num_leaves, other.num_nodes)
    assert repr(treedef.children()) == repr(other.children())
    assert repr(treedef.node_data()) == repr(other.node_data())
    assert repr(treedef.compose(treedef)) == repr(other.compose(other))
    # Dictionaries come back in the order of their sorted keys.
    assert repr(treedef.unflatten(flattened)) == repr(other.unflatten(expected))
    assert pickle.loads(pickle.dumps(treedef)) == treedef == ours.tree_structure(x)
    assert hash(treedef) == hash(ours.tree_structure(x))
    assert ours.treedef_is_leaf(treedef) == theirs.treedef_is_leaf(other)

    def node_text(children, data):
        return (children, repr(data))

    walked = treedef.walk(node_text, repr, flattened)
    assert walked == other.walk(node_text, repr, expected)
    assert ours.all_leaves([x]) == theirs.all_leaves([x])
    assert outcome(ours.flatten_one_level, x) is not None
    shallow = ours.tree_leaves(x, is_leaf=wraps_lists), theirs.tree_leaves(x, is_leaf=wraps_lists)
    assert repr(shallow[0]) == repr(shallow[1])
    both = ours.tree_structure(x, wraps_lists), theirs.tree_structure(x, wraps_lists)
    assert repr(both[0]) == repr(both[1])


@quick
@given(trees)
def test_paths(x):
    mine, others = ours.tree_leaves_with_path(x), theirs.tree_leaves_with_path(x)
    for options in ({}, {"simple": True}, {"simple": True, "separator": "/"}):
        a = [ours.keystr(path, **options) for path, _ in mine]
        assert a == [theirs.keystr(path, **options) for path, _ in others]
    assert repr(mine) == repr(others)

    def shallow(path, node):
        return len(path) == 2 or isinstance(node, Point)

    for is_leaf, takes in ((wraps_lists, False), (shallow, True)):
        a = ours.tree_flatten_with_path(x, is_leaf, is_leaf_takes_path=takes)
        b = theirs.tree_flatten_with_path(x, is_leaf, is_leaf_takes_path=takes)
        assert repr(a) == repr(b)
        a = ours.tree_map_with_path(
            lambda p, v: (ours.keystr(p), v), x, is_leaf=is_leaf, is_leaf_takes_path=takes
        )
        b = theirs.tree_map_with_path(
            lambda p, v: (theirs.keystr(p), v), x, is_leaf=is_leaf, is_leaf_takes_path=takes
        )
        assert repr(a) == repr(b)


@quick
@given(st.data())
def test_two_trees(data):
    """Trees that match, that are prefixes of each other, and that differ somewhere."""
    x = data.draw(trees)
    size = ours.tree_structure(x).num_leaves
    kind = data.draw(st.sampled_from(["same", "deeper", "any"]))
    if kind == "any":
        y = data.draw(trees)
    else:
        parts = trees if kind == "deeper" else leaves.filter(lambda v: v is not None)
        y = ours.tree_structure(x).unflatten([data.draw(parts) for _ in range(size)])
    for a, b in ((x, y), (y, x)):
        for name in ("tree_map", "tree_broadcast", "flatten_up_to", "is_leaf", "structure"):
            results = []
            for module in (ours, theirs):
                if name == "tree_map":
                    outcomes = outcome(module.tree_map, lambda p, q: (p, q), a, b)
                elif name == "is_leaf":
                    outcomes = outcome(
                        module.tree_map, lambda p, q: (p, q), a, b, is_leaf=lambda v: v is None
                    )
                elif name == "tree_broadcast":
                    outcomes = outcome(module.tree_broadcast, a, b)
                elif name == "structure":
                    first, second = module.tree_structure(a), module.tree_structure(b)
                    outcomes = (first == second, repr(module.treedef_tuple([first, second])))
                else:
                    outcomes = outcome(module.tree_structure(a).flatten_up_to, b)
                results.append(outcomes)
            assert results[0] == results[1], (name, a, b)
    outer, inner = ours.tree_structure(x), ours.tree_structure(y)
    other_outer, other_inner = theirs.tree_structure(x), theirs.tree_structure(y)
    whole = outer.compose(inner).unflatten(range(outer.num_leaves * inner.num_leaves))
    for tree, matches in ((whole, True), (whole, False), (x, True)):
        mine = outcome(ours.tree_transpose, outer, inner if matches else None, tree)
        other = outcome(theirs.tree_transpose, other_outer, other_inner if matches else None, tree)
        assert mine == other


@pytest.mark.parametrize("outer", [[], {"a": ()}, None, [1], [1, 2]])
@pytest.mark.parametrize("inner", [[], 1, [1, 2], {"a": ([],)}])
def test_transposed_structures_without_leaves(outer, inner):
    results = []
    for module in (ours, theirs):
        trees = module.tree_structure(outer), module.tree_structure(inner)
        whole = trees[0].compose(trees[1])
        results.append(
            outcome(module.tree_transpose, *trees, whole.unflatten(range(whole.num_leaves)))
        )
    assert results[0] == results[1]


@quick
@given(trees, st.integers(0, 4))
def test_reductions(x, start):
    def join(a, b):
        return f"({a}{b})"

    assert outcome(ours.tree_reduce, join, x) == outcome(theirs.tree_reduce, join, x)
    assert ours.tree_reduce(join, x, start) == theirs.tree_reduce(join, x, start)
    mine = outcome(ours.tree_reduce_associative, join, x)
    assert mine == outcome(theirs.tree_reduce_associative, join, x)
    assert ours.tree_all(x) == theirs.tree_all(x)


@quick
@given(trees, st.integers(-1, 1))
def test_counts_of_leaves(x, more):
    treedef, other = ours.tree_structure(x), theirs.tree_structure(x)
    given_leaves = range(max(0, treedef.num_leaves + more))
    assert outcome(treedef.unflatten, given_leaves) == outcome(other.unflatten, given_leaves)

    def node_text(children, data):
        return children

    mine = outcome(treedef.walk, node_text, repr, given_leaves)
    assert mine == outcome(other.walk, node_text, repr, given_leaves)


def test_keys_that_cannot_be_sorted():
    for tree in ({1: 0, "a": 1}, [{"x": {None: 1, 2: 3}}]):
        with pytest.raises(ValueError, match="Comparator raised exception"):
            ours.tree_flatten(tree)
        with pytest.raises(ValueError, match="sort"):
            theirs.tree_flatten(tree)
    ordered = collections.OrderedDict({1: 0, "a": 1})
    assert ours.tree_leaves(ordered) == theirs.tree_leaves(ordered)


def test_arguments_come_in_sorted_order():
    """A traced function sees the items of a dictionary in the same order as in JAX."""
    seen = []

    def f(params):
        seen.append(list(params))
        return sum(params.values())

    for transform in (jnp.jit, jnp.grad, jnp.vmap, jax.jit, jax.grad, jax.vmap):
        x = {"b": 1.0, "a": 2.0} if transform not in (jnp.vmap, jax.vmap) else None
        transform(f)(x or {"b": np.ones(2), "a": np.ones(2)})
    assert seen == [["a", "b"]] * 6
    assert list(jnp.jit(lambda x: {"z": x, "y": x})(1.0)) == ["y", "z"]


# --- ravel_pytree ---

arrays = st.tuples(
    st.sampled_from(["float32", "int32", "int8", "uint8", "float16", "bool", "complex64"]),
    st.sampled_from([(), (2,), (0, 3), (2, 2)]),
).map(lambda t: np.arange(np.prod(t[1], dtype=int)).reshape(t[1]).astype(t[0]))
numeric = st.recursive(
    st.one_of(arrays, st.sampled_from([1, 2.5, True])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3), st.none()
    ),
    max_leaves=5,
)


def types(tree):
    return [(str(x.dtype), x.shape, x.weak_type) for x in theirs.tree_leaves(tree)]


@settings(quick, max_examples=40)
@given(numeric)
def test_ravel(tree):
    vector, unravel = ravel_pytree(tree)
    expected, other = jax.flatten_util.ravel_pytree(tree)
    assert (vector.dtype, vector.weak_type) == (expected.dtype, expected.weak_type)
    np.testing.assert_array_equal(vector, expected)
    back, there = unravel(vector), other(expected)
    assert repr(ours.tree_structure(back)) == repr(theirs.tree_structure(there))
    assert types(back) == types(there)
    for a, b in zip(ours.tree_leaves(back), theirs.tree_leaves(there), strict=True):
        np.testing.assert_array_equal(a, b)
    assert unravel == ravel_pytree(tree)[1]
    for wrong in (np.zeros(vector.size + 1, vector.dtype), np.zeros(vector.size, "float64")):
        mine = outcome(lambda v: types(unravel(jnp.asarray(v))), wrong)
        assert mine == outcome(lambda v: types(other(jax.numpy.asarray(v))), wrong)


def test_ravel_is_traced_mapped_and_differentiated():
    tree = {"w": np.ones((2, 2), "float32"), "b": np.zeros(3, "float32")}
    vector, unravel = ravel_pytree(tree)
    np.testing.assert_array_equal(jnp.jit(lambda t: ravel_pytree(t)[0])(tree), vector)
    many = jnp.vmap(unravel)(jnp.stack([vector, 2 * vector]))
    assert many["w"].shape == (2, 2, 2)
    gradient = jnp.grad(lambda v: jnp.sum(unravel(v)["w"] ** 2))(vector)
    np.testing.assert_array_equal(gradient, [0, 0, 0, 2, 2, 2, 2])
    with pytest.raises(TypeError, match="ravel_pytree"):
        ravel_pytree(["text"])
