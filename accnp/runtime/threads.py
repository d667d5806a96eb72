"""Helper threads inside one kernel: a kernel, its arguments and a range come in; 0..n gets done.

All threads call the same machine code with the same counter and take chunks from it, so a thread
that comes late or is held up by another process does less. The caller works too and never waits for
a helper that has not begun. A helper that has nothing to do looks for more for a moment before it
sleeps, all without the interpreter (`_native/team.c`).
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable, Sequence

from accnp._native import BYPASS, STREAM, Team, launch_released, share
from accnp.config import config
from accnp.forks import at_fork, imported
from accnp.runtime.bypass import RUN, Pieces, block_steps, can_stream, header
from accnp.runtime.compile import Kernel, counters

_LOOKS = 4096  # of a helper for work before it sleeps: some 50 us
_TURN = 100_000  # nanoseconds after which a helper's turn may end, where others want its processor
_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275)}  # sched_setattr, sched_getattr


class _Team:
    """Threads that share the work of kernels with the one that launches them."""

    def __init__(self) -> None:
        self._team = Team()
        self.address = self._team.address
        self._lock = threading.Lock()
        self.threads = 1  # for so many in all there are helpers

    @property
    def helpers(self) -> int:
        """How many there are."""
        return self._team.helpers

    @property
    def asleep(self) -> int:
        """How many of them sleep."""
        return self._team.asleep

    @property
    def loops(self) -> tuple[int, int]:
        """How many launches of native loops ran on one thread, and how many were shared."""
        return self._team.loops

    def prepare(self, threads: int) -> None:
        """Have helpers for this many threads in all; if each has a CPU, they poll for work."""
        team = self._team
        _be_found()
        with self._lock:
            team.looks = _LOOKS if threads <= _processors() else 0
            while self.helpers < threads - 1:
                place = team.reserve()
                if place is None:
                    break
                name = f"accnp-helper-{place + 1}"
                helper = threading.Thread(target=team.attend, args=(place,), name=name, daemon=True)
                helper.start()
                number = helper.native_id or 0
                _ask_for_short_turns(number)
                team.joined(place, number)
            self.threads = threads


def _ask_for_short_turns(thread: int) -> None:
    """Let a thread start as soon as it is woken, at the price of shorter turns (Linux 6.12 on).

    Threads of other libraries look for work for a millisecond after their last, and the scheduler
    would let them; one with shorter turns takes their place when it is woken.
    """
    calls = _CALLS.get(os.uname().machine) if sys.platform == "linux" else None
    if calls is None or not thread:
        return
    ask = ctypes.CDLL(None).syscall
    attributes = ctypes.create_string_buffer(56)  # struct sched_attr; the turn is at byte 24
    if ask(calls[1], thread, attributes, 56, 0) == 0:
        struct.pack_into("Q", attributes, 24, _TURN)
        ask(calls[0], thread, attributes, 0)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(os.getpid()))
    return os.cpu_count() or 1


_team = _Team()
_limit: int | None = None  # of threadpoolctl


def most() -> int:
    """On how many threads a kernel runs at most."""
    return config.threads if _limit is None else min(config.threads, _limit)


def limit(threads: int) -> None:
    """Let kernels run on at most this many threads, whatever `config.threads` says."""
    global _limit
    _limit = max(1, threads) if threads < config.threads else None


def _be_found() -> None:
    """Let threadpoolctl know of the threads."""
    imported("accnp.runtime.thread_control")


def parallel_run(
    kernel: Kernel,
    arguments: Sequence[int],
    n: int,
    chunk: int,
    past: tuple[Pieces, Pieces] = ((), ()),
) -> None:
    """Do 0..n in chunks on this thread and on helpers that have nothing else to do.

    `past` are results that bypass the caches, and operands that are read like these: which
    argument, and bytes for each of the n.
    """
    entry, before, chunk = way(kernel.address, len(arguments), chunk, past)
    arguments = [*before, *arguments]
    team, helpers = call_helpers(-(-n // chunk) - 1)
    if helpers < 1:
        launch_released(entry, n, n, *arguments)
        return
    share(entry, n, chunk, team, helpers, *arguments)


_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def parallel_calls(work: Callable[[int, int], object], n: int, chunk: int) -> None:
    """Call `work` for parts of 0..n on this thread and on helpers, for what takes long without the
    interpreter's lock. The first error is raised once all have ended; no part is begun after it."""
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
    team, helpers = call_helpers(len(parts) - 1)
    # Not by `ctypes.cast`, which makes a cycle of references: arrays would wait for the collector.
    address = ctypes.c_size_t.from_buffer(entry).value
    share(address, len(parts), 1, team, helpers)
    counters.launched(-1)
    take()  # what is left, if an exception of a signal handler came between two parts
    if errors:
        raise errors[0]


def way(
    entry: int, count: int, chunk: int, past: tuple[Pieces, Pieces]
) -> tuple[int, list[int], int]:
    """How to launch a kernel of this many arguments that may use non-temporal stores: the entry,
    what comes before the arguments, and the chunk."""
    width = sum([size for _, size in past[0]])
    if not width:
        return entry, [], chunk
    steps = block_steps(width)
    chunk = max(chunk, RUN // width // max(1, steps) * steps, steps)
    if can_stream(entry):
        return STREAM, [entry], chunk
    if not steps or past[0][0][0] < 0:
        return entry, [], chunk
    return BYPASS, [entry, *header(count, steps, *past)], chunk


def call_helpers(wanted: int) -> tuple[int, int]:
    """Helpers, as many as are wanted and allowed: the address of the team, and how many."""
    threads = most()
    if wanted > 0 and threads != _team.threads:
        _team.prepare(threads)
    return _team.address, min(threads - 1, wanted)


def _forget() -> None:
    """A child process has none of its parent's threads."""
    global _team
    _team = _Team()


at_fork(_forget)
if "threadpoolctl" in sys.modules:
    _be_found()
