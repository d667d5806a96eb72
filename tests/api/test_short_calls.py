"""Jitted calls in machine code: what they give, and what must send them back to Python."""

import collections
import copy
import functools
import gc
import inspect
import math
import operator
import pickle
import subprocess
import sys
import threading
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import accnp as jnp
from accnp import config, engine, jit, random
from accnp.api.compiled import armed
from accnp.api.compiled import jit as jit_module
from accnp.runtime import buffer as pool

X = np.arange(12, dtype="float32").reshape(3, 4)


def often(f, *args, times=40):
    """The last result of so many calls, which all must be equal."""
    first = [np.asarray(r) for r in jnp.tree.leaves(f(*args))]
    for _ in range(times):
        result = f(*args)
        for a, b in zip(first, jnp.tree.leaves(result), strict=True):
            np.testing.assert_array_equal(a, np.asarray(b))
    return result


@pytest.fixture
def python_calls(monkeypatch):
    """How many calls Python had a part in."""
    seen = []
    original = jit_module.JitFunction._quick

    def quick(self, *args):
        seen.append(args)
        return original(self, *args)

    monkeypatch.setattr(jit_module.JitFunction, "_quick", quick)
    return seen


def test_calls_of_arrays_need_no_python(python_calls):
    f = jit(lambda x, y: x * y + 1.0)
    x = jnp.asarray(X)
    often(f, x, x)
    python_calls.clear()
    assert (np.asarray(f(x, x)) == X * X + 1).all()
    assert python_calls == []


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x + 1, x * 2),
        lambda x: {"a": x.sum(), "b": [x, x.T @ x]},
        lambda x: (x,),
        lambda x: x,
        lambda x: (x, x),
        lambda x: [x + 1],
        lambda x: (jnp.sort(x), x - jnp.ones(4)),
        lambda x: (jnp.exp(x).sum(axis=0), (x > 3).any(), x[::-1, 1:]),
        lambda x: jnp.zeros((0, 3)) + x.sum(),
        lambda x: jnp.linalg.norm(x @ x.T, axis=1),
        lambda x: jnp.tanh(x) @ jnp.ones((4, 2)) + 3.0,
    ],
)
def test_results_are_those_of_the_first_call(f):
    g = jit(f)
    result = often(g, jnp.asarray(X))
    plain = f(jnp.asarray(X))
    assert jnp.tree.structure(result) == jnp.tree.structure(plain)
    for a, b in zip(jnp.tree.leaves(result), jnp.tree.leaves(plain), strict=True):
        assert a.aval is b.aval
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_other_types_shapes_and_numbers_are_told_apart():
    f = jit(lambda x, y: x + y)
    ones = jnp.ones(3)
    arguments = [
        (ones, ones),
        (ones, jnp.ones(3, "int32")),
        (ones, jnp.ones((3, 1))),
        (jnp.asarray(2.0), jnp.ones(3)),  # weak
        (jnp.float32(2.0), jnp.ones(3)),
        (ones, 2.0),
        (ones, 2),
        (ones, np.ones(3, "float32")),
        (True, ones),
    ]
    for _ in range(3):
        for x, y in arguments:
            wanted = x + y
            result = often(f, x, y)
            assert result.aval is wanted.aval
            np.testing.assert_array_equal(np.asarray(result), np.asarray(wanted))
    np.testing.assert_array_equal(np.asarray(f(y=ones, x=ones)), 2)
    with pytest.raises(TypeError):
        f(ones)
    with pytest.raises(TypeError):
        f(ones, ones, ones)
    with pytest.raises(TypeError, match="array"):
        f(ones, "text")


def test_arguments_that_have_no_value_yet_or_no_longer():
    f = jit(lambda x: x * 2.0)
    x = jnp.asarray(X)
    often(f, x)
    np.testing.assert_array_equal(np.asarray(f(x + 1)), (X + 1) * 2)  # recorded, not computed
    z = jnp.asarray(X) + 0
    z.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(z)
    give = jit(lambda x: x + 1, donate_argnums=0)
    z = jnp.asarray(X) + 0
    for _ in range(40):
        z = give(z)
    np.testing.assert_array_equal(np.asarray(z), X + 40)


