"""Non-temporal stores of large results: when, and the arguments of the entries `BYPASS` and
`STREAM` of `_native/stores.c`.

A plain store first reads the cache line that it is going to overwrite, a third of the traffic of a
sum of two arrays. Kernels of one loop over all elements have non-temporal stores of their own
(`streams`), which `STREAM` asks for. `BYPASS` is for all others: the kernel, which knows nothing of
this, writes a few kilobytes at a time into scratch memory, from where non-temporal stores take them
to the result.

While a block is written, operands of the next one are fetched, or reading would wait for writing.

The arguments of BYPASS, before those of the kernel: its entry, the number of its arguments, steps
of the parallel index in a block, the number of results and that of operands, and for each of these
which argument it is and how many bytes one step writes or reads; these lie in memory in the order
of steps. A step is one value of the parallel index. STREAM has the entry alone before them.
"""

from __future__ import annotations

import ctypes

__all__ = ["RUN", "Pieces", "block_steps", "can_stream", "header"]

Pieces = tuple[tuple[int, int], ...]
SCRATCH = 1 << 12  # bytes of a block over all results, where a step writes less: stays in L1
RUN = 1 << 19  # bytes that one thread writes before another takes its turn
MOST = 1 << 18  # bytes of a block that is worth it: stays in L2


def block_steps(width: int) -> int:
    """How many steps that write this many bytes make a block; 0 if it does not pay."""
    if width > MOST:
        return 0
    found = max(1, SCRATCH // width)
    return found // 64 * 64 or found  # lines are written whole


def can_stream(entry: int) -> bool:
    """Whether a kernel has non-temporal stores, by the word before its entry."""
    return ctypes.c_int64.from_address(entry - 8).value == 1


def header(count: int, steps: int, results: Pieces, operands: Pieces) -> list[int]:
    """What stands between a kernel's entry and its arguments, which are so many."""
    words = [word for pair in (*results, *operands) for word in pair]
    return [count, steps, len(results), len(operands), *words]
