"""Build loop IR from the description of a kernel that fusion makes (`ir.kernel.KernelSpec`).

In: a `KernelSpec`. Out: a kernel, and how it is called: the integer arguments, the extent of its
range, and the partial results of a fold in chunks. Sizes are arguments, and strides are constants
only if they are 0 or 1, so that one kernel serves all shapes of a layout. The exception are short
axes, whose sizes are constants.

`statements` has the arguments and statements of all kernels; each form of kernel has one file, with
one function that adds its loops.
"""

from __future__ import annotations

from accnp.compiler.loops.ir import Kernel
from accnp.compiler.specs.chunks import add_chunks
from accnp.compiler.specs.columns import add_columns, add_short_columns
from accnp.compiler.specs.maps import add_map
from accnp.compiler.specs.picks import add_picks
from accnp.compiler.specs.rows import add_rows
from accnp.compiler.specs.short import add_short
from accnp.compiler.specs.short_axes import is_picked, is_short
from accnp.compiler.specs.statements import Statements
from accnp.ir.generated import Generated
from accnp.ir.kernel import KernelSpec

__all__ = ["build"]

_FORMS = {"map": add_map, "row": add_rows, "split": add_chunks, "column": add_columns}


def build(spec: KernelSpec, edge: bool = False, tiny: bool = False) -> tuple[Kernel, Generated]:
    """Return the kernel of a description, and how it is called.

    Parameters
    ----------
    spec : KernelSpec
        The description.
    edge : bool, optional
        Whether the kernel is made as if it were long, as what lies beside it is.
    tiny : bool, optional
        Whether it does all of its steps at once, and will have its sizes in it (`launches`).
    """
    add = _FORMS[spec.form]
    if not edge and is_picked(spec):
        add = add_picks
    elif not edge and is_short(spec):
        add = add_short_columns if spec.form == "column" else add_short
    made = Statements(spec, edge, tiny)
    made.start()
    add(made)
    return made.b.kernel(), made.out