def test_switches_count():
    f = jit(lambda x: x * 2)
    x = np.arange(3)
    often(f, jnp.asarray(x, "int32"))
    with jnp.enable_x64():
        wide = jit(lambda x: x * 2 + jnp.ones(3))
        y = jnp.asarray(x, "float32")
        assert often(wide, y).dtype == np.float64
    assert often(wide, jnp.asarray(x, "float32")).dtype == np.float32
    log = jit(lambda x: jnp.log(x))
    bad = jnp.asarray(-1.0)
    often(log, bad)
    with jnp.debug_nans(True), pytest.raises(FloatingPointError):
        log(bad)
    config.update("debug_nans", True)
    try:
        with pytest.raises(FloatingPointError):
            log(bad)
    finally:
        config.update("debug_nans", False)
    assert np.isnan(float(log(bad)))
    calls = []
    noted = jit(lambda x: (calls.append(1), x + 1)[1])
    often(noted, jnp.asarray(X))
    assert len(calls) == 1
    with jnp.disable_jit():
        noted(jnp.asarray(X))
    assert len(calls) == 2


def test_traced_arguments_inside_transformations():
    f = jit(lambda x: (x * x).sum())
    x = jnp.asarray(X)
    often(f, x)
    for _ in range(20):
        np.testing.assert_array_equal(np.asarray(jnp.grad(f)(x)), 2 * X)
        np.testing.assert_array_equal(np.asarray(jnp.vmap(f)(x)), (X * X).sum(1))
        assert float(jit(lambda x: f(x) + f(x))(x)) == 2 * (X * X).sum()
    kept = []

    def under(y):
        kept.append(f(x))  # a value that does not depend on the argument
        return f(y)

    often(jnp.grad(under), x)
    assert all(float(k) == (X * X).sum() for k in kept)


def test_clearing_caches_traces_again():
    calls = []
    f = jit(lambda x: (calls.append(1), x + 1)[1])
    often(f, jnp.asarray(X))
    jnp.clear_caches()
    often(f, jnp.asarray(X))
    f.clear_cache()
    often(f, jnp.asarray(X))
    assert len(calls) == 3


def test_closed_over_arrays_live_as_long_as_the_function():
    def made(w):
        return jit(lambda x: (x * w).sum(axis=1))

    f = made(jnp.asarray(X) * 3)
    x = jnp.asarray(X)
    often(f, x)
    gc.collect()
    np.testing.assert_array_equal(np.asarray(f(x)), (X * X * 3).sum(1))


def test_functions_go_away_and_come_back():
    def double(x):
        return x * 2.0

    f = jit(double)
    x = jnp.asarray(X)
    often(f, x)
    np.testing.assert_array_equal(np.asarray(often(copy.copy(f), x)), X * 2)
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(np.asarray(x), X)


def test_copies_and_pickles_leave_behind_what_was_traced():
    x = jnp.asarray(X)
    f = jit(lambda x: x * 2.0)
    often(f, x)
    np.testing.assert_array_equal(np.asarray(often(copy.deepcopy(f), x)), X * 2)
    g = jit(math.prod)
    often(g, x[0])
    again = pickle.loads(pickle.dumps(g))
    assert float(often(again, x[0])) == float(g(x[0]))
    with pytest.raises(TypeError):
        f()


def test_signatures_can_be_asked_for():
    f = jit(lambda x, y=1: x)
    often(f, jnp.asarray(X))
    assert list(inspect.signature(f).parameters) == ["x", "y"]
    assert str(inspect.signature(f.__call__)) == "(*args, **kwargs)"


class Model:
    @jit
    def twice(self, x):
        return x * 2

    @staticmethod
    @jit
    def thrice(x):
        return x * 3


def test_methods():
    x = jnp.asarray(X)
    often(Model.thrice, x)
    often(Model().thrice, x)
    with pytest.raises(TypeError):
        Model().twice(x)  # an instance is no array


