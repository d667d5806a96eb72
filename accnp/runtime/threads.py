"""Helper threads inside one kernel: a kernel, its arguments and a range come in; 0..n gets done.

All threads call the same machine code with the same counter and take chunks from it, so there is
one foreign call per thread. The caller works too and never waits for a helper that has not begun.
"""

from __future__ import annotations

import ctypes
import os
import threading
from _thread import allocate_lock
from collections import deque

from accnp.config import config
from accnp.runtime.compile import Kernel, counters


class _Job:
    """One kernel launch that helpers may join; a ticket is the right of one helper to do so."""

    __slots__ = ("argv", "chunk", "counter", "keep", "kernel", "n", "started", "tickets")

    def __init__(
        self, kernel: Kernel, argv: int, keep: object, n: int, chunk: int, tickets: int
    ) -> None:
        self.kernel = kernel
        self.argv = argv
        self.keep = (keep, shared := ctypes.c_int64(0))
        self.counter = ctypes.addressof(shared)
        self.n = n
        self.chunk = chunk
        self.tickets = [None] * tickets
        self.started: list = []

    def work(self) -> None:
        self.kernel.join(self.argv, self.counter, self.n, self.chunk)

    def help(self) -> None:
        """Join unless the caller took the tickets back."""
        inside = allocate_lock()
        inside.acquire()
        # The lock is shown before the ticket is taken, so the caller cannot miss it.
        self.started.append(inside)
        try:
            self.tickets.pop()
            self.work()
        except IndexError:
            pass
        finally:
            inside.release()

    def finish(self) -> None:
        """Take back the tickets nobody used and wait for the helpers that are inside."""
        while self.tickets:
            try:
                self.tickets.pop()
            except IndexError:
                break
        interrupt = None
        for inside in self.started:
            while True:
                try:
                    inside.acquire()
                except KeyboardInterrupt as error:
                    interrupt = error  # helpers still write to the arguments: wait on
                else:
                    break
        if interrupt is not None:
            raise interrupt


class _Helper:
    """A daemon thread that sleeps on a lock until it is given a job."""

    __slots__ = ("job", "wake")

    def __init__(self, number: int) -> None:
        self.job: _Job | None = None
        self.wake = allocate_lock()
        self.wake.acquire()
        threading.Thread(target=self._loop, name=f"accnp-helper-{number}", daemon=True).start()

    def give(self, job: _Job) -> None:
        self.job = job
        self.wake.release()

    def _loop(self) -> None:
        while True:
            self.wake.acquire()
            job = self.job
            if job is not None:
                job.help()
            self.job = job = None  # argument blocks must not outlive their launch
            _idle.append(self)


_idle: deque[_Helper] = deque()
_count = 0
_lock = threading.Lock()


def _helpers(wanted: int) -> list[_Helper]:
    """Idle helpers, at most as many as wanted; new ones are started while there are too few."""
    global _count
    if _count < config.threads - 1:
        with _lock:
            while _count < config.threads - 1:
                _count += 1
                _idle.append(_Helper(_count))
    found = []
    while len(found) < wanted:
        try:
            found.append(_idle.pop())
        except IndexError:
            break
    return found


def parallel_run(kernel: Kernel, argv: ctypes.Array, n: int, chunk: int) -> None:
    """Do 0..n in chunks on this thread and on idle helpers."""
    wanted = min(config.threads, -(-n // chunk)) - 1
    helpers = _helpers(wanted) if wanted > 0 else ()
    if not helpers:
        kernel.run(argv, n, chunk)
        return
    counters.launched()
    job = _Job(kernel, ctypes.addressof(argv), argv, n, chunk, len(helpers))
    for helper in helpers:
        helper.give(job)
    try:
        job.work()
    finally:
        job.finish()


def _forget() -> None:
    """A child process has none of its parent's threads."""
    global _count, _lock
    _idle.clear()
    _count = 0
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)
