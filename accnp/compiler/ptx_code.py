"""`Ptx`: the data structure for the PTX of a GPU kernel."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NEWEST", "Ptx"]

# Newer GPUs run PTX for this one. LLVM aborts the process if a version of PTX is too old for a GPU.
NEWEST = (9, 0)


class Ptx(NamedTuple):
    """A kernel as PTX: its name in the text, the text, and the most threads of a block."""

    name: str
    text: str
    threads: int
