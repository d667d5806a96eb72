"""A stamp of the C sources, by which an extension that was built from other ones is refused.

`setup.py` passes the stamp to the compiler, and `_native/__init__.py` compares the one in the
extension with the sources beside it, if there are some and they are newer. This file imports
nothing of accnp: `setup.py` loads it by path.
"""

import os
import zlib

__all__ = ["stamp_of"]


def stamp_of(folder: str) -> int:
    """Return the stamp of the C sources in a folder: 31 bits, which a C long has everywhere."""
    checksum = 0
    for name in sorted(os.listdir(folder)):
        if name.endswith((".c", ".h")):
            with open(os.path.join(folder, name), "rb") as file:
                checksum = zlib.crc32(name.encode() + b"\0" + file.read(), checksum)
    return checksum & 0x7FFFFFFF
