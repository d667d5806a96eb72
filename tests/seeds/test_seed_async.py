"""Seed program 22: a large product returns immediately; only reading its values waits."""

from time import perf_counter

import numpy as np

import accnp.numpy as jnp


def shortest(call, repeats: int = 7) -> float:
    """Return the shortest of several calls in seconds, since a busy machine only adds time."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        pending = call()
        times.append(perf_counter() - start)
        np.asarray(pending)
    return min(times)


def test_dot_can_be_used_before_it_is_done(ours):
    run = ours("p22_async")
    assert run.error is None
    total, x = run.names["total"], run.names["jnparr"]
    assert total.shape == (1000, 1000)
    assert total.dtype == np.float32
    a = np.asarray(x)
    np.testing.assert_allclose(np.asarray(total), a @ a + 3, rtol=1e-5)


def test_dot_returns_before_it_is_done(ours):
    x = ours("p22_async").names["jnparr"]
    jnp.dot(x, x).block_until_ready()
    call = shortest(lambda: jnp.dot(x, x))
    waited = shortest(lambda: jnp.dot(x, x).block_until_ready())
    looked_at = shortest(lambda: np.asarray(jnp.dot(x, x)))
    assert call < waited / 4
    assert call < looked_at / 4


def test_dot_runs_in_the_background(ours):
    x = ours("p22_async").names["jnparr"]
    product = jnp.dot(x, x)
    deadline = perf_counter() + 20
    while not product.is_ready() and perf_counter() < deadline:
        pass  # nothing here asks for the value
    assert product.is_ready()


def test_jitted_sum(ours, theirs):
    run = ours("p22_sum")
    assert run.error is None
    assert run.output == theirs("p22_sum").output
