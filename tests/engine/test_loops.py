"""Eager loops: constant memory, a handful of kernels, buffers that come back."""

import gc

import numpy as np

import accnp as jnp
from accnp import engine
from accnp.runtime.buffer import pool_stats
from accnp.runtime.compile import counters


def test_a_long_eager_loop_needs_few_kernels_and_little_memory():
    x = jnp.asarray(np.ones(1000, np.float32))
    (x * 0.999 + 0.001).block_until_ready()
    gc.collect()
    before, plans, live = counters.as_dict(), engine.counters["plans"], pool_stats()["live_bytes"]
    for _ in range(100_000):
        x = x * 0.999 + 0.001
    x.block_until_ready()
    after = counters.as_dict()
    assert after["compiles"] + after["disk_hits"] - before["compiles"] - before["disk_hits"] <= 4
    assert engine.counters["plans"] - plans <= 4
    assert after["launches"] - before["launches"] < 10_000
    assert pool_stats()["live_bytes"] - live < 1 << 20
    assert abs(float(x[0]) - 1.0) < 1e-3


def test_a_steady_loop_takes_no_memory_from_the_system():
    x = jnp.asarray(np.ones((300, 300), np.float32))
    w = jnp.asarray(np.ones((300, 300), np.float32) / 300)

    def step(x):
        y = jnp.maximum(x @ w, 0) + 1
        return y - y.mean()

    for _ in range(5):
        x = step(x)
        x.block_until_ready()
    before = pool_stats()["allocations"]
    for _ in range(50):
        x = step(x)
        x.block_until_ready()
    assert pool_stats()["allocations"] - before <= 1


def test_nodes_of_a_finished_computation_are_freed_without_the_collector():
    x = jnp.asarray(np.ones(1 << 20, np.float32))
    (x + 1).block_until_ready()
    gc.collect()
    gc.disable()
    try:
        live = pool_stats()["live_bytes"]
        for k in range(20):
            y = jnp.exp(x * float(k))
            z = y + y.sum()
            z.block_until_ready()
            del y, z
        assert pool_stats()["live_bytes"] - live < 8 << 20
    finally:
        gc.enable()


def test_a_held_intermediate_is_computed_once():
    x = jnp.asarray(np.linspace(0, 1, 1000, dtype=np.float32))
    y = jnp.exp(x)
    z = y + 1
    z.block_until_ready()
    assert y.is_ready()


def test_an_intermediate_that_nobody_holds_is_not_stored():
    x = jnp.asarray(np.linspace(0, 1, 1000, dtype=np.float32))
    before = counters.as_dict()["launches"]
    z = jnp.exp(jnp.sin(x) + 1) * 2
    z.block_until_ready()
    assert counters.as_dict()["launches"] - before == 1


def test_a_deep_pending_graph_is_no_problem():
    x = jnp.asarray(np.float32(1))
    one = x
    for _ in range(3000):
        one = one * 1.0 + x
    assert float(one) == 3001


def test_reading_views_of_a_ready_array_copies_nothing_until_looked_at():
    x = jnp.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    t = x.T
    s = t * 1.0
    s.block_until_ready()
    assert not t.is_ready()
    np.testing.assert_array_equal(np.asarray(t), np.arange(12).reshape(3, 4).T)
