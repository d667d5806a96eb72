"""Find library kernels, and kernels of matrix products that call them, that were compiled when the
package was built.

The package contains one object file for each kernel and level of x86-64, written by
`build_library.py`. The input is the identity of a kernel (`kernel_cache.identity_of`), and the
output is its object file, if there is one for this processor. These kernels do not depend on the
user's program, and compiling one takes 0.1 s or more. With these files, the first matrix product of
a process does not load LLVM.
"""

from __future__ import annotations

import functools
import os
import sys

from accnp.compiler import disk_cache, processor
from accnp.errors import PACKAGE_DIR

__all__ = ["count", "file_name", "find"]

FOLDER = os.path.join(PACKAGE_DIR, "prebuilt")


@functools.cache
def _files() -> dict[str, set[str]]:
    """Return the names of the files for this processor, by the names of the kernels."""
    if not processor.LEVEL or sys.platform != "linux":
        return {}
    try:
        names = os.listdir(os.path.join(FOLDER, processor.LEVEL))
    except OSError:
        names = []
    files: dict[str, set[str]] = {}
    for name in names:
        files.setdefault(name.partition("-")[0], set()).add(name)
    return files


def find(identity: tuple[str, ...], cache: disk_cache.DiskCache | None) -> bytes | None:
    """Return the object file of a kernel, or None. The cache provides the compiler's stamp."""
    files = _files().get(identity[0])
    if not files:
        return None
    file = file_name(identity, processor.LEVEL, disk_cache.compiler_stamp(cache))
    if file not in files:
        return None
    try:
        with open(os.path.join(FOLDER, processor.LEVEL, file), "rb") as opened:
            return opened.read()
    except OSError:
        return None


def count() -> int:
    """Return the number of kernels that the package has for this processor."""
    return sum(map(len, _files().values()))


def file_name(identity: tuple[str, ...], level: str, stamp: str) -> str:
    """Return the name of the object file of a kernel, compiled by the compiler with this stamp.

    The name contains a digest of the kernel's source and of the compiler's. If there is no file of
    this name, because the file is missing or was built by another version, the kernel is compiled
    like any other.
    """
    key = disk_cache.digest("\0".join([level, stamp, *identity]).encode())
    return f"{identity[0]}-{key.hex()[:32]}.o"
