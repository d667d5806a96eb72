"""Helper threads inside one kernel: a kernel, its arguments and a range come in; 0..n gets done.

All threads call the same machine code with the same counter and take chunks from it, so a thread
that comes late or is held up by another process does less. The caller works too and never waits for
a helper that has not begun. A helper that has nothing to do looks for more for a moment, in machine
code (`team.py`), before it sleeps.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from _thread import allocate_lock
from collections import deque
from collections.abc import Sequence

from accnp.config import config
from accnp.runtime.bypass import RUN, Pieces, block_steps, header
from accnp.runtime.compile import Kernel, past_caches, sharers
from accnp.runtime.team import CPU, MOVE, WORDS

_LOOKS = 4096  # of a helper for work before it sleeps: some 50 us


class _Team:
    """The memory that a group of threads shares work through; see `team.py`."""

    def __init__(self) -> None:
        self._keep = (ctypes.c_int64 * (WORDS + 8))()
        self.address = -(-ctypes.addressof(self._keep) // 64) * 64
        self._cpu = ctypes.c_int64.from_address(self.address + 8 * CPU)
        self._cpu.value = -1

    def step_aside(self) -> bool:
        """Keep this thread off the processor where the work comes from; False if it cannot."""
        with contextlib.suppress(OSError, AttributeError):
            others = os.sched_getaffinity(os.getpid()) - {self._cpu.value}
            if others:
                os.sched_setaffinity(0, others)
                return True
        return False


class _Helper:
    """A daemon thread that sleeps on a lock until there is work to look for."""

    __slots__ = ("team", "wake")

    def __init__(self, number: int, team: _Team) -> None:
        self.team = team
        self.wake = allocate_lock()
        self.wake.acquire()
        threading.Thread(target=self._loop, name=f"accnp-helper-{number}", daemon=True).start()

    def _loop(self) -> None:
        _, attend = sharers()
        team = self.team
        while True:
            self.wake.acquire()
            looks = _LOOKS if config.threads <= _processors() else 0
            while attend(team.address, looks) == MOVE and team.step_aside():
                pass
            _asleep.append(self)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(os.getpid()))
    return os.cpu_count() or 1


_team = _Team()
_asleep: deque[_Helper] = deque()
_count = 0
_lock = threading.Lock()


def parallel_run(
    kernel: Kernel,
    arguments: Sequence[int],
    n: int,
    chunk: int,
    past: tuple[Pieces, Pieces] = ((), ()),
) -> None:
    """Do 0..n in chunks on this thread and on helpers that have nothing else to do.

    `past` are results that go past the caches, and operands that are read like these: which
    argument, and bytes for each of the n.
    """
    entry = kernel.address
    alone, bypass = past_caches()
    width = sum([size for _, size in past[0]])
    steps = block_steps(width) if width else 0
    if steps:
        arguments = [entry, *header(len(arguments), steps, *past), *arguments]
        entry, chunk = bypass, max(chunk, RUN // width // steps * steps, steps)
    team, helpers = call_helpers(-(-n // chunk) - 1)
    if helpers < 1:
        alone(entry, n, n, *arguments)
        return
    share, _ = sharers()
    share(entry, n, chunk, team, helpers, *arguments)


def call_helpers(wanted: int) -> tuple[int, int]:
    """Wake helpers, as many as are wanted and allowed: the address of the team, and how many."""
    threads = config.threads
    wanted = min(threads - 1, wanted)
    if wanted > 0:
        if _count < threads - 1:
            _start(threads - 1)
        while len(_asleep) > _count - wanted:
            try:
                _asleep.pop().wake.release()
            except IndexError:
                break
    return _team.address, wanted


def _start(count: int) -> None:
    """Have so many helpers in all."""
    global _count
    with _lock:
        while _count < count:
            _count += 1
            _asleep.append(_Helper(_count, _team))


def _forget() -> None:
    """A child process has none of its parent's threads."""
    global _count, _lock, _team
    _asleep.clear()
    _count = 0
    _lock = threading.Lock()
    _team = _Team()


os.register_at_fork(after_in_child=_forget)
