"""Kernels for GPUs: those of the loop IR, whose steps are dealt to threads.

In: a `KernelSpec`. Out: a kernel with `threads`, and how it is launched. What is covered so far:
maps along one axis, and folds of short rows, of which a thread does one at a time.
"""

from __future__ import annotations

from accnp.compiler.frontend.users import users_functions
from accnp.compiler.loops.ir import Kernel
from accnp.compiler.passes.spread import spread
from accnp.compiler.specs import build
from accnp.compiler.specs.short_axes import is_short
from accnp.compiler.text.grid_maps import WIDE, blocks_of, side_by_side
from accnp.compiler.text.grid_writer import THREADS, beside
from accnp.compiler.unsupported import Unsupported
from accnp.ir.generated import Generated
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
    if spec.form == "map" and not spec.outer and len(spec.inner) == 1:
        adjacent = bool(side_by_side(spec))
        several = WIDE if adjacent else beside("map", spec.cost)
    elif spec.form == "row" and is_short(spec):
        several, adjacent = 1, False
    else:
        raise Unsupported("a kernel that is neither a map along one axis nor a fold of short rows")
    kernel, out = build(spec)
    if users_functions(kernel):
        raise Unsupported("functions of users")
    kernel = spread(kernel, THREADS, several, adjacent)
    out.ints.insert(0, out.extent)
    out.threads, out.blocks = THREADS, blocks_of(spec, -(-out.extent // several), wave, adjacent)
    return kernel, out
