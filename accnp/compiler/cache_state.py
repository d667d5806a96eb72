"""Counters of compiled kernels, the kernels that are being compiled, and the current disk cache.

The kernel cache, the background compiler, the PTX cache and the compiler of users' GPU kernels
share this state. The runtime counts launches here, and `inspect` and `explain` read the counters.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from accnp._native import launches
from accnp.config import config
from accnp.debug_log import note
from accnp.forks import at_fork
from accnp.lazy_imports import imported

if TYPE_CHECKING:
    from collections.abc import Hashable

    from accnp.compiler.disk_cache import DiskCache

__all__ = ["Counters", "compile_locks", "counters", "disk_cache", "is_compiling"]


class Counters:
    """Counts of compiled, found and launched kernels; debug mode fills `events`."""

    __slots__ = (
        "_before", "_launches", "compiles", "disk_hits", "events", "memory_hits", "seconds",
    )  # fmt: skip

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Set all counts to zero."""
        self.compiles = 0
        self.disk_hits = 0
        self.memory_hits = 0
        self.seconds = 0.0  # spent on compiling and loading kernels
        self._launches, self._before = 0, launches()
        self.events: list[tuple[str, str]] = []

    @property
    def launches(self) -> int:
        """The number of kernel launches; a launch on several threads counts once."""
        return self._launches + launches() - self._before

    def launched(self, count: int = 1) -> None:
        """Count launches that do not use `Kernel.call`; -1 corrects for a launch of something
        else than a kernel (`runtime/threads.py`)."""
        self._launches += count

    def event(self, what: str, kernel: str, text: str) -> None:
        """Record and log an event of a kernel, in debug mode."""
        self.events.append((what, kernel))
        note(f"{kernel}: {text}")

    def as_dict(self) -> dict[str, int]:
        """Return the counts, to compare them before and after."""
        return {
            "compiles": self.compiles,
            "disk_hits": self.disk_hits,
            "memory_hits": self.memory_hits,
            "launches": self.launches,
        }


counters = Counters()

# A lock for each kernel that is being compiled for a caller, by its key.
compile_locks: dict[Hashable, threading.RLock] = {}
at_fork(compile_locks.clear)  # a child process does not have the threads that were compiling


def is_compiling() -> bool:
    """Return whether a kernel is being compiled for a caller."""
    return bool(compile_locks)


_disk: DiskCache | None = None


def disk_cache() -> DiskCache | None:
    """Return the disk cache under the current options; None if it is off."""
    global _disk
    folder = config.cache_dir
    if not folder or not config.enable_compilation_cache:
        return None
    cache = _disk
    if cache is None or cache.folder != os.fspath(folder):
        cache = _disk = imported("accnp.compiler.disk_cache").DiskCache(folder)
    cache.limit = config.cache_max_bytes
    return cache
