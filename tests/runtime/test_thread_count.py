"""One number of threads applies to kernels, tasks on the stream and BLAS, and results do not depend
on it.
"""

import threading
import time
import weakref

import numpy as np
import pytest
import threadpoolctl

import accnp as jnp
from accnp import blas_threads as blas
from accnp import engine
from accnp.config import config, default_threads
from accnp.runtime import stream, threads
from accnp.runtime.threads import parallel_calls
from benchmarks.harness import fresh_process


def blas_threads():
    return {
        library["num_threads"]
        for library in threadpoolctl.threadpool_info()
        if library["user_api"] == "blas"
    }


def helpers_seconds():
    """Return the CPU time used by the helper threads."""
    return sum(
        time.clock_gettime(time.pthread_getcpuclockid(t.ident))
        for t in threading.enumerate()
        if t.name.startswith("accnp-helper") and t.ident is not None
    )


def work(x):
    return jnp.sin(x) * jnp.cos(x) + jnp.sin(2 * x) * x


def test_one_thread_means_no_helpers():
    x = jnp.linspace(0.0, 1.0, 1_000_000).block_until_ready()
    with jnp.threads(2):
        work(x).block_until_ready()  # helpers exist, the kernel is compiled
    while threads._thread_pool.asleep < threads._thread_pool.helpers:  # they poll for a while
        time.sleep(0.001)
    before = helpers_seconds()
    with jnp.threads(1):
        for _ in range(5):
            work(x).block_until_ready()
    assert helpers_seconds() - before < 0.002


def test_sleeping_helpers_are_woken():
    x = jnp.linspace(0.0, 1.0, 1_000_000).block_until_ready()
    with jnp.threads(2):
        work(x).block_until_ready()
        before = helpers_seconds()
        for _ in range(1000):  # others may want the processor, too
            time.sleep(0.005)
            work(x).block_until_ready()
            if helpers_seconds() - before > 0.002:
                break
    assert helpers_seconds() - before > 0.002


def test_thread_count_is_passed_to_stream_tasks(monkeypatch):
    seen = []
    monkeypatch.setattr(engine, "ASYNC", 0)
    run = engine.execute.run

    def watching(*args):
        seen.append(config.threads)
        return run(*args)

    monkeypatch.setattr(engine.execute, "run", watching)
    outer = config.threads
    f = jnp.jit(lambda x: x + 1)
    x = jnp.arange(8.0).block_until_ready()
    f(x).block_until_ready()
    seen.clear()
    gate = threading.Event()
    stream.default_stream().submit(gate.wait)
    with jnp.threads(outer + 5):
        y = f(x)
    assert not y.is_ready()
    gate.set()
    y.block_until_ready()
    assert seen == [outer + 5]
    assert config.threads == outer


def test_blas_thread_count_follows_and_is_restored():
    n = default_threads()
    outside = blas_threads()
    with jnp.threads(1):
        assert blas_threads() == {1}
        with jnp.threads(n + 1):
            assert config.threads == n + 1
        assert blas_threads() == {1}
    assert blas_threads() == ({n} if outside <= {n} else outside)


def test_stream_tasks_restore_the_blas_thread_count():
    usual, outside = default_threads(), blas_threads()
    for number in (1, usual + 1):
        with jnp.threads(number):
            task = stream.default_stream().submit(blas.follow)
            while not task.done():  # waiting for it would run it here
                time.sleep(0.001)
            time.sleep(0.01)  # the worker leaves the scope of the task
            assert blas_threads() == {number}
        assert blas_threads() == ({usual} if outside <= {usual} else outside)


def test_environment_reaches_blas_before_the_first_library_call():
    code = """
import numpy as np, threadpoolctl
import accnp as jnp
assert jnp.config.threads == 1
np.asarray(jnp.linalg.eigvals(np.eye(3, dtype=np.float32)))
np.asarray(jnp.linalg.svd(np.eye(3, dtype=np.float32))[1])
found = [x["num_threads"] for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"]
assert found and set(found) == {1}, found
print(1)
"""
    assert fresh_process(code, ACCNP_THREADS="1") == 1


def test_blas_of_scipy_loaded_later_is_limited():
    code = """
import numpy as np, threadpoolctl
import accnp as jnp
with jnp.threads(1):
    for _ in range(2):  # the first of these calls loads SciPy
        np.asarray(jnp.linalg.eigvals(np.eye(3)))
    found = [x["num_threads"] for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"]
    assert found and set(found) == {1}, found
with jnp.threads(3):
    found = [x["num_threads"] for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"]
    assert set(found) == {3}, found
print(1)
"""
    assert fresh_process(code) == 1


def test_default_thread_count_loads_no_blas_controller():
    code = """
import sys
import accnp as jnp, numpy as np
np.asarray(jnp.linalg.eigvals(np.eye(3, dtype=np.float32)))
print(int("threadpoolctl" in sys.modules))
"""
    assert fresh_process(code) == 0


def test_calls_in_parts():
    done = []
    parallel_calls(lambda a, b: done.append((a, b)), 10, 3)
    assert sorted(done) == [(0, 3), (3, 6), (6, 9), (9, 10)]
    parallel_calls(lambda a, b: done.append((a, b)), 0, 3)
    assert len(done) == 4

    def fails(a, b):
        raise KeyError(a)

    with jnp.threads(2), pytest.raises(KeyError):
        parallel_calls(fails, 10, 3)


def test_partitioned_calls_do_not_leak():
    class Thing:
        pass

    thing = Thing()
    gone = weakref.ref(thing)
    parallel_calls(lambda a, b, thing=thing: None, 4, 1)
    del thing
    assert gone() is None


RESULTS = {
    "map": work,
    "fold": lambda x: (x * x).sum(),
    "columns": lambda x: x.reshape(1000, -1).sum(0),
    "sort": jnp.sort,
    "cumsum": jnp.cumsum,
    "fft": lambda x: jnp.fft.rfft(x.reshape(1000, -1)),
    "product": lambda x: x.reshape(1000, -1)[:, :400].T @ x.reshape(1000, -1),
    "svd": lambda x: jnp.linalg.svd(x.reshape(1000, -1)[:40, :30])[1],
    "random": lambda x: jnp.random.normal(jnp.random.key(0), x.shape),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_do_not_depend_on_thread_count(name):
    x = jnp.asarray(np.random.default_rng(0).standard_normal(1_000_000, np.float32))
    results = []
    for n in (1, 2, 5):
        with jnp.threads(n):
            results.append(np.asarray(RESULTS[name](x)).tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize("bad", [0, -2, "none"])
def test_invalid_thread_counts_are_rejected(bad):
    with pytest.raises(ValueError, match="threads cannot be set"), jnp.threads(bad):
        pass
    with pytest.raises(ValueError, match="threads cannot be set"):
        config.update("threads", bad)
