"""Map memory for machine code, and find the C functions of the process.

`elf_loader.py` uses it for kernels, and `processor.py` for the functions that read `cpuid`. They
map memory, copy machine code to it, and make it executable; the functions return addresses. Memory
is never writable and executable at the same time. This works on systems with `mmap` (POSIX); on
others, such as Windows, `SUPPORTED` is False, and LLVM's linker loads all code.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os

from accnp._native import COMPILED, flush_instructions
from accnp.host_machine import MACHINE

__all__ = ["SUPPORTED", "find_function", "make_executable", "map_writable", "unmap"]

# x86 processors keep their instruction caches consistent with memory. Others need instructions for
# that, which only the C extension has.
SUPPORTED = os.name == "posix" and (MACHINE == "x86_64" or COMPILED)


@functools.cache
def _process() -> ctypes.CDLL:
    """Return the process as a library, with the types of the functions that map memory."""
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long,
    ]  # fmt: skip
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library


def map_writable(size: int) -> int:
    """Return the address of new memory, a whole number of pages.

    Raises:
        MemoryError: the system has no memory of this size.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    base = _process().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if base in (None, ctypes.c_void_p(-1).value):
        raise MemoryError(f"load: cannot allocate memory for a kernel; got size={size}")
    return base


def make_executable(base: int, size: int) -> bool:
    """Make memory executable, and no longer writable. Returns False if the system forbids it."""
    flush_instructions(base, size)
    return _process().mprotect(base, size, mmap.PROT_READ | mmap.PROT_EXEC) == 0


def unmap(base: int, size: int) -> None:
    """Unmap memory."""
    _process().munmap(base, size)


def find_function(name: str) -> int | None:
    """Return the address of a C function of the process, or None."""
    try:
        return ctypes.cast(_process()[name], ctypes.c_void_p).value
    except AttributeError:
        return None
