"""The function `stopped(count, mask)`, with which a loop in a kernel asks whether to end early.

`_native/interrupts.c` sets a flag when a long launch is interrupted, for example by Ctrl-C. Loops
that may run long call this function in each iteration; it reads the flag only if count & mask is 0.
"""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.library.routines import STOPPED
from accnp.compiler.llvm.intrinsics.table import Resolved, define
from accnp.compiler.llvm.scalars.ir import I64, call_external
from accnp.compiler.loops.types import B1, DTYPES, Type

__all__: list[str] = []

_INT = DTYPES["i8"]


def _write_stopped(b: ir.IRBuilder, count: ir.Value, mask: ir.Value) -> ir.Value:
    """Emit whether the launch must end; the flag is read only if count & mask is 0."""
    zero = ir.Constant(I64, 0)
    before = b.block
    with b.if_then(b.icmp_signed("==", b.and_(count, mask), zero), likely=False):
        stopped = b.icmp_signed("!=", call_external(b, STOPPED, I64, []), zero)
        reading = b.block
    result = b.phi(ir.IntType(1))
    result.add_incoming(ir.Constant(ir.IntType(1), 0), before)
    result.add_incoming(stopped, reading)
    return result


def _resolve_stopped(count: Type, mask: Type) -> Resolved:
    return B1, (_INT, _INT), _write_stopped


define("stopped", 2, _resolve_stopped, acts=True)
