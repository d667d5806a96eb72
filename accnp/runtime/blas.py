"""The threads of the BLAS libraries in this process follow `config.threads`.

In: nothing; the libraries that NumPy and SciPy have loaded are found by threadpoolctl. They have
one number of threads for the whole process: which of the user's threads changed it last, with
`update` or on entering or leaving `with threads(n)`, has set it. Work of a stream has its own
number while it runs.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from functools import cache
from typing import Any

from accnp._native import blas_alone
from accnp.config import config, listeners, usable_cpus
from accnp.forks import at_fork, has_loaded_extension, load_extension, renewed

__all__ = ["alone_calls", "follow"]

# What the libraries have. They start with all CPUs, or with what the user's environment says (e.g.
# OPENBLAS_NUM_THREADS): nothing is changed until another number is wanted.
_applied = usable_cpus()
_wanted: int | None = None  # by the user's threads, once one has changed a switch
_controller: Any = None
_SCIPYS = "scipy.linalg.cython_blas"  # a module that comes with a library of SciPy's own
_scipy = False  # whether the controller knows that
_lock = renewed(threading.Lock())
_mine = threading.local()


def follow(loaded: bool = False) -> None:
    """Give the libraries this thread's number of threads; `loaded` says that one has just come."""
    _apply(config.threads, loaded)


@cache
def alone_calls() -> dict[str, int]:
    """The functions that kernels call around calls of LAPACK which are best left to one thread
    (`_native/blas.c`): their addresses, for the OpenBLAS that SciPy was linked with."""
    module = load_extension("scipy.linalg.cython_lapack")
    library = ctypes.CDLL(module.__file__)  # its symbols, and those of what it was linked with
    switches = [0, 0]  # another BLAS
    for prefix in ("scipy_openblas", "openblas"):
        names = [f"{prefix}_{verb}_num_threads" for verb in ("get", "set")]
        if all(hasattr(library, name) for name in names):
            switches = [ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in names]
            break
    at_fork(lambda: blas_alone(*switches))  # no thread of the parent calls LAPACK in the child
    return dict(zip(("blas_alone", "blas_shared"), blas_alone(*switches), strict=True))


def _scipy_loaded() -> bool:
    return _SCIPYS in sys.modules or has_loaded_extension("scipy.linalg")


def serve() -> None:
    """Say that the calling thread works for others: what it leaves behind is what they want."""
    _mine.serves = True


def _apply(threads: int, loaded: bool = False) -> None:
    global _applied, _controller, _scipy
    # SciPy is loaded on first use, by reference functions or by the user.
    loaded = loaded or (not _scipy and _scipy_loaded())
    if threads == _applied and not (loaded and _controller is not None):
        return
    import threadpoolctl  # 10 ms, for those who change the number only

    with _lock:
        if _controller is None or loaded:
            _scipy = _scipy_loaded()
            _controller = threadpoolctl.ThreadpoolController()
        for library in _controller.select(user_api="blas").lib_controllers:
            # In threadpoolctl 3.8 calls do nothing but in the thread that was first.
            free = getattr(library, "clear_controlling_thread", None)
            if free:
                free(force=True)
            library.set_num_threads(threads)
            if free:
                free()
        _applied = threads


def _changed() -> None:
    global _wanted
    if not hasattr(_mine, "serves"):
        _wanted = config.threads
    _apply(_wanted or config.threads)


listeners.append(_changed)
