"""Pending graphs that occur repeatedly are dispatched by native code.

The tests check their results, and the conditions under which dispatch falls back to Python.
"""

import gc
import random
import sys
import threading

import numpy as np
import pytest

import accnp as jnp
from accnp import engine
from accnp._native import COMPILED
from accnp.runtime.buffer import pool_stats

X = np.arange(1, 13, dtype="float32").reshape(3, 4)
TIMES = 70


def five(x):
    return (x + 1) * x - x / 2 + x


@pytest.fixture
def looks(monkeypatch):
    """Return the nodes that Python visited."""
    seen = []
    collect = engine.collect
    monkeypatch.setattr(engine, "collect", lambda nodes: seen.append(nodes) or collect(nodes))
    return seen


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + 1,
        five,
        lambda x: jnp.sum(jnp.exp(x) * x, axis=1),
        lambda x: jnp.max(x) - x.T,
        lambda x: x[1:, ::2] * 3,
        lambda x: jnp.where(x > 3, x, -x),
    ],
)
def test_repeated_graphs_run_without_python(looks, f):
    x = jnp.asarray(X)
    first = np.asarray(f(x))
    for _ in range(TIMES):
        looks.clear()
        again = np.asarray(f(x))
        np.testing.assert_array_equal(first, again)
    # The fallback has no records of graphs; it has a short way for single operations.
    assert looks == [] or not COMPILED


def test_results_follow_the_values():
    for i in range(TIMES):
        x = jnp.asarray(X + i)
        np.testing.assert_array_equal(np.asarray(five(x)), five(X + np.float32(i)))


def test_referenced_values_are_stored():
    x = jnp.asarray(X)
    for i in range(3 * TIMES):
        y = x + 1
        reference = y if i % 3 else None
        view = y.T if i % 3 == 2 else None
        z = y * y - x
        del y
        np.testing.assert_array_equal(np.asarray(z), (X + 1) ** 2 - X)
        if reference is not None:
            assert reference.is_ready()
            np.testing.assert_array_equal(np.asarray(reference), X + 1)
        if view is not None:
            np.testing.assert_array_equal(np.asarray(view), (X + 1).T)


def test_repeated_operand_is_a_different_graph():
    x, y = jnp.asarray(X), jnp.asarray(X[::-1].copy())
    for i in range(2 * TIMES):
        other = x if i % 2 else y
        z = (x + 1) * (other + 1) - other
        by_hand = np.asarray(other)
        np.testing.assert_array_equal(np.asarray(z), (X + 1) * (by_hand + 1) - by_hand)


def test_shared_node_differs_from_two_equal_nodes():
    """Both nodes of a recorded graph are referenced and stored; a call with one shared node must
    not match it."""
    x = jnp.asarray(X)
    for _ in range(TIMES):
        a, b = x + 1, x + 1
        np.testing.assert_array_equal(np.asarray(a * b), (X + 1) ** 2)
    apart = []
    for _ in range(3):
        gc.collect()
        live, none = pool_stats()["live_bytes"], sys.getrefcount(None)
        for _ in range(1000):
            y = x + 1
            np.testing.assert_array_equal(np.asarray(y * y), (X + 1) ** 2)
        gc.collect()
        assert abs(pool_stats()["live_bytes"] - live) < 4096
        apart.append(abs(sys.getrefcount(None) - none))
    # A fault loses a thousand each time; background compilation releases about as many, once.
    assert min(apart) < 500


