"""`accnp.pytree` compared with `jax.tree_util`."""

import collections
import copy
import dataclasses
import operator
import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.tree_util as theirs
import numpy as np
import pytest

import accnp as jnp
import accnp.tree as tree
import accnp.tree_util as ours

Point = collections.namedtuple("Point", "x y")


class Pair:
    def __init__(self, a, b, note="n"):
        self.a, self.b, self.note = a, b, note

    def __eq__(self, other):
        return (self.a, self.b, self.note) == (other.a, other.b, other.note)


class Named(Pair):
    pass


@dataclasses.dataclass(frozen=True)
class Layer:
    w: object
    b: object
    name: str = "layer"


for module in (ours, theirs):
    module.register_pytree_node(
        Pair, lambda p: ((p.a, p.b), p.note), lambda note, children: Pair(*children, note)
    )
    module.register_pytree_with_keys(
        Named,
        lambda p: (((module.GetAttrKey("a"), p.a), (module.GetAttrKey("b"), p.b)), p.note),  # noqa: B023
        lambda note, children: Named(*children, note),
    )
    module.register_dataclass(Layer, ["w", "b"], ["name"])

TREES = [
    1, None, (), [], {}, (1,), [1, 2], (1, (2, None)), {"b": 1, "a": [2, {"c": 3}]},
    Point(1, [2, 3]), collections.OrderedDict([("z", 1), ("a", 2)]),
    collections.defaultdict(list, {"q": 1, "p": (2, 3)}), Pair(1, {"k": 2}), Named([1], 2),
    Layer({"x": 1}, 2), [Pair((), None), Point(None, 1)], {1: 2, 0: 3}, "text",
    [None, [None, 1]], {"a": {"b": {"c": (1, [2, (3,)])}}},
]  # fmt: skip
ids = pytest.mark.parametrize("x", TREES, ids=lambda x: repr(x).split(" at 0x")[0])


def same_path(path, other):
    return repr(path) == repr(other)


@ids
def test_flatten_and_back(x):
    leaves, treedef = ours.tree_flatten(x)
    expected, their_treedef = theirs.tree_flatten(x)
    assert leaves == expected == ours.tree_leaves(x) == tree.leaves(x)
    assert repr(treedef) == repr(their_treedef)
    assert treedef.num_leaves == their_treedef.num_leaves
    assert treedef.num_nodes == their_treedef.num_nodes
    back = ours.tree_unflatten(treedef, leaves)
    assert back == x
    assert type(back) is type(x)
    assert ours.tree_structure(x) == treedef
    assert hash(ours.tree_structure(copy.deepcopy(x))) == hash(treedef)


@ids
def test_paths(x):
    mine, others = ours.tree_leaves_with_path(x), theirs.tree_leaves_with_path(x)
    assert [repr(path) for path, _ in mine] == [repr(path) for path, _ in others]
    assert [leaf for _, leaf in mine] == [leaf for _, leaf in others]
    for (path, _), (other, _) in zip(mine, others, strict=True):
        assert ours.keystr(path) == theirs.keystr(other)
        simple = theirs.keystr(other, simple=True, separator="/")
        assert ours.keystr(path, simple=True, separator="/") == simple
    pairs, treedef = ours.tree_flatten_with_path(x)
    assert (pairs, treedef) == (mine, ours.tree_structure(x))


@ids
def test_map(x):
    def f(leaf):
        return (leaf, "seen")

    assert ours.tree_map(f, x) == theirs.tree_map(f, x) == tree.map(f, x)
    assert ours.tree_map(lambda a, b: (a, b), x, x) == theirs.tree_map(lambda a, b: (a, b), x, x)
    mine = ours.tree_map_with_path(lambda path, a: ours.keystr(path), x)
    assert mine == theirs.tree_map_with_path(lambda path, a: theirs.keystr(path), x)


@ids
def test_is_leaf(x):
    def is_leaf(node):
        return isinstance(node, list) or node is None

    assert ours.tree_leaves(x, is_leaf=is_leaf) == theirs.tree_leaves(x, is_leaf=is_leaf)
    assert repr(ours.tree_structure(x, is_leaf)) == repr(theirs.tree_structure(x, is_leaf))
    mine, treedef = ours.tree_flatten_with_path(x, is_leaf)
    assert [leaf for _, leaf in mine] == ours.tree_leaves(x, is_leaf)
    assert treedef == ours.tree_structure(x, is_leaf)

    def shallow(path, node):
        return len(path) == 1

    mine, treedef = ours.tree_flatten_with_path(x, shallow, is_leaf_takes_path=True)
    others, their_treedef = theirs.tree_flatten_with_path(x, shallow, is_leaf_takes_path=True)
    assert [leaf for _, leaf in mine] == [leaf for _, leaf in others]
    assert repr(treedef) == repr(their_treedef)


