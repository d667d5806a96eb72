"""Intrinsics of kernels for GPUs that have no entry in the table of intrinsics: memory that a block
shares, and wide loads.

In: scalar Numba values and pointers. Out: ``NAMESPACE``, the globals of kernels for GPUs: the names
below and all of `namespace`.

    shared_f4(n)...               n elements that the block shares; n is a constant
    load4(p, i) store4(p, i, x0, x1, x2, x3) part(v, k)    and the same for 2
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba.core import types

from accnp.compiler.llvm.scalars.ir import I8, I32
from accnp.compiler.numba import namespace
from accnp.compiler.numba.halves import Half, loaded, register_type, stored
from accnp.compiler.numba.namespace import SCALARS

__all__ = ["NAMESPACE"]

NAMESPACE: dict[str, Any] = dict(namespace.NAMESPACE)
define = functools.partial(namespace.define, into=NAMESPACE)


def _shared(name: str, t: Any) -> None:
    pointer = types.CPointer(t)

    def rule(n: Any) -> Any:
        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            kind = ir.ArrayType(context.get_data_type(t), args[0].constant)
            count = sum(g.startswith("accnp.shared") for g in b.module.globals)
            room = ir.GlobalVariable(b.module, kind, f"accnp.shared.{count}", addrspace=3)
            room.initializer, room.linkage = ir.Constant(kind, ir.Undefined), "internal"  # type: ignore[assignment]
            room.align = 16  # type: ignore[assignment]
            return b.addrspacecast(room, context.get_value_type(pointer))

        return pointer, (types.int64,), emit

    define(f"shared_{name}", 1, rule)


def _element(t: Any) -> Any:
    """The type in which elements are loaded side by side: booleans are bytes."""
    return types.uint8 if t is types.boolean else t


def _load(count: int) -> None:
    def rule(p: Any, i: Any) -> Any:
        if not isinstance(p, types.CPointer) or isinstance(p.dtype, types.Complex):
            return None
        t = _element(p.dtype)

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            kind = context.get_data_type(t)
            vector = ir.VectorType(kind, count)
            place = b.bitcast(b.gep(args[0], [args[1]]), vector.as_pointer())
            v = b.load(place, align=count * context.get_abi_sizeof(kind))
            each = register_type(context, t)
            out = ir.Constant(ir.ArrayType(each, count), ir.Undefined)
            for k in range(count):
                x = b.extract_element(v, ir.Constant(I32, k))
                x = loaded(b, t, x) if isinstance(t, Half) else x
                out = b.insert_value(out, x, k)
            return out

        return types.UniTuple(t, count), (p, types.int64), emit

    define(f"load{count}", 2, rule)


def _store(count: int) -> None:
    def rule(p: Any, i: Any, *xs: Any) -> Any:
        if not isinstance(p, types.CPointer) or isinstance(p.dtype, types.Complex):
            return None
        t = p.dtype

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            kind = context.get_data_type(_element(t))
            vector = ir.VectorType(kind, count)
            v = ir.Constant(vector, ir.Undefined)
            for k, x in enumerate(args[2:]):
                x = b.zext(x, I8) if t is types.boolean else x
                x = stored(b, t, x) if isinstance(t, Half) else x
                v = b.insert_element(v, x, ir.Constant(I32, k))
            place = b.bitcast(b.gep(args[0], [args[1]]), vector.as_pointer())
            b.store(v, place, align=count * context.get_abi_sizeof(kind))
            return context.get_dummy_value()

        return types.void, (p, types.int64, *[t] * count), emit

    define(f"store{count}", 2 + count, rule)


def _part(v: Any, k: Any) -> Any:
    if not isinstance(v, types.UniTuple):
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.extract_value(args[0], args[1].constant)

    return v.dtype, (v, types.int64), emit


define("part", 2, _part)
for _name, _type in SCALARS.items():
    _shared(_name, _type)
for _count in (2, 4):
    _load(_count)
    _store(_count)