def _program(rng, leaves):
    """Return random operations on earlier values, in both libraries, and one value to read."""
    ours, theirs = [jnp.asarray(v) for v in leaves], list(leaves)
    steps = []
    for _ in range(rng.randint(1, 9)):
        i, j, kind = rng.randrange(len(ours)), rng.randrange(len(ours)), rng.randrange(5)
        steps.append((kind, i, j))
        for values in (ours, theirs):
            a, b = values[i], values[j]
            values.append([a + b, a - b, a * 2, -a, abs(a)][kind])
    return ours, theirs


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed):
    for turn in range(40):
        rng = random.Random(seed + 100 * (turn % 2))  # two structures in turns
        leaves = [np.array([turn, 2, k], np.float32) for k in range(2)]
        ours, theirs = _program(rng, leaves)
        is_referenced = random.Random(seed).random() < 0.5 or turn % 3 == 0
        last = ours[-1]
        if not is_referenced:
            del ours
        np.testing.assert_array_equal(np.asarray(last), theirs[-1])
        if is_referenced:
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(np.asarray(a), b)


def test_chains_without_an_end_stay_small():
    x = jnp.zeros(8)
    for _ in range(5000):
        x = x + 1
    assert float(x[0]) == 5000


def test_references_balance():
    x = jnp.asarray(X)
    for _ in range(TIMES):
        five(x).block_until_ready()
    gc.collect()
    live, empty, none = pool_stats()["live_bytes"], sys.getrefcount(()), sys.getrefcount(None)
    for _ in range(1000):
        five(x).block_until_ready()
    gc.collect()
    assert pool_stats()["live_bytes"] == live
    assert abs(sys.getrefcount(()) - empty) < 500  # others come and go; a fault loses a thousand
    assert abs(sys.getrefcount(None) - none) < 500  # others come and go; a fault loses a thousand


def test_deleted_operands_are_refused():
    x = jnp.asarray(X)
    for _ in range(TIMES):
        five(x).block_until_ready()
    y = five(x)
    x.delete()
    np.testing.assert_array_equal(np.asarray(y), five(X))  # recorded before
    with pytest.raises(RuntimeError, match="deleted"):
        five(x).block_until_ready()


def test_config_options_take_effect(looks):
    x = jnp.asarray(X)
    for _ in range(TIMES):
        five(x).block_until_ready()
    looks.clear()
    with jnp.debug_nans(True), pytest.raises(FloatingPointError):
        np.asarray((five(x) - five(x)) / jnp.zeros_like(x))
    with jnp.debug_nans(True):
        five(x).block_until_ready()
    assert looks
    for _ in range(TIMES):
        np.testing.assert_array_equal(np.asarray(five(x)), five(X))


@jnp.custom_jvp
def ramp(x):
    return jnp.maximum(x, 0)


ramp.defjvps(lambda t, y, x: jnp.where(x > 0, t, 0))


@jnp.custom_vjp
def square(x):
    return x * x


square.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))


@pytest.mark.parametrize(
    "f",
    [
        ramp,
        square,
        jnp.nn.relu,
        jnp.vmap(ramp),
        jnp.grad(lambda x: (ramp(x) * square(x)).sum()),
        jnp.value_and_grad(lambda x: jnp.logaddexp(square(x), 1).sum()),
        jnp.jacrev(lambda x: ramp(x[0])),
    ],
)
def test_derivative_rules_do_not_affect_dispatch(f):
    # They are made for one call: each would be planned anew, and its plan kept.
    x = jnp.asarray(X)
    first = np.asarray(jnp.tree.leaves(f(x))[-1])
    plans, cached_plans = engine.counters["plans"], len(engine._plans)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(jnp.tree.leaves(f(x))[-1]), first)
    assert (engine.counters["plans"], len(engine._plans)) == (plans, cached_plans)


def _step(c, row):
    w, x = c
    return (w, jnp.tanh(x * w + row)), x.sum()


def _halved(c):
    return c[0] * 0.5, c[1] + 1


def _looped(w):
    (_, last), sums = jnp.lax.scan(_step, (w, jnp.ones(3)), jnp.asarray(X.reshape(-1, 3)))
    return last.sum() + sums.mean()


def _while(w):
    return jnp.lax.while_loop(_small, _halved, (w * w, 0))[0].sum()


def _small(c):
    return c[1] < 4


