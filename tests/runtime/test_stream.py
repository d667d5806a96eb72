"""Streams and threads: order, futures, work stealing, errors, bounds, fork, shared chunks."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from runtime import sources

from accnp._native import COMPILED
from accnp.compiler import kernel_cache
from accnp.config import threads as use_threads
from accnp.runtime import stream as streams
from accnp.runtime import threads
from accnp.runtime.stream import Stream
from accnp.runtime.threads import parallel_run


def blocked(stream: Stream) -> threading.Event:
    """Keep the worker busy until the event is set; return the event once the worker is busy."""
    gate, begun = threading.Event(), threading.Event()
    stream.submit(lambda: (begun.set(), gate.wait(30)))
    assert begun.wait(30)
    return gate


def test_order_and_values():
    stream = Stream()
    seen = []
    tasks = [stream.submit(lambda i=i: (seen.append(i), i * i)[1]) for i in range(50)]
    assert tasks[-1].wait() == 49 * 49
    assert seen == list(range(50))
    assert [t.wait() for t in tasks] == [i * i for i in range(50)]
    stream.synchronize()
    assert stream.idle


def test_work_runs_without_a_wait():
    stream = Stream()
    ended = threading.Event()
    task = stream.submit(ended.set)
    assert ended.wait(30)
    stream.synchronize()
    assert task.done()


def test_submit_returns_before_the_work():
    stream = Stream()
    gate = blocked(stream)
    task = stream.submit(lambda: 5)
    assert not task.done()
    assert not stream.idle
    gate.set()
    assert task.wait() == 5


def test_waiting_thread_runs_queued_tasks():
    stream = Stream()
    # The worker exists but is kept from the queue, so only the waiter can do the work.
    stream._worker = threading.current_thread()
    runners = []
    for _ in range(3):
        last = stream.submit(lambda: runners.append(threading.get_ident()))
    last.wait()
    assert runners == [threading.get_ident()] * 3


def test_waiting_thread_returns_after_its_own_task():
    stream = Stream()
    stream._worker = threading.current_thread()
    first = stream.submit(lambda: 1)
    second = stream.submit(lambda: 2)
    assert first.wait() == 1
    assert not second.done()
    stream.synchronize()
    assert second.done()


def test_many_waiters():
    stream = Stream()
    gate = blocked(stream)
    task = stream.submit(lambda: 7)
    results = []
    waiters = [threading.Thread(target=lambda: results.append(task.wait())) for _ in range(5)]
    for thread in waiters:
        thread.start()
    gate.set()
    for thread in waiters:
        thread.join(30)
    assert results == [7] * 5


def test_errors_reach_dependents_only():
    stream = Stream()

    def fail():
        raise ZeroDivisionError("first")

    bad = stream.submit(fail)
    after = stream.submit(lambda: 1, deps=[bad])
    far = stream.submit(lambda: 2, deps=[after])
    free = stream.submit(lambda: 3)
    assert free.wait() == 3
    for task in (far, bad, after, bad):
        with pytest.raises(ZeroDivisionError, match="first"):
            task.wait()
    assert bad.done()
    assert bad.error is far.error
    stream.synchronize()  # the error has been seen


def test_synchronize_raises_the_first_unseen_error_once():
    stream = Stream()

    def fail(text):
        raise ValueError(text)

    stream.submit(lambda: fail("one"))
    stream.submit(lambda: fail("two"))
    with pytest.raises(ValueError, match="one"):
        stream.synchronize()
    stream.synchronize()


def test_tracebacks_do_not_grow():
    stream = Stream()
    task = stream.submit(lambda: 1 / 0)
    lengths = []
    for _ in range(3):
        with pytest.raises(ZeroDivisionError) as caught:
            task.wait()
        lengths.append(len(caught.traceback))
    assert len(set(lengths)) == 1


def test_dependence_on_another_stream():
    one, two = Stream("one"), Stream("two")
    gate = blocked(one)
    first = one.submit(lambda: 1)
    second = two.submit(lambda: first.value + 1, deps=[first])
    gate.set()
    assert second.wait() == 2


def test_the_queue_is_bounded():
    stream = Stream()
    stream._worker = threading.current_thread()
    longest = 0
    for _ in range(1000):
        stream.submit(lambda: None)
        longest = max(longest, len(stream._queue))
    assert longest <= streams.MAX_QUEUED
    for _ in range(10):
        stream.submit(lambda: None, nbytes=streams.MAX_QUEUED_BYTES // 2)
        assert stream._bytes <= streams.MAX_QUEUED_BYTES
    stream.synchronize()
    assert stream._bytes == 0


def test_a_task_may_wait_for_later_work_but_not_for_itself():
    stream = Stream()
    assert stream.submit(lambda: stream.submit(lambda: 4).wait() + 1).wait() == 5
    mine = []
    begun = threading.Event()

    def own():
        begun.wait(30)
        return mine[0].wait()

    mine.append(stream.submit(own))
    begun.set()
    with pytest.raises(RuntimeError, match="wait for itself"):
        mine[0].wait()


def test_many_threads_submit_and_wait():
    stream = Stream()
    results = []

    def work(base):
        for i in range(100):
            results.append(stream.submit(lambda v=base + i: v).wait() == base + i)

    workers = [threading.Thread(target=work, args=(1000 * k,)) for k in range(4)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join(60)
    assert results == [True] * 400
    assert stream.idle


def test_finished_task_releases_its_references():
    stream = Stream()

    class Held:
        pass

    import weakref

    referenced = Held()
    watch = weakref.ref(referenced)
    task = stream.submit(lambda h=referenced: None)
    del referenced
    task.wait()
    deadline = time.monotonic() + 30
    while watch() is not None and time.monotonic() < deadline:
        time.sleep(0.001)
    assert watch() is None


@pytest.mark.parametrize("count", [1, 2, 5])
def test_parallel_run_covers_the_range_once(count):
    source = "def bump(lo, hi, o):\n for i in range(lo, hi):\n  o[i] = o[i] + 1\n"
    k = kernel_cache.get_kernel(source, "bump", ("i4*",))
    with use_threads(count):
        for n, chunk in [(1, 1), (10, 3), (100_000, 1000), (100_001, 64)]:
            out = np.zeros(n + 1, np.int32)
            parallel_run(k, [out.ctypes.data], n, chunk)
            assert (out[:-1] == 1).all()
            assert out[-1] == 0


def test_parallel_run_from_several_threads():
    k = kernel_cache.get_kernel(sources.elementwise(), "kernel", sources.SIGNATURE)
    wrong = []

    def work(seed):
        x = np.full(20_000, seed, np.float32)
        for _ in range(50):
            out = np.zeros_like(x)
            parallel_run(k, [x.ctypes.data, out.ctypes.data], len(x), 512)
            if not (out == seed * seed + 2 * seed).all():
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(s,)) for s in range(1, 4)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join(60)
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_computes():
    stream = streams.default_stream()
    stream.submit(lambda: None).wait()
    k = kernel_cache.get_kernel(sources.elementwise(), "kernel", sources.SIGNATURE)
    x = np.ones(10_000, np.float32)
    out = np.zeros_like(x)
    argv = [x.ctypes.data, out.ctypes.data]
    with use_threads(2):
        parallel_run(k, argv, len(x), 100)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            out[:] = 0
            with use_threads(2):
                stream.submit(lambda: parallel_run(k, argv, len(x), 100)).wait()
            status = 0 if (out == 3).all() else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert stream.submit(lambda: 8).wait() == 8


def test_helpers_spin_only_briefly():
    k = kernel_cache.get_kernel(sources.elementwise(), "kernel", sources.SIGNATURE)
    x = np.ones(100_000, np.float32)
    out = np.zeros_like(x)
    with use_threads(2):
        parallel_run(k, [x.ctypes.data, out.ctypes.data], len(x), 1000)
        time.sleep(0.05)
        before = time.process_time()
        time.sleep(0.3)
        assert time.process_time() - before < 0.1
        assert threads._thread_pool.asleep == threads._thread_pool.helpers > 0


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system has no such sets")
@pytest.mark.skipif(not COMPILED, reason="the fallback leaves threads to the system's scheduler")
def test_helpers_avoid_the_cpu_of_the_caller():
    k = kernel_cache.get_kernel(sources.elementwise(), "kernel", sources.SIGNATURE)
    x = np.ones(100_000, np.float32)
    out = np.zeros_like(x)
    mine = os.sched_getaffinity(0)
    with use_threads(3):
        try:
            for cpu in mine:
                os.sched_setaffinity(0, {cpu})  # this thread's; then that of the process again
                parallel_run(k, [x.ctypes.data, out.ctypes.data], len(x), 1000)
        finally:
            os.sched_setaffinity(0, mine)
        parallel_run(k, [x.ctypes.data, out.ctypes.data], len(x), 1000)
    helpers = [t for t in threading.enumerate() if t.name.startswith("accnp-helper")]
    assert len(helpers) >= 2
    sets = [os.sched_getaffinity(t.native_id or 0) for t in helpers]
    assert all(helper <= mine and (len(helper) < len(mine) or len(mine) == 1) for helper in sets)
    assert (out == 3).all()


def test_interrupt_is_raised_in_the_thread_that_runs_the_task():
    """Ctrl-C while the main thread runs a task that another thread waits for, as eager loops do.

    The interrupt was stored as the task's error, and the loop went on.
    """
    stream = Stream()
    stream._worker = threading.current_thread()

    def interrupted():
        raise KeyboardInterrupt

    first = stream.submit(interrupted)
    dependent = stream.submit(lambda: 1, [first])
    last = stream.submit(lambda: 2)
    with pytest.raises(KeyboardInterrupt):
        last.wait()
    assert stream.idle is False
    assert last.wait() == 2  # the interrupt is over
    for task in (first, dependent):
        with pytest.raises(RuntimeError, match="was interrupted before it ended"):
            task.wait()
    stream.synchronize()


def test_an_interrupt_between_two_lines_loses_no_task(monkeypatch):
    stream = Stream()
    stream._worker = threading.current_thread()
    task = stream.submit(lambda: 1)
    monkeypatch.setattr(streams.Task, "_run", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        task.wait()
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="was interrupted"):
        task.wait()
    assert stream.idle
    assert stream.submit(lambda: 3).wait() == 3


LOOPS = {
    "eager": "for _ in range(10**7):\n    x = jnp.tanh(x * 1.1)",
    "of callbacks": """
