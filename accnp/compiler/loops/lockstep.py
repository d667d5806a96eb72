"""Execution of the threads of a block together, for the interpreter of kernels for GPUs.

It is used for kernels with barriers inside of loops over threads, or with functions of the values
of other lanes (votes, shuffles). Each thread of the block is a Python thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["MEETINGS", "Block", "Member"]

LANES = 32  # lanes of a warp
PATIENCE = 120.0  # seconds after which waiting threads are assumed to be deadlocked
MEETINGS = frozenset(["barrier", "any_lane", "shuffle_down", "shuffle_xor", "shuffle_at"])


class Block:
    """The threads of a block."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.values: list[Any] = [None] * count
        self.all = threading.Barrier(count)
        starts = range(0, count, LANES)
        self.warps = [threading.Barrier(min(LANES, count - k)) for k in starts]
        self.errors: list[BaseException] = []

    def run(self, work: Callable[[Member], None]) -> None:
        """Run all threads; raises the error of a thread that fails."""

        def alone(k: int) -> None:
            try:
                with np.errstate(all="ignore"):
                    work(Member(self, k))
            except BaseException as error:
                self.errors.append(error)
                for barrier in (self.all, *self.warps):
                    barrier.abort()

        workers = [threading.Thread(target=alone, args=(k,)) for k in range(self.count)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for error in self.errors:
            if not isinstance(error, threading.BrokenBarrierError):
                raise error
        if self.errors:
            raise RuntimeError("run: some threads wait for others, which do not come")


class Member:
    """One thread of a block."""

    def __init__(self, block: Block, number: int) -> None:
        self.block = block
        self.number = number
        self.lane = number % LANES

    def meet(self, function: str, args: list[Any]) -> Any:
        """Call a function that all threads of a block, or of a warp, call together."""
        if function == "barrier":
            self.block.all.wait(PATIENCE)
            return None
        values = self.exchanged(args[0])
        if function == "any_lane":
            return np.bool_(any(values))
        by = int(args[1])
        lane = {"shuffle_down": self.lane + by, "shuffle_xor": self.lane ^ by}.get(function, by)
        return values[lane] if 0 <= lane < len(values) else args[0]

    def exchanged(self, x: Any) -> list[Any]:
        """Return the values of all lanes of the warp."""
        first = self.number - self.lane
        barrier = self.block.warps[first // LANES]
        self.block.values[self.number] = x
        barrier.wait(PATIENCE)
        found = self.block.values[first : first + LANES]
        barrier.wait(PATIENCE)
        return found
