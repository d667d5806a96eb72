"""`accnp.timeit`: measure the time of calls including the computation of their results.

Input: a function and its arguments, and optionally peers, which are calls without arguments.
Output: a `Measurement` with the times and the ratios to the peers. `timing.py` takes the samples.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

from accnp.api.environment.synchronization import block_until_ready, counters
from accnp.bench.timing import Call, Timing, interleave, middle_half, pace, seconds_text
from accnp.bench.waiting import waiting
from accnp.compiler.kernel_cache import wait_for_background
from accnp.errors import api_boundary
from accnp.runtime.machine_load import Load, machine_load

__all__ = ["Measurement", "Ratio", "timeit"]

_OURS = ""  # the name of the function among those of the peers
MOST_ROUNDS = 200
FEWEST_ROUNDS = 3
LONG_CALL = 0.2  # seconds of a call from which it gets no warm-up call before each sample


@dataclass(frozen=True)
class Ratio:
    """A ratio of two times: the median over the rounds, and the first and third quartile."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True)
class Measurement:
    """Times of a function and of its peers in seconds, which `print` shows.

    `first` is the time of the first call, and `traces` and `compiles` count what that call traced
    and compiled. `seconds` has the time per call for each round, `loops` is the number of calls per
    round, `peers` has the times of the peers, and `load` is the load of the machine by other work.
    """

    name: str
    first: float
    timing: Timing
    loops: int
    traces: int = 0
    compiles: int = 0
    peers: Mapping[str, Timing] = field(default_factory=dict)
    load: Load | None = None
    quick: bool = False  # one call each, because benchmarking is disabled

    @property
    def seconds(self) -> list[float]:
        """The seconds per call, for each round."""
        return self.timing.seconds

    @property
    def best(self) -> float:
        """The minimum over the rounds, in seconds."""
        return self.timing.best

    @property
    def median(self) -> float:
        """The median of the rounds, in seconds."""
        return self.timing.median

    @property
    def spread(self) -> float:
        """The interquartile range of the rounds, as a fraction of the median."""
        return self.timing.spread

    @property
    def reliable(self) -> bool:
        """False if the machine was busy before or after, or if benchmarking was disabled."""
        return not self.quick and (self.load is None or not self.load.busy)

    def ratio(self, peer: str) -> Ratio:
        """Return the time of the function over that of a peer; below 1, the function is faster.

        The ratio is computed for each round, because a change of the load of the machine affects
        all calls of a round.

        Raises:
            KeyError: the peer is unknown.
        """
        ratios = self.timing.ratios(self.peers[peer])
        return Ratio(statistics.median(ratios), *middle_half(ratios))

    @property
    def ratios(self) -> dict[str, Ratio]:
        """The ratio to each peer."""
        return {peer: self.ratio(peer) for peer in self.peers}

    def __repr__(self) -> str:
        counted = [
            f"{n} {word}{'s' * (n != 1)}"
            for n, word in ((self.traces, "trace"), (self.compiles, "compile"))
            if n
        ]
        work = f" ({', '.join(counted)})" if counted else ""
        rounds = len(self.seconds)
        lines = [
            f"{self.name}: best {seconds_text(self.best)}, median {seconds_text(self.median)} "
            f"(spread {self.spread:.0%}), {rounds} round{'s' * (rounds != 1)} of {self.loops} "
            f"call{'s' * (self.loops != 1)}; first call {seconds_text(self.first)}{work}"
        ]
        for name, timing in self.peers.items():
            lines.append(
                f"  {name}: median {seconds_text(timing.median)} (spread {timing.spread:.0%}); "
                f"time of {self.name} / time of {name}: {self.ratio(name)}"
            )
        if not self.reliable:
            lines.append(f"  unreliable, {'one call each' if self.quick else self.load}")
        return "\n".join(lines)


