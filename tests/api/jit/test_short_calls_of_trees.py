"""Cached jitted calls, which run in machine code, with containers, Python numbers, keywords and
static values as arguments.
"""

import collections
import functools
import math
import operator
import threading
from typing import NamedTuple

import numpy as np
import pytest
from api.jit.short_calls import Pair, X, call_repeatedly

import accnp as jnp
from accnp import engine, jit
from accnp._native import COMPILED
from accnp.api.jit import dispatch_registration


def test_trees_numbers_and_keywords_run_without_python(python_calls):
    x, y = jnp.asarray(X), jnp.asarray(X + 1)
    f = jit(lambda p, *rest, scale=2.0, **more: (p, [rest, {"m": more, "n": None}], scale * y))
    calls = [
        lambda: f({"w": x, "b": (y, [x])}, y),
        lambda: f(Pair(x, None), x, x, scale=3.5),
        lambda: f([x], scale=y, b=x, a=y),
        lambda: f((x, {}), a=y, b=x, scale=True),
        lambda: f({2: x, 1: y}, scale=7),
    ]
    steps = [jit(lambda tree: jnp.tree.map(lambda v: v * 2, tree)) for _ in calls]
    trees = [{"w": x, "b": (y, [x])}, [x, (), None], (x, {"k": y}), {2: x, 1: y}, {"e": {}}]
    for call in [*calls, *[lambda s=s, t=t: s(t) for s, t in zip(steps, trees, strict=True)]]:
        first = call()
        for _ in range(40):
            again = call()
        python_calls.clear()
        for _ in range(3):
            again = call()
        assert python_calls == []
        assert jnp.tree.structure(again) == jnp.tree.structure(first)
        for a, b in zip(jnp.tree.leaves(first), jnp.tree.leaves(again), strict=True):
            assert a.aval is b.aval
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_python_numbers_are_passed_unchanged(python_calls):
    f = jit(lambda x, k: x + k)
    x = jnp.zeros(2)
    values = [0.1, -0.0, 1e300, -1e300, math.nan, math.inf, 3, -1, 2**31 - 1, -(2**31), True, False]
    expected = {repr(v): np.asarray(x + v) for v in values}
    for _ in range(30):
        for v in values:
            result = f(x, v)
            assert result.aval is (x + v).aval
            np.testing.assert_array_equal(np.asarray(result), expected[repr(v)])
    whole = jit(lambda k: k + 1)
    for k in range(60):
        assert int(whole(k)) == k + 1
        assert whole(k).aval is whole(0).aval
    python_calls.clear()
    f(x, 0.25)
    whole(5)
    assert python_calls == []
    for bad in (2**31, -(2**31) - 1, 2**70):
        with pytest.raises(OverflowError):
            whole(bad)
    assert float(f(x, np.float64(0.5))[0]) == 0.5
    with jnp.enable_x64():
        assert int(whole(2**31)) == 2**31 + 1


def test_python_number_returned_as_result():
    f = jit(lambda x, k: (k, x * k, k))
    x = jnp.ones(3)
    for k in range(60):
        a, b, c = f(x, k + 0.5)
        assert float(a) == float(c) == k + 0.5
        np.testing.assert_array_equal(np.asarray(b), k + 0.5)


def test_different_containers_miss_the_cache():
    f = jit(lambda t: jnp.tree.leaves(t)[0] * len(jnp.tree.leaves(t)))
    x, y = jnp.ones(3), jnp.zeros(3)
    trees = [
        {"a": x}, {"b": x}, {"a": x, "b": y}, {"b": x, "a": y}, [x], (x,), (x, y), [x, y],
        [x, None],
        Pair(x, y), collections.OrderedDict(a=x), {"a": {"a": x}}, {1: x}, ((x,), y), [[x, y]],
    ]  # fmt: skip
    expected_results = [np.asarray(f(t)) for t in trees]
    for _ in range(40):
        for tree, expected in zip(trees, expected_results, strict=True):
            np.testing.assert_array_equal(np.asarray(f(tree)), expected)
    grow = {"a": x}
    call_repeatedly(f, grow)
    grow["b"] = x
    np.testing.assert_array_equal(np.asarray(f(grow)), 2)


def test_namedtuples_can_get_rules_of_their_own():
    class Late(NamedTuple):
        a: object
        b: object

    f = jit(lambda t: sum(jnp.tree.leaves(t)))
    t = Late(jnp.ones(3), jnp.ones(3))
    assert float(call_repeatedly(f, t)[0]) == 2
    jnp.tree_util.register_pytree_node(Late, lambda t: ((t.a,), None), lambda _, a: Late(*a, None))
    assert float(call_repeatedly(f, t)[0]) == 1


class Box:
    """A registered class with static data."""

    def __init__(self, a, b, tag):
        self.a, self.b, self.tag = a, b, tag


jnp.tree_util.register_pytree_node(
    Box, lambda box: ((box.a, box.b), box.tag), lambda tag, ab: Box(*ab, tag)
)


