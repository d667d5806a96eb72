"""Run a kernel on several threads: the calling thread and a pool of helper threads.

It takes a kernel, its arguments and a range 0..n. All threads call the same machine code with a
shared counter, from which they take chunks, so a thread that starts late or is preempted processes
fewer chunks. The caller works too and does not wait for helpers that have not begun. An idle helper
polls for work for about 50 us before it sleeps. None of this takes the GIL
(`_native/thread_pool.c`).
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable, Sequence

from accnp._native import (
    STAGED_STORES,
    STREAMING_STORES,
    ThreadPool,
    launch_parallel,
    launch_released,
)
from accnp.compiler.cache_state import counters
from accnp.compiler.kernel_cache import Kernel
from accnp.config import config
from accnp.forks import at_fork, start_thread
from accnp.lazy_imports import imported
from accnp.runtime.nontemporal import RUN, Pieces, block_steps, can_stream, header

CHUNKS_BETWEEN_CHECKS = 16  # chunks that one thread runs between checks whether it is to stop
# Chunks that may become one so that non-temporal stores write enough bytes without interruption.
MAX_MERGED_CHUNKS = 64
_SPINS = 4096  # polls of an idle helper before it sleeps: some 50 us
_TIME_SLICE = 100_000  # nanoseconds: the scheduler's time slice of a helper
_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275)}  # sched_setattr, sched_getattr


class _ThreadPool:
    """The helper threads, which share the work of kernels with the thread that launches them."""

    def __init__(self) -> None:
        self._pool = ThreadPool()
        self.address = self._pool.address
        self._lock = threading.Lock()
        self.threads = 1  # the number of threads, with the caller, for which there are helpers

    @property
    def helpers(self) -> int:
        """The number of helpers."""
        return self._pool.helpers

    @property
    def asleep(self) -> int:
        """The number of helpers that sleep."""
        return self._pool.asleep

    @property
    def loop_launches(self) -> tuple[int, int]:
        """The numbers of launches in native loops that ran on one thread and that were shared."""
        return self._pool.loop_launches

    def prepare(self, threads: int) -> None:
        """Start helpers for this many threads in all. They poll if each thread has a CPU."""
        pool = self._pool
        _register_pool()
        with self._lock:
            pool.spins = _SPINS if threads <= _processors() else 0
            while self.helpers < threads - 1:
                slot = pool.reserve()
                if slot is None:
                    break
                name = f"accnp-helper-{slot + 1}"
                helper = start_thread(pool.run_helper, name, (slot,))
                if helper is None:  # for lack of memory; the kernel runs on fewer threads
                    break
                number = helper.native_id or 0
                _request_short_slices(number)
                pool.add_helper(slot, number)
            self.threads = threads


def _request_short_slices(thread: int) -> None:
    """Let a thread run as soon as it is woken, with shorter time slices (Linux 6.12 and newer).

    Threads of other libraries poll for a millisecond after their last work. A woken thread with
    shorter time slices preempts them.
    """
    if sys.platform != "linux" or not thread:
        return
    calls = _CALLS.get(imported("accnp.host_machine").MACHINE)
    if calls is None:
        return
    ask = ctypes.CDLL(None).syscall
    attributes = ctypes.create_string_buffer(56)  # struct sched_attr; the slice is at byte 24
    if ask(calls[1], thread, attributes, 56, 0) == 0:
        struct.pack_into("Q", attributes, 24, _TIME_SLICE)
        ask(calls[0], thread, attributes, 0)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(os.getpid()))
    return os.cpu_count() or 1


_thread_pool = _ThreadPool()
_limit: int | None = None  # of threadpoolctl


def max_threads() -> int:
    """Return the largest number of threads on which a kernel runs."""
    return config.threads if _limit is None else min(config.threads, _limit)


def limit_threads(threads: int) -> None:
    """Run kernels on at most this many threads, even if `config.threads` is larger."""
    global _limit
    _limit = max(1, threads) if threads < config.threads else None


def _register_pool() -> None:
    """Register the threads with threadpoolctl."""
    imported("accnp.runtime.thread_control")


def parallel_run(
    kernel: Kernel,
    arguments: Sequence[int],
    n: int,
    chunk: int,
    nontemporal: tuple[Pieces, Pieces] = ((), ()),
) -> None:
    """Run a kernel over 0..n in chunks, on this thread and on idle helpers.

    `nontemporal` lists the results that are written with non-temporal stores, and the operands that
    are read in the same order: the number of the argument, and its bytes for each step.
    """
    entry, before, chunk = launch_form(kernel.address, len(arguments), chunk, nontemporal)
    arguments = [*before, *arguments]
    pool, helpers = call_helpers(-(-n // chunk) - 1)
    if helpers < 1:
        launch_released(entry, n, CHUNKS_BETWEEN_CHECKS * chunk, *arguments)
        return
    launch_parallel(entry, n, chunk, pool, helpers, *arguments)


_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def parallel_calls(work: Callable[[int, int], object], n: int, chunk: int) -> None:
    """Call `work` for parts of 0..n on this thread and on helpers, for work that mostly runs
    without the interpreter lock. No part is begun after an error; the first error is raised when
    all threads have ended."""
    parts = [(a, min(a + chunk, n)) for a in range(0, n, chunk)]
    errors: list[BaseException] = []

    def take(*_: int) -> None:
        while parts and not errors:
            try:
                part = parts.pop()
            except IndexError:  # another thread was faster
                return
            try:
                work(*part)
            except BaseException as error:
                errors.append(error)

    entry = _ENTRY(take)
    pool, helpers = call_helpers(len(parts) - 1)
    # `ctypes.cast` makes a reference cycle, which would keep arrays until the next collection.
    address = ctypes.c_size_t.from_buffer(entry).value
    launch_parallel(address, len(parts), 1, pool, helpers)
    counters.launched(-1)
    take()  # the remaining parts, if a signal handler raised an exception between two parts
    if errors:
        raise errors[0]


def launch_form(
    entry: int, count: int, chunk: int, nontemporal: tuple[Pieces, Pieces]
) -> tuple[int, list[int], int]:
    """Return how to launch a kernel of `count` arguments that may use non-temporal stores: the
    entry, the words before the arguments, and the chunk."""
    width = sum([size for _, size in nontemporal[0]])
    if not width:
        return entry, [], chunk
    if RUN // width > MAX_MERGED_CHUNKS * chunk:  # computing takes longer than writing
        return entry, [], chunk
    steps = block_steps(width)
    chunk = max(chunk, RUN // width // max(1, steps) * steps, steps)
    if can_stream(entry):
        return STREAMING_STORES, [entry], chunk
    if not steps or nontemporal[0][0][0] < 0:
        return entry, [], chunk
    return STAGED_STORES, [entry, *header(count, steps, *nontemporal)], chunk


def call_helpers(requested: int) -> tuple[int, int]:
    """Return the address of the thread pool, and how many of the wanted helpers are allowed."""
    threads = max_threads()
    if requested > 0 and threads != _thread_pool.threads:
        _thread_pool.prepare(threads)
    return _thread_pool.address, min(threads - 1, requested)


def _reset_after_fork() -> None:
    """Start without helpers in a child process, which does not have the threads of its parent."""
    global _thread_pool
    _thread_pool = _ThreadPool()


at_fork(_reset_after_fork)
if "threadpoolctl" in sys.modules:
    _register_pool()
