"""Fast arithmetic: operations on floats that LLVM may reorder and fuse.

NaN and infinity keep their meaning: the flags `nnan` and `ninf` are not set.
"""

from __future__ import annotations

from llvmlite import ir
from llvmlite.ir import instructions

__all__ = ["FLAGS", "allow_fast"]

FLAGS = ("reassoc", "nsz", "arcp", "contract", "afn")
_OPERATIONS = ("fadd", "fsub", "fmul", "fdiv", "frem", "fcmp")
_FLOATS = (ir.FloatType, ir.DoubleType)


def allow_fast(module: ir.Module) -> None:
    """Set the flags of all operations of a module that have none.

    The formulas of mathematical functions mark their operations with a flag that has no effect on
    them (`scalars/ir.py`), since reordering would undo their compensated arithmetic.
    """
    for function in module.functions:
        for block in function.blocks:
            for i in block.instructions:
                if isinstance(i, instructions.CallInstr) and isinstance(i.type, _FLOATS):
                    i.fastmath.update(FLAGS)
                elif i.opname in _OPERATIONS and not i.flags:
                    i.flags = [*FLAGS]
