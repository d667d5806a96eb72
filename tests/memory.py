"""Measure the bytes in use, for tests that memory does not grow.

Requires Linux with glibc, and PYTHONMALLOC=malloc to include Python's own objects.
"""

import ctypes
import gc
import platform

import pytest

needs_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="asks malloc of glibc")


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    ]  # fmt: skip


def in_use():
    """Return the bytes allocated by malloc, and those of compiled code.

    Resident memory would also include free memory of the allocator and whole pages, which may have
    2 MB.
    """
    gc.collect()
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Mallinfo2
    info = mallinfo2()
    with open("/proc/self/maps") as file:
        maps = [x.split() for x in file]
    code = [x[0].split("-") for x in maps if x[1] == "r-xp" and len(x) == 5]
    return info.uordblks + info.hblkhd + sum(int(end, 16) - int(start, 16) for start, end in code)