W = np.linspace(-1, 1, 3, dtype=np.float32)
SLOPES = {
    "reverse": (jnp.grad(_looped), W),
    "forward": (lambda w: jnp.jvp(_looped, (w,), (w,))[1], W),
    "mapped": (jnp.vmap(jnp.grad(_looped)), np.stack([W, -W])),
    "second": (lambda w: jnp.jvp(jnp.grad(_looped), (w,), (w,))[1], W),
    "checkpointed": (jnp.grad(lambda w: jnp.checkpoint(_looped)(w)), W),
    "while": (lambda w: jnp.jvp(_while, (w,), (w,))[1], W),
    "mapped while": (jnp.vmap(lambda w: jnp.jvp(_while, (w,), (w,))[1]), np.stack([W, -W])),
}


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_of_loops_are_planned_once(name):
    f, w = SLOPES[name]
    w = jnp.asarray(w)
    first = np.asarray(f(w))
    np.testing.assert_allclose(np.asarray(jnp.jit(f)(w)), first, rtol=1e-6)
    plans = engine.counters["plans"]
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(f(w)), first)
    assert engine.counters["plans"] == plans


def test_values_under_a_derivative():
    x = jnp.asarray(X)
    for _ in range(TIMES):
        y, gradient = jnp.value_and_grad(lambda x: float(five(x).sum()) * jnp.sum(x))(x)
        np.testing.assert_allclose(float(y), five(X).sum() * X.sum(), rtol=1e-6)
        np.testing.assert_allclose(np.asarray(gradient), np.full_like(X, five(X).sum()), rtol=1e-6)


def test_threads_read_shared_and_own_graphs():
    x = jnp.asarray(X)
    expected = five(X)
    errors = []

    def look(shared, barrier):
        barrier.wait()
        for y in shared:
            if not np.array_equal(np.asarray(y), expected):
                errors.append(y)
            if not np.array_equal(np.asarray(five(x)), expected):
                errors.append(y)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(10):
            shared = [five(x) for _ in range(50)]
            barrier = threading.Barrier(4)
            threads = [threading.Thread(target=look, args=(shared, barrier)) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
    finally:
        sys.setswitchinterval(before)
    assert not errors


def test_single_operations_are_computed_again_with_and_without_the_extension():
    """On one operand, on two, on one twice, and on two that share a buffer."""
    x = jnp.asarray(np.arange(7.0, dtype=np.float32))
    y = jnp.asarray(np.arange(7.0, 14.0, dtype=np.float32))
    shared = jnp.asarray(x)
    for _ in range(20):
        np.testing.assert_array_equal(np.asarray(-x), -np.arange(7.0))
        np.testing.assert_array_equal(np.asarray(x * y), np.arange(7.0) * np.arange(7.0, 14.0))
        np.testing.assert_array_equal(np.asarray(x * x), np.arange(7.0) ** 2)
        np.testing.assert_array_equal(np.asarray(x * shared), np.arange(7.0) ** 2)
        np.testing.assert_array_equal(np.asarray(y - x), np.full(7, 7.0))


def test_graphs_with_different_update_indices():
    """If a plan depends on the indices of an update, the recorded graph applies to these indices
    only."""
    x = jnp.arange(10.0)
    for _ in range(6):
        for k in (1, 2, 3):
            y = jnp.zeros(12).at[k : k + 5].set(x[:5] * 2).block_until_ready()
            expected = np.zeros(12)
            expected[k : k + 5] = 2 * np.arange(5)
            np.testing.assert_array_equal(np.asarray(y), expected)


def test_steps_that_use_only_the_first_buffers():
    """A step has fewer operands than the table has buffers, in the same order."""
    x = np.arange(12, dtype="int32").reshape(3, 4)
    values = np.arange(6, dtype="float32").reshape(3, 2)
    expected = x.copy()
    expected[:, ::2] = values
    for _ in range(4):
        actual = jnp.asarray(x).at[:, ::2].set(jnp.asarray(values).astype("int32"))
        np.testing.assert_array_equal(actual, expected)
