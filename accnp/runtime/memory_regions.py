"""Where memory lies, for tests of overlap: at addresses, or in files that are mapped.

A file that is mapped twice, for example by `numpy.memmap` with the modes "r" and "r+", has two
addresses. Writing through one map changes what the other shows. A `Region` of mapped memory is
therefore a part of the file, whose device, inode and offset Linux lists in `/proc/self/maps`.
"""

from __future__ import annotations

import mmap
import sys
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["Block", "Region", "block_of", "is_mapped", "regions_of"]

_MAPS = Path("/proc/self/maps")


class Block(NamedTuple):
    """Memory of this process: the addresses of its ends, and the object that owns it."""

    start: int
    stop: int
    owner: object


class Region(NamedTuple):
    """A part of a file, or of the memory of this process if `file` is None."""

    file: tuple[str, str] | None
    start: int
    stop: int

    def overlaps(self, other: Region) -> bool:
        """Return whether both have some memory in common."""
        return self.file == other.file and self.start < other.stop and other.start < self.stop


# Without /proc/self/maps, all mapped memory counts as one file: results are copied needlessly.
_UNKNOWN = Region(("", ""), 0, sys.maxsize)


def block_of(x: np.ndarray) -> Block:
    """Return the block in which the elements of an array lie."""
    return Block(*np.lib.array_utils.byte_bounds(x), x)


def is_mapped(owner: object) -> bool:
    """Return whether an object is a map of a file, or a view of one."""
    while owner is not None:
        if isinstance(owner, mmap.mmap):
            return True
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return False


def regions_of(blocks: Sequence[Block], with_files: bool) -> list[Region]:
    """Return the regions of blocks; without `with_files`, all are regions of addresses.

    Reading the list of maps takes 0.1 to 1 ms. It is needed only if mapped memory is written.
    """
    if not with_files:
        return [Region(None, b.start, b.stop) for b in blocks]
    try:
        lines = _MAPS.read_text(errors="replace").splitlines()
    except OSError:
        return [_UNKNOWN if is_mapped(b.owner) else Region(None, b.start, b.stop) for b in blocks]
    fields = [line.split(None, 5) for line in lines]
    starts = [int(f[0].partition("-")[0], 16) for f in fields]
    regions: list[Region] = []
    for b in blocks:
        i = bisect_right(starts, b.start) - 1
        if i < 0 or fields[i][4] == "0":  # anonymous memory has no inode
            regions.append(Region(None, b.start, b.stop))
        else:
            shift = int(fields[i][2], 16) - starts[i]
            regions.append(Region((fields[i][3], fields[i][4]), b.start + shift, b.stop + shift))
    return regions
