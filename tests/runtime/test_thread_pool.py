"""Sharing a kernel among threads: partitions with a counter per part, short launches, and helper
threads that are preempted.
"""

import ctypes
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import accnp as jnp
from accnp._native import COMPILED
from accnp.compiler import kernel_cache
from accnp.config import threads as use_threads
from accnp.engine.steps import PARALLEL, WAKE_WORK
from accnp.runtime import threads
from accnp.runtime.threads import parallel_run
from tests.runtime import sources

LINUX = sys.platform == "linux"


def kernel():
    return kernel_cache.get_kernel(sources.elementwise(), "kernel", sources.SIGNATURE)


def helpers():
    return [t for t in threading.enumerate() if t.name.startswith("accnp-helper")]


@pytest.mark.parametrize("number", [2, 3, 5, 20])
def test_every_index_runs_for_any_partition(number):
    k = kernel()
    x = np.ones(5000, np.float32)
    with use_threads(number):
        for n, chunk in [
            (1, 1),
            (2, 1),
            (3, 1),
            (17, 1),
            (64, 64),
            (65, 64),
            (5000, 7),
            (999, 998),
        ]:
            out = np.zeros_like(x)
            parallel_run(k, [x.ctypes.data, out.ctypes.data], n, chunk)
            assert (out[:n] == 3).all()
            assert not out[n:].any()


def asleep():
    """Wait until no helper thread spins for work."""
    for _ in range(1000):
        if threads._thread_pool.asleep == threads._thread_pool.helpers:
            return True
        time.sleep(0.01)
    return False


def test_brief_launches_wake_helpers_where_many_follow_each_other():
    f = jnp.jit(lambda x: ((x * 2 + 1) * x - 3) * x)
    x = jnp.asarray(np.linspace(0, 1, 60_000, dtype=np.float32))
    with use_threads(2):
        expected = np.asarray(f(x))
        (kernel,) = jnp.inspect(f)(x).kernels
        assert PARALLEL <= kernel._work < WAKE_WORK
        assert asleep()
        f(x)
        assert threads._thread_pool.asleep == threads._thread_pool.helpers > 0
        woken = 0
        for _ in range(20_000):
            out = f(x)
            woken |= threads._thread_pool.asleep < threads._thread_pool.helpers
            if woken:
                break
        assert woken or os.cpu_count() == 1 or not COMPILED
        for _ in range(100):
            np.testing.assert_array_equal(np.asarray(f(x)), expected)
        np.testing.assert_array_equal(np.asarray(out), expected)


@pytest.mark.skipif(not LINUX, reason="the system has no such calls")
def test_preempted_helpers_do_not_block_launches():
    code = "while True: pass"
    others = [subprocess.Popen([sys.executable, "-c", code]) for _ in os.sched_getaffinity(0)]
    try:
        k = kernel()
        x = np.ones(200_000, np.float32)
        with use_threads(3):
            for _ in range(300):
                out = np.zeros_like(x)
                parallel_run(k, [x.ctypes.data, out.ctypes.data], len(x), 1000)
                assert (out == 3).all()
    finally:
        for other in others:
            other.kill()
            other.wait()


@pytest.mark.skipif(not LINUX or os.uname().machine != "x86_64", reason="numbers of calls")
def test_helpers_request_short_slices_and_keep_their_niceness():
    k = kernel()
    x = np.ones(100_000, np.float32)
    out = np.zeros_like(x)
    with use_threads(2):
        parallel_run(k, [x.ctypes.data, out.ctypes.data], len(x), 1000)
    ask = ctypes.CDLL(None).syscall
    mine = ctypes.create_string_buffer(56)
    assert ask(threads._CALLS["x86_64"][1], 0, mine, 56, 0) == 0
    for helper in helpers():
        attributes = ctypes.create_string_buffer(56)
        assert ask(threads._CALLS["x86_64"][1], helper.native_id or 0, attributes, 56, 0) == 0
        assert attributes.raw[4:20] == mine.raw[4:20]  # policy, flags, nice
        assert int.from_bytes(attributes.raw[24:32], "little") in (
            0,
            threads._TIME_SLICE,
        )  # 0: before 6.12


@pytest.mark.skipif(not COMPILED, reason="the fallback shares nothing in loops")
def test_loops_share_kernels_or_run_them_on_one_thread_after_a_stall():
    def sweep(_, pair):
        a, b = pair
        b = b.at[1:-1].set((a[:-2] + a[1:-1] + a[2:]) / 3)
        return b, a

    def run(steps):
        x = np.linspace(-1, 1, 60_000, dtype=np.float32)
        loop = jnp.jit(lambda a, b: jnp.lax.fori_loop(0, steps, sweep, (a, b)))
        return [np.asarray(y) for y in loop(x, np.sin(9 * x))]

    with use_threads(1):
        expected = run(4000)
    with use_threads(2):
        run(1)  # starts helpers
        for _ in range(50):  # on a busy machine, no helper may get a core during a whole run
            before = threads._thread_pool.loop_launches
            actual = run(4000)
            alone, shared = np.subtract(threads._thread_pool.loop_launches, before)
            for a, b in zip(actual, expected, strict=True):
                assert a.tobytes() == b.tobytes()
            assert alone + shared == 4000
            if shared:
                break
    assert shared >= 1  # each stall makes 128 launches or more run on one thread


@pytest.mark.skipif(not COMPILED, reason="the fallback shares nothing in loops")
def test_long_launches_of_loops_never_stall():
    """The calling thread may wait for a helper's last chunk and still be faster."""
    f = jnp.jit(
        lambda x: jnp.lax.fori_loop(0, 100, lambda _, y: jnp.sin(jnp.exp(jnp.tanh(y.T))), x)
    )
    x = jnp.ones((500, 500))
    code = "while True: pass"
    with use_threads(2):
        expected = np.asarray(f(x))
        other = subprocess.Popen([sys.executable, "-c", code])
        try:
            before = threads._thread_pool.loop_launches
            actual = f(x).block_until_ready()
            alone, shared = np.subtract(threads._thread_pool.loop_launches, before)
        finally:
            other.kill()
            other.wait()
    assert np.asarray(actual).tobytes() == expected.tobytes()
    assert alone == 0
    assert shared == 100


@pytest.mark.skipif(not COMPILED, reason="the fallback shares nothing in loops")
def test_launches_outside_of_loops_do_not_back_off():
    """After a stall, at least the next 128 launches of loops run on one thread.

    Other launches counted too, which made a training step with convolutions take 1.2 times as long.
    """
    f = jnp.jit(lambda x: jnp.sin(jnp.exp(jnp.tanh(x))).sum(axis=1))
    x = jnp.ones((1000, 2000))
    with use_threads(2):
        f(x).block_until_ready()
        before = threads._thread_pool.loop_launches
        for _ in range(10):
            f(x).block_until_ready()
        assert threads._thread_pool.loop_launches == before
