"""Kernels for GPUs: those of the loop IR, whose steps are dealt to threads.

In: a `KernelSpec`. Out: a kernel with `threads`, and how it is launched. What is covered so far:
maps along one axis.
"""

from __future__ import annotations

from accnp.codegen.generated import Generated
from accnp.codegen.grid_maps import WIDE, blocks_of, side_by_side
from accnp.codegen.grid_writer import THREADS, beside
from accnp.compiler.loops.ir import Kernel
from accnp.compiler.passes.spread import spread
from accnp.compiler.specs import build
from accnp.compiler.unsupported import Unsupported
from accnp.ir.kernel import KernelSpec

__all__ = ["build_for_grid"]


def build_for_grid(spec: KernelSpec, wave: int) -> tuple[Kernel, Generated]:
    """Return the kernel of a description for a GPU, and how it is launched.

    Parameters
    ----------
    spec : KernelSpec
        The description.
    wave : int
        How many blocks of threads the device holds at a time.

    Raises
    ------
    Unsupported
        If the loop IR does not cover it yet.
    """
    if spec.form != "map" or spec.outer or len(spec.inner) != 1:
        raise Unsupported("what is no map along one axis")
    kernel, out = build(spec)
    adjacent = bool(side_by_side(spec))
    several = WIDE if adjacent else beside("map", spec.cost)
    kernel = spread(kernel, THREADS, several, adjacent)
    (total,) = spec.inner
    out.ints.insert(0, total)
    out.threads, out.blocks = THREADS, blocks_of(spec, -(-total // several), wave, adjacent)
    return kernel, out
