"""The limit that kernels are compared with, in words. In: nothing. Out: a sentence."""

from __future__ import annotations

from accnp.runtime.bandwidth import bandwidth, limit_load

__all__ = ["limit_text"]


def limit_text() -> str:
    """How fast a streaming copy is, and whether the machine was busy when that was measured."""
    text = f"a streaming copy moves {bandwidth() / 1e9:.1f} GB/s (caches are faster)"
    load = limit_load()
    return f"{text}, measured on a {load}" if load is not None and load.busy else text
