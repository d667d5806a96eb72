"""Kernels that share another one among threads, by `spread(kernel, sharer, team, helpers, n, chunk,
...)` in the text of a loop.

In: the call. Out: LLVM IR that packs the arguments and calls the sharer (`team.SPREAD`) with a
function that takes chunks of 0..n from a counter; without helpers, the call itself.
"""

from __future__ import annotations

import ast
from typing import Any

from llvmlite import ir
from numba.core import types

__all__ = ["spread"]

_I64 = ir.IntType(64)
_WORDS = _I64.as_pointer()
_TASK = ir.FunctionType(ir.VoidType(), [_WORDS, _WORDS, _I64, _I64])
_SHARER = ir.FunctionType(ir.VoidType(), [_I64, _WORDS, _I64, _I64, _I64, _I64])


def spread(w: Any, node: ast.Call) -> Any:
    """Write such a call; `w` writes the kernel around it."""
    name, *others = node.args
    assert isinstance(name, ast.Name)
    callee = w.scope[name.id]
    values = [w.value(a) for a in others]
    sharer, team, helpers, n, chunk = [w.cast(v, types.int64) for v in values[:5]]
    kinds = callee.sig.args[2:]
    arguments = [w.cast(v, k) for v, k in zip(values[5:], kinds, strict=True)]
    kernel = w.declared(callee, [_I64, _I64, *[a.type for a in arguments]])
    task = _task(w.module, kernel)
    room = w.top.alloca(_I64, len(arguments))
    with w.b.if_else(w.b.icmp_signed(">", helpers, _I64(0))) as (shared, alone):
        with shared:
            for i, a in enumerate(arguments):
                word = w.b.ptrtoint(a, _I64) if isinstance(a.type, ir.PointerType) else a
                w.b.store(word, w.b.gep(room, [_I64(i)]))
            entry = w.b.inttoptr(sharer, _SHARER.as_pointer())
            w.b.call(entry, [w.b.ptrtoint(task, _I64), room, n, chunk, team, helpers])
        with alone:
            w.b.call(kernel, [_I64(0), n, *arguments])
    return types.none, w.context.get_dummy_value()


def _task(module: Any, kernel: Any) -> Any:
    """`task(argv, counter, n, chunk)`: chunks of a kernel until n is reached."""
    name = f"{kernel.name}_task"
    known = module.globals.get(name)
    if known is not None:
        return known
    made = ir.Function(module, _TASK, name)
    made.linkage = "internal"
    words, counter, n, chunk = made.args
    start, claim, work, out = [made.append_basic_block() for _ in range(4)]
    b = ir.IRBuilder(start)
    arguments = []
    for i, kind in enumerate(kernel.function_type.args[2:]):
        word = b.load(b.gep(words, [_I64(i)]))
        arguments.append(b.inttoptr(word, kind) if isinstance(kind, ir.PointerType) else word)
    b.branch(claim)
    b.position_at_end(claim)
    first = b.atomic_rmw("add", counter, chunk, "monotonic")
    b.cbranch(b.icmp_signed(">=", first, n), out, work)
    b.position_at_end(work)
    end = b.add(first, chunk)
    b.call(kernel, [first, b.select(b.icmp_signed("<", end, n), end, n), *arguments])
    b.branch(claim)
    b.position_at_end(out)
    b.ret_void()
    return made
