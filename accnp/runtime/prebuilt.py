"""Kernels of the library as object files that come with the package, for a level of x86-64 each.

In: what tells a kernel from others (`compile.get_kernel`). Out: its object file, if the package has
it for this processor. Library kernels do not depend on programs, and compiling them takes a tenth
of a second and more: the first matrix product of a process took 0.2 s, and 0.05 with these files.

The build of the package makes the files: `setup.py` runs ``python -m accnp.runtime.prebuilt``. The
name of a file has a digest of the kernel's text and of the compiler's source, so that a file of
another version is not used; then, and where there are no files, kernels are compiled as others are.
"""

from __future__ import annotations

import functools
import os
import sys
import time

from accnp.forks import imported
from accnp.runtime import diskcache, machine

__all__ = ["build", "count", "find"]

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "prebuilt")


# Products of 16-bit integers take 17 % longer without the instructions that came after level v4.
_NEWER = {"gemm_i2"}


@functools.cache
def _files() -> dict[str, str]:
    """The names of the files for this processor, by kernel."""
    if not machine.LEVEL or sys.platform != "linux":
        return {}
    try:
        names = os.listdir(os.path.join(FOLDER, machine.LEVEL))
    except OSError:
        names = []
    return {name.partition("-")[0]: name for name in names}


def find(identity: tuple[str, ...], cache: diskcache.DiskCache | None) -> bytes | None:
    """The object file of a kernel, or None. The cache knows what stands for the compiler."""
    file = _files().get(identity[0])
    if not file or file != file_name(identity, machine.LEVEL, diskcache.compiler_stamp(cache)):
        return None
    try:
        with open(os.path.join(FOLDER, machine.LEVEL, file), "rb") as opened:
            return opened.read()
    except OSError:
        return None


def count() -> int:
    """How many kernels the package has for this processor."""
    return len(_files())


def file_name(identity: tuple[str, ...], level: str, stamp: str) -> str:
    """The name of the object file of a kernel, made by the compiler with this stamp."""
    key = diskcache.digest("\0".join([level, stamp, *identity]).encode())
    return f"{identity[0]}-{key.hex()[:32]}.o"


def build(level: machine.Level, folder: str) -> int:
    """Compile all kernels of the library for a level into a folder; returns how many there are.

    Only in a process of its own, which compiles for this level from then on.
    """
    machine.build_for(level)
    imported("accnp.compiler.llvm.processor").choose(machine.VECTOR_BYTES)
    compile, library = imported("accnp.runtime.compile"), imported("accnp.kernels.library")
    objects = imported("accnp.runtime.objects")
    place = os.path.join(folder, level.name)
    os.makedirs(place, exist_ok=True)
    stamp, made = diskcache.compiler_stamp(), set()
    for name, signature in library.SIGNATURES.items():
        if name in _NEWER:
            continue
        source = library.source(name, machine.VECTOR_BYTES)
        identity = compile.identity_of(source, name, signature)
        made.add(file_name(identity, level.name, stamp))
        with open(os.path.join(place, file_name(identity, level.name, stamp)), "wb") as file:
            file.write(objects.build(*compile.lower(source, name, signature)))
    for file in set(os.listdir(place)) - made:
        os.unlink(os.path.join(place, file))
    return len(made)


if __name__ == "__main__":
    begin, (_, wanted, target) = time.perf_counter(), sys.argv
    number = build(next(level for level in machine.LEVELS if level.name == wanted), target)
    print(f"{wanted}: {number} kernels in {time.perf_counter() - begin:.1f} s")