def slow(x):
    time.sleep(0.01)
    return x
def body(i, x):
    return jnp.pure_callback(slow, x, x)
jnp.jit(lambda x: jnp.lax.fori_loop(0, 10**7, body, x))(x).block_until_ready()
""",
}


@pytest.mark.parametrize("what", LOOPS)
@pytest.mark.parametrize("after", [0.1, 1.0])
def test_control_c_ends_a_program(what, after):
    # Shells let what runs in the background ignore Control-C, and its children as well.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import accnp as jnp, time\nx = jnp.ones((300, 300))\nprint(1, flush=True)\n"
    )
    command = [sys.executable, "-c", program + LOOPS[what]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(after)
            process.send_signal(signal.SIGINT)
            _, text = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGINT, text.decode()
    assert text.decode().splitlines()[-1] == "KeyboardInterrupt"


def test_source_evaluated_at_exit_does_not_hide_an_interrupt():
    """Numba evaluates source at exit if another thread is compiling; the exit code was 1."""
    code = "import accnp, atexit; atexit.register(lambda: eval('1')); raise KeyboardInterrupt"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGINT, done.stderr


def test_a_second_interrupt_at_exit_ends_the_process():
    """The first interrupt is caught and the exit waits for the loop; the second must not tear down
    the interpreter under it."""
    code = (
        "import accnp, accnp.numpy as jnp, signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "f = accnp.jit(lambda x: accnp.lax.fori_loop(0, 2 * 10**9, lambda i, x: jnp.sin(x), x))\n"
        "y = f(jnp.ones(10))\n"
        "try:\n"
        "    print('begun', flush=True)\n"
        "    time.sleep(60)\n"  # an interrupt of a wait for the loop would stop it
        "except KeyboardInterrupt:\n"
        "    print('caught', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            for word, after in ((b"begun", 1.0), (b"caught", 0.3)):  # the loop is compiled first
                assert process.stdout.readline().strip() == word
                time.sleep(after)
                process.send_signal(signal.SIGINT)
            process.wait(20)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGINT
