"""Tasks on several threads, and the lock around LLVM: state after an interrupt."""

import gc
import threading
import weakref

import pytest

from accnp.compiler.llvm.lock import in_order
from accnp.compiler.worker_threads import in_parallel
from accnp.config import cache_dir, config, threads
from accnp.forks import Gate


class Thing:
    """An object that a task references in its frame."""


def test_interrupted_task_creates_no_reference_cycles():
    seen = []

    @in_order
    def task():
        thing = Thing()
        seen.append(weakref.ref(thing))
        raise KeyboardInterrupt

    gc.disable()
    try:
        caught = None
        try:
            in_parallel([task])
        except KeyboardInterrupt as error:
            caught = error  # a reference to the error must not keep the objects of its frames alive
        assert caught is not None
        assert seen[0]() is None
    finally:
        gc.enable()


def test_an_error_of_a_task_is_not_part_of_a_cycle():
    class Odd(Exception):
        pass

    def task():
        raise Odd

    gc.disable()
    try:
        seen = None
        try:
            in_parallel([task, lambda: None])
        except Odd as error:
            seen = weakref.ref(error)
        assert seen is not None
        assert seen() is None
    finally:
        gc.enable()


def test_closing_thread_does_not_wait_for_itself():
    gate = Gate()
    gate.__enter__()  # and an interrupt before the exit
    closed = threading.Event()

    def enter():
        with gate:
            closed.wait(60)

    other = threading.Thread(target=enter, daemon=True)
    other.start()
    while not gate._inside[other.ident or 0]:
        pass
    closer = threading.Timer(0.05, closed.set)
    closer.start()
    gate.close()
    assert closed.is_set()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_all_tasks_end_before_the_first_error_is_raised(count):
    done = []

    def bad():
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        in_parallel([bad, *[lambda: done.append(1)] * count])
    assert len(done) == count


def test_helper_threads_inherit_config_options(tmp_path):
    both = threading.Barrier(2, timeout=60)
    seen = {}

    def look():
        both.wait()  # one task for each thread
        seen[threading.get_ident()] = config.cache_dir

    with threads(2), cache_dir(str(tmp_path)):
        in_parallel([look, look])
    assert list(seen.values()) == [str(tmp_path)] * 2
