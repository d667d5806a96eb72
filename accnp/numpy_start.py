"""Import NumPy without starting the idle threads of its OpenBLAS.

When OpenBLAS is loaded, it starts threads that poll for work for 2^28 cycles. This takes 110 ms of
CPU time, as much as the rest of a short program. `load_numpy` therefore loads it for one thread,
sets the usual number of threads, and ends its threads. OpenBLAS then starts them with the first
call that uses several threads, as it does in a forked process. Nothing is changed if NumPy is
already loaded or if the user has chosen a number of threads.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from typing import Any

__all__ = ["load_numpy"]

# Variables with which users choose the number of threads. OpenBLAS reads them when it is loaded.
_VARIABLES = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
# The names of OpenBLAS's functions in NumPy's wheels, with and without 64-bit indices, and in other
# distributions.
_NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


def load_numpy() -> None:
    """Import NumPy."""
    chosen = "numpy" in sys.modules or not {*_VARIABLES}.isdisjoint(os.environ)
    if chosen or sys.platform != "linux":
        importlib.import_module("numpy")
        return
    os.environ[_VARIABLES[0]] = "1"
    try:
        importlib.import_module("numpy")
    finally:
        del os.environ[_VARIABLES[0]]
    module = sys.modules["numpy._core._multiarray_umath"]
    library = ctypes.CDLL(module.__file__)  # also finds symbols of linked libraries
    count = _find_function(library, "get_num_procs")
    set_threads = _find_function(library, "set_num_threads")
    if set_threads is not None:
        set_threads(count() if count is not None else len(os.sched_getaffinity(0)))
        if hasattr(library, "blas_thread_shutdown_"):
            library.blas_thread_shutdown_()


def _find_function(library: ctypes.CDLL, name: str) -> Any:
    names = [each for form in _NAMES if hasattr(library, each := form.format(name))]
    return getattr(library, names[0]) if names else None
