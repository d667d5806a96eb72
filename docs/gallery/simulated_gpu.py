"""A simulated GPU for notebooks that write CUDA kernels, and what it counts.

accnp compiles kernels to PTX, the assembly language of NVIDIA's GPUs, without a GPU. The test suite
has an interpreter of PTX, which runs all threads of a launch and knows about warps, barriers, and
the kinds of memory. `find_gpu` installs it as accnp's GPU, and `count_launches` says what each
launch did. The interpreter is exact about results and memory accesses. It knows nothing of time.

On a machine with a GPU, use `accnp.devices("gpu")[0]` in the place of `find_gpu()`.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import accnp
from accnp.runtime import driver

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # numba.cuda is deprecated as a part of Numba
    import numba.cuda  # noqa: F401
from cuda import interpreter
from cuda.fake import FakeDriver

BANKS, WORD, SECTOR = 32, 4, 32  # of shared memory; bytes of a word and of a sector


@dataclass
class Launch:
    """What all warps of a launch did together."""

    instructions: int = 0  # the longest way through the kernel
    sectors: int = 0  # pieces of 32 bytes of global memory that were moved
    least_sectors: int = 0  # as many as would hold the bytes that were asked for
    shared_accesses: int = 0  # accesses of warps to shared memory
    shared_passes: int = 0  # as many as these take: one for each word of the fullest bank
    atomics: int = 0  # atomic operations of warps, in any memory
    atomic_passes: int = 0  # as many as these take: one for each thread at the same address
    ptx: str = field(default="", repr=False)


class CountingMachine(interpreter.Machine):
    """A launch that counts accesses to shared memory and atomic operations, too."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.launch = Launch()

    def note(self, address: np.ndarray, chosen: Any, width: int) -> None:
        super().note(address, chosen, width)
        if not interpreter.SHARED <= int(address.min()) < interpreter.GLOBAL // 2:
            return
        words = np.unique(np.stack([self.warp[chosen], address // WORD]), axis=1)
        banks = words[0] * BANKS + words[1] % BANKS
        used, count = np.unique(banks, return_counts=True)
        warps, first = np.unique(used // BANKS, return_index=True)
        self.launch.shared_accesses += len(warps)
        self.launch.shared_passes += int(np.maximum.reduceat(count, first).sum())

    def note_atomic(self, address: np.ndarray, chosen: Any) -> None:
        places, count = np.unique(
            np.stack([self.warp[chosen], address]), axis=1, return_counts=True
        )
        warps, first = np.unique(places[0], return_index=True)
        self.launch.atomics += len(warps)
        self.launch.atomic_passes += int(np.maximum.reduceat(count, first).sum())


class SimulatedGpu(FakeDriver):
    """The driver of the simulated GPU; `launches` has what was counted."""

    def __init__(self) -> None:
        super().__init__()
        self.launches: list[Launch] = []

    def launch(self, *args: Any) -> interpreter.Machine:  # type: ignore[override]
        machine = super().launch(*args)
        counts = machine.launch
        counts.instructions = machine.steps
        counts.sectors, counts.least_sectors = machine.sectors, machine.least
        counts.ptx = machine.module.text
        self.launches.append(counts)
        return machine


_gpu: list[SimulatedGpu] = []


def find_gpu() -> accnp.Device:
    """The simulated GPU."""
    if not _gpu:
        interpreter.Machine = CountingMachine
        _gpu.append(SimulatedGpu())
        driver.install(lambda: _gpu)
    return accnp.devices("gpu")[0]


@contextlib.contextmanager
def count_launches() -> Iterator[list[Launch]]:
    """A list that receives what is counted in each launch of the block, once it has ended."""
    found: list[Launch] = []
    (gpu,) = _gpu
    before = len(gpu.launches)
    yield found
    found += gpu.launches[before:]
