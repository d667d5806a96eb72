"""Compile the library kernels for a level of x86-64, when the package is built.

In: a level (`processor.LEVELS`) and a folder. Out: one object file for each kernel, under the name
by which `prebuilt.py` finds it at run time. `setup.py` runs ``python -m
accnp.compiler.library.build LEVEL FOLDER`` in a separate process for each level, because the whole
process then generates code for that level.
"""

from __future__ import annotations

import os
import sys
import time

from accnp.compiler import disk_cache, processor
from accnp.compiler.library.prebuilt import file_name
from accnp.forks import imported

__all__ = ["build"]

# Kernels that are compiled for each machine: without the instructions that came after level v4,
# products of 16-bit integers take 17 % longer.
_LEFT_OUT = {"gemm_i2"}


def build(level: processor.Level, folder: str) -> int:
    """Compile the library kernels for a level into a folder; returns the number of kernels.

    All code that this process generates afterwards is for this level.
    """
    # The compiler reads the level when it is imported: by name, after the level is set.
    processor.build_for(level)
    compile, library = (
        imported("accnp.compiler.kernel_cache"),
        imported("accnp.compiler.library.library"),
    )
    objects = imported("accnp.compiler.llvm.objects")
    place = os.path.join(folder, level.name)
    os.makedirs(place, exist_ok=True)
    stamp, made = disk_cache.compiler_stamp(), set()
    for name, signature in library.SIGNATURES.items():
        if name in _LEFT_OUT:
            continue
        source = library.source(name, processor.VECTOR_BYTES)
        identity = compile.identity_of(source, name, signature)
        made.add(file_name(identity, level.name, stamp))
        with open(os.path.join(place, file_name(identity, level.name, stamp)), "wb") as file:
            file.write(objects.build(*compile.lower(source, name, signature)))
    for file in set(os.listdir(place)) - made:
        os.unlink(os.path.join(place, file))
    return len(made)


if __name__ == "__main__":
    begin, (_, wanted, target) = time.perf_counter(), sys.argv
    number = build(next(level for level in processor.LEVELS if level.name == wanted), target)
    print(f"{wanted}: {number} kernels in {time.perf_counter() - begin:.1f} s")
