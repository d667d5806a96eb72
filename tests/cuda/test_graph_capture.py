"""Loops whose bodies call the array library. Each call is captured once as a CUDA graph, which
machine code launches. The fake GPU refuses what CUDA and CuPy refuse while a stream is captured.
"""

import functools
import gc
import threading
from collections import Counter

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import lax
from accnp.engine import device_captures
from accnp.runtime.device_buffer import driver_of
from accnp.runtime.driver import NotCaptured

N = 96
X = np.sin(np.arange(N, dtype="f4") * 1.7)
ROWS = np.cos(np.arange(5 * N, dtype="f4") * 0.9).reshape(5, N)


def sorts(x):
    def body(c, r):
        s = jnp.sort(c * 1.5 + r)
        return s[::-1] * 0.5, (s[:3], s)

    return lax.scan(body, x, jnp.asarray(ROWS))


def transforms(x):
    def body(i, c):
        return jnp.fft.ifft(jnp.fft.fft(c + i) * 0.5).real + x

    return lax.fori_loop(0, 4, body, x)


def whole_numbers(x):
    return lax.fori_loop(
        0, 3, lambda i, c: (c @ c.T) % 7 + i, (x.reshape(8, 12) * 9).astype(int)[:, :8]
    )


def cumulative_scan(x):
    return lax.scan(lambda c, r: (jnp.cumsum(c + r) / N, None), x, jnp.asarray(ROWS), reverse=True)


def slice_operands(x):
    """Operands that are slices of carries and reversed views; a call with two results."""

    def body(c, _):
        a, b = c
        values, places = lax.top_k(a.reshape(8, 12)[:, ::-2], 6)
        pairs = lax.sort((b[10:90:2], a[40:0:-1]), num_keys=1)
        return (a + jnp.tile(values[0], 16), b.at[:6].set(places[1]).at[6:46].add(pairs[1])), pairs

    return lax.scan(body, (x, x * 2), None, length=4)


def loop_until_small(x):
    def go_on(c):
        return jnp.sort(jnp.abs(c[0]))[-2] > 0.01

    return lax.while_loop(go_on, lambda c: (jnp.cumsum(c[0])[::-1] / N, c[1] + 1), (x, 0))


def branch_in_loop(x):
    def body(i, c):
        return lax.switch(
            i, [lambda c: jnp.sort(c), lambda c: jnp.fft.fft(c).real / N, lambda c: -c], c
        )

    return lax.fori_loop(0, 4, body, x)


def nested_loops(x):
    def outer(c, r):
        return lax.fori_loop(0, 3, lambda i, c: jnp.sort(c + i)[::-1] * r, c), jnp.cumsum(c)

    return lax.scan(outer, x, jnp.asarray(ROWS)[:3])


def hand_over_results(x):
    """The result of one call is an operand of the next, the carry and an output."""

    def body(c, _):
        s = jnp.sort(c)
        t = jnp.cumsum(s)
        return t * 0.1, (s, t, t)

    return lax.scan(body, x, None, length=3)


@functools.cache
def user_kernel():
    from numba import cuda  # where it is broken, the other programs run

    @cuda.jit
    def halved(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * 0.5 + 1

    return jax.kernel(halved, out=lambda x: x, grid=(3, 32), cpu=lambda x: x * np.float32(0.5) + 1)


def call_user_kernel(x):
    halved = user_kernel()
    return lax.fori_loop(0, 3, lambda i, c: halved(jnp.roll(c, 1)) * 0.9, x)


PROGRAMS = {
    "sorts": (sorts, 5),
    "transforms": (transforms, 8),
    "running": (cumulative_scan, 5),
    "whole numbers": (whole_numbers, 3),
    "parts": (slice_operands, 8),
    "until": (loop_until_small, 3),
    "ways": (branch_in_loop, 2),
    "nested": (nested_loops, 12),
    "handed on": (hand_over_results, 6),
    "a user's kernel": (call_user_kernel, 3),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_captured_library_calls_in_loops_run_without_python(gpu, name):
    f, least = PROGRAMS[name]
    expected = jax.jit(f)(X)
    x = jax.device_put(X, gpu)
    g = jax.jit(f)
    jax.block_until_ready(g(x))
    calls = getattr(driver_of(gpu), "calls", None)  # a fake one counts
    for there in (x, jax.device_put(X.copy(), gpu)):
        before = Counter(calls)
        actual = jax.block_until_ready(g(there))
        if calls is not None:
            new_calls = Counter(calls) - before
            assert new_calls["graph"] >= least
            assert (
                not new_calls["call"]
                + new_calls["capture"]
                + new_calls["load"]
                + new_calls["upload"]
            )
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), actual, expected
        )
    np.testing.assert_array_equal(x, X)
    assert "captured as a CUDA graph" in str(jax.inspect(g)(x))


def plan_of(f, *arguments):
    there = [jax.device_put(a, jax.devices("gpu")[0]) for a in arguments]
    text = str(jax.inspect(jax.jit(f))(*there))
    return text[text.index("-- plan --") : text.index("-- plan --") + 2000]


def factors(a):
    return lax.fori_loop(0, 3, lambda i, c: c * jnp.linalg.svdvals(c + i), a)


A = np.eye(112, dtype="f4")  # more rows than a block of threads does


