"""Interleaved timing: named calls come in, a `Timing` per name goes out.

The calls take turns, so that a change in the machine's load falls on all of them. The ratio of two
is the median of the ratios within each round. Each is timed as in a program that calls nothing
else: when the threads of the one before have gone to sleep, and after a call that is not counted.
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
from accnp.compiler.kernel_cache import settle

__all__ = [
    "Call",
    "Timing",
    "busy",
    "interleave",
    "machine",
    "middle_half",
    "pace",
    "paced",
    "seconds_text",
]

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
        """The width of the middle half of the rounds, as a share of the median."""
        low, high = middle_half(self.seconds)
        return (high - low) / self.median

    def ratios(self, peer: Timing) -> list[float]:
        """Our time over the peer's, for each round."""
        return [a / b for a, b in zip(self.seconds, peer.seconds)]

    def ratio(self, peer: Timing) -> float:
        """The median over the rounds of our time over the peer's."""
        return statistics.median(self.ratios(peer))


def middle_half(values: Sequence[float]) -> tuple[float, float]:
    """The first and the third quartile."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def interleave(
    calls: Mapping[str, Call], rounds: int = 15, number: int = 1, warm: int = 3
) -> dict[str, Timing]:
    """Time the calls in turns; each sample runs a call `number` times.

    Before each sample all threads of the process must rest (OpenBLAS's look for more work, on a
    processor, for 2^28 cycles, 100 ms), and the call is made once outside the clock: it brings its
    operands near and wakes its threads, as the call before does where one library is used. With
    `warm` 0, where each call is another one, it is not. Who follows whom changes all the same.

    What a call returns is kept until its clock has stopped; garbage is collected between rounds
    (that of the rounds: what was there before is frozen, or looking through it would take longer
    than most rounds).
    """
    for call in calls.values():
        for _ in range(warm):
            call()
    settle()
    timings = {name: Timing() for name in calls}
    was_enabled, was_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.disable()
    gc.collect()
    gc.freeze()
    try:
        for index in range(rounds):
            gc.collect()
            for name, call in _order(list(calls.items()), index):
                _rest()
                if warm:
                    call()
                start = perf_counter()
                for _ in range(number):
                    kept = call()
                timings[name].seconds.append((perf_counter() - start) / number)
                del kept
    finally:
        if not was_frozen:  # the program that calls has frozen what it keeps
            gc.unfreeze()
        if was_enabled:
            gc.enable()
    return timings


def _order(calls: list[tuple[str, Call]], index: int) -> list[tuple[str, Call]]:
    """The calls in the order of a round: in twice as many rounds as there are calls, each of them
    comes directly behind each other one twice (E. J. Williams, 1949)."""
    n = len(calls)
    places = [(k + 1) // 2 if k % 2 else n - k // 2 for k in range(n)]  # 0, 1, -1, 2, -2...
    order = [calls[(place + index // 2) % n] for place in places]
    return order[::-1] if index % 2 else order


def _rest() -> None:
    """Wait until other threads of the process do nothing; for half a second at most."""
    begun = perf_counter()
    before = _others()
    while perf_counter() - begun < 0.5:
        time.sleep(1e-3)
        now = _others()
        if now - before < 1e-4:
            return
        before = now


def _others() -> float:
    """CPU seconds of the other threads, those of this moment too.

    Where Linux counts a whole process, it knows of running threads what they had done at the last
    tick of its clock; asked for one thread, it counts to the moment.
    """
    try:
        threads = [int(name) for name in os.listdir("/proc/self/task")]
    except OSError:
        return time.process_time() - time.thread_time()
    total = 0.0
    for thread in threads:
        if thread != threading.get_native_id():
            with contextlib.suppress(OSError):  # it has ended
                total += time.clock_gettime((~thread << 3) | 6)
    return total


def paced(calls: Mapping[str, Call], rounds: int, seconds: float = 6.0) -> dict[str, Timing]:
    """`interleave` with numbers that fit the calls, as `pace` finds them."""
    rounds, number = pace(calls, 5 * rounds, seconds)
    return interleave(calls, rounds, number, warm=1)


def pace(
    calls: Mapping[str, Call], most: int, seconds: float, least: int = 5, known: int | None = None
) -> tuple[int, int]:
    """How many rounds of how many calls fit into this many seconds: samples of 1 ms or more where a
    call is short (of `known` calls where that is said), and from `least` to `most` rounds."""
    took, rested = [], 0.0
    for call in calls.values():
        for _ in range(2):  # the first one compiles
            start = perf_counter()
            call()
            once = perf_counter() - start
        took.append(once)
        _rest()
        rested += perf_counter() - start - once
    number = max(1, round(1e-3 / min(took))) if known is None else known
    turn = (number + 1) * sum(took) + rested
    return max(least, min(most, int(seconds / turn))), number


def busy(call: Call, seconds: float = 0.3) -> float:
    """How many processors a call keeps busy: CPU time of all threads over wall time.

    It is called again and again for about this many seconds, from when other threads rest.
    """
    call()
    _rest()
    begun, cpu = perf_counter(), time.process_time()
    while perf_counter() - begun < seconds:
        call()
    return (time.process_time() - cpu) / (perf_counter() - begun)


def machine() -> dict[str, str]:
    """What the figures were measured on."""
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
    """Seconds in the unit that suits them, with three significant digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
