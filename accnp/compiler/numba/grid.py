"""Intrinsics of kernels for GPUs: who a thread is, shuffles, barriers, memory that is shared, wide
loads, atomics.

In: scalar Numba values and pointers. Out: ``NAMESPACE``, the globals of kernels for GPUs: the names
below and all of `namespace`.

    thread() threads()            this thread of the grid, and how many there are
    thread_of_block() threads_of_block() block_of_grid() blocks() lane() warp()
    barrier()                     wait for all threads of the block
    shuffle_down(x, d) shuffle_xor(x, d) shuffle_at(x, k)     values of other lanes of the warp
    shared_f4(n)...               n elements that the block shares; n is a constant
    load4(p, i) store4(p, i, x0, x1, x2, x3) part(v, k)    and the same for 2
    address(p)                    of an element, as an int64
    atomic_add(p, i, x) atomic_min atomic_max     p[i] and x combined, atomically
    mantissa(x) exponent(x) raised(m, e)      of products whose exponents are kept apart
    any_lane(test)                whether it is true of a lane of the warp
    quotient(x, m, s)             x // n for 0 <= x < 2^31, with m and s from `magic`
    divided(x, inverse(d))        x / d of float32, for many x and one d
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types

from accnp.compiler.llvm.scalars.ir import I1, I8, I32, I64
from accnp.compiler.llvm.spreading import register, thread, threads
from accnp.compiler.numba import namespace
from accnp.compiler.numba.halves import Half, loaded, register_type, stored
from accnp.compiler.numba.namespace import SCALARS

__all__ = ["NAMESPACE"]

NAMESPACE: dict[str, Any] = dict(namespace.NAMESPACE)
define = functools.partial(namespace.define, into=NAMESPACE)
_WHOLE = ir.Constant(I32, -1)


def _index(name: str, write: Callable[[Any], Any]) -> None:
    define(name, 0, lambda: (types.int64, (), lambda context, b, sig, args: write(b)))


_index("thread", thread)
_index("threads", threads)
_index("thread_of_block", lambda b: register(b, "tid.x"))
_index("threads_of_block", lambda b: register(b, "ntid.x"))
_index("block_of_grid", lambda b: register(b, "ctaid.x"))
_index("blocks", lambda b: register(b, "nctaid.x"))
_index("lane", lambda b: b.and_(register(b, "tid.x"), ir.Constant(I64, 31)))
_index("warp", lambda b: b.lshr(register(b, "tid.x"), ir.Constant(I64, 5)))


def _barrier() -> Any:
    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        name = "llvm.nvvm.barrier.cta.sync.aligned.all"
        kind = ir.FunctionType(ir.VoidType(), [I32])
        fn = b.module.globals.get(name) or ir.Function(b.module, kind, name)
        b.call(fn, [ir.Constant(I32, 0)])
        return context.get_dummy_value()

    return types.void, (), emit


def _words(b: Any, value: Any, act: Callable[[Any], Any]) -> Any:
    """Do something to a value by words of 32 bits."""
    t = value.type
    width = {"float": 32, "double": 64}.get(str(t)) or t.width
    bits = value if isinstance(t, ir.IntType) else b.bitcast(value, ir.IntType(width))
    if width < 32:
        found = b.trunc(act(b.zext(bits, I32)), bits.type)
    elif width == 32:
        found = act(bits)
    else:
        low = act(b.trunc(bits, I32))
        high = act(b.trunc(b.lshr(bits, ir.Constant(I64, 32)), I32))
        found = b.or_(b.zext(low, I64), b.shl(b.zext(high, I64), ir.Constant(I64, 32)))
    return found if isinstance(t, ir.IntType) else b.bitcast(found, t)


def _shuffle(name: str, mode: str) -> None:
    intrinsic = f"llvm.nvvm.shfl.sync.{mode}.i32"

    def rule(x: Any, d: Any) -> Any:
        if not isinstance(x, (types.Boolean, types.Integer, types.Float, types.Complex)):
            return None

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            kind = ir.FunctionType(I32, [I32] * 4)
            fn = b.module.globals.get(intrinsic) or ir.Function(b.module, kind, intrinsic)
            by, last = b.trunc(args[1], I32), ir.Constant(I32, 31)

            def act(word: Any) -> Any:
                return b.call(fn, [_WHOLE, word, by, last])

            if isinstance(x, types.Complex):
                z = context.make_complex(b, x, args[0])
                z.real, z.imag = _words(b, z.real, act), _words(b, z.imag, act)
                return z._getvalue()
            return _words(b, args[0], act)

        return x, (x, types.int64), emit

    define(name, 2, rule)


def _any_lane(test: Any) -> Any:
    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        name, kind = "llvm.nvvm.vote.any.sync", ir.FunctionType(I1, [I32, I1])
        fn = b.module.globals.get(name) or ir.Function(b.module, kind, name)
        return b.call(fn, [_WHOLE, args[0]])

    return (types.boolean, (test,), emit) if test is types.boolean else None


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


_COUNTED = (types.int32, types.uint32, types.int64, types.uint64)


def _atomic(name: str, signed: str, unsigned: str) -> None:
    """An update of a whole number in memory, of 32 or 64 bits."""

    def rule(p: Any, i: Any, x: Any) -> Any:
        t: Any = getattr(p, "dtype", None)
        if not isinstance(p, types.CPointer) or t not in _COUNTED:
            return None

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            how = signed if t.signed else unsigned
            b.atomic_rmw(how, b.gep(args[0], [args[1]]), args[2], "monotonic")
            return context.get_dummy_value()

        return types.void, (p, types.int64, t), emit

    define(f"atomic_{name}", 3, rule)


def _part(v: Any, k: Any) -> Any:
    if not isinstance(v, types.UniTuple):
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.extract_value(args[0], args[1].constant)

    return v.dtype, (v, types.int64), emit


def _address(p: Any) -> Any:
    if not isinstance(p, types.CPointer):
        return None
    return types.int64, (p,), lambda context, b, sig, args: b.ptrtoint(args[0], I64)


def _quotient(x: Any, m: Any, s: Any) -> Any:
    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        x, m, s = [b.trunc(arg, I32) for arg in args]
        product = b.mul(b.zext(x, I64), b.zext(m, I64))
        # Said to be of 32 bits, so that what is computed with it may be, and a count below 64, so
        # that the shift is one instruction.
        found = b.lshr(product, b.zext(b.and_(s, ir.Constant(I32, 63)), I64))
        return b.zext(b.trunc(found, I32), I64)

    return types.int64, (types.int64,) * 3, emit


# A float32 divided by d, in double precision: the inverse is too large by 2^-52 to 3 * 2^-52 of
# itself, and so is the product by 1 to 7 units in its last place; without its last three bits it is
# less than 8 units away. Quotients of numbers of 24 bits that are not of 25 bits themselves (a
# float32, or half-way between two) are 2^-49 or more away from all those, and what is of 25 bits is
# found again exactly. So the last rounding is that of the true quotient, with no case by itself.
_ABOVE, _LAST = 1 + 2**-51, ~7


def _inverse(d: Any) -> Any:
    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        one, above = (ir.Constant(ir.DoubleType(), x) for x in (1.0, _ABOVE))
        return b.fmul(b.fdiv(one, b.fpext(args[0], ir.DoubleType())), above)

    return (types.float64, (d,), emit) if d is types.float32 else None


def _divided(x: Any, r: Any) -> Any:
    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        product = b.bitcast(b.fmul(b.fpext(args[0], ir.DoubleType()), args[1]), I64)
        kept = b.bitcast(b.and_(product, ir.Constant(I64, _LAST)), ir.DoubleType())
        return b.fptrunc(kept, ir.FloatType())

    return (x, (x, types.float64), emit) if x is types.float32 else None


define("barrier", 0, _barrier)
define("any_lane", 1, _any_lane)
define("inverse", 1, _inverse)
define("divided", 2, _divided)
define("part", 2, _part)
define("address", 1, _address)
define("quotient", 3, _quotient)
for _name, _mode in (("shuffle_down", "down"), ("shuffle_xor", "bfly"), ("shuffle_at", "idx")):
    _shuffle(_name, _mode)
for _name, *_how in (("add", "add", "add"), ("min", "min", "umin"), ("max", "max", "umax")):
    _atomic(_name, *_how)
for _name, _type in SCALARS.items():
    _shared(_name, _type)
for _count in (2, 4):
    _load(_count)
    _store(_count)
