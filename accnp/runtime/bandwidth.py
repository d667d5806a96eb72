"""Measure the memory bandwidth of the machine, the limit to which `explain` compares kernels.

It takes a number of bytes, and returns a function that copies them with all threads (a streaming
copy), or the bytes per second that such a copy moves.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from accnp.config import config
from accnp.forks import renewed
from accnp.lazy_imports import imported
from accnp.runtime.machine_load import Load, machine_load

if TYPE_CHECKING:
    from accnp.runtime.device import Device

__all__ = ["bandwidth", "limit_load", "streaming_copy"]

_MOVED = 256 << 20  # the halves are larger than most caches
_ROUNDS = 7
_BUSY_ROUNDS = 21  # on a busy machine, fewer rounds run without interference
# By number of threads, or by GPU.
_rates: dict[int | Device, float] = {}
_loads: dict[int, Load] = {}  # of the machine, during these measurements
_lock = renewed(threading.Lock())


def streaming_copy(moved: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """Return a function that moves this many bytes: all threads together read half and write half.

    For more than about 24 MB, the C library copies with non-temporal stores, the fastest way.
    """
    threads = config.threads
    share = moved // 2 // threads
    source, target = (np.ones(share * threads, np.uint8) for _ in range(2))
    jobs = [(target[k * share :], source[k * share :]) for k in range(threads)]

    # Threads get arrays instead of addresses: they continue if an interrupt ends the call.
    def move(target: np.ndarray, source: np.ndarray) -> None:
        ctypes.memmove(target.ctypes.data, source.ctypes.data, share)

    def copy() -> tuple[np.ndarray, np.ndarray]:
        others = [threading.Thread(target=move, args=job) for job in jobs[1:]]
        for thread in others:
            thread.start()
        move(*jobs[0])
        for thread in others:
            thread.join()
        return source, target

    return copy


def bandwidth(device: Device | None = None) -> float:
    """Return the bytes per second that a streaming copy moves with this number of threads, or
    inside a GPU. The first call of a process measures it (0.2 s, or 0.6 s on a busy machine)."""
    with _lock:
        if device is not None:
            return _measure_gpu_bandwidth(device)
        rate = _rates.get(config.threads)
        if rate is None:
            copy = streaming_copy(_MOVED)
            copy()
            times: list[float] = []
            before = machine_load()
            for _ in range(_BUSY_ROUNDS if before.busy else _ROUNDS):
                start = perf_counter()
                copy()
                times.append(perf_counter() - start)
            _loads[config.threads] = before.worse_of(machine_load())
            rate = _rates[config.threads] = _MOVED / min(times)
    return rate


def limit_load(device: Device | None = None) -> Load | None:
    """Return the load of the machine while `bandwidth` was measured; None for a GPU."""
    if device is not None:
        return None
    bandwidth()
    return _loads[config.threads]


def _measure_gpu_bandwidth(device: Device) -> float:
    if device not in _rates:
        driver = imported("accnp.runtime.device_buffer").driver_of(device)
        half = min(_MOVED, driver.stats()["free"] // 4)
        source, target = driver.alloc(half), driver.alloc(half)
        seconds: list[float] = []
        for _ in range(_ROUNDS):
            begin = driver.event(True)
            driver.copy(target.ptr, source.ptr, half)
            end = driver.event(True)
            driver.wait(end)
            seconds.append(driver.elapsed(begin, end))
        _rates[device] = 2 * half / min(seconds)
    return _rates[device]