class StaticFactor:
    """A static value that compares equal to others."""

    def __init__(self, factor):
        self.factor = factor

    def __hash__(self):
        return hash(self.factor)

    def __eq__(self, other):
        return type(other) is StaticFactor and self.factor == other.factor


class TupleWithIter(NamedTuple):
    """A namedtuple that overrides `__iter__`."""

    a: object
    b: object

    def __iter__(self):
        return iter([self.a, self.b])


X32, KEY = jnp.asarray(X), jnp.random.key(3)
ARGUMENTS = {
    "class": lambda k: Box(X32 + k, {"a": Box(X32, (), None)}, ("tag", k % 2)),
    "ordered": lambda k: collections.OrderedDict(b=X32 * k, a=X32),
    "default": lambda k: collections.defaultdict(list, b=X32 * k, a=X32),
    "own items": lambda k: TupleWithIter(X32, X32 * k),
    "keys": lambda k: {("a", 1): X32, ("a", 0): X32 * k},
    "typed key": lambda k: jnp.random.fold_in(KEY, k),
    "float32": lambda k: X * k,
    "float64": lambda k: X.astype("float64") * k,
    "int64": lambda k: np.arange(5)[::2] + k,
    "bool": lambda k: k == X % 2,
    "transposed": lambda k: (X * k).T,
    "without axes": lambda k: np.asarray(k, "float32"),
    "empty": lambda k: np.zeros((0, 3)),
    "bfloat16": lambda k: (X * k).astype(jnp.bfloat16),
    "NumPy numbers": lambda k: [np.float32(k), np.int64(k), np.bool_(k % 2), np.complex64(k)],
    "complex": lambda k: complex(k, -k),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_registered_classes_run_without_python(name, python_calls):
    make = ARGUMENTS[name]
    f = jit(lambda tree: jnp.tree.map(lambda v: v, tree))

    def leaves(tree):
        tree_leaves = jnp.tree.leaves(tree)
        return [jnp.random.key_data(v) if name == "typed key" else v for v in tree_leaves]

    values = [jnp.block_until_ready(make(k)) for k in range(4)]
    for k in range(40):
        actual = leaves(f(values[k % 4]))
        for a, b in zip(actual, leaves(values[k % 4]), strict=True):
            assert a.aval is jnp.asarray(b).aval
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    python_calls.clear()
    again = f(values[1])
    assert python_calls == []
    assert jnp.tree.structure(again) == jnp.tree.structure(values[1])


def test_numpy_arguments_are_copied():
    f = jit(lambda x: (x, x + 1))
    x = np.ones(3, "float32")
    for _ in range(40):
        same, more = f(x)
        x += 1
        np.testing.assert_array_equal(np.asarray(same) + 1, np.asarray(more))
        np.testing.assert_array_equal(np.asarray(same) + 1, x)


def test_equal_static_values_run_without_python(python_calls):
    f = jit(lambda x, mode, shape, name="": x.reshape(shape) * mode.factor, static_argnums=(1, 2),
            static_argnames="name")  # fmt: skip
    last = jit(lambda x, n: x * n, static_argnums=-1)
    calls = [
        lambda: f(X32, StaticFactor(2.0), tuple([4, 3])),
        lambda: f(X32, StaticFactor(3.0), tuple([2, 6]), name="".join(["na", "me"])),
        lambda: last(X32, int("70000")),
        lambda: last(X32, float("1.5")),
        lambda: last(X32, (lambda: 0.0)()),
    ]
    expected = [np.asarray(call()) for call in calls]
    for _ in range(40):
        for call, value in zip(calls, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(call()), value)
    python_calls.clear()
    for call in calls:
        call()
    assert python_calls == []
    assert np.signbit(np.asarray(last(X32 + 1, -0.0))).all()
    assert not np.signbit(np.asarray(last(X32 + 1, 0.0))).any()
    assert f(X32, StaticFactor(2), (4, 3)).dtype == np.float32
    with pytest.raises(ValueError, match="hashable"):
        last(X32, [1])


def test_plans_with_steps_of_the_host_and_pending_arguments_are_matched(python_calls):
    x = jnp.eye(4) * 3.0 + 1.0
    eigenvalues = jit(lambda x: jnp.linalg.eigvals(x).real)
    twice = jit(lambda x, k: (k, x * k))
    for call in (lambda: eigenvalues(x), lambda: twice(x + 1, 2.5), lambda: twice(x, 2.5)):
        first = jnp.tree.leaves(call())
        for _ in range(40):
            call()
        python_calls.clear()
        again = jnp.tree.leaves(call())
        assert python_calls == ["rerun"]
        for a, b in zip(first, again, strict=True):
            assert a.aval is b.aval
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_options_of_this_thread_are_compared(python_calls):
    f = jit(lambda x: x * jnp.arange(3.0).sum().astype(float))
    x = jnp.ones(3, "float32")
    for _ in range(40):
        assert f(x).dtype == np.float32
        with jnp.enable_x64(True):
            assert f(x).dtype == np.float64
        with jnp.numpy_rank_promotion("warn"):
            assert f(x).dtype == np.float32
    python_calls.clear()
    f(x)
    with jnp.enable_x64(True):
        assert f(x).dtype == np.float64
        f(x)
    with jnp.numpy_rank_promotion("warn"):
        f(x)
    with jnp.numpy_rank_promotion("allow"):  # as outside
        f(x)
    assert python_calls == []


def test_values_inside_of_derivatives_are_matched(python_calls):
    f = jit(lambda x: x * 2)
    x, seen = jnp.ones(3), []

    def g(y):
        seen.append(f(x))
        return (f(y) * seen[-1]).sum()

    for _ in range(40):
        f(x)
        jnp.grad(g)(x)
    python_calls.clear()
    np.testing.assert_array_equal(np.asarray(jnp.grad(g)(x)), 4)
    assert python_calls == ["_call"]  # of the traced argument


def test_keyword_names_are_part_of_the_cache_key():
    f = jit(lambda a, b=0.0, **more: a - b + sum(more.values()))
    x, y = jnp.ones(3), jnp.full(3, 5.0)
    for _ in range(40):
        assert float(f(x, y)[0]) == float(f(a=x, b=y)[0]) == float(f(b=y, a=x)[0]) == -4
        assert float(f(y, b=x)[0]) == 4
        assert float(f(x, c=y)[0]) == float(f(x, d=y)[0]) == 6
        assert float(f(x, **{"".join(["c"]): y})[0]) == 6
    with pytest.raises(TypeError):
        f(x, a=y)


def test_static_values_are_distinguished_after_many_calls():
    def power(x, n, mode="plain"):
        return x**n if mode == "plain" else -(x**n)

    f = jit(power, static_argnums=1, static_argnames="mode")
    x = jnp.full(3, 2.0)
    for _ in range(40):
        assert float(f(x, 2)[0]) == 4
        assert float(f(x, 3)[0]) == 8
        assert float(f(x, 3, mode="minus")[0]) == -8
        assert f(x.astype(int), True).dtype == f(x.astype(int), 1).dtype == np.int32
        assert float(f(x, 1000 - 997)[0]) == 8


def test_static_values_with_mutable_equality():
    class Mode(str):
        factor = 1.0

        def __hash__(self):
            return hash(self.factor)

        def __eq__(self, other):
            return isinstance(other, Mode) and self.factor == other.factor

    f = jit(lambda x, mode: x * mode.factor, static_argnums=1)
    mode = Mode("mode")
    for k in (1.0, 5.0):
        mode.factor = k
        assert float(call_repeatedly(f, jnp.ones(3), mode)[0]) == k


@pytest.mark.parametrize("equal", [False, True])
def test_keys_whose_comparison_empties_the_containers(equal):
    """The machine code holds references to the objects that it compares."""
    trees = []

    class Key(str):
        def __hash__(self):
            return hash("a")

        def __eq__(self, other):
            if trees:
                trees.pop().clear()
            return equal

    x = jnp.ones(3).block_until_ready()
    inside = jit(lambda t: t[0]["a"] + t[1])
    alone = jit(lambda t: t["a"] + t["b"])
    call_repeatedly(inside, [{"a": x}, x])
    call_repeatedly(alone, {"a": x, "b": x})
    for _ in range(100):
        for f, tree in (
            (inside, [{Key("a"): x}, x]),
            (alone, {Key("a"): x, "b": x}),
        ):
            trees.append(tree)
            with pytest.raises((LookupError, TypeError)):
                f(tree)


def test_concurrent_modification_of_argument_tree(monkeypatch):
    """A cache entry describes the arguments of its own program, not those of the next call."""
    f = jit(lambda t: functools.reduce(operator.add, jnp.tree.leaves(t)))
    x, run_plan = jnp.ones(3), engine.run_plan
    meanwhile = []

    def run(*args):
        result = run_plan(*args)
        if meanwhile:
            tree.update(meanwhile.pop())
        return result

    monkeypatch.setattr(engine, "run_plan", run)
    for _ in range(20):
        tree = {"a": x, "b": x}
        meanwhile.append({"c": x})
        assert float(f(tree)[0]) == 2
    assert float(f({"a": x, "b": x, "c": x})[0]) == 3


def test_more_arguments_than_the_stack_holds():
    f = jit(lambda x, *rest: x)
    x = jnp.ones(3)
    call_repeatedly(f, x, x)
    errors = []

    def call():
        with pytest.raises(TypeError, match="not a valid JAX type") as error:
            f(x, *[object()] * 100_000)
        errors.append(error)

    before = threading.stack_size(1 << 19)
    try:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert errors


def test_wide_trees_use_the_python_path(python_calls, monkeypatch):
    monkeypatch.setattr(dispatch_registration, "MAX_LEAVES", 10)
    for count in (4, 11):
        f = jit(lambda t: [v + 1 for v in t])
        call_repeatedly(f, [jnp.float32(1)] * count)
        python_calls.clear()
        assert len(f([jnp.float32(1)] * count)) == count
        assert python_calls == ["rerun" if COMPILED else "_call"] * (count > 4)
