"""The function with which loops send messages to other processes (`_native/messages.c`).

``send_message(address, x, out, nbytes)`` returns whether the loop is to end, because of an error.
"""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.library.routines import MESSAGE
from accnp.compiler.llvm.intrinsics.table import Resolved, define
from accnp.compiler.llvm.scalars.ir import I8, I64, call_external
from accnp.compiler.loops.types import B1, DTYPES, Pointer, Type

__all__: list[str] = []

_INT = DTYPES["i8"]


def _write_message(
    b: ir.IRBuilder, address: ir.Value, x: ir.Value, out: ir.Value, nbytes: ir.Value
) -> ir.Value:
    memory = I8.as_pointer()
    passed = [address, b.bitcast(x, memory), b.bitcast(out, memory), nbytes]
    return b.icmp_signed("!=", call_external(b, MESSAGE, I64, passed), ir.Constant(I64, 0))


def _rule(address: Type, x: Type, out: Type, nbytes: Type) -> Resolved | None:
    if not isinstance(x, Pointer) or not isinstance(out, Pointer):
        return None
    return B1, (_INT, x, out, _INT), _write_message


define("send_message", 4, _rule, acts=True)
