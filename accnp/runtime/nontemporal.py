"""Decide when kernels write large results with non-temporal stores, and how they are launched then.

It takes the bytes that a step of the parallel index reads and writes, and returns the block size
and the arguments of the entries `STAGED_STORES` and `STREAMING_STORES` of `_native/stores.c`.

A plain store first reads the cache line that it overwrites, which adds a third to the traffic of a
sum of two arrays. Kernels of one loop over all elements contain non-temporal stores, which
`STREAMING_STORES` enables. All other kernels are launched by `STAGED_STORES`: the kernel writes a
few kilobytes at a time into scratch memory, from which non-temporal stores copy them to the result.
Meanwhile the operands of the next block are prefetched; otherwise its loads would wait for these
stores.

STAGED_STORES takes these words before the arguments of the kernel: the entry of the kernel, the
number of its arguments, the steps in a block, the numbers of results and of operands, and for each
of these the number of the argument and the bytes that one step writes or reads. Results and
operands lie in memory in the order of the steps. STREAMING_STORES takes only the entry before the
arguments.
"""

from __future__ import annotations

import ctypes

__all__ = ["RUN", "Pieces", "block_steps", "can_stream", "header"]

Pieces = tuple[tuple[int, int], ...]
SCRATCH = 1 << 12  # bytes of all results in a block, if a step writes less: fits into L1
RUN = 1 << 19  # bytes that a thread writes without interruption
MOST = 1 << 18  # bytes of the largest block for which this pays: fits into L2


def block_steps(width: int) -> int:
    """Return the steps in a block if a step writes `width` bytes; 0 if blocks do not pay."""
    if width > MOST:
        return 0
    steps = max(1, SCRATCH // width)
    return steps // 64 * 64 or steps  # blocks of whole cache lines


def can_stream(entry: int) -> bool:
    """Return whether a kernel has non-temporal stores: the word before its entry says so."""
    return ctypes.c_int64.from_address(entry - 8).value == 1


def header(count: int, steps: int, results: Pieces, operands: Pieces) -> list[int]:
    """Return the words of STAGED_STORES between the entry of a kernel and its `count` arguments."""
    words = [word for pair in (*results, *operands) for word in pair]
    return [count, steps, len(results), len(operands), *words]
