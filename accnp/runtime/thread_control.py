"""Register the thread pool with threadpoolctl: `threadpool_info` lists it, and `threadpool_limits`
limits it.

This module is imported when the pool starts its first thread, or at import if threadpoolctl is
loaded already. threadpoolctl finds pools by their shared libraries, so it does not find this pool
if the C extension is not in use.
"""

from __future__ import annotations

import threadpoolctl

from accnp.runtime import threads

__all__ = ["Controller"]


class Controller(threadpoolctl.LibController):
    """Get and set the number of threads for threadpoolctl."""

    user_api = internal_api = "accnp"
    filename_prefixes = ("_core",)
    check_symbols = ("accnp_threads",)

    def get_num_threads(self) -> int:
        """Return the largest number of threads on which a kernel runs."""
        return threads.max_threads()

    def set_num_threads(self, num_threads: int) -> None:
        """Limit that number; BLAS has its own controller."""
        threads.limit_threads(num_threads)

    def get_version(self) -> None:
        """Return None: the pool has no version of its own."""


threadpoolctl.register(Controller)
