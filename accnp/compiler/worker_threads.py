"""Run tasks on several threads, for LLVM, which does not take the interpreter lock; and the gate
that threads enter before they call LLVM, so that none is inside LLVM when the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence

from accnp.config import config
from accnp.forks import Gate, at_fork, start_thread

__all__ = ["at_work", "in_parallel"]


class _AtWork(Gate):
    """The gate, which is closed at exit; then each thread does all work by itself."""

    listed = True  # whether the handler is registered with atexit

    def __enter__(self) -> None:
        if not self.listed:
            self.listed = True
            atexit.register(_at_exit)
        super().__enter__()


at_work = _AtWork()


def _at_exit() -> None:
    """Keep all other threads out of LLVM. Handlers that the program registered before this one run
    later and may still compute. If the program has called the handlers itself, which also removes
    them from atexit's list, it continues, and so do its threads.

    A process that a KeyboardInterrupt ends must die of the signal, so that a shell stops its script
    as well. CPython keeps a flag for this, which evaluating any source text resets, and compiling
    kernels in threads or at exit does that. Raising the exception once more sets the flag again.
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


def in_parallel(tasks: Sequence[Callable[[], object]]) -> None:
    """Run tasks on `config.threads` threads, of which this is one.

    The first error of any task is raised when all tasks have ended.
    """
    waiting = deque(tasks)
    errors: list[BaseException] = []
    switches = dict(vars(config))  # which `with cache_dir(...)` sets for this thread only

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

    others: list[threading.Thread] = []
    for i in range(0 if at_work.closed else min(config.threads, len(tasks)) - 1):
        thread = start_thread(work, f"accnp-compile-{i}")
        if thread is None:
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