def test_structures_differ():
    one, two = ours.tree_structure([1, 2]), ours.tree_structure((1, 2))
    assert one != two
    assert one != "text"
    assert ours.tree_structure(Pair(1, 2, "a")) != ours.tree_structure(Pair(1, 2, "b"))
    assert ours.tree_structure({"a": 1, "b": 2}) == ours.tree_structure({"b": 1, "a": 2})


def test_map_takes_subtrees_of_the_rest():
    def pair(a, b):
        return (a, b)

    for x, y in [([1, 2], [(3, 4), None]), ({"a": 1}, {"a": {"b": 2}}), (1, None)]:
        assert ours.tree_map(pair, x, y) == theirs.tree_map(pair, x, y)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, "at the top: only the first has the keys 'b'"),
        ({"a": 1}, {"a": 1, "b": 2}, "only the other has the keys 'b'"),
        ({"x": [1, 2]}, {"x": [1]}, r"at \['x'\]: a list of length 2 and one of length 1"),
        ([1, [2]], [1, (2,)], r"at \[1\]: the first has a list, the other a tuple"),
        ([1, [2]], [1, 2], r"at \[1\]: the first has a list, the other a leaf; got 2"),
        (Layer([1], 2), Layer([], 2), r"at \.w: a list of length 1"),
        (Pair(1, 2, "a"), Pair(1, 2, "b"), "different static data, 'a' and 'b'"),
        ([None], [1], r"at \[0\]: the first has a None, the other a leaf"),
    ],
)
def test_mismatches_name_the_path(first, second, message):
    with pytest.raises(
        ValueError,
        match=r"tree_map: pytree structure error: the trees have different structures .*" + message,
    ):
        ours.tree_map(lambda a, b: a, first, second)
    with pytest.raises(ValueError):  # noqa: PT011 - the oracle only has to refuse too
        theirs.tree_map(lambda a, b: a, first, second)


def test_unflatten_counts():
    treedef = ours.tree_structure([1, 2])
    with pytest.raises(ValueError, match="Too few leaves for PyTreeDef; got 1"):
        treedef.unflatten([1])
    with pytest.raises(ValueError, match="Too many leaves for PyTreeDef; got 3"):
        ours.tree_unflatten(treedef, iter([1, 2, 3]))


def test_reductions():
    assert ours.tree_reduce(operator.add, [1, [2, 3]]) == 6
    assert ours.tree_reduce(operator.add, [], 4) == 4
    assert ours.tree_reduce(operator.add, [], None) is None
    with pytest.raises(TypeError, match="has no leaves"):
        ours.tree_reduce(operator.add, [])

    def join(a, b):
        return f"({a}{b})"

    for n in range(1, 9):
        letters = list("abcdefgh"[:n])
        mine = ours.tree_reduce_associative(join, letters)
        assert mine == theirs.tree_reduce_associative(join, letters)
    assert ours.tree_reduce_associative(join, [], identity="e") == "e"
    with pytest.raises(TypeError, match="identity"):
        ours.tree_reduce_associative(join, [])
    assert ours.tree_all([1, {"a": True}])
    assert not ours.tree_all([1, 0])


def test_transpose():
    x = {"a": [1, 2, 3], "b": [4, 5, 6]}
    outer, inner = ours.tree_structure({"a": 0, "b": 0}), ours.tree_structure([0, 0, 0])
    expected = [{"a": 1, "b": 4}, {"a": 2, "b": 5}, {"a": 3, "b": 6}]
    assert ours.tree_transpose(outer, inner, x) == expected
    assert ours.tree_transpose(outer, None, x) == expected
    with pytest.raises(TypeError, match="tree_transpose"):
        ours.tree_transpose(outer, inner, {"a": [1, 2], "b": [3]})


def test_broadcast():
    assert ours.tree_broadcast((1, 2), ([3, 4], {"a": 5})) == ([1, 1], {"a": 2})
    assert tree.broadcast(7, {"a": [1, 2]}) == {"a": [7, 7]}
    with pytest.raises(ValueError, match="tuple of length 2 and one of length 1"):
        ours.tree_broadcast((1, 2), ([3],))


