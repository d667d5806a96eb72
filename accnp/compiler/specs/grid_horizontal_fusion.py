"""Several maps in one launch on a GPU, each of which has a share of the thread blocks.

Input: descriptions of maps that write different elements. They are the cells of an index space that
is cut for an assembled value (concatenate, stack, roll). Output: a kernel, and how it is launched.
"""

from __future__ import annotations

from collections.abc import Sequence

from accnp.compiler.loops.ir import Kernel
from accnp.compiler.passes.join_kernels import join_kernels
from accnp.compiler.specs.grid import THREADS, build_for_grid
from accnp.ir.generated import GeneratedKernel
from accnp.ir.kernel import Access, KernelSpec

__all__ = ["fuse_horizontally_for_grid"]


def fuse_horizontally_for_grid(
    specs: Sequence[KernelSpec], wave: int
) -> tuple[Kernel, GeneratedKernel]:
    """Return the kernel that does several maps in one launch, and how it is launched."""
    out = GeneratedKernel()
    numbers: dict[int, int] = {}  # of arrays, by value
    places: list[list[int]] = []
    kernels: list[Kernel] = []
    total = work = 0
    for spec in specs:
        kernel, generated = build_for_grid(spec, wave)
        kernels.append(kernel)
        accesses = [a for a in generated.pointers if isinstance(a, Access)]
        for a in accesses:
            if id(a.value) not in numbers:
                numbers[id(a.value)] = len(numbers)
                first = Access(a.value, a.dtype, (), 0, a.store, numbers[id(a.value)])
                out.pointers.append(first)
        places.append([numbers[id(a.value)] for a in accesses])
        last, *ints = generated.ints
        out.ints += [total, generated.blocks, last, *[a.offset for a in accesses], *ints]
        total, work = total + generated.blocks, work + generated.extent * generated.weight
    out.ints.insert(0, total)
    out.extent, out.weight = total, max(1, work // max(1, total))
    out.threads, out.blocks = THREADS, total
    return join_kernels(kernels, places), out
