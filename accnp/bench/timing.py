"""Interleaved timing of several calls.

Input: calls by name. Output: a `Timing` for each name. The calls take turns, so that a change in
the load of the machine affects all of them. The ratio of two calls is the median of the ratios
within each round. Each call is timed as in a program that calls nothing else: after the threads of
the previous call are idle, and after a warm-up call.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

import accnp
from accnp.compiler.kernel_cache import wait_for_background

__all__ = [
    "Call", "Timing", "busy", "interleave", "machine", "middle_half", "pace", "paced",
    "seconds_text",
]  # fmt: skip

Call = Callable[[], Any]


@dataclass
class Timing:
    """Seconds per call, one entry per round."""

    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def spread(self) -> float:
        """The interquartile range of the rounds, as a fraction of the median."""
        low, high = middle_half(self.seconds)
        return (high - low) / self.median

    def ratios(self, peer: Timing) -> list[float]:
        """Return this time over that of a peer, for each round."""
        return [a / b for a, b in zip(self.seconds, peer.seconds)]

    def ratio(self, peer: Timing) -> float:
        """Return the median over the rounds of this time over that of a peer."""
        return statistics.median(self.ratios(peer))


def middle_half(values: Sequence[float]) -> tuple[float, float]:
    """Return the first and the third quartile."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def interleave(
    calls: Mapping[str, Call], rounds: int = 15, number: int = 1, warm: int = 3
) -> dict[str, Timing]:
    """Time the calls in turns; each sample runs a call `number` times.

    Before each sample, all other threads of the process must be idle. (Threads of OpenBLAS poll for
    work for 2^28 cycles, some 100 ms.) Then the call is made once before the clock starts. This
    loads its operands into the caches and wakes its threads, as the previous call does in a program
    that uses one library. With `warm` 0, which is for long calls, there is no such warm-up call.
    The order of the calls changes from round to round in any case.

    The result of a call is kept until the clock has stopped. Garbage is collected between rounds.
    Objects from before the measurement are frozen, since traversing them would take longer than
    most rounds.
    """
    for call in calls.values():
        for _ in range(warm):
            call()
    wait_for_background()
    timings = {name: Timing() for name in calls}
    was_enabled, was_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.disable()
    gc.collect()
    gc.freeze()
    try:
        for index in range(rounds):
            gc.collect()
            for name, call in _order(list(calls.items()), index):
                _wait_for_idle_threads()
                if warm:
                    call()
                start = perf_counter()
                for _ in range(number):
                    result = call()
                timings[name].seconds.append((perf_counter() - start) / number)
                del result
    finally:
        if not was_frozen:  # the program that calls has frozen what it keeps
            gc.unfreeze()
        if was_enabled:
            gc.enable()
    return timings


def _order(calls: list[tuple[str, Call]], index: int) -> list[tuple[str, Call]]:
    """Return the calls in the order of a round.

    In 2 n rounds of n calls, each call directly follows each other one twice (E. J. Williams,
    1949).
    """
    n = len(calls)
    places = [(k + 1) // 2 if k % 2 else n - k // 2 for k in range(n)]  # 0, 1, -1, 2, -2...
    order = [calls[(place + index // 2) % n] for place in places]
    return order[::-1] if index % 2 else order


def _wait_for_idle_threads() -> None:
    """Wait until the other threads of the process are idle, for at most half a second."""
    begun = perf_counter()
    before = _cpu_seconds_of_others()
    while perf_counter() - begun < 0.5:
        time.sleep(1e-3)
        now = _cpu_seconds_of_others()
        if now - before < 1e-4:
            return
        before = now


def _cpu_seconds_of_others() -> float:
    """Return the CPU seconds of the other threads up to this moment.

    The sum that Linux returns for a process counts running threads only up to the last timer tick.
    The value for a single thread is exact.
    """
    try:
        threads = [int(name) for name in os.listdir("/proc/self/task")]
    except OSError:
        return time.process_time() - time.thread_time()
    total = 0.0
    for thread in threads:
        if thread != threading.get_native_id():
            with contextlib.suppress(OSError):  # the thread has ended
                total += time.clock_gettime((~thread << 3) | 6)
    return total


def paced(calls: Mapping[str, Call], rounds: int, seconds: float = 6.0) -> dict[str, Timing]:
    """Time the calls by `interleave` with the numbers of rounds and calls that `pace` returns."""
    rounds, number = pace(calls, 5 * rounds, seconds)
    return interleave(calls, rounds, number, warm=1)


def pace(
    calls: Mapping[str, Call], most: int, seconds: float, least: int = 5, known: int | None = None
) -> tuple[int, int]:
    """Return the number of rounds and the number of calls per sample for a total duration.

    Samples take at least 1 ms, unless the number of calls is given (`known`). There are from
    `least` to `most` rounds.
    """
    took, rested = [], 0.0
    for call in calls.values():
        for _ in range(2):  # the first one compiles
            start = perf_counter()
            call()
            once = perf_counter() - start
        took.append(once)
        _wait_for_idle_threads()
        rested += perf_counter() - start - once
    number = max(1, round(1e-3 / min(took))) if known is None else known
    turn = (number + 1) * sum(took) + rested
    return max(least, min(most, int(seconds / turn))), number


def busy(call: Call, seconds: float = 0.3) -> float:
    """Return the average number of CPUs that a call uses: CPU time of all threads over wall time.

    The call is repeated for about this many seconds, after the other threads are idle.
    """
    call()
    _wait_for_idle_threads()
    begun, cpu = perf_counter(), time.process_time()
    while perf_counter() - begun < seconds:
        call()
    return (time.process_time() - cpu) / (perf_counter() - begun)


def machine() -> dict[str, str]:
    """Return the processor and the versions of the libraries."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [s for s in info.read_text().splitlines() if s.startswith("model name")]
        cpu = names[0].split(":", 1)[1].strip() if names else cpu
    facts = {"cpu": cpu, "python": platform.python_version(), "accnp": accnp.__version__}
    for package in ("jax", "numpy", "numba", "numexpr", "torch"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def seconds_text(seconds: float) -> str:
    """Return seconds in a suitable unit, with three significant digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
