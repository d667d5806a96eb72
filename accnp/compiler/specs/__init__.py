"""Conversion of kernel descriptions (`ir.kernel.KernelSpec`) to loop IR.

Input: a `KernelSpec` from fusion. Output: a kernel, and how it is called: the integer arguments,
the extent of its range, and the partial results of a reduction in chunks. Sizes are arguments, and
strides are constants only if they are 0 or 1, so that one kernel serves all shapes of a layout.
Short axes are the exception: their sizes are constants.

`kernel_builder.py` builds the arguments and statements of all kernels. Each loop form has one file
with one function that adds its loops. The passes in `compiler/passes` then optimize the kernel.
"""

from __future__ import annotations

from accnp.compiler.loops.ir import Kernel
from accnp.compiler.specs.chunks import add_chunks
from accnp.compiler.specs.columns import add_columns, add_unrolled_columns
from accnp.compiler.specs.kernel_builder import KernelBuilder
from accnp.compiler.specs.maps import add_map
from accnp.compiler.specs.row_gathers import add_row_gathers
from accnp.compiler.specs.rows import add_rows
from accnp.compiler.specs.short_axes import has_short_axis, is_row_gather
from accnp.compiler.specs.unrolled_rows import add_unrolled_rows
from accnp.ir.generated import GeneratedKernel
from accnp.ir.kernel import KernelSpec

__all__ = ["build"]

_FORMS = {"map": add_map, "row": add_rows, "split": add_chunks, "column": add_columns}


def build(
    spec: KernelSpec, edge: bool = False, tiny: bool = False
) -> tuple[Kernel, GeneratedKernel]:
    """Return the kernel of a description, and how it is called.

    Parameters
    ----------
    spec : KernelSpec
        The description.
    edge : bool, optional
        Whether the kernel has the loops for long axes, like the larger cell next to it.
    tiny : bool, optional
        Whether it does all its steps in one call and will be specialized to its sizes
        (`launches.py`).
    """
    add = _FORMS[spec.form]
    if not edge and is_row_gather(spec):
        add = add_row_gathers
    elif not edge and has_short_axis(spec):
        add = add_unrolled_columns if spec.form == "column" else add_unrolled_rows
    builder = KernelBuilder(spec, edge, tiny)
    builder.start()
    add(builder)
    return builder.loop_ir.kernel(), builder.out
