"""What the choice of loops depends on beside descriptions of kernels: the engine says it."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["permutes"]

# Whether vectors are permuted by a register (AVX-512).
permutes: Callable[[], bool] = lambda: False  # noqa: E731
