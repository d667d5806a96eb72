"""What memory can do: a streaming copy by all threads, the limit that kernels are held against.

In: a number of bytes. Out: a call that moves them, or the bytes a second of such a call.
"""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from accnp.config import config
from accnp.forks import renewed
from accnp.runtime.machine_load import Load, machine_load

__all__ = ["bandwidth", "limit_load", "streaming_copy"]

_MOVED = 256 << 20  # the halves are larger than most caches
_ROUNDS = 7
_BUSY_ROUNDS = 21  # beside other work it takes longer to find a moment without it
_found: dict[Any, float] = {}
_loads: dict[Any, Load] = {}  # of the machine, while these were measured
_lock = renewed(threading.Lock())


def streaming_copy(moved: int) -> Callable[[], Any]:
    """A call that moves this many bytes: all threads together read half of them and write half.

    From some 24 MB on, the C library copies with non-temporal stores, which is the fastest way.
    """
    threads = config.threads
    share = moved // 2 // threads
    source, target = (np.ones(share * threads, np.uint8) for _ in range(2))
    jobs = [(target[k * share :], source[k * share :]) for k in range(threads)]

    # Threads are given arrays, and no addresses: an interrupt ends the call, and they go on.
    def move(target: np.ndarray, source: np.ndarray) -> None:
        ctypes.memmove(target.ctypes.data, source.ctypes.data, share)

    def copy() -> Any:
        others = [threading.Thread(target=move, args=job) for job in jobs[1:]]
        for thread in others:
            thread.start()
        move(*jobs[0])
        for thread in others:
            thread.join()
        return source, target

    return copy


def bandwidth(device: Any = None) -> float:
    """Bytes a second that a streaming copy moves with this number of threads, or inside a GPU;
    measured once per process (0.2 s, 0.6 s on a busy machine), on the first call."""
    with _lock:
        if device is not None:
            return _of_gpu(device)
        found = _found.get(config.threads)
        if found is None:
            copy = streaming_copy(_MOVED)
            copy()
            times = []
            before = machine_load()
            for _ in range(_BUSY_ROUNDS if before.busy else _ROUNDS):
                start = perf_counter()
                copy()
                times.append(perf_counter() - start)
            _loads[config.threads] = before.or_worse(machine_load())
            found = _found[config.threads] = _MOVED / min(times)
    return found


def limit_load(device: Any = None) -> Load | None:
    """The load of the machine while `bandwidth` was measured; None for a GPU."""
    if device is not None:
        return None
    bandwidth()
    return _loads[config.threads]


def _of_gpu(device: Any) -> float:
    if device not in _found:
        driver = importlib.import_module("accnp.runtime.device_buffer").driver_of(device)
        half = min(_MOVED, driver.stats()["free"] // 4)
        source, target = driver.alloc(half), driver.alloc(half)
        seconds = []
        for _ in range(_ROUNDS):
            begin = driver.event(True)
            driver.copy(target.ptr, source.ptr, half)
            end = driver.event(True)
            driver.wait(end)
            seconds.append(driver.elapsed(begin, end))
        _found[device] = 2 * half / min(seconds)
    return _found[device]
