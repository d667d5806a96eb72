"""Eager loops run in constant memory, with few kernels, and reuse their buffers."""

import gc
import threading
import time

import numpy as np

import accnp as jnp
from accnp import engine, lax
from accnp.api.tracing import trace_cache
from accnp.compiler.cache_state import counters
from accnp.runtime.buffer import pool_stats
from accnp.trace_fn import counters as trace_counters


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


def test_unreferenced_intermediate_is_not_stored():
    x = jnp.asarray(np.linspace(0, 1, 1000, dtype=np.float32))
    before = counters.as_dict()["launches"]
    z = jnp.exp(jnp.sin(x) + 1) * 2
    z.block_until_ready()
    assert counters.as_dict()["launches"] - before == 1


def test_deep_pending_graph():
    x = jnp.asarray(np.float32(1))
    one = x
    for _ in range(3000):
        one = one * 1.0 + x
    assert float(one) == 3001


def test_views_of_ready_arrays_are_copied_on_demand():
    x = jnp.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    t = x.T
    s = t * 1.0
    s.block_until_ready()
    assert not t.is_ready()
    np.testing.assert_array_equal(np.asarray(t), np.arange(12).reshape(3, 4).T)


# --- control flow in eager code ---


def traces_of(run):
    """Return how often functions are traced in each of three calls."""
    counts = []
    for _ in range(3):
        before = trace_counters["traces"]
        run()
        counts.append(trace_counters["traces"] - before)
    return counts


def test_bodies_are_traced_once():
    calls = []

    def body(i, x):
        calls.append(i)
        return x * 2 + i

    def step(c, x):
        calls.append(c)
        return c * x, c

    xs = jnp.arange(4.0)
    assert traces_of(lambda: lax.fori_loop(0, 10, body, 1.0)) == [1, 0, 0]
    assert len(calls) == 1
    assert traces_of(lambda: lax.scan(step, 1.0, xs)) == [1, 0, 0]
    more, double, same = (lambda x: x < 9), (lambda x: x * 2), (lambda x: x)
    assert traces_of(lambda: lax.map(double, xs)) == [1, 0, 0]
    assert traces_of(lambda: lax.while_loop(more, double, 1)) == [2, 0, 0]
    assert traces_of(lambda: lax.cond(True, double, same, 1)) == [2, 0, 0]
    assert traces_of(lambda: lax.switch(1, [double, same], 1)) == [2, 0, 0]
    assert traces_of(lambda: jnp.grad(lambda x: lax.scan(step, x, xs)[0])(2.0))[1:] == [0, 0]
    run = jnp.jit(lambda x: lax.scan(step, x, xs)[0])
    assert traces_of(lambda: run(2.0)) == [1, 0, 0]
    # The types are others, and the configuration.
    assert traces_of(lambda: lax.scan(step, jnp.float32(1), xs.astype(jnp.float16))) == [1, 0, 0]


def test_bodies_with_changed_closures_are_retraced():
    scale, table, array = 2.0, {"w": [3.0]}, np.ones(2, np.float32)

    def helper(x):
        return x * table["w"][0]

    def body(i, x):
        return helper(x) * scale + array

    def run():
        return float(lax.fori_loop(0, 1, body, jnp.ones(2))[0])

    assert run() == 7.0
    scale = 5.0
    assert run() == 16.0
    table["w"][0] = 1.0
    assert run() == 6.0
    array[:] = 0
    assert run() == 5.0
    assert traces_of(run) == [0, 0, 0]


def test_loops_over_new_functions_do_not_leak():
    def run(k):
        return lax.fori_loop(0, 2, lambda i, x: x + k, jnp.ones(3))

    run(0)
    gc.collect()
    before = len(trace_cache._known)
    for k in range(20):
        run(k)
    assert len(trace_cache._known) <= before + 1


def test_programs_that_close_over_traced_values_are_not_kept():
    def body(i, x):
        return x * scale

    def outer(y):
        nonlocal scale
        scale = y
        return lax.fori_loop(0, 2, body, 1.0)

    scale = None
    assert float(jnp.jit(outer)(3.0)) == 9.0
    assert float(jnp.jit(lambda y: outer(y) + 1)(2.0)) == 5.0
    assert float(jnp.grad(outer)(3.0)) == 6.0
    scale = 2.0
    assert float(lax.fori_loop(0, 2, body, 1.0)) == 4.0


def test_loop_of_unknown_length_releases_the_interpreter_lock():
    """The loop must release the interpreter lock; it once kept it, since its work was estimated
    from 16 iterations."""
    spin = jnp.jit(
        lambda n, x: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x))
    )
    x = jnp.ones(10)
    jnp.block_until_ready(spin(3, x))
    beside = []

    def look():
        time.sleep(0.005)
        beside.append(time.perf_counter())

    thread = threading.Thread(target=look)
    thread.start()
    jnp.block_until_ready(spin(4_000_000, x))
    end = time.perf_counter()
    thread.join()
    assert beside[0] < end - 0.01
