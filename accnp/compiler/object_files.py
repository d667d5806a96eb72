"""Several object files as one byte string.

The modules of a kernel are compiled in parallel to one object file each. The back end
(`llvm/objects.py`) joins them, the disk cache stores the result, and the loader (`elf_loader.py`)
splits it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

__all__ = ["join_object_files", "split_object_files"]

_FRAME = struct.Struct("<Q")


def join_object_files(images: Sequence[bytes]) -> bytes:
    """Return object files as one byte string, each after its length."""
    return b"".join(_FRAME.pack(len(image)) + image for image in images)


def split_object_files(data: bytes) -> list[bytes]:
    """Return the object files that `join_object_files` has joined."""
    images: list[bytes] = []
    while data:
        (size,) = _FRAME.unpack_from(data)
        images.append(data[_FRAME.size : _FRAME.size + size])
        data = data[_FRAME.size + size :]
    return images
