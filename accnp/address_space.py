"""Checks whether a process under a memory limit has enough address space to load or compile code.

Under RLIMIT_AS (`ulimit -v`), an allocation fails as soon as the address space is used up. LLVM
then ends the process, and the loader of shared libraries raises OSError or ImportError. The
functions of this module check before such an operation, and convert such errors to MemoryError.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys

__all__ = ["has_room", "is_shortage", "make_shortage_error", "size_of_openblas"]

_TEXTS = (
    "cannot allocate memory", "failed to map segment", "cannot map", "not enough memory",
    "can't allocate", "can't start new thread",
)  # fmt: skip


def has_room(nbytes: int) -> bool:
    """Return whether the system would map this many bytes. Systems without limits always would."""
    if sys.platform == "win32":
        return True
    import resource  # it does not exist on Windows

    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return True
    try:
        mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        return False
    return True


def is_shortage(error: BaseException | None) -> bool:
    """Return whether an error, or one that caused it, was raised because memory was missing."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        if isinstance(error, OSError | ImportError | RuntimeError):
            if getattr(error, "errno", None) == errno.ENOMEM:
                return True
            if any(text in str(error).lower() for text in _TEXTS):
                return True
        error = error.__cause__ or error.__context__
    return False


def make_shortage_error(what: str, nbytes: int) -> MemoryError:
    """Return the error for a lack of memory; `what` says which function needs it, and why."""
    return MemoryError(
        f"{what}; got a request of {nbytes} bytes ({nbytes / 2**20:.3g} MiB); free memory, or "
        "raise the limit of the process"
    )


def size_of_openblas() -> int:
    """Return the address space that OpenBLAS needs when it is loaded. It waits forever for a buffer
    that it cannot map.

    OpenBLAS 0.3.31 of SciPy 1.17 takes 58 MiB, and 40 MiB more for each thread but the first: a
    buffer of 32 MiB and a stack.
    """
    threads = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        threads = len(os.sched_getaffinity(0))
    for name in ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"):  # as it reads them
        setting = os.environ.get(name, "")
        if setting.isdecimal() and int(setting):
            threads = min(threads, int(setting))
            break
    return (64 + 40 * (threads - 1)) << 20
