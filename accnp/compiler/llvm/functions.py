"""The code of scalar functions and conversions for LLVM, with the bits of Numba's and our own.

In: the name of a function of the loop IR, the type of its operands, and their values. Out: the
value of the result. Mathematical functions are in `kernels.math`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import binding, ir

from accnp.compiler.loops.types import DType
from accnp.kernels import mathlib
from accnp.kernels.library import PREFIX
from accnp.kernels.math import basic, block, cold, integer
from accnp.kernels.math.heap import external
from accnp.kernels.math.ir import I64, V, fma, where
from accnp.kernels.math.transpose import transpose

__all__ = [
    "from_memory", "memory_type", "register_type", "write_call", "write_cast", "write_fold",
    "write_library_call", "write_transpose",
]  # fmt: skip

_features = binding.get_host_cpu_features()
cold.permutes = bool(_features.get("avx2"))
cold.halves = bool(_features.get("f16c"))
if _features.get("avx512f"):
    cold.vector_bytes = 64


def register_type(d: DType) -> Any:
    """Return the LLVM type of a number in a register."""
    if d.kind == "float":
        return ir.FloatType() if d.size == 4 else ir.DoubleType()
    return ir.IntType(1 if d.kind == "bool" else 8 * d.size)


def memory_type(d: DType) -> Any:
    """Return the LLVM type of a number in memory: a bool is a byte."""
    return ir.IntType(8) if d.kind == "bool" else register_type(d)


def from_memory(of: DType, b: Any, v: Any) -> Any:
    """Return a number in a register that was loaded from memory."""
    return b.icmp_unsigned("!=", v, ir.Constant(ir.IntType(8), 0)) if of.kind == "bool" else v


# What folds of bools are, whose elements are bytes of 0 and 1.
_LOGIC = {"sum": "or", "prod": "and", "max": "or", "min": "and"}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_WHOLE = {"add": "add", "sub": "sub", "mul": "mul", "and": "and_", "or": "or_", "xor": "xor"}
_TESTS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def write_call(name: str, of: DType, b: Any, args: Sequence[Any]) -> Any:
    """Write a function of operands whose last one has a type; returns the result."""
    if name in _TESTS:
        return _test(_TESTS[name], of, b, *args)
    if of.kind == "float" and name in _FLOAT:
        return getattr(b, _FLOAT[name])(*args)
    if of.kind != "float" and name in _WHOLE:
        return getattr(b, _WHOLE[name])(*args)
    found = _special(name, of)
    return found(*[V(b, a) for a in args]).v


def _test(op: str, of: DType, b: Any, x: Any, y: Any) -> Any:
    if of.kind == "float":
        return (b.fcmp_unordered if op == "!=" else b.fcmp_ordered)(op, x, y)
    return (b.icmp_signed if of.signed else b.icmp_unsigned)(op, x, y)


def _special(name: str, of: DType) -> Callable[..., V]:
    if name == "select":
        return where
    if of.kind == "float":
        table = _FLOATS.get(name) or mathlib.UNARY.get(name) or mathlib.BINARY.get(name)
        assert table is not None, name
        return table
    signed = of.signed
    return {
        "neg": lambda x: -x,
        "not": lambda x: ~x,
        "sq": lambda x: x * x,
        "abs": (lambda x: where(x < 0, -x, x)) if signed else (lambda x: x),
        "sign": lambda x: where(x.cmp(">", 0, signed), 1, where(x.eq(0), x, x.const(-1))),
        "fmax": _order(">", of),
        "fmin": _order("<", of),
        "rem": lambda x, y: integer.irem(x, y, signed),
        "idiv": lambda x, y: integer.idiv(x, y, signed),
        "floordiv": _floor,
    }[name]


def _order(op: str, of: DType) -> Callable[[V, V], V]:
    if of.kind == "bool":
        return V.__or__ if op == ">" else V.__and__
    return lambda x, y: where(x.cmp(op, y, of.signed), x, y)


def _floor(x: V, y: V) -> V:
    """x // y of a size y, which is positive; one that is 0 counts as 1, and has no steps."""
    b = x.b
    y = y | y.eq(0).to(y.type, signed=False)
    q = V(b, b.sdiv(x.v, y.v))
    return q + ((x - q * y) >> 63)


_FLOATS: dict[str, Callable[..., V]] = {
    "neg": lambda x: V(x.b, x.b.fsub(x.const(-0.0).v, x.v)),
    "sq": lambda x: V(x.b, x.b.fmul(x.v, x.v)),
    "fma": fma,
    "is_finite": basic.is_finite,
}


def write_cast(of: DType, to: DType, b: Any, value: Any) -> Any:
    """Write a conversion; returns the result."""
    x = V(b, value)
    if to.kind == "bool":
        return x.ne(0.0 if of.kind == "float" else 0).v
    if of.kind == "float" and to.kind != "float":
        return basic.to_int(x, register_type(to), to.signed).v
    return x.to(register_type(to), signed=of.signed).v


def write_transpose(b: Any, of: DType, values: Sequence[Any]) -> None:
    """Write the transposition of a tile: the arguments are those of `math.transpose`."""
    kind = memory_type(of)
    to, width, source, *rest = values
    transpose(b, kind, of.size, [to, width, source, *rest])


def write_library_call(b: Any, name: str, words: Sequence[Any]) -> None:
    """Write a call of a kernel of the library, whose arguments are integers of 64 bits, through the
    entry that every kernel has."""
    pointer = I64.as_pointer()
    callee = external(b, PREFIX + name, ir.VoidType(), [pointer, pointer, I64, I64])
    with b.goto_entry_block():
        block = b.alloca(I64, size=ir.Constant(I64, len(words)))
    for k, word in enumerate(words):
        b.store(word, b.gep(block, [ir.Constant(I64, k)]))
    # Without a counter, the entry does the steps from 0 on.
    b.call(callee, [block, ir.Constant(pointer, None), ir.Constant(I64, 1), ir.Constant(I64, 0)])


def write_fold(combine: str, of: DType, b: Any, place: Any, count: Any) -> Any:
    """Write the fold of a block of memory, in the order that all processors have; returns the
    result."""
    combine = _LOGIC.get(combine, combine) if of.kind == "bool" else combine
    return from_memory(
        of, b, block.block_reduce(b, place, count, memory_type(of), combine, of.signed)
    )