def test_treedefs():
    treedef = ours.tree_structure([1, {"a": (2, None)}])
    other = theirs.tree_structure([1, {"a": (2, None)}])
    assert repr(ours.treedef_children(treedef)) == repr(theirs.treedef_children(other))
    assert repr(ours.treedef_tuple([treedef, treedef])) == repr(
        theirs.treedef_tuple([other, other])
    )
    assert repr(treedef.compose(treedef)) == repr(other.compose(other))
    assert treedef.node_data() == other.node_data()
    for x in (1, None, [], [1]):
        mine = ours.treedef_is_leaf(ours.tree_structure(x))
        assert mine == theirs.treedef_is_leaf(theirs.tree_structure(x))
    assert pickle.loads(pickle.dumps(treedef)) == treedef


def test_one_level():
    for x in ({"a": [1], "b": 2}, Point(1, 2), [1, 2], None, Pair(1, 2), Layer(1, 2)):
        mine, others = ours.flatten_one_level(x), theirs.flatten_one_level(x)
        assert (list(mine[0]), mine[1]) == (list(others[0]), others[1])
    for x in ({"a": [1], "b": 2}, [1, 2], Pair(1, 2), Named(1, 2), Layer(1, 2)):
        mine, others = ours.flatten_one_level_with_keys(x), theirs.flatten_one_level_with_keys(x)
        assert [repr(k) for k, _ in mine[0]] == [repr(k) for k, _ in others[0]]
    with pytest.raises(ValueError, match="leaf"):
        ours.flatten_one_level(3)
    assert ours.all_leaves([1, 2])
    assert not ours.all_leaves([1, [2]])
    for kind in (dict, int, type(None), Point, Pair, tuple, collections.OrderedDict, str):
        assert ours.is_tree_node(kind) == theirs.is_tree_node(kind), kind


@pytest.mark.parametrize("name", ["DictKey", "SequenceKey", "GetAttrKey", "FlattenedIndexKey"])
def test_keys(name):
    value = "w" if name in ("DictKey", "GetAttrKey") else 3
    mine, other = getattr(ours, name)(value), getattr(theirs, name)(value)
    assert (str(mine), repr(mine)) == (str(other), repr(other))
    assert mine == getattr(ours, name)(value)
    assert hash(mine) == hash(getattr(ours, name)(value))


def test_register_class_forms():
    @ours.register_pytree_node_class
    class Box:
        def __init__(self, x):
            self.x = x

        def tree_flatten(self):
            return (self.x,), "aux"

        @classmethod
        def tree_unflatten(cls, aux, children):
            assert aux == "aux"
            return cls(*children)

    assert ours.tree_map(lambda a: a + 1, Box(1)).x == 2
    with pytest.raises(ValueError, match=r"Duplicate custom PyTreeDef type registration for .*Box"):
        ours.register_pytree_node_class(Box)

    @ours.register_pytree_with_keys_class
    class KeyBox(Box):
        def tree_flatten_with_keys(self):
            return ((ours.GetAttrKey("x"), self.x),), "aux"

    assert ours.keystr(ours.tree_leaves_with_path(KeyBox(1))[0][0]) == ".x"
    assert ours.tree_map(lambda a: a + 1, KeyBox(1)).x == 2


def test_register_dataclass_forms():
    @ours.register_dataclass
    @dataclasses.dataclass
    class Auto:
        w: int
        n: int = tree.static(default=3)

    assert ours.tree_leaves(Auto(1)) == [1]
    assert ours.tree_map(lambda a: a * 2, Auto(1, 5)) == Auto(2, 5)

    @dataclasses.dataclass
    class Bad:
        w: int
        n: int

    with pytest.raises(ValueError, match=r"missing \['n'\]"):
        ours.register_dataclass(Bad, ["w"], [])
    with pytest.raises(ValueError, match=r"unknown \['q'\]"):
        ours.register_dataclass(Bad, ["w", "n"], ["q"])
    with pytest.raises(TypeError, match="both or neither"):
        ours.register_dataclass(Bad, ["w"])


