"""A few tasks at once, on threads of their own: for LLVM, which leaves the interpreter alone; and
the gate that such work passes, so that no thread is inside LLVM when the process takes it down.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from accnp.config import config
from accnp.forks import Gate, at_fork

__all__ = ["at_work", "in_parallel"]


class _AtWork(Gate):
    """The gate, closed at exit: `closed` says that this thread has to do all work by itself."""

    listed = True  # among what is called at exit

    def __enter__(self) -> None:
        if not self.listed:
            self.listed = True
            atexit.register(_at_exit)
        super().__enter__()


at_work = _AtWork()


def _at_exit() -> None:
    """No other thread is inside LLVM from here on: handlers of programs that were registered before
    these may still compute. Where the program called the handlers itself, which drops them from the
    list, it goes on, and so do its threads.

    A program that an interrupt ended has to die of the signal, for a shell to stop its script as
    well. CPython keeps in one flag that it does, which any text evaluated since has taken back,
    as compilations do in threads and at exit: that is set again, the way it was set at first.
    """
    if threading.main_thread().is_alive():
        at_work.listed = False
        return
    at_work.close()
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        with contextlib.suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")


atexit.register(_at_exit)
at_fork(at_work.reset)


def in_parallel(tasks: Sequence[Callable[[], Any]]) -> None:
    """Run tasks on this thread and on others, as many as `config.threads` in all.

    The first error of any task is raised after all have ended.
    """
    waiting = deque(tasks)
    errors: list[BaseException] = []
    switches = dict(vars(config))  # as `with cache_dir(...)` may have set them, in this thread only

    def work() -> None:
        vars(config).update(switches)
        while True:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            try:
                task()
            except BaseException as error:
                errors.append(error)

    others = []
    for i in range(0 if at_work.closed else min(config.threads, len(tasks)) - 1):
        thread = threading.Thread(target=work, name=f"accnp-compile-{i}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter ends
            break
        others.append(thread)
    work()
    for thread in others:
        thread.join()
    try:
        if errors:
            raise errors[0]
    finally:
        errors.clear()  # the error's traceback refers to this frame
