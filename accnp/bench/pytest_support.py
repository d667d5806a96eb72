"""The part of the pytest plugin that uses accnp: waiting, counting, cold caches, comparisons.

Input: functions that tests time. Output: the results of pytest-benchmark, `extra_info["accnp"]`,
and `Measurement`s. `pytest_accnp` imports this module only when a test needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accnp import engine
from accnp.api.environment.process import clear_caches
from accnp.api.environment.synchronization import block_until_ready, counters
from accnp.array_type import Array
from accnp.bench.measure import Measurement, timeit
from accnp.bench.processes import ColdTimes, cold_process
from accnp.bench.timing import seconds_text
from accnp.bench.waiting import is_pending, waiting
from accnp.compiler.kernel_cache import clear_kernels
from accnp.config import config
from accnp.devtools.explain.session import Session
from accnp.error_texts import add_reference
from accnp.errors import PendingResultWarning
from accnp.pytree import tree_leaves
from accnp.runtime.bandwidth import bandwidth
from accnp.runtime.machine_load import machine_load

__all__ = ["Cold", "compare", "lines", "timed"]

Measure = Callable[[Callable[..., Any]], Any]
Again = Callable[[Callable[..., Any]], None]


def timed(
    fixture: Any,
    function: Callable[..., Any],
    measure: Measure,
    again: Again | None,
    *,
    wait: bool,
    counts: bool,
) -> Any:
    """Let pytest-benchmark measure a function, and return the result of the function.

    With `wait`, the function waits for its result; otherwise there is a warning if the result is
    pending. With `counts`, `extra_info["accnp"]` gets `traces` and `compiles` of all calls,
    `launches` and `bytes` of one call, `memory_share` (the bandwidth of the fastest call as a
    fraction of that of a copy) and `busy` (whether the machine was busy). There is also a warning
    if the function recorded operations, computed none, and returned no array. `again` calls the
    function once more.
    """
    load = machine_load() if counts and fixture.enabled else None
    before = counters()
    result = measure(waiting(function) if wait else function)
    if not fixture.enabled:
        return result
    after = counters()
    pending = not wait and is_pending(result)
    warnings = [_PENDING] if pending else []
    if counts and load is not None:
        info: dict[str, Any] = {name: after[name] - before[name] for name in ("traces", "compiles")}
        if again is None:  # the function was called once
            info["launches"] = after["launches"] - before["launches"]
        else:
            with suppress(Exception):  # a function that cannot be called again has no counts
                work, discarded = _measure_work(fixture, waiting(function), again)
                info |= work
                if discarded and not any(isinstance(x, Array) for x in tree_leaves(result)):
                    warnings.append(_DISCARDED.format(discarded))
        if pending:  # the measured time does not include the transfer of the bytes
            info["memory_share"] = None
        info["busy"] = load.worse_of(machine_load()).busy
        fixture.extra_info["accnp"] = info
    for text in warnings:
        warning = PendingResultWarning(text)
        add_reference(warning)
        fixture.accnp_node.warn(warning)
    return result


_PENDING = (
    "the result of the timed function is pending, so only its recording was timed; return a "
    "computed array (x.block_until_ready()), or let the benchmark wait (without --accnp-no-wait, "
    "accnp_wait = false and accnp(wait=False))"
)
_DISCARDED = (
    "the timed function recorded {} operations and computed none, so only their recording was "
    "timed; return the result from the function"
)


def _measure_work(
    fixture: Any, call: Callable[..., Any], again: Again
) -> tuple[dict[str, Any], int]:
    """Return the launches and bytes of one call, measured with two more calls, and the number of
    operations that it recorded outside of traces if it computed nothing."""
    before = counters()["launches"]
    again(call)
    launches = counters()["launches"] - before
    session = Session(frozenset(["step", "record", "trace"]))
    session.start()
    try:
        again(call)
    finally:
        session.stop()
    steps = [e for e in session.events if e.kind == "step" and not e.more["depth"]]
    nbytes = sum(e.more["step"].nbytes for e in steps)
    share = None
    if nbytes:
        share = nbytes / fixture.stats.stats.min / bandwidth(steps[0].more["plan"].device)
    work = {"launches": launches, "bytes": nbytes, "memory_share": share}
    traces = [e for e in session.events if e.kind == "trace"]
    recorded = [
        e
        for e in session.events
        if e.kind == "record" and not any(t.start <= e.start <= t.end for t in traces)
    ]
    return work, 0 if launches or steps else len(recorded)


# --- cold caches ---


class Cold:
    """Context manager with empty caches; `clear` empties them again."""

    def __init__(self, new_folder: Callable[[], Path]) -> None:
        self._new_folder = new_folder
        self._before = ""
        self.folder: Path | None = None

    def __enter__(self) -> Cold:
        self._before = config.cache_dir
        self.clear()
        return self

    def __exit__(self, *error: object) -> None:
        config.update("cache_dir", self._before)

    def clear(self) -> None:
        """Clear the caches of traces, plans and kernels, and use a new empty folder for kernels."""
        self.folder = self._new_folder()
        config.update("cache_dir", str(self.folder))
        clear_caches()
        engine.forget_plans()
        clear_kernels()

    def process(self, statement: str, setup: str = "", rounds: int = 1) -> ColdTimes:
        """Return the times of a statement in fresh processes with empty cache folders.

        `setup` contains the imports and the arguments. The process waits for the result of the
        statement.
        """
        return cold_process(statement, setup, rounds)


# --- comparisons ---


def compare(
    f: Callable[..., Any],
    args: Sequence[Any],
    peers: Mapping[str, Callable[[], Any]],
    rtol: float | None,
    atol: float,
    quick: bool,
    options: Mapping[str, Any],
) -> Measurement:
    """Measure a function and its peers, and compare the results; with `quick`, call each once.

    Raises:
        AssertionError: a peer has another result.
    """
    if quick:
        options = {"rounds": 1, "number": 1}
    measurement = timeit(f, *args, peers=peers, **options)
    if rtol is not None:  # after timing, because `timeit` also times the first call
        ours = _values(f(*args))
        for name, peer in peers.items():
            theirs = _values(peer())
            if len(theirs) != len(ours):
                raise AssertionError(
                    f"accnp_compare: {len(ours)} arrays in the result, {len(theirs)} in {name}'s"
                )
            for a, b in zip(ours, theirs):
                message = f"accnp_compare: {name} has another result"
                np.testing.assert_allclose(a, b, rtol, atol, err_msg=message)
    return replace(measurement, quick=quick)


def _values(result: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in tree_leaves(block_until_ready(result))]


def lines(measurement: Measurement) -> list[str]:
    """Return a comparison as lines of text."""
    mark = "" if measurement.reliable else "?  "
    median = seconds_text(measurement.median)
    out = [f"{mark}{measurement.name}: {median} (spread {measurement.spread:.0%})"]
    for name, ratio in measurement.ratios.items():
        out.append(f"{mark}{name}: {seconds_text(measurement.peers[name].median)}, ratio {ratio}")
    if not measurement.reliable:
        out.append(f"?  unreliable, {measurement.load}")
    return out
