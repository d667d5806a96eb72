"""The functions that the lowerings of ops name (`ir.op.Lowering`).

The declaration of an op names the functions of this folder that write its kernels, and those that
call CuPy. The engine asks for them when it plans an op that fusion does not put into a generated
kernel. Their modules are loaded on first use, so that a program loads the families that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel
from accnp.ir.op import Op
from accnp.lazy_imports import imported

if TYPE_CHECKING:
    from types import ModuleType

    from accnp.compiler.library.cupy.array_types import Array, Arrays
    from accnp.ir.op_types import Params


__all__ = ["Writer", "gpu_call_of", "writer"]

# Writes a kernel from operands, avals of the results, and parameters; returns None for unsupported
# layouts and dtypes.
Writer = Callable[[Sequence[Operand], Sequence[Aval], "Params"], OwnKernel | None]


def writer(name: str) -> Writer | None:
    """Return the writer that a lowering names; None for no name."""
    return getattr(*_find_function(name)) if name else None


def gpu_call_of(op: Op) -> Callable[..., Array | Arrays | None] | None:
    """Return the function that computes an op for GPUs: that of a user's kernel, which gets the
    driver, or a function of `cupy/calls.py`. None if there is none."""
    if op.cuda is not None:
        return op.cuda
    name = op.lowering.gpu
    return getattr(*_find_function(name)) if name else None


def _find_function(name: str) -> tuple[ModuleType, str]:
    """Return the module that a lowering names, and the name of the function in it."""
    module, _, function = name.rpartition(".")
    return imported(f"accnp.compiler.library.{module}"), function
