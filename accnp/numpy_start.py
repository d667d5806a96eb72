"""Imports NumPy without starting the idle threads of its OpenBLAS.

In: nothing. Out: NumPy is loaded, and OpenBLAS will share work among as many threads as usual.

When it is loaded, OpenBLAS starts threads that look for work for 2^28 cycles: 110 ms of a core, as
much CPU as all else that a short program needs. Here it is loaded for one thread, told the usual
number, and its threads are ended: it starts them with the first call that it shares among threads,
as it does in a forked process. Where NumPy is loaded already, or the user has chosen a number of
threads, nothing is done.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from typing import Any

__all__ = ["load_numpy"]

# By which users choose; OpenBLAS reads them when it is loaded.
_VARIABLES = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
# How OpenBLAS's functions are called in NumPy's wheels, with and without indices of 64 bits, and in
# other distributions.
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
    library = ctypes.CDLL(module.__file__)  # and what it was linked with
    count, use = _function(library, "get_num_procs"), _function(library, "set_num_threads")
    if use is not None:
        use(count() if count is not None else len(os.sched_getaffinity(0)))
        if hasattr(library, "blas_thread_shutdown_"):
            library.blas_thread_shutdown_()


def _function(library: ctypes.CDLL, name: str) -> Any:
    found = [each for form in _NAMES if hasattr(library, each := form.format(name))]
    return getattr(library, found[0]) if found else None
