"""Measure whether other work uses the machine, which makes timings unreliable.

Output: a `Load`. All threads compute checksums of the same bytes for a few milliseconds. On an idle
machine, each checksum takes the same time. Time above the shortest one went to other processes, to
other guests of the same host (steal time, shared cores), or to changes of the clock rate, all of
which distort timings. The load average of the last minute counts as well.
"""

from __future__ import annotations

import os
import threading
import zlib
from dataclasses import dataclass
from time import perf_counter

from accnp.config import config, default_threads

__all__ = ["Load", "machine_load"]

# A checksum of this takes 0.2 to 0.5 ms. zlib releases the interpreter lock meanwhile. Between
# blocks, a thread holds it for 1 us while others wait: with more threads, they would measure that.
_BLOCK = bytes(1 << 20)
_MOST_THREADS = 8
_WINDOW = 0.02  # seconds
# On two virtual CPUs of a Zen 4, the loops lost 1 to 4 % of the time on a quiet host, 22 to 51 %
# next to one busy process (two threads), and 20 to 60 % for minutes in which only the host was
# busy; a copy then moved 31 instead of 56 GB/s (2026-11-28).
MOST_LOST = 0.15
# Load average per CPU. The measured process itself runs at most one thread on each CPU.
MOST_RUNNING = 1.25

_shortest: dict[int, float] = {}  # number of threads -> seconds of a block


@dataclass(frozen=True)
class Load:
    """The load of the machine by other work.

    `lost` is the fraction (0 to 1) of the time of the spin loops above their shortest time,
    `average` the load average of the last minute (None if the system does not provide it), and
    `cpus` the number of CPUs.
    """

    lost: float
    average: float | None
    cpus: int

    @property
    def busy(self) -> bool:
        """Whether times that were measured under this load are unreliable."""
        return self.lost > MOST_LOST or (self.average or 0.0) > MOST_RUNNING * self.cpus

    def __str__(self) -> str:
        slower = 1.0 / (1.0 - self.lost) - 1.0
        text = f"a fixed loop takes {slower:.0%} longer than at best"
        if self.average is not None:
            text += f", load average {self.average:.1f} on {self.cpus} CPUs"
        return f"{'busy' if self.busy else 'quiet'} machine: {text}"

    def worse_of(self, other: Load | None) -> Load:
        """The one of two loads that makes times less reliable."""
        if other is None:
            return self
        return max(self, other, key=lambda load: (load.busy, load.lost))


def machine_load(threads: int | None = None) -> Load:
    """Measure the load of the machine, with as many threads as kernels use; takes 20 ms."""
    threads = min(config.threads if threads is None else threads, default_threads(), _MOST_THREADS)
    seconds: list[float] = []
    helpers = [
        threading.Thread(target=_time_blocks, args=(seconds,), daemon=True)
        for _ in range(threads - 1)
    ]
    for helper in helpers:
        helper.start()
    _time_blocks(seconds)
    for helper in helpers:
        helper.join()
    shortest = _shortest[threads] = min(*seconds, _shortest.get(threads, seconds[0]))
    lost = 1.0 - shortest * len(seconds) / sum(seconds)
    average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return Load(max(0.0, lost), average, os.cpu_count() or 1)


def _time_blocks(seconds: list[float]) -> None:
    """Append the time of each block until the window ends."""
    now = perf_counter()
    end = now + _WINDOW
    while now < end:
        begun = now
        zlib.crc32(_BLOCK)
        now = perf_counter()
        seconds.append(now - begun)
