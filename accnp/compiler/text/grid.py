"""KernelSpec to the source of a kernel for GPUs: `def kernel(pointers, sizes, strides)`.

In: a KernelSpec. Out: `Generated` with two more fields filled: `threads` of a block, and `blocks`,
as many as there is work for. The text holds no size, and every sum has the order that the
processor's kernels have: it depends on shapes alone, so that both give the same bits.

`grid_rows.py` has the folds along rows.
"""

from __future__ import annotations

from accnp.compiler.text.grid_rows import grid_row, grid_split
from accnp.compiler.text.grid_writer import Grid
from accnp.ir.generated import Generated
from accnp.ir.kernel import KernelSpec

__all__ = ["generate_grid"]

FORMS = {"row": grid_row, "split": grid_split}


def generate_grid(spec: KernelSpec, wave: int) -> Generated:
    """Write the source of a kernel for GPUs.

    `blocks` is a wish, except where `once` is set: any number of blocks of `threads` threads gives
    the result, and fewer than the device can hold at a time leave a part of it idle. `wave`: how
    many blocks of 256 threads the device holds at a time.
    """
    return _Form(spec, "kernel", wave).run()


class _Form(Grid):
    def form(self) -> None:
        FORMS[self.spec.form](self)