def test_failed_capture_reports_the_reason(fake, monkeypatch):
    def sort_and_factor(a):
        return lax.fori_loop(0, 2, lambda i, c: jnp.linalg.svdvals(jnp.sort(c)) + c, a)

    expected = [np.asarray(jax.jit(f)(A)) for f in (factors, sort_and_factor)]
    for f, value in zip((factors, sort_and_factor), expected, strict=True):
        text = plan_of(f, A)
        assert "by Python, since svd cannot be captured as a CUDA graph" in text
        assert "calling cuSOLVER API during stream capture is currently unsupported" in text
        assert "captured as a CUDA graph;" not in text  # none is held for nothing
        np.testing.assert_allclose(
            jax.jit(f)(jax.device_put(A, jax.devices("gpu")[0])), value, rtol=1e-4, atol=1e-6
        )
    assert not fake.graphs
    with monkeypatch.context() as patched:
        patched.setattr(device_captures, "LARGEST", 100)
        # What the body makes and reads itself is not copied.
        own = lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sort(c * 2)[::-1] / 2, x)  # noqa: E731
        assert "by machine code" in plan_of(own, X)
        assert "sort moves 384 bytes, too many to copy" in plan_of(sorts, X)
    monkeypatch.setattr(device_captures, "HELD", 100)
    assert "sort takes 768 bytes, too many to hold" in plan_of(sorts, X)


def test_no_memory_for_a_graph(fake, monkeypatch):
    def refuse(*_):
        raise MemoryError("no more")

    monkeypatch.setattr(fake, "capture", refuse)
    assert "cannot be captured as a CUDA graph (no more)" in plan_of(sorts, X)
    x = jax.device_put(X, jax.devices("gpu")[0])
    np.testing.assert_allclose(jax.jit(sorts)(x)[0], jax.jit(sorts)(X)[0], rtol=1e-5)


def test_host_step_is_named(fake):
    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: jnp.linalg.eigvals(c).real * c, x)

    assert "by Python, since eig is done by the processor" in plan_of(f, A[:8, :8])


def test_graphs_are_freed_with_their_plan(fake):
    x = jax.device_put(X, jax.devices("gpu")[0])
    f = jax.jit(lambda x: sorts(x))
    used = fake.counts["used"]
    np.asarray(f(x)[0])
    assert len(fake.graphs) == 1
    assert jax.device_memory_stats(jax.devices("gpu")[0])
    f.clear_cache()
    del f
    jax.clear_caches()
    gc.collect()
    assert not fake.graphs
    assert fake.counts["used"] <= used + 4096


def test_concurrent_threads_use_separate_graphs(fake):
    """All launches of a graph share its memory."""
    gpu = jax.devices("gpu")[0]
    g = jax.jit(sorts)
    starts = [X * k for k in range(1, 5)]
    expected = [np.asarray(jax.jit(sorts)(x)[1][1]) for x in starts]
    there = [jax.device_put(x, gpu) for x in starts]
    actual = [None] * 4

    def run(k):
        for _ in range(3):
            actual[k] = np.asarray(g(there[k])[1][1])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_graph_that_fails_ends_the_loop(fake, monkeypatch):
    g = jax.jit(sorts)
    x = jax.device_put(X, jax.devices("gpu")[0])
    g(x)[0].block_until_ready()
    (graph,) = fake.graphs.values()
    launched = []

    def fail():
        launched.append(1)
        raise RuntimeError("an illegal memory access was encountered")

    monkeypatch.setattr(graph, "launch", fail)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        g(x)[0].block_until_ready()
    assert len(launched) == 1
    monkeypatch.undo()
    np.testing.assert_allclose(g(x)[0], jax.jit(sorts)(X)[0], rtol=1e-5)


class TestFakeGraphCapture:
    """Operations that a real GPU would refuse, or silently not repeat."""

    @pytest.fixture
    def there(self, fake):
        memory = fake.upload(np.arange(4, dtype="f4"))
        return fake.array(memory, 0, (4,), np.dtype("f4"), None)

    @pytest.mark.parametrize(
        ("why", "work"),
        [
            ("is capturing", lambda d, x: [x] if x[0] > 3 else [x + 1]),
            ("is capturing", lambda d, x: [x * x.max().item()]),
            ("is capturing", lambda d, x: [x[: int(x[1])]]),
            ("a wait", lambda d, x: d.synchronize()),
            ("a wait", lambda d, x: d.wait(d.event())),
            ("memory beside", lambda d, x: d.alloc(8)),
            ("memory beside", lambda d, x: d.upload(np.zeros(3))),
            ("giving memory back", lambda d, x: d.free_all()),
            ("loading", lambda d, x: d.load("", "")),
            ("cuBLAS", lambda d, x: [d.xp.matmul(x, x)]),
            ("cuSOLVER", lambda d, x: [d.xp.linalg.cholesky(x[:, None] * x)]),
        ],
    )
    def test_operations_that_cannot_be_captured(self, fake, there, why, work):
        with pytest.raises(NotCaptured, match=why):
            fake.capture(lambda: work(fake, there) if self.second() else [])
        assert fake.capture(lambda: [there + 1]).handle  # the next one is as if nothing had been

    def second(self):
        self.count = getattr(self, "count", 0) + 1
        return self.count > 1

    def test_another_order_of_calls(self, fake, there):
        xp, turns = fake.xp, iter(range(9))
        graph = fake.capture(lambda: [xp.sort(there) if next(turns) < 2 else xp.flip(there)])
        with pytest.raises(AssertionError, match="differs from the captured launches"):
            graph.launch()

    def test_capture_computes_no_values(self, fake, there):
        graph = fake.capture(lambda: [there + 1])
        assert not (graph.value[0] == there + 1).any()
        graph.launch()
        assert (graph.value[0] == there + 1).all()
        there[...] = 7
        graph.launch()
        assert (graph.value[0] == 8).all()
