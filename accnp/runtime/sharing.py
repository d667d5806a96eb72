"""Lower the calls by which a kernel of a loop runs another kernel on several threads.

In: the call `spread(kernel, sharer, team, helpers, n, chunk, ...)` in the source of a loop. Out:
LLVM IR that packs the arguments and calls the sharer, the function `spread` of `_native/team.c`,
with the entry of the kernel. `frontend.py` writes the entry after the kernel.
"""

from __future__ import annotations

import ast
from typing import Any

from llvmlite import ir
from numba.core import types

from accnp.compiler.llvm.lower import SHARED

__all__ = ["SHARED", "spread"]

_I64 = ir.IntType(64)
_WORDS = _I64.as_pointer()
_ENTRY = ir.FunctionType(ir.VoidType(), [_WORDS, _WORDS, _I64, _I64])
_SHARER = ir.FunctionType(ir.VoidType(), [_I64, _WORDS, _I64, _I64, _I64, _I64])


def spread(w: Any, node: ast.Call) -> Any:
    """Write the call; `w` is the writer of the kernel that contains it."""
    name, *others = node.args
    assert isinstance(name, ast.Name)
    callee = w.scope[name.id]
    values = [w.value(a) for a in others]
    sharer, team, helpers, n, chunk = [w.cast(v, types.int64) for v in values[:5]]
    kinds = callee.sig.args[2:]
    arguments = [w.cast(v, k) for v, k in zip(values[5:], kinds, strict=True)]
    symbol = callee.symbol + SHARED
    entry = w.module.globals.get(symbol) or ir.Function(w.module, _ENTRY, symbol)
    room = w.top.alloca(_I64, len(arguments))
    for i, a in enumerate(arguments):
        word = w.b.ptrtoint(a, _I64) if isinstance(a.type, ir.PointerType) else a
        w.b.store(word, w.b.gep(room, [_I64(i)]))
    share = w.b.inttoptr(sharer, _SHARER.as_pointer())
    w.b.call(share, [w.b.ptrtoint(entry, _I64), room, n, chunk, team, helpers])
    return types.none, w.context.get_dummy_value()
