"""Lifetimes of values in cached jitted calls, which run in machine code: cleared caches,
closed-over values, threads and forked processes.
"""

import copy
import gc
import math
import os
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from api.jit.short_calls import X, call_repeatedly

import accnp as jnp
from accnp import config, jit, random
from accnp.api.jit import jit as jit_module
from accnp.runtime import buffer as pool


def test_clearing_caches_traces_again():
    calls = []
    f = jit(lambda x: (calls.append(1), x + 1)[1])
    call_repeatedly(f, jnp.asarray(X))
    jnp.clear_caches()
    call_repeatedly(f, jnp.asarray(X))
    f.clear_cache()
    call_repeatedly(f, jnp.asarray(X))
    assert len(calls) == 3


def test_closed_over_arrays_live_as_long_as_the_function():
    def make_function(w):
        return jit(lambda x: (x * w).sum(axis=1))

    f = make_function(jnp.asarray(X) * 3)
    x = jnp.asarray(X)
    call_repeatedly(f, x)
    gc.collect()
    np.testing.assert_array_equal(np.asarray(f(x)), (X * X * 3).sum(1))


def test_functions_are_freed_and_created_again():
    def double(x):
        return x * 2.0

    f = jit(double)
    x = jnp.asarray(X)
    call_repeatedly(f, x)
    np.testing.assert_array_equal(np.asarray(call_repeatedly(copy.copy(f), x)), X * 2)
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(np.asarray(x), X)


def test_copies_and_pickles_drop_traces():
    x = jnp.asarray(X)
    f = jit(lambda x: x * 2.0)
    call_repeatedly(f, x)
    np.testing.assert_array_equal(np.asarray(call_repeatedly(copy.deepcopy(f), x)), X * 2)
    g = jit(math.prod)
    call_repeatedly(g, x[0])
    again = pickle.loads(pickle.dumps(g))
    assert float(call_repeatedly(again, x[0])) == float(g(x[0]))
    with pytest.raises(TypeError):
        f()


def test_buffers_go_back_to_the_pool():
    f = jit(lambda x: (x + 1, x.sum()))
    for n in (3, 5000, 400_000):
        x = jnp.ones(n)
        call_repeatedly(f, x)
        before = pool.pool_stats()
        for _ in range(50):
            f(x)
        after = pool.pool_stats()
        assert after["live_bytes"] == before["live_bytes"]
        assert after["allocations"] == before["allocations"]
        assert after["reuses"] >= before["reuses"] + 100
    views = []
    for _ in range(30):  # memory of an exported view is not reused
        views.append(np.asarray(f(jnp.full(3, float(len(views))))[0]))
    assert [v[0] for v in views] == [k + 1.0 for k in range(30)]


def test_threads_call_at_the_same_time():
    f = jit(lambda x, y: (jnp.tanh(x) * y).sum(axis=0))
    key = random.PRNGKey(0)
    inputs = [random.normal(random.fold_in(key, k), (300, 200)) for k in range(4)]
    expected = [np.asarray(f(x, x)) for x in inputs]
    wrong = []

    def work(k):
        for _ in range(200):
            if not np.array_equal(np.asarray(f(inputs[k], inputs[k])), expected[k]):
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


def test_clearing_caches_frees_closed_over_values():
    box = [jnp.ones(1000) * 3]
    closed = weakref.ref(box[0].block_until_ready()._node)
    f = jit(lambda x: x + box[0])
    call_repeatedly(f, jnp.ones(1000))
    box.clear()
    jnp.clear_caches()
    gc.collect()
    assert closed() is None


def test_closed_over_containers_are_freed():
    f = jit(lambda t, k: {"a": t["a"] * k, "b": [t["b"], (t["a"] + k, None)]})
    trees = [{"a": jnp.ones(n), "b": jnp.zeros(n)} for n in (3, 4)]
    for t in trees:
        call_repeatedly(f, t, 2.0)
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
def test_traces_started_before_clear_caches_are_not_cached(known):
    """One thread looks up or traces a program while another thread clears the caches."""
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
            entry = original(self, *args)
            while meanwhile:
                meanwhile.pop()()
            return entry

        f._cache.clear()
        f(x)
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("filled", [False, True])
def test_calls_after_fork_and_at_exit(filled):
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
