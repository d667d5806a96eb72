"""Execution of the threads of a block together, for the interpreter of kernels for GPUs.

It is used for kernels with barriers inside of loops over threads, or with functions of the values
of other lanes (votes, shuffles). Each thread of the block is a Python thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

__all__ = ["SYNCHRONIZING", "Block", "BlockThread"]

WARP_SIZE = 32  # lanes of a warp
TIMEOUT = 120.0  # seconds, after which waiting threads are taken for deadlocked
SYNCHRONIZING = frozenset(["barrier", "any_lane", "shuffle_down", "shuffle_xor", "shuffle_at"])


class Block:
    """The threads of a block."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.values: list[np.generic] = [np.bool_(False)] * count
        self.barrier = threading.Barrier(count)
        starts = range(0, count, WARP_SIZE)
        self.warps = [threading.Barrier(min(WARP_SIZE, count - k)) for k in starts]
        self.errors: list[BaseException] = []

    def run(self, work: Callable[[BlockThread], None]) -> None:
        """Run all threads; raises the error of a thread that fails."""

        def run_thread(k: int) -> None:
            try:
                with np.errstate(all="ignore"):
                    work(BlockThread(self, k))
            except BaseException as error:
                self.errors.append(error)
                for barrier in (self.barrier, *self.warps):
                    barrier.abort()

        workers = [threading.Thread(target=run_thread, args=(k,)) for k in range(self.count)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for error in self.errors:
            if not isinstance(error, threading.BrokenBarrierError):
                raise error
        if self.errors:
            raise RuntimeError(
                "run: deadlock: some threads wait at a barrier that others never reach"
            )


class BlockThread:
    """One thread of a block."""

    def __init__(self, block: Block, index: int) -> None:
        self.block = block
        self.index = index
        self.lane = index % WARP_SIZE

    def synchronize(self, function: str, args: list[np.generic]) -> np.generic | None:
        """Call a function that all threads of a block, or of a warp, call together."""
        if function == "barrier":
            self.block.barrier.wait(TIMEOUT)
            return None
        values = self.gather_warp(args[0])
        if function == "any_lane":
            return np.bool_(any(values))
        by = int(args[1])
        lane = {"shuffle_down": self.lane + by, "shuffle_xor": self.lane ^ by}.get(function, by)
        return values[lane] if 0 <= lane < len(values) else args[0]

    def gather_warp(self, x: np.generic) -> list[np.generic]:
        """Return the values of all lanes of the warp."""
        first = self.index - self.lane
        barrier = self.block.warps[first // WARP_SIZE]
        self.block.values[self.index] = x
        barrier.wait(TIMEOUT)
        values = self.block.values[first : first + WARP_SIZE]
        barrier.wait(TIMEOUT)
        return values