def test_buffers_go_back_to_the_pool():
    f = jit(lambda x: (x + 1, x.sum()))
    for n in (3, 5000, 400_000):
        x = jnp.ones(n)
        often(f, x)
        before = pool.pool_stats()
        for _ in range(50):
            f(x)
        after = pool.pool_stats()
        assert after["live_bytes"] == before["live_bytes"]
        assert after["allocations"] == before["allocations"]
        assert after["reuses"] >= before["reuses"] + 100
    views = []
    for _ in range(30):  # memory that somebody sees is not handed out again
        views.append(np.asarray(f(jnp.full(3, float(len(views))))[0]))
    assert [v[0] for v in views] == [k + 1.0 for k in range(30)]


def test_threads_call_at_the_same_time():
    f = jit(lambda x, y: (jnp.tanh(x) * y).sum(axis=0))
    key = random.PRNGKey(0)
    inputs = [random.normal(random.fold_in(key, k), (300, 200)) for k in range(4)]
    wanted = [np.asarray(f(x, x)) for x in inputs]
    wrong = []

    def work(k):
        for _ in range(200):
            if not np.array_equal(np.asarray(f(inputs[k], inputs[k])), wanted[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for k in range(50):
        config.update("threads", 1 + k % 3)
    for t in threads:
        t.join()
    config.update("threads", None)
    assert not wrong


def test_signatures_in_turn(python_calls):
    f = jit(lambda x: x + 1)
    inputs = [jnp.zeros(n) for n in (1, 2, 3)]
    for x in inputs:
        often(f, x)
    python_calls.clear()
    for _ in range(5):
        for x in inputs:
            assert f(x).shape == x.shape
    assert python_calls == []


def test_explain_sees_calls():
    f = jit(lambda x: x + 1)
    x = jnp.asarray(X)
    often(f, x)
    with jnp.explain() as told:
        f(x)
        f(x)
    assert "2" in str(told)


class Pair(NamedTuple):
    a: object
    b: object


def test_containers_numbers_and_names_need_no_python(python_calls):
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


def test_numbers_are_passed_as_they_are(python_calls):
    f = jit(lambda x, k: x + k)
    x = jnp.zeros(2)
    values = [0.1, -0.0, 1e300, -1e300, math.nan, math.inf, 3, -1, 2**31 - 1, -(2**31), True, False]
    wanted = {repr(v): np.asarray(x + v) for v in values}
    for _ in range(30):
        for v in values:
            result = f(x, v)
            assert result.aval is (x + v).aval
            np.testing.assert_array_equal(np.asarray(result), wanted[repr(v)])
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


def test_a_number_that_is_a_result():
    f = jit(lambda x, k: (k, x * k, k))
    x = jnp.ones(3)
    for k in range(60):
        a, b, c = f(x, k + 0.5)
        assert float(a) == float(c) == k + 0.5
        np.testing.assert_array_equal(np.asarray(b), k + 0.5)


def test_other_containers_are_told_apart():
    f = jit(lambda t: jnp.tree.leaves(t)[0] * len(jnp.tree.leaves(t)))
    x, y = jnp.ones(3), jnp.zeros(3)
    trees = [
        {"a": x}, {"b": x}, {"a": x, "b": y}, {"b": x, "a": y}, [x], (x,), (x, y), [x, y],
        [x, None],
        Pair(x, y), collections.OrderedDict(a=x), {"a": {"a": x}}, {1: x}, ((x,), y), [[x, y]],
    ]  # fmt: skip
    wanted = [np.asarray(f(t)) for t in trees]
    for _ in range(40):
        for tree, expected in zip(trees, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(f(tree)), expected)
    grow = {"a": x}
    often(f, grow)
    grow["b"] = x
    np.testing.assert_array_equal(np.asarray(f(grow)), 2)


def test_namedtuples_can_get_rules_of_their_own():
    class Late(NamedTuple):
        a: object
        b: object

    f = jit(lambda t: sum(jnp.tree.leaves(t)))
    t = Late(jnp.ones(3), jnp.ones(3))
    assert float(often(f, t)[0]) == 2
    jnp.tree_util.register_pytree_node(Late, lambda t: ((t.a,), None), lambda _, a: Late(*a, None))
    assert float(often(f, t)[0]) == 1


def test_names_are_told_apart():
    f = jit(lambda a, b=0.0, **more: a - b + sum(more.values()))
    x, y = jnp.ones(3), jnp.full(3, 5.0)
    for _ in range(40):
        assert float(f(x, y)[0]) == float(f(a=x, b=y)[0]) == float(f(b=y, a=x)[0]) == -4
        assert float(f(y, b=x)[0]) == 4
        assert float(f(x, c=y)[0]) == float(f(x, d=y)[0]) == 6
        assert float(f(x, **{"".join(["c"]): y})[0]) == 6
    with pytest.raises(TypeError):
        f(x, a=y)


def test_static_values_are_told_apart_when_called_often():
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


def test_static_values_of_classes_that_compare_by_what_can_change():
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
        assert float(often(f, jnp.ones(3), mode)[0]) == k


@pytest.mark.parametrize("equal", [False, True])
def test_keys_whose_comparison_empties_the_containers(equal):
    """The machine code holds what it looks at."""
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
    often(inside, [{"a": x}, x])
    often(alone, {"a": x, "b": x})
    for _ in range(100):
        for f, tree in (
            (inside, [{Key("a"): x}, x]),
            (alone, {Key("a"): x, "b": x}),
        ):
            trees.append(tree)
            with pytest.raises((LookupError, TypeError)):
                f(tree)


def test_a_tree_that_another_thread_changes_meanwhile(monkeypatch):
    """What a record says of the arguments is that of the program: not the next one's."""
    f = jit(lambda t: functools.reduce(operator.add, jnp.tree.leaves(t)))
    x, run_now = jnp.ones(3), engine.run_now
    meanwhile = []

    def run(*args):
        found = run_now(*args)
        if meanwhile:
            tree.update(meanwhile.pop())
        return found

    monkeypatch.setattr(engine, "run_now", run)
    for _ in range(20):
        tree = {"a": x, "b": x}
        meanwhile.append({"c": x})
        assert float(f(tree)[0]) == 2
    assert float(f({"a": x, "b": x, "c": x})[0]) == 3


def test_more_arguments_than_the_stack_holds():
    f = jit(lambda x, *rest: x)
    x = jnp.ones(3)
    often(f, x, x)
    told = []

    def call():
        with pytest.raises(TypeError, match="not an array") as error:
            f(x, *[object()] * 100_000)
        told.append(error)

    before = threading.stack_size(1 << 19)
    try:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert told


def test_wide_trees_are_left_to_python(python_calls, monkeypatch):
    monkeypatch.setattr(armed, "ROOM", 10)
    for count in (4, 6):
        f = jit(lambda t: [v + 1 for v in t])
        often(f, [jnp.float32(1)] * count)
        python_calls.clear()
        assert len(f([jnp.float32(1)] * count)) == count
        assert bool(python_calls) == (count > 4)


def test_cleared_caches_let_go_of_what_was_closed_over():
    box = [jnp.ones(1000) * 3]
    closed = weakref.ref(box[0].block_until_ready()._node)
    f = jit(lambda x: x + box[0])
    often(f, jnp.ones(1000))
    box.clear()
    jnp.clear_caches()
    gc.collect()
    assert closed() is None


def test_what_is_in_containers_is_let_go():
    f = jit(lambda t, k: {"a": t["a"] * k, "b": [t["b"], (t["a"] + k, None)]})
    trees = [{"a": jnp.ones(n), "b": jnp.zeros(n)} for n in (3, 4)]
    for t in trees:
        often(f, t, 2.0)
    names, none = sys.getrefcount("a"), sys.getrefcount(None)
    before = pool.pool_stats()
    for _ in range(500):
        for t in trees:
            f(t, 2.0)
    after = pool.pool_stats()
    assert after["live_bytes"] == before["live_bytes"]
    assert after["allocations"] == before["allocations"]
    assert abs(sys.getrefcount("a") - names) < 400  # others come and go; a fault loses a thousand
    assert abs(sys.getrefcount(None) - none) < 400  # others come and go; a fault loses a thousand


@pytest.mark.parametrize("known", [False, True])
def test_what_was_begun_before_caches_were_cleared_does_not_stay(known):
    """A thread that has looked a program up, or made it, while another clears the caches."""
    read = {"value": 1.0}
    meanwhile = []

    def other_thread():
        read["value"] = 2.0
        thread = threading.Thread(target=jnp.clear_caches)
        thread.start()
        thread.join()

    @jit
    def f(x):
        result = x + read["value"]
        while meanwhile:
            meanwhile.pop()()
        return result

    x = jnp.zeros(3)
    if known:
        f(x)
        original = jit_module.JitFunction.entry_of

        def entry_of(self, *args):
            found = original(self, *args)
            while meanwhile:
                meanwhile.pop()()
            return found

        f._cache.clear()
        f(x)
        short = [k for k in f._cache if k[0] is None]
        for k in short:  # so that the next call goes the general way
            del f._cache[k]
        jit_module.JitFunction.entry_of = entry_of
    try:
        meanwhile.append(other_thread)
        assert float(f(x)[0]) == 1.0
    finally:
        if known:
            jit_module.JitFunction.entry_of = original
    for _ in range(40):
        assert float(f(x)[0]) == 2.0


CHILD = """
import os, gc, sys
import accnp as jnp
f = jnp.jit(lambda x: (x * 2.0, jnp.tanh(x).sum()))
xs = [jnp.ones(n) for n in (10, 5000, 300_000)]
for x in xs:
    for _ in range(100):
        r = f(x)
pid = os.fork()
for x in xs:
    for _ in range(100):
        r = f(x)
    assert float(r[0][0]) == 2.0
if pid:
    assert os.waitpid(pid, 0)[1] == 0
ring = [r]
ring.append(ring)
"""


@pytest.mark.skipif(not hasattr(sys, "getsizeof") or sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize("filled", [False, True])
def test_forks_and_ends(filled):
    import os

    more = {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "2"} if filled else {}
    done = subprocess.run(
        # Python 3.12 on warns of forks where there are threads: that is what is tried here.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-X", "faulthandler", "-c", CHILD],
        env=os.environ | more,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_closed_over_arrays_of_the_arguments_types_are_not_taken_for_them(python_calls):
    a, b = jnp.asarray(X), jnp.asarray(X + 5)
    f = jit(lambda x, y: (x - a * y, b / (1 + y)))
    x, y = jnp.asarray(X + 1), jnp.asarray(X * 3)
    for _ in range(40):
        got = f(x, y)
    np.testing.assert_array_equal(got[0], (X + 1) - X * (X * 3))
    np.testing.assert_array_equal(got[1], (X + 5) / (1 + X * 3))
    python_calls.clear()
    step = f(y, x)
    np.testing.assert_array_equal(step[0], X * 3 - X * (X + 1))
    assert python_calls == []


def test_arguments_that_are_refused_after_many_calls_are_named():
    f = jit(lambda x, k: x * k)
    x = jnp.ones(3)
    often(f, x, 2)
    for bad in (np.array(["a"]), np.array([None]), np.zeros(2, "i4,i4"), np.longdouble(1)):
        with pytest.raises(TypeError, match=r"jit\(.*argument k is an array of dtype"):
            f(x, bad)
        with pytest.raises(TypeError, match=r"jit\(.*argument k is an array of dtype"):
            f(x, k=bad)
    with pytest.raises(OverflowError, match=r"jit\(.*argument k: Python int .* to int32"):
        f(x, 2**40)
    with pytest.raises(OverflowError, match=r"argument x\['a'\]\[0\]: Python int"):
        f({"a": [2**40]}, 1)
    np.testing.assert_array_equal(np.asarray(f(x, 3)), 3)