FORMS = [
    {},
    {"data_fields": ["x", "y"], "meta_fields": ["n"]},
    {"data_fields": ["n"], "meta_fields": ["x", "y"]},
    {"data_fields": ["x"], "meta_fields": ["n"]},
    {"data_fields": ["x"], "meta_fields": ["n"], "drop_fields": ["y"]},
    {"data_fields": ["x", "y", "q"], "meta_fields": ["n"]},
    {"data_fields": ["x", "y", "n"], "meta_fields": ["n"]},
    {"data_fields": ["x", "y"]},
    {"drop_fields": ["y"]},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("whole", [True, False])
def test_dataclass_forms_are_those_of_jax(form, whole):
    """With `whole`, all fields are parameters of the constructor."""
    outcomes = []
    for module in (ours, theirs):

        @dataclasses.dataclass
        class Made:
            x: object
            y: object = 2
            n: object = dataclasses.field(default=3, metadata={"static": True})
            if not whole:
                z: object = dataclasses.field(default=0, init=False)

        try:
            module.register_dataclass(Made, **form)
            leaves, treedef = module.tree_flatten(Made(1))
            paths = [module.keystr(p) for p, _ in module.tree_leaves_with_path(Made(1))]
            outcomes.append((leaves, str(treedef), paths, repr(treedef.unflatten(leaves))))
        except (ValueError, TypeError) as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]


def test_static_data_that_cannot_be_hashed():
    class Noted:
        def __init__(self, x, notes):
            self.x, self.notes = x, notes

    for module, m in ((ours, jnp), (theirs, jax)):
        module.register_pytree_node(
            Noted, lambda v: ((v.x,), v.notes), lambda notes, xs: Noted(*xs, notes)
        )
        f = m.jit(lambda v: v.x * len(v.notes))
        assert [float(f(Noted(2.0, notes))) for notes in ([1], [1], [1, 2])] == [2, 2, 4]


def test_static_data_that_are_arrays():
    """TensorFlow Probability stores shapes in this way; identical arrays are not compared."""

    class Table:
        def __init__(self, x, places):
            self.x, self.places = x, places

    ours.register_pytree_node(Table, lambda t: ((t.x,), t.places), lambda p, x: Table(x[0], p))
    places = np.arange(3)
    assert ours.tree_map(lambda a, b: a + b, Table(1, places), Table(2, places)).x == 3
    for _ in range(2):  # two loops of their own, and two arrays
        start = Table(jnp.ones(2), np.arange(3))
        done = jnp.lax.while_loop(lambda t: t.x[0] < 3, lambda t: Table(t.x * 2, t.places), start)
        assert done.x.tolist() == [4, 4]


def test_register_static():
    @ours.register_static
    @dataclasses.dataclass(frozen=True)
    class Setting:
        n: int

    leaves, treedef = ours.tree_flatten([Setting(1), 2])
    assert leaves == [2]
    assert treedef == ours.tree_structure([Setting(1), 5])
    assert treedef != ours.tree_structure([Setting(2), 2])
    assert treedef.unflatten([3]) == [Setting(1), 3]


def test_partial():
    def f(a, b, *, c):
        return (a, b, c)

    part = ours.Partial(f, 1, c=3)
    assert part(2) == (1, 2, 3)
    assert ours.tree_leaves(part) == [1, 3]
    doubled = ours.tree_map(lambda x: 2 * x, part)
    assert isinstance(doubled, ours.Partial)
    assert doubled(2) == (2, 2, 6)
    assert ours.tree_structure(part) == ours.tree_structure(ours.Partial(f, 9, c=9))
    nested = ours.Partial(part, 5)
    assert ours.tree_leaves(nested) == theirs.tree_leaves(
        theirs.Partial(theirs.Partial(f, 1, c=3), 5)
    )
    assert nested() == (1, 5, 3)
    assert ours.tree_structure(nested) == ours.tree_structure(ours.Partial(part, 6))


def test_names_are_those_of_jax():
    public = [n for n in dir(theirs) if not n.startswith("_")]
    assert [n for n in public if not hasattr(ours, n)] == []
    public = [n for n in dir(jax.tree) if not n.startswith("_")]
    assert [n for n in public if not hasattr(tree, n)] == []


def test_registry_returns_none_for_leaves():
    registry = ours.default_registry
    assert registry.flatten_one_level(3) is None
    assert registry.flatten_one_level_with_keys("leaf") is None
    assert tuple(registry.flatten_one_level([1, 2])[0]) == (1, 2)


