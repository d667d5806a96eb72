"""A sentence that describes the bandwidth limit with which reports compare kernels."""

from __future__ import annotations

from accnp.runtime.bandwidth import bandwidth, limit_load

__all__ = ["limit_text"]


def limit_text() -> str:
    """Describe the bandwidth of a streaming copy, and whether the machine was busy then."""
    text = f"a streaming copy moves {bandwidth() / 1e9:.1f} GB/s (caches are faster)"
    load = limit_load()
    return f"{text}, measured on a {load}" if load is not None and load.busy else text
