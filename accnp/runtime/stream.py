"""Run functions asynchronously, in the order of their submission.

A stream takes functions and returns `Task`s (futures). It has one worker thread. A thread that
waits for a task that has not begun runs the queue itself up to that task, which avoids a hand-over
to another thread (70 us).

An interrupt (Ctrl-C) may arrive after any call on the main thread, which may be running tasks that
other threads submitted. The main thread raises it; tasks never store it, and no lock and no task is
lost, whichever line it interrupts. If it interrupts a wait, the task that is waited for is stopped
too, and the task that runs before it: otherwise, all later work would wait for them.
"""

# Streams, tasks and groups share their state, which is private to this module.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import weakref
from _thread import LockType, allocate_lock, get_ident
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

# Imported first: exit handlers run in reverse order, and the handler here may compile.
from accnp import blas_threads
from accnp._native import stop_thread
from accnp.compiler import worker_threads
from accnp.config import config, scope
from accnp.forks import at_fork, renewed, start_thread

MAX_QUEUED = 64
MAX_QUEUED_BYTES = 1 << 30


class Task:
    """A future: the result of a submitted function."""

    __slots__ = (
        "__weakref__", "_deps", "_done", "_fn", "_nbytes", "_stopped", "_stream", "_threads",
        "_traceback", "_waiters", "error", "value",
    )  # fmt: skip

    def __init__(
        self, stream: Stream, fn: Callable[[], Any], deps: Sequence[Task], nbytes: int
    ) -> None:
        self._stream = stream
        self._fn: Callable[[], Any] | None = fn
        self._deps = deps
        self._nbytes = nbytes
        self._stopped = False  # whether an exception has ended the wait for it
        self._done = False
        self._waiters: list[LockType] = []
        self._threads = config.threads  # of the submitting thread: another thread may run it
        self._traceback: TracebackType | None = None
        self.value: Any = None
        self.error: BaseException | None = None

    def done(self) -> bool:
        """Return whether the function has returned or raised."""
        return self._done

    def wait(self) -> object:
        """Return the function's result, or raise its error or that of a task it depends on."""
        if not self._done:
            self._stream._run_until(self)
        if self.error is not None:
            self._stream._clear_error(self.error)
            # The traceback of the work, without the frames of earlier waits.
            raise self.error.with_traceback(self._traceback)
        return self.value

    def _run(self) -> None:
        """Call the function; the thread holds the stream. An interrupt of this thread is raised."""
        fn, deps = self._fn, self._deps
        self._fn = None  # releases the objects of the function as soon as it has run
        self._deps = ()
        assert fn is not None
        try:
            if self._stopped:
                raise RuntimeError
            for task in deps:
                if not task._done:
                    task._stream._run_until(task)
                if task.error is not None:
                    self._fail(task.error, task._traceback)
                    break
            else:
                if self._threads == config.threads:
                    self.value = fn()
                else:
                    with scope("threads", self._threads):
                        self.value = fn()
        except BaseException as error:
            if not isinstance(error, Exception) and _is_main():
                raise
            if self._stopped:
                self._fail(
                    RuntimeError(_INTERRUPTED.format("an exception in a waiting thread")), None
                )
            else:
                self._fail(error, error.__traceback__)
                self._stream._record_error(error)
        finally:
            del fn, deps
        self._mark_done()

    def _mark_done(self) -> None:
        self._done = True
        while self._waiters:
            try:
                self._waiters.pop().release()
            except IndexError:
                break

    def _fail(self, error: BaseException, traceback: TracebackType | None) -> None:
        self.error = error
        self._traceback = traceback

    def __repr__(self) -> str:
        state = "pending" if not self._done else "failed" if self.error is not None else "done"
        return f"Task({state})"