@api_boundary
def timeit(
    f: Callable[..., Any],
    /,
    *args: Any,
    peers: Mapping[str, Callable[[], Any]] | None = None,
    rounds: int | None = None,
    number: int | None = None,
    seconds: float = 1.0,
) -> Measurement:
    """Time calls of a function until their results are computed.

    accnp computes results when they are used, so `%timeit f(x)` measures only how long it takes to
    record the operations. This function waits for all arrays of the result.

    Parameters
    ----------
    f : callable
        Function to time. Pass a jitted function if the program uses one.
    *args : object
        Arguments of the function. Those that are pending are computed before the clock starts.
    peers : mapping of names to callables, optional
        Calls without arguments to compare with, each with operands of its own library. They take
        turns with the function, which also waits for arrays of JAX.
    rounds : int, optional
        Number of samples. The default is as many as fit into `seconds`, from 3 to 200.
    number : int, optional
        Number of calls per sample. The default is enough for a millisecond.
    seconds : float
        Approximate duration of the measurement. Three rounds may take longer.

    Returns
    -------
    Measurement
        Its attributes `best`, `median`, `first` (the first call, which may trace and compile) and
        `seconds` (of each round) are in seconds. Others are `spread`, `loops`, `ratio(peer)` and
        `load`. `print` shows them.

    Raises
    ------
    TypeError
        If `f` is not callable.
    ValueError
        If `rounds` or `number` is less than 1.

    See Also
    --------
    explain : Where a function spends its time.

    Notes
    -----
    Before each sample, the other threads of the process must be idle. Calls of less than 0.2 s are
    made once before the clock starts, so that operands and code are in the caches, as in a loop.
    Garbage is collected between the rounds. The call and waiting add about 0.3 us.

    Examples
    --------
    >>> import numpy as np
    >>> import accnp as jnp
    >>> a = np.ones(1000, np.float32)
    >>> f = jnp.jit(lambda x: jnp.tanh(x) * 2)
    >>> t = jnp.timeit(f, jnp.asarray(a), peers={"numpy": lambda: np.tanh(a) * 2}, seconds=0.1)
    >>> t.best <= t.median <= max(t.seconds)
    True
    >>> t.ratio("numpy").median > 0
    True
    """
    if not callable(f):
        raise TypeError(
            f"timeit: the first argument must be a function; got {type(f).__name__} (f); pass a "
            "function and its arguments, or lambda: EXPRESSION"
        )
    for name, value in (("rounds", rounds), ("number", number)):
        if value is not None and value < 1:
            raise ValueError(
                f"timeit: {name} must be 1 or more; got {value} ({name}); omit it for the default"
            )
    block_until_ready(args)
    calls: dict[str, Call] = {_OURS: partial(waiting(f), *args)}
    calls |= {name: waiting(peer) for name, peer in (peers or {}).items()}
    load = machine_load()
    before = counters()
    first = _time_of(calls[_OURS])
    after = counters()
    wait_for_background()
    timings, loops = _sample(calls, rounds, number, seconds)
    return Measurement(
        getattr(f, "__name__", type(f).__name__),
        first,
        timings.pop(_OURS),
        loops,
        after["traces"] - before["traces"],
        after["compiles"] - before["compiles"],
        timings,
        load.worse_of(machine_load()),
    )


def _sample(
    calls: Mapping[str, Call], rounds: int | None, number: int | None, seconds: float
) -> tuple[dict[str, Timing], int]:
    """Return interleaved times of the calls, and the number of calls per sample."""
    once = _time_of(calls[_OURS])
    most, least = (MOST_ROUNDS, FEWEST_ROUNDS) if rounds is None else (rounds, rounds)
    if once > LONG_CALL:
        fit = int(seconds / once / len(calls))
        loops = number or 1
        return interleave(calls, max(least, min(most, fit)), loops, warm=0), loops
    paced, loops = pace(calls, most, seconds, least, number)
    return interleave(calls, paced, loops, warm=1), loops


def _time_of(call: Call) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start
