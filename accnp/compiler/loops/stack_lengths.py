"""The lengths of stack buffers.

`stack_f4()`, `tile_f4()`, `slab_f4()` and `cell_f4()` in the text of a kernel return a buffer of
float32 numbers; there is such a function for each dtype. The front end and both back ends allocate
the buffers, the interpreter of library kernels uses NumPy arrays for them, and the texts of kernels
depend on the number of elements.
"""

from __future__ import annotations

from accnp.ir.kernel import BLOCK

__all__ = ["STACK_LENGTHS"]

STACK_LENGTHS = {"stack": BLOCK, "tile": 4 * BLOCK, "slab": 16 * BLOCK, "cell": 1}
