"""Set the number of threads of the BLAS libraries to `config.threads`.

threadpoolctl finds the libraries that NumPy and SciPy have loaded. Each library has one number of
threads for the whole process: the one that was set last, by `update` or by entering or leaving
`with threads(n)` in any thread. While a task of a stream runs, the number is the one with which the
task was submitted.
"""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from typing import Any

from accnp._native import blas_alone
from accnp.config import config, listeners, usable_cpus
from accnp.forks import at_fork, renewed
from accnp.lazy_imports import has_scipy_blas, load_extension

__all__ = ["follow", "thread_calls"]

# The number that the libraries have. They start with all CPUs, or with the number in environment
# variables such as OPENBLAS_NUM_THREADS; it is changed when another number is first wanted.
_applied = usable_cpus()
# Set by the program's threads, once one has changed an option.
_requested_threads: int | None = None
_controller: Any = None
_scipy = False  # whether the controller has found that library
_lock = renewed(threading.Lock())
_mine = threading.local()


def follow(loaded: bool = False) -> None:
    """Set the libraries to this thread's number; `loaded`: a library has just been loaded."""
    _apply_limit(config.threads, loaded)


@cache
def thread_calls() -> dict[str, int]:
    """Return the addresses of the functions that kernels call around calls of LAPACK that run best
    on one thread (`_native/blas.c`), for the OpenBLAS that SciPy is linked with."""
    module = load_extension("scipy.linalg.cython_lapack")
    library = ctypes.CDLL(module.__file__)  # its symbols and those of the linked libraries
    switches = [0, 0]  # for a BLAS other than OpenBLAS
    for prefix in ("scipy_openblas", "openblas"):
        names = [f"{prefix}_{verb}_num_threads" for verb in ("get", "set")]
        if all(hasattr(library, name) for name in names):
            switches = [ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in names]
            break
    at_fork(lambda: blas_alone(*switches))  # no thread of the parent calls LAPACK in the child
    return dict(zip(("blas_alone", "blas_shared"), blas_alone(*switches), strict=True))


def mark_worker() -> None:
    """Mark the calling thread as a worker: it does not change the number that the program wants."""
    _mine.is_worker = True


def _apply_limit(threads: int, loaded: bool = False) -> None:
    global _applied, _controller, _scipy
    # SciPy is loaded on first use, by reference functions or by the user.
    loaded = loaded or (not _scipy and has_scipy_blas())
    if threads == _applied and not (loaded and _controller is not None):
        return
    import threadpoolctl  # takes 10 ms, so it is imported only to change the number

    with _lock:
        if _controller is None or loaded:
            _scipy = has_scipy_blas()
            _controller = threadpoolctl.ThreadpoolController()
        for library in _controller.select(user_api="blas").lib_controllers:
            # In threadpoolctl 3.8, only the first calling thread can set the number.
            free = getattr(library, "clear_controlling_thread", None)
            if free:
                free(force=True)
            library.set_num_threads(threads)
            if free:
                free()
        _applied = threads


def _update_limit() -> None:
    global _requested_threads
    if not hasattr(_mine, "is_worker"):
        _requested_threads = config.threads
    _apply_limit(_requested_threads or config.threads)


listeners.append(_update_limit)
