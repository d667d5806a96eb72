"""Intrinsics on pointers: stack buffers, offsets and reductions of a block in a fixed order.

In: ``types.CPointer(dtype)`` and counts. Out: entries of ``NAMESPACE`` beside the scalar ones.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.imputils import lower_builtin

from .factory import SCALARS, define, joined, widest
from .math import across, block
from .math.ir import F32, F64, I8, V, fetch
from .math.transpose import transpose

STACK = 1024
TILE, SLAB = 4096, 16384  # elements of tiles in which operands are laid transposed
_LOGIC = {"sum": "or", "prod": "and", "max": "or", "min": "and"}


def _stack(kind: str, name: str, t: Any, count: int) -> None:
    pointer = types.CPointer(t)

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        # in the entry block, so that a call inside a loop does not grow the stack
        with b.goto_entry_block():
            p = b.alloca(ir.ArrayType(context.get_data_type(t), count))
            p.align = min(64, 16 * count)
            return b.bitcast(p, context.get_value_type(pointer))

    define(kind + name, 0, lambda: (pointer, (), emit))


def _at(p: Any, k: Any) -> Any:
    if not isinstance(p, types.CPointer):
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.gep(args[0], [args[1]])

    return p, (p, types.int64), emit


def _asked() -> Any:
    """Whether results bypass the caches: what launches ask of kernels that `direct` writes."""

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        return ir.Constant(ir.IntType(64), 0)

    return types.int64, (), emit


def _move(to: Any, source: Any, n: Any) -> Any:
    """Copy n elements; the two may be the same memory."""
    if not isinstance(to, types.CPointer) or source != to:
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        target, origin, count = args
        size = context.get_abi_sizeof(context.get_data_type(to.dtype))
        with b.if_then(b.icmp_unsigned("!=", target, origin)):
            nbytes = b.mul(count, ir.Constant(ir.IntType(64), size))
            byte = ir.IntType(8).as_pointer()
            kinds = [byte, byte, ir.IntType(64)]
            fn = b.module.declare_intrinsic("llvm.memmove", kinds)
            where = [b.bitcast(target, byte), b.bitcast(origin, byte)]
            b.call(fn, [*where, nbytes, ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void, (to, to, types.int64), emit


def _transpose(to: Any, ldt: Any, source: Any, lds: Any, rows: Any, columns: Any) -> Any:
    """to[r * ldt + c] = source[r + c * lds]; `to` has room for whole squares (math.transpose)."""
    if not isinstance(to, types.CPointer) or source != to:
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        # Complex numbers move as integers of their size, booleans as bytes.
        size = context.get_abi_sizeof(context.get_data_type(to.dtype))
        t = context.get_data_type(to.dtype) if isinstance(to.dtype, types.Float) else None
        t = t or ir.IntType(8 * size)
        args = [b.bitcast(a, t.as_pointer()) if k in (0, 2) else a for k, a in enumerate(args)]
        transpose(b, t, size, args)
        return context.get_dummy_value()

    i = types.int64
    return types.void, (to, i, to, i, i, i), emit


def _prefetch(p: Any, near: int = 3) -> Any:
    if not isinstance(p, types.CPointer):
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        fetch(b, args[0], near)
        return context.get_dummy_value()

    return types.void, (p,), emit


def _touch(p: Any) -> Any:
    """Read a byte, for what the caches do then: a load that is not left out, and whose line
    processors follow up, as they do not for those that are only asked for."""
    if not isinstance(p, types.CPointer):
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        b.load_atomic(b.bitcast(args[0], I8.as_pointer()), "monotonic", 1)
        return context.get_dummy_value()

    return types.void, (p,), emit


def _across(name: str, write: Any, step: Any) -> None:
    """Folds of what lies across the loops (math.across); there is room behind the sums."""

    def rule(sums: Any, source: Any, steps: Any, rows: Any, wide: Any) -> Any:
        if not isinstance(sums, types.CPointer) or source != sums:
            return None
        t = sums.dtype
        if not isinstance(t, types.Boolean | types.Integer | types.Float):
            return None
        logic = t is types.boolean  # stored as bytes of 0 and 1
        kind = _LOGIC.get(name, name) if logic else name

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            element = I8 if logic else context.get_data_type(t)
            signed = isinstance(t, types.Integer) and t.signed  # type: ignore[attr-defined]
            write(b, element, context.get_abi_sizeof(element), kind, signed, args)
            return context.get_dummy_value()

        return types.void, (sums, sums, step, types.int64, types.int64), emit

    define(f"{write.__name__}_{name}", 5, rule)


def _block(name: str) -> None:
    def rule(p: Any, n: Any) -> Any:
        if not isinstance(p, types.CPointer):
            return None
        t = p.dtype
        if isinstance(t, types.Float) and name in ("and", "or", "xor"):
            return None
        if isinstance(t, types.Complex) and name not in ("sum", "prod"):
            return None

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            ptr, count = args
            if isinstance(t, types.Complex):
                part = F32 if t is types.complex64 else F64
                re, im = block.block_reduce_complex(b, ptr, count, part, name)
                return joined(context, b, t, V(b, re), V(b, im))
            if t is types.boolean:
                # stored as bytes of 0 and 1
                byte = block.block_reduce(b, ptr, count, I8, _LOGIC.get(name, name), False)
                return b.icmp_unsigned("!=", byte, ir.Constant(I8, 0))
            signed = isinstance(t, types.Integer) and t.signed  # type: ignore[attr-defined]
            return block.block_reduce(b, ptr, count, context.get_data_type(t), name, signed)

        return t, (p, types.int64), emit

    define("block_" + name, 2, rule)


def _wide_sum(p: Any, n: Any) -> Any:
    """The sum of a block of float32 in float64: the bits of `block_sum` of a widened copy."""
    if not isinstance(p, types.CPointer) or p.dtype is not types.float32:
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        return block.block_wide_sum(b, *args)

    return types.float64, (p, types.int64), emit


def _find(p: Any, n: Any, value: Any) -> Any:
    """The first place of a value among n elements, or n; a NaN finds a NaN."""
    if not isinstance(p, types.CPointer) or isinstance(p.dtype, types.Complex):
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        pointer, count, wanted = args
        t = context.get_data_type(p.dtype)
        return block.find(
            b, pointer, count, b.zext(wanted, t) if t == I8 != wanted.type else wanted, t
        )

    return types.int64, (p, types.int64, p.dtype), emit


def _odd(p: Any, n: Any) -> Any:
    """The first place of a product among n that is no normal number, or n."""
    if not isinstance(p, types.CPointer) or not isinstance(p.dtype, types.Float):
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        pointer, count = args
        return block.find_odd(b, pointer, count, context.get_data_type(p.dtype))

    return types.int64, (p, types.int64), emit


def _join(name: str) -> None:
    """What `block_max` and `block_min` do with two elements: of equal ones the first remains."""

    def rule(x: Any, y: Any) -> Any:
        t = widest(x, y)
        if isinstance(t, types.Complex):
            return None
        signed = isinstance(t, types.Integer) and t.signed  # type: ignore[attr-defined]

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            fold, _ = block.folds(name, args[0].type, signed)
            return fold(*[V(b, a) for a in args]).v

        return t, (t, t), emit

    define("join_" + name, 2, rule)


@lower_builtin(operator.setitem, types.CPointer(types.boolean), types.Integer, types.Boolean)
def _store_bool(context: Any, b: Any, sig: Any, args: Any) -> None:
    """Numba stores the one-bit value itself, which does not fit a byte pointer."""
    p, k, value = args
    b.store(b.zext(value, I8), b.gep(p, [k]))


@lower_builtin(operator.getitem, types.CPointer(types.boolean), types.Integer)
def _load_bool(context: Any, b: Any, sig: Any, args: Any) -> Any:
    """The same in the other direction: a byte of 0 or 1 becomes the one-bit value."""
    p, k = args
    return b.icmp_unsigned("!=", b.load(b.gep(p, [k])), ir.Constant(I8, 0))


for _name, _type in SCALARS.items():
    for _kind, _count in (("stack_", STACK), ("tile_", TILE), ("slab_", SLAB), ("cell_", 1)):
        _stack(_kind, _name, _type, _count)
for _name in ("sum", "prod", "max", "min", "and", "or", "xor"):
    _block(_name)
for _name in ("max", "min"):
    _join(_name)
for _name in ("sum", "prod", "max", "min", "and", "or"):
    _across(_name, across.columns, types.int64)
    _across(_name, across.strips, types.CPointer(types.int64))
define("asked", 0, _asked)
define("at", 2, _at)
define("block_find", 3, _find)
define("block_wide_sum", 2, _wide_sum)
define("block_odd", 2, _odd)
define("move", 3, _move)
define("prefetch", 1, _prefetch)
define("prefetch_second", 1, lambda p: _prefetch(p, 2))
define("touch", 1, _touch)
define("transpose", 6, _transpose)
