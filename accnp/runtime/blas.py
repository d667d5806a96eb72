"""The threads of the BLAS libraries in this process follow `config.threads`.

In: nothing; the libraries that NumPy and SciPy have loaded are found by threadpoolctl. They have
one number of threads for the whole process: whoever changed it last, with `update` or on entering
or leaving `with threads(n)`, has set it.
"""

from __future__ import annotations

import threading
from typing import Any

from accnp.config import config, default_threads, listeners
from accnp.forks import renewed

__all__ = ["follow"]

# What the libraries have. They start with all CPUs, or with what the user's environment says (e.g.
# OPENBLAS_NUM_THREADS): nothing is touched until somebody wants another number.
_applied = default_threads()
_controller: Any = None
_lock = renewed(threading.Lock())


def follow(loaded: bool = False) -> None:
    """Give the libraries this thread's number of threads; `loaded` says that one has just come."""
    global _applied, _controller
    if config.threads == _applied and not (loaded and _controller is not None):
        return
    import threadpoolctl  # 10 ms, for those who change the number only

    with _lock:
        if _controller is None or loaded:
            _controller = threadpoolctl.ThreadpoolController()
        for library in _controller.select(user_api="blas").lib_controllers:
            library.set_num_threads(config.threads)
        _applied = config.threads


def _changed() -> None:
    if config.threads != _applied:
        follow()


listeners.append(_changed)