class Stream:
    """Runs functions one after another in the order of submission."""

    def __init__(self, name: str = "cpu:0") -> None:
        self.name = name
        self.first_error: BaseException | None = None
        self._queue: deque[Task] = deque()
        self._task: Task | None = None  # that is running
        self._bytes = 0
        self._reset()
        _streams.add(self)

    def _reset(self) -> None:
        """Set the locks and the worker to those of a new process."""
        self._running: Any = threading.RLock()  # held by the thread that runs tasks
        self._owner = 0  # that thread, or 0
        self._sleep = allocate_lock()
        self._sleep.acquire()
        self._asleep = False
        self._worker: threading.Thread | None = None
        self._start = allocate_lock()
        self._stopping = threading.RLock()

    @property
    def idle(self) -> bool:
        """Whether nothing is queued or running."""
        return not self._queue and not self._owner

    def submit(self, fn: Callable[[], Any], deps: Sequence[Task] = (), nbytes: int = 0) -> Task:
        """Queue a function that holds `nbytes` of memory until it has run.

        If the queue is full, the caller runs tasks first, so that memory stays bounded.
        """
        task = Task(self, fn, deps, nbytes)
        self._queue.append(task)
        self._bytes += nbytes
        if worker_threads.at_work.closed:  # at exit, the worker may not enter LLVM
            self._run_until(task)
        elif self._worker is None:
            if not self._start_worker():  # for lack of memory
                self._run_until(task)
        elif self._asleep:
            self._wake()
        if len(self._queue) > MAX_QUEUED or self._bytes > MAX_QUEUED_BYTES:
            self._shorten_queue()
        return task

    def synchronize(self) -> None:
        """Wait for all tasks submitted so far; raises the first error not raised yet."""
        try:
            last: Task | None = self._queue[-1]
        except IndexError:
            last = self._task if self._owner != get_ident() else None
        if last is not None:
            self._run_until(last)
        elif self._owner != get_ident():  # a task may just have ended
            with self._running:
                pass
        error, self.first_error = self.first_error, None
        if error is not None:
            raise error

    def _record_error(self, error: BaseException) -> None:
        if self.first_error is None:
            self.first_error = error

    def _clear_error(self, error: BaseException) -> None:
        if self.first_error is error:
            self.first_error = None

    def _run_next(self) -> bool:
        """Run the oldest task; the caller holds `_running`. Returns False if there is none."""
        queue = self._queue
        if not queue:
            return False
        task = queue[0]
        outer = self._task  # if a task waits for a later one
        try:
            self._task = task
            queue.popleft()
            self._bytes = self._bytes - task._nbytes if queue else 0
            task._run()
        except BaseException as error:  # an interrupt of this thread
            if not task._done:
                task._fail(RuntimeError(_INTERRUPTED.format(type(error).__name__)), None)
            task._mark_done()
            raise
        finally:
            with self._stopping:
                self._task = outer
                if task._stopped:
                    stop_thread(0)
        return True

    def _stop(self, task: Task) -> None:
        """Stop a task, and the one that another thread is running now: an exception has ended the
        wait for the first."""
        with self._stopping:
            running, owner = self._task, self._owner
            if running is None or owner == get_ident():
                return
            task._stopped = running._stopped = True
            stop_thread(owner)

    def _run_until(self, task: Task) -> None:
        """Run the queue up to a task, or wait for the thread that does so."""
        if self._owner == get_ident():
            # A task waits for a later task of its own stream: run that now.
            while not task._done and self._run_next():
                pass
            if not task._done:
                raise RuntimeError("Task.wait: a task cannot wait for itself; return its value")
            return
        while not task._done:
            try:
                mine = self._running.acquire(False)
                if mine:
                    self._owner = get_ident()
                    while not task._done and self._run_next():
                        pass
            finally:
                # Also if an interrupt arrived before `mine` was set.
                if self._running._is_owned():
                    self._owner = 0
                    self._running.release()
            if not mine:
                lock = allocate_lock()
                lock.acquire()
                task._waiters.append(lock)
                # The task may have ended between the test and the append.
                if task._done:
                    return
                # Every submit wakes the worker, so that some thread always runs the queue.
                if self._asleep:
                    self._wake()
                try:
                    lock.acquire()
                except BaseException:
                    self._stop(task)
                    raise

    def _shorten_queue(self) -> None:
        """Run old tasks until the queue is half full."""
        if self._owner == get_ident():
            return
        while len(self._queue) > MAX_QUEUED // 2 or self._bytes > MAX_QUEUED_BYTES // 2:
            with self._running:
                self._owner = get_ident()
                try:
                    if not self._run_next():
                        return
                finally:
                    self._owner = 0

    def _start_worker(self) -> bool:
        with self._start:
            if self._worker is None:
                self._worker = start_thread(self._run_worker, f"accnp-{self.name}")
            return self._worker is not None

    def _wake(self) -> None:
        self._asleep = False
        with contextlib.suppress(RuntimeError):  # another thread has just done it
            self._sleep.release()

    def _run_worker(self) -> None:
        """Run queued tasks, then sleep: the loop of the worker thread."""
        blas_threads.mark_worker()
        while True:
            with self._running:
                self._owner = get_ident()
                try:
                    self._run_next()
                finally:
                    self._owner = 0
            if self._queue and not worker_threads.at_work.closed:
                continue
            self._asleep = True
            # A submit before the line above has seen an awake worker: check the queue again.
            if self._queue and not worker_threads.at_work.closed:
                self._asleep = False
                self._sleep.acquire(False)
            else:
                self._sleep.acquire()

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, queued={len(self._queue)})"


_INTERRUPTED = (
    "Task.wait: the work that makes this value was interrupted before it ended; got {}; "
    "compute the value again"
)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


_streams: weakref.WeakSet[Stream] = weakref.WeakSet()
_default: Stream | None = None
_default_lock = renewed(threading.Lock())


def default_stream() -> Stream:
    """Return the stream of the CPU device."""
    global _default
    if _default is None:
        with _default_lock:
            if _default is None:
                _default = Stream()
    return _default


def _finish() -> None:
    """Finish queued tasks at exit. Their errors are ignored, because no code can handle them any
    more. A program that ends by an interrupt does not wait for its tasks."""
    if getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1"):
        return
    for stream in list(_streams):
        try:
            stream.synchronize()
        except KeyboardInterrupt:
            _end_by_interrupt()
        except BaseException:
            stream.first_error = None


def _end_by_interrupt() -> None:
    """End the process at once, as an uncaught interrupt does: the interpreter must not shut down
    while machine code runs."""
    import signal

    for file in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            file.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


_paused_streams: list[Stream] = []


def _before_fork() -> None:
    """Let a fork happen between tasks: the child gets complete results and a consistent queue."""
    for stream in list(_streams):
        if stream._owner != get_ident():
            stream._running.acquire()
            _paused_streams.append(stream)


def _after_fork_parent() -> None:
    while _paused_streams:
        _paused_streams.pop()._running.release()


def _after_fork_child() -> None:
    _paused_streams.clear()
    for stream in list(_streams):
        inside = stream._owner == get_ident()
        stream._reset()
        if inside:  # forked by a task, which continues in the child
            stream._running.acquire()
            stream._owner = get_ident()
        for task in stream._queue:
            task._waiters.clear()


atexit.register(_finish)
at_fork(_after_fork_child, before=_before_fork, parent=_after_fork_parent)
