"""Compile the library kernels and the kernels of matrix products for a level of x86-64, when the
package is built.

In: a level (`processor.LEVELS`) and a folder. Out: one object file for each kernel, under the name
by which `prebuilt.py` finds it at run time. `setup.py` runs ``python -m
accnp.compiler.library.build LEVEL FOLDER`` in a separate process for each level, because the whole
process then generates code for that level.
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
from accnp.forks import imported
from accnp.ir.aval import make_aval
from accnp.ir.kernel import Operand
from accnp.primitives.views import contiguous

__all__ = ["build"]

# Kernels that are compiled for each machine: without the instructions that came after level v4,
# products of 16-bit integers take 17 % longer.
_LEFT_OUT = {"gemm_i2"}


# Products whose kernels are compiled: the shapes of the operands, and the number of batch axes.
# Sizes and strides are arguments, so that a few products have the kernels of nearly all: those of
# matrices and of a matrix and a vector, in one task and in several, and batches of small ones.
_PRODUCTS: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
    ((3, 3), (3, 3), 0), ((64, 64), (64, 64), 0), ((1024, 1024), (1024, 1024), 0),
    ((3, 3), (3,), 0), ((40, 40), (40,), 0), ((200, 200), (200,), 0), ((3000, 3000), (3000,), 0),
    ((3,), (3, 3), 0), ((40,), (40, 40), 0), ((200,), (200, 200), 0), ((3000,), (3000, 3000), 0),
    ((9, 32, 32), (9, 32, 32), 1), ((64, 64, 64), (64, 64, 64), 1), ((9, 32, 32), (32, 32), 0),
]  # fmt: skip


def _product_kernels() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the sources and signatures of the kernels of products."""
    found = {}
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
            found[kernel.source, signature] = None
    yield from found


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
    stamp = disk_cache.compiler_stamp()
    made: set[str] = set()
    kernels = [
        (name, library.source(name, processor.VECTOR_BYTES), signature)
        for name, signature in library.SIGNATURES.items()
        if name not in _LEFT_OUT
    ]
    kernels += [("kernel", *kernel) for kernel in _product_kernels()]
    for name, source, signature in kernels:
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
