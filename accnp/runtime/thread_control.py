"""Our threads in the list of threadpoolctl: `threadpool_info` shows them, and `threadpool_limits`
limits them.

In: nothing; loaded once there are threads, or with threadpoolctl if that came first. The library
finds pools by their files, so that without the extension there is nothing to find.
"""

from __future__ import annotations

import threadpoolctl

from accnp.runtime import threads

__all__ = ["Controller"]


class Controller(threadpoolctl.LibController):
    """How threadpoolctl asks for the number of threads, and sets it."""

    user_api = internal_api = "accnp"
    filename_prefixes = ("_core",)
    check_symbols = ("accnp_threads",)

    def get_num_threads(self) -> int:
        """Return how many threads a kernel runs on at most."""
        return threads.most()

    def set_num_threads(self, num_threads: int) -> None:
        """Limit that; BLAS has a controller of its own."""
        threads.limit(num_threads)

    def get_version(self) -> None:
        """Return None: the pool has no version of its own."""


threadpoolctl.register(Controller)
