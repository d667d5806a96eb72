"""A checksum of the C sources, which detects an extension that was built from other sources.

`setup.py` compiles the checksum into the extension. `_native/__init__.py` compares it with the
sources in the same folder, if any of them is newer than the extension. This file imports nothing of
accnp, because `setup.py` loads it by its path.
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
