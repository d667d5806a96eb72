"""Compile library kernels in advance, when the package is built.

`setup.py` runs ``python -m accnp.compiler.build_library LEVEL FOLDER`` once for each level of
x86-64 (`processor.LEVELS`), in a separate process, because the whole process then generates code
for that level. The script compiles the library kernels (`library.py`) and the kernels of common
matrix products (`products/dot_general.py`). It writes one object file for each kernel to FOLDER.
At run time, `prebuilt.py` finds a file by its name, which contains a digest of the kernel's source
and of the compiler's, so that the first product of a process does not need LLVM.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Iterator

import numpy as np

from accnp.compiler import disk_cache, processor
from accnp.compiler.library.prebuilt import file_name
from accnp.compiler.library.products.dot_general import dot_general
from accnp.ir.aval import make_aval
from accnp.ir.kernel import Operand
from accnp.lazy_imports import imported
from accnp.primitives.views import contiguous

__all__ = ["build"]

# Kernels that are compiled on the user's machine instead: without instructions that level v4 does
# not have, products of 16-bit integers take 17 % longer.
_NOT_PREBUILT = {"gemm_i2"}

# Products whose kernels are compiled: the shapes of the operands, and the number of batch axes.
# Sizes and strides are arguments of kernels, so the kernels of these products are also those of
# nearly all others: products of matrices, products of a matrix and a vector, with one task and with
# several, and batches of small products.
_PRODUCTS: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
    ((3, 3), (3, 3), 0), ((64, 64), (64, 64), 0), ((1024, 1024), (1024, 1024), 0),
    ((3, 3), (3,), 0), ((40, 40), (40,), 0), ((200, 200), (200,), 0), ((3000, 3000), (3000,), 0),
    ((3,), (3, 3), 0), ((40,), (40, 40), 0), ((200,), (200, 200), 0), ((3000,), (3000, 3000), 0),
    ((9, 32, 32), (9, 32, 32), 1), ((64, 64, 64), (64, 64, 64), 1), ((9, 32, 32), (32, 32), 0),
]  # fmt: skip


def _product_kernels() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the sources and signatures of the kernels of products."""
    kernels: dict[tuple[str, tuple[str, ...]], None] = {}
    for (left, right, batch), code in itertools.product(_PRODUCTS, ("f4", "f8")):
        dtype = np.dtype(code)
        a, b = (Operand(shape, dtype, contiguous(shape)) for shape in (left, right))
        names = tuple(range(batch))
        inner = ((len(left) - 1,), (max(0, len(right) - 2),))
        rest = [n for k, n in enumerate(right) if k not in (*names, *inner[1])]
        result = make_aval((*left[:-1], *rest), dtype)
        own = dot_general([a, b], [result], {"dimension_numbers": (inner, (names, names))})
        assert own is not None
        pointers = [code] * 3 + [memory for memory, _ in own.memory]
        for kernel in (own, *own.then):
            signature = (*[f"{each}*" for each in pointers], *["i8"] * len(kernel.ints))
            kernels[kernel.source, signature] = None
    yield from kernels


def build(level: processor.Level, folder: str) -> int:
    """Compile the library kernels for a level into a folder, and return the number of kernels.

    All code that this process generates afterwards is for this level.
    """
    # The compiler reads the level when it is imported, so it is imported after the level is set.
    processor.build_for(level)
    kernel_cache = imported("accnp.compiler.kernel_cache")
    library = imported("accnp.compiler.library.library")
    objects = imported("accnp.compiler.llvm.objects")
    level_folder = os.path.join(folder, level.name)
    os.makedirs(level_folder, exist_ok=True)
    stamp = disk_cache.compiler_stamp()
    written: set[str] = set()
    kernels = [
        (name, library.source(name, processor.VECTOR_BYTES), signature)
        for name, signature in library.SIGNATURES.items()
        if name not in _NOT_PREBUILT
    ]
    kernels += [("kernel", *kernel) for kernel in _product_kernels()]
    for name, source, signature in kernels:
        identity = kernel_cache.identity_of(source, name, signature)
        file = file_name(identity, level.name, stamp)
        with open(os.path.join(level_folder, file), "wb") as opened:
            opened.write(objects.build(*kernel_cache.lower(source, name, signature)))
        written.add(file)
    for file in set(os.listdir(level_folder)) - written:
        os.unlink(os.path.join(level_folder, file))
    return len(written)


if __name__ == "__main__":
    begin, (_, level_name, target) = time.perf_counter(), sys.argv
    number = build(next(level for level in processor.LEVELS if level.name == level_name), target)
    print(f"{level_name}: {number} kernels in {time.perf_counter() - begin:.1f} s")
