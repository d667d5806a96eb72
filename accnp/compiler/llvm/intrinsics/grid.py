"""Functions of kernels for GPUs: the threads of a grid, and what they do together.

thread() threads()            this thread of the grid, and how many there are
thread_of_block() threads_of_block() block_of_grid() blocks() lane() warp()
barrier()                     wait for all threads of the block
shuffle_down(x, d) shuffle_xor(x, d) shuffle_at(x, k)     values of other lanes of the warp
any_lane(test)                whether it is true of a lane of the warp
address(p)                    the address of an element, as an integer
atomic_add(p, i, x) atomic_min atomic_max     p[i] and x combined, atomically
quotient(x, m, s)             x // n for 0 <= x < 2^31, with m and s from `magic`
divided(x, inverse(d))        x / d of float32, for many x and one d
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from accnp.compiler.llvm.intrinsics.table import Resolved, define
from accnp.compiler.llvm.registers import join_parts, split_parts
from accnp.compiler.llvm.scalars.ir import F32, F64, I1, I32, I64
from accnp.compiler.llvm.spreading import register, thread, threads
from accnp.compiler.loops.types import B1, F4, F8, I8, DType, Pointer, Type

_WHOLE = ir.Constant(I32, -1)  # all lanes of a warp


def _index(name: str, write: Callable[[ir.IRBuilder], ir.Value]) -> None:
    define(name, 0, lambda: (I8, (), write), gpu=True)


def _special(b: ir.IRBuilder, name: str, result: ir.Type, of: Sequence[ir.Type]) -> ir.Value:
    """Declare an intrinsic of LLVM."""
    return b.module.globals.get(name) or ir.Function(b.module, ir.FunctionType(result, of), name)


def _barrier() -> Resolved:
    def emit(b: ir.IRBuilder) -> None:
        name = "llvm.nvvm.barrier.cta.sync.aligned.all"
        b.call(_special(b, name, ir.VoidType(), [I32]), [ir.Constant(I32, 0)])

    return None, (), emit


def _apply_to_words(
    b: ir.IRBuilder, value: ir.Value, act: Callable[[ir.Value], ir.Value]
) -> ir.Value:
    """Write a function of words of 32 bits for a value of another size."""
    t = value.type
    width = {"float": 32, "double": 64}.get(str(t)) or t.width
    bits = value if isinstance(t, ir.IntType) else b.bitcast(value, ir.IntType(width))
    if width < 32:
        result = b.trunc(act(b.zext(bits, I32)), bits.type)
    elif width == 32:
        result = act(bits)
    else:
        low = act(b.trunc(bits, I32))
        high = act(b.trunc(b.lshr(bits, ir.Constant(I64, 32)), I32))
        result = b.or_(b.zext(low, I64), b.shl(b.zext(high, I64), ir.Constant(I64, 32)))
    return result if isinstance(t, ir.IntType) else b.bitcast(result, t)


def _shuffle(name: str, mode: str) -> None:
    def rule(x: Type, d: Type) -> Resolved | None:
        if not isinstance(x, DType):
            return None

        def emit(b: ir.IRBuilder, value: ir.Value, by: ir.Value) -> ir.Value:
            fn = _special(b, f"llvm.nvvm.shfl.sync.{mode}.i32", I32, [I32] * 4)
            by, last = b.trunc(by, I32), ir.Constant(I32, 31)

            def act(word: ir.Value) -> ir.Value:
                return b.call(fn, [_WHOLE, word, by, last])

            if x.kind == "complex":
                return join_parts(b, *[_apply_to_words(b, p, act) for p in split_parts(b, value)])
            return _apply_to_words(b, value, act)

        return x, (x, I8), emit

    define(name, 2, rule, acts=True, gpu=True)


def _any_lane(test: Type) -> Resolved | None:
    def emit(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
        return b.call(_special(b, "llvm.nvvm.vote.any.sync", I1, [I32, I1]), [_WHOLE, value])

    return (B1, (test,), emit) if test == B1 else None


def _atomic(name: str, signed: str, unsigned: str) -> None:
    """Define an update of an integer in memory, of 32 or 64 bits."""

    def rule(p: Type, i: Type, x: Type) -> Resolved | None:
        if not isinstance(p, Pointer) or p.of.kind not in ("int", "uint") or p.of.size < 4:
            return None
        how = signed if p.of.signed else unsigned

        def emit(b: ir.IRBuilder, place: ir.Value, index: ir.Value, value: ir.Value) -> None:
            b.atomic_rmw(how, b.gep(place, [index]), value, "monotonic")

        return None, (p, I8, p.of), emit

    define(f"atomic_{name}", 3, rule, acts=True, gpu=True)


def _address(p: Type) -> Resolved | None:
    if not isinstance(p, Pointer):
        return None

    def emit(b: ir.IRBuilder, place: ir.Value) -> ir.Value:
        return b.ptrtoint(place, I64)

    return I8, (p,), emit


def _quotient(x: Type, m: Type, s: Type) -> Resolved:
    def emit(b: ir.IRBuilder, *args: ir.Value) -> ir.Value:
        x, m, s = [b.trunc(arg, I32) for arg in args]
        product = b.mul(b.zext(x, I64), b.zext(m, I64))
        # Said to be of 32 bits, so that what is computed with it may be, and a count below 64, so
        # that the shift is one instruction.
        quotient = b.lshr(product, b.zext(b.and_(s, ir.Constant(I32, 63)), I64))
        return b.zext(b.trunc(quotient, I32), I64)

    return I8, (I8,) * 3, emit


# A float32 divided by d, in double precision: the inverse is too large by 2^-52 to 3 * 2^-52 of
# itself, and so is the product by 1 to 7 units in its last place; without its last three bits it is
# less than 8 units away. Quotients of numbers of 24 bits that are not of 25 bits themselves (a
# float32, or half-way between two) are 2^-49 or more away from all those, and what is of 25 bits is
# found again exactly. So the last rounding is that of the true quotient, with no case by itself.
_ABOVE, _LAST = 1 + 2**-51, ~7


def _inverse(d: Type) -> Resolved | None:
    def emit(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
        one, above = (ir.Constant(F64, x) for x in (1.0, _ABOVE))
        return b.fmul(b.fdiv(one, b.fpext(value, F64)), above)

    return (F8, (d,), emit) if d == F4 else None


def _resolve_divided(x: Type, r: Type) -> Resolved | None:
    def emit(b: ir.IRBuilder, value: ir.Value, inverse: ir.Value) -> ir.Value:
        product = b.bitcast(b.fmul(b.fpext(value, F64), inverse), I64)
        truncated = b.bitcast(b.and_(product, ir.Constant(I64, _LAST)), F64)
        return b.fptrunc(truncated, F32)

    return (x, (x, F8), emit) if x == F4 else None


_index("thread", thread)
_index("threads", threads)
_index("thread_of_block", lambda b: register(b, "tid.x"))
_index("threads_of_block", lambda b: register(b, "ntid.x"))
_index("block_of_grid", lambda b: register(b, "ctaid.x"))
_index("blocks", lambda b: register(b, "nctaid.x"))
_index("lane", lambda b: b.and_(register(b, "tid.x"), ir.Constant(I64, 31)))
_index("warp", lambda b: b.lshr(register(b, "tid.x"), ir.Constant(I64, 5)))
define("barrier", 0, _barrier, acts=True, gpu=True)
define("any_lane", 1, _any_lane, acts=True, gpu=True)
define("inverse", 1, _inverse, gpu=True)
define("divided", 2, _resolve_divided, gpu=True)
define("address", 1, _address, gpu=True)
define("quotient", 3, _quotient, gpu=True)
for _name, _mode in (("shuffle_down", "down"), ("shuffle_xor", "bfly"), ("shuffle_at", "idx")):
    _shuffle(_name, _mode)
for _name, *_how in (("add", "add", "add"), ("min", "min", "umin"), ("max", "max", "umax")):
    _atomic(_name, *_how)