def test_structures_as_protocol_buffers():
    """The bytes equal JAX's."""
    for value in ((), [], {}, None, 1, (1, 2), {"a": {"b": 1}}, [{"a": 1, "é": (2, None)}] * 2,
                 {"a": [1] * 200}):  # fmt: skip
        structure = tree.structure(value)
        data = structure.serialize_using_proto()
        assert data == theirs.tree_structure(value).serialize_using_proto()
        assert type(structure).deserialize_using_proto(None, data) == structure
    for value in ({1: 2}, ours.Partial(print)):
        with pytest.raises(ValueError, match=r"Only string keys|User-defined nodes"):
            tree.structure(value).serialize_using_proto()
    read = type(tree.structure(1)).deserialize_using_proto
    for data in (b"", b"\n\x02\x10\t", b"\n\x02\x10\x01" * 2, b"\n\x04\x08\x05\x10\x04"):
        with pytest.raises(ValueError, match="Malformed"):
            read(None, data)
    with pytest.raises(jnp.errors.JaxRuntimeError, match="Could not deserialize"):
        read(None, b"abc")


def test_wrong_pairs_of_keys_are_refused():
    for pair in (None, (1, "aux"), ((1, 2), "aux"), ((("key", 1, 2),), "aux")):
        wrong = type("Wrong", (), {})
        for module in (ours, theirs):
            module.register_pytree_with_keys(
                wrong, lambda x, pair=pair: pair, lambda data, xs: None, lambda x: ((1,), "aux")
            )
            with pytest.raises(ValueError, match=r"\(key_leaf_pairs, aux_data\) tuple"):
                module.tree_flatten_with_path([wrong()])


class Path(NamedTuple):
    """A tuple whose length, items and iteration are those of its content, as in libraries of
    rotations."""

    points: Any
    closed: Any

    def __len__(self) -> int:
        return 7

    def __iter__(self) -> Iterator[Any]:
        return iter("abcdefg")

    def __getitem__(self, index: Any) -> Any:
        return "abcdefg"[index]


def test_namedtuples_with_other_lengths_and_items() -> None:
    path = Path(np.arange(3, dtype=np.float32), np.float32(2))
    leaves, treedef = ours.tree_flatten(path)
    assert list(map(id, leaves)) == list(map(id, theirs.tree_leaves(path)))
    assert type(treedef.unflatten(leaves)) is Path
    assert [ours.keystr(key) for key, _ in tree.leaves_with_path(path)] == [
        theirs.keystr(key) for key, _ in theirs.tree_leaves_with_path(path)
    ]
    children, _ = ours.flatten_one_level(path)
    assert list(map(id, children)) == list(map(id, leaves))

    def energy(path: Path) -> jnp.Array:
        return (path.points**2).sum() * path.closed

    for _ in range(3):
        assert jnp.jit(energy)(path) == 10
    assert jnp.grad(energy)(path).points.tolist() == [0, 4, 8]
    many = Path(path.points, np.ones(3, np.float32))
    assert jnp.vmap(energy)(many).tolist() == [0, 1, 4]


class Rows(NamedTuple):
    """A namedtuple whose length is that of its content, as in libraries of rotations."""

    rows: Any

    def __len__(self) -> int:
        return len(self.rows)


@pytest.mark.parametrize("static", [False, True])
def test_calls_with_namedtuples_of_other_lengths_are_dispatched(static: bool) -> None:
    traces = 0

    def count(x: Rows, y: Any) -> Any:
        nonlocal traces
        traces += 1
        return y * sum(x.rows)

    f = jnp.jit(count, static_argnums=0 if static else ())
    for i in range(9):
        assert f(Rows((1, 2, 3)), np.float32(i)) == 6 * i
    assert traces == 1
    assert f(Rows((1, 2, 4)), np.float32(1)) == 7
    assert f(Rows((1, 2)), np.float32(1)) == 3


def test_namedtuples_with_other_fields_lose_no_leaves():
    class Fields(tuple):
        _fields = ("a",)

    for module in (ours, theirs):
        assert module.tree_leaves(Fields((1, 2))) == [1, 2]
        with pytest.raises(ValueError, match="same size as the tuple"):
            module.tree_flatten_with_path(Fields((1, 2)))


def test_static_data_whose_hash_raises_any_error():
    class Data:
        def __eq__(self, other):
            return isinstance(other, Data)

        def __hash__(self):
            raise ValueError

    node = type("Node", (), {})
    for module in (ours, theirs):
        module.register_pytree_node(node, lambda x: ((1,), Data()), lambda data, xs: node())
        assert len({module.tree_structure(node()), module.tree_structure(node())}) == 1


def test_paths_of_deep_trees():
    deep = 1
    for _ in range(600):
        deep = [deep]
    for module in (ours, theirs):
        ((path, leaf),) = module.tree_leaves_with_path(deep)
        assert (len(path), leaf) == (600, 1)
