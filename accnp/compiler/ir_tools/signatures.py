"""Types of the functions and procedures that kernels call.

The scalar functions are in `loops/functions.py`, and the intrinsics in `compiler/llvm/intrinsics`.
The front end, the parser and the verifier use this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accnp.compiler.loops.functions import result_of
from accnp.compiler.loops.types import F4, I8, DType, Type
from accnp.lazy_imports import imported

if TYPE_CHECKING:
    from accnp.compiler.llvm.intrinsics.table import Resolved

__all__ = ["find_intrinsic", "is_of_gpu", "procedure", "type_of_call"]


def find_intrinsic(name: str, of: Sequence[Type]) -> Resolved | None:
    """Return the result type, the parameter types and the code of an intrinsic; None if there is
    none with this name for arguments of these types."""
    # Loaded on first use, because intrinsics need llvmlite and kernels of fusion do not.
    return imported("accnp.compiler.llvm.intrinsics.all").resolve(name, tuple(of))


def is_of_gpu(name: str) -> bool:
    """Return whether an intrinsic exists in kernels for GPUs only."""
    intrinsic = imported("accnp.compiler.llvm.intrinsics.all").TABLE.get(name)
    return intrinsic is not None and intrinsic.gpu


def type_of_call(name: str, of: Sequence[Type]) -> Type | None:
    """Return the type of the result of a function for arguments of these types; None if it does not
    accept them."""
    if name == "nontemporal_requested":
        return None if of else I8
    numbers = [t for t in of if isinstance(t, DType)]
    result: Type | None = result_of(name, numbers) if len(numbers) == len(of) else None
    return result or procedure(name, of)[0]


def procedure(name: str, of: Sequence[Type]) -> tuple[Type | None, bool]:
    """Return the type of the result of a procedure, and whether it accepts arguments of these types
    without conversion. Half-precision numbers are float32 in registers."""
    intrinsic = find_intrinsic(name, of)
    if intrinsic is None:
        return None, False
    result, params, _ = intrinsic
    takes = all(t == p or (t.kind == "half" and p == F4) for t, p in zip(of, params, strict=True))
    return (result if takes else None), takes
