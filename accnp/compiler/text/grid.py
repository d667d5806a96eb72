"""KernelSpec to the source of a kernel for GPUs: `def kernel(pointers, sizes, strides)`.

In: a KernelSpec. Out: `Generated` with two more fields filled: `threads` of a block, and `blocks`,
as many as there is work for. The text holds no size, and every sum has the order that the
processor's kernels have: it depends on shapes alone, so that both give the same bits.

`grid_maps.py` has the maps, `grid_rows.py` the folds along rows, `grid_columns.py` those down
columns. Folds along short rows are the processor's kernel, each index of which is a task for a
thread (`Generated.tasks`).
"""

from __future__ import annotations

from accnp.compiler.numba.source import numba_source
from accnp.compiler.passes.unroll import unroll
from accnp.compiler.specs.launches import generated
from accnp.compiler.specs.short_axes import is_short
from accnp.compiler.text.grid_columns import grid_column
from accnp.compiler.text.grid_maps import grid_map
from accnp.compiler.text.grid_rows import grid_row, grid_split
from accnp.compiler.text.grid_writer import THREADS, WAVE, Grid
from accnp.ir.generated import Generated
from accnp.ir.kernel import KernelSpec

__all__ = ["generate_grid"]

FORMS = {"map": grid_map, "row": grid_row, "split": grid_split, "column": grid_column}


def generate_grid(spec: KernelSpec, name: str = "kernel", wave: int = WAVE) -> Generated:
    """Write the source of a kernel for GPUs.

    `blocks` is a wish, except where `once` is set: any number of blocks of `threads` threads gives
    the result, and fewer than the device can hold at a time leave a part of it idle. Where `tasks`
    is set, the source is one for the processor: compile it so, and launch it with the extent before
    the ints. `wave`: how many blocks of 256 threads the device holds at a time.
    """
    if spec.form != "row" or not is_short(spec):
        return _Form(spec, name, wave).run()
    out = generated(spec)
    out.source = numba_source(unroll(out.kernel)._replace(name=name))
    out.kernel = out.tiny = None
    out.tasks, out.threads, out.blocks = True, THREADS, -(-out.extent // THREADS)
    return out


class _Form(Grid):
    def form(self) -> None:
        FORMS[self.spec.form](self)
