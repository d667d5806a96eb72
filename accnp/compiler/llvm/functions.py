"""Write the scalar functions of the loop IR as LLVM IR.

`write_call` gets the name of a function, the types of its operands and their LLVM values, and
returns the LLVM value of the result. It writes arithmetic, comparisons and selections itself; all
other functions are intrinsics (`llvm/intrinsics`), whose mathematics is in `llvm/scalars`.
`write_library_call` writes a call of a library kernel. `lower.py` and the Numba back end
(`numba/functions.py`, `numba/vector_forms.py`) use `write_call`, so both back ends compute the
same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from accnp.compiler.library.library import PREFIX
from accnp.compiler.llvm.intrinsics.all import resolve
from accnp.compiler.llvm.registers import (
    join_parts,
    register_type,
    split_parts,
)
from accnp.compiler.llvm.scalars import basic, block, integer
from accnp.compiler.llvm.scalars.ir import I64, V, external, fma, where
from accnp.compiler.loops.functions import FUNCTIONS
from accnp.compiler.loops.types import I8, DType, Type

__all__ = ["write_call", "write_library_call"]


_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_WHOLE = {"add": "add", "sub": "sub", "mul": "mul", "and": "and_", "or": "or_", "xor": "xor"}
_TESTS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def write_call(
    name: str, kinds: Sequence[Type], b: ir.IRBuilder, args: Sequence[ir.Value]
) -> ir.Value:
    """Write a call of a function for operands of these types, and return the result."""
    of = kinds[-1] if kinds else I8
    if not isinstance(of, DType) or name not in FUNCTIONS:
        return _intrinsic(name, kinds, b, args)
    if of.kind == "half":  # a float32 in registers
        return b.fneg(args[0]) if name == "neg" else _intrinsic(name, kinds, b, args)
    if of.kind == "complex":
        return _complex(name, kinds, b, args)
    if name in _TESTS:
        return _test(_TESTS[name], of, b, *args)
    if of.kind == "float" and name in _FLOAT:
        return getattr(b, _FLOAT[name])(*args)
    if of.kind != "float" and name in _WHOLE:
        return getattr(b, _WHOLE[name])(*args)
    special = _special(name, of)
    if special is None:
        return _intrinsic(name, kinds, b, args)
    return special(*[V(b, a) for a in args]).v


def _intrinsic(
    name: str, kinds: Sequence[Type], b: ir.IRBuilder, args: Sequence[ir.Value]
) -> ir.Value:
    intrinsic = resolve(name, tuple(kinds))
    assert intrinsic is not None, name
    value = intrinsic[2](b, *args)
    assert value is not None, name
    return value


def _complex(
    name: str, kinds: Sequence[Type], b: ir.IRBuilder, args: Sequence[ir.Value]
) -> ir.Value:
    """Write an operator on complex numbers, or the real or imaginary part of one."""
    if name not in ("real", "imag", "conj", "neg", "add", "sub", "eq", "ne"):
        return _intrinsic(name, kinds, b, args)
    pairs = [split_parts(b, a) for a in args]
    if name in ("real", "imag"):
        return pairs[0][name == "imag"]
    if name in ("neg", "conj"):
        real, imag = pairs[0]
        return join_parts(b, b.fneg(real) if name == "neg" else real, b.fneg(imag))
    if name in ("add", "sub"):
        (xr, xi), (yr, yi) = pairs
        write = b.fadd if name == "add" else b.fsub
        return join_parts(b, write(xr, yr), write(xi, yi))
    (xr, xi), (yr, yi) = pairs
    if name == "eq":
        return b.and_(b.fcmp_ordered("==", xr, yr), b.fcmp_ordered("==", xi, yi))
    return b.or_(b.fcmp_unordered("!=", xr, yr), b.fcmp_unordered("!=", xi, yi))


def _test(op: str, of: DType, b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    if of.kind == "float":
        return (b.fcmp_unordered if op == "!=" else b.fcmp_ordered)(op, x, y)
    return (b.icmp_signed if of.signed else b.icmp_unsigned)(op, x, y)


def _special(name: str, of: DType) -> Callable[..., V] | None:
    """Return a function that writes the call; None for functions in the table of intrinsics."""
    if name == "select":
        return where
    if name in ("join_max", "join_min"):
        join, _ = block.combine_and_identity(
            name.removeprefix("join_"), register_type(of), of.signed
        )
        return join
    if of.kind == "float":
        return _FLOATS.get(name)
    signed = of.signed
    unary: dict[str, Callable[[V], V]] = {
        "neg": lambda x: -x,
        "not": lambda x: ~x,
        "sq": lambda x: x * x,
        "abs": (lambda x: where(x < 0, -x, x)) if signed else (lambda x: x),
        "sign": lambda x: where(x.cmp(">", 0, signed), 1, where(x.eq(0), x, x.const(-1))),
    }
    if name in unary:
        return unary[name]
    binary: dict[str, Callable[[V, V], V]] = {
        "fmax": _order(">", of),
        "fmin": _order("<", of),
        "rem": lambda x, y: integer.irem(x, y, signed),
        "idiv": lambda x, y: integer.idiv(x, y, signed),
        "floordiv": _floor,
        "shl": V.__lshift__,
        "shr": V.__rshift__ if signed else V.lshr,
        "floor_quotient": lambda x, y: _floor_divide(x, y, signed)[0],
        "floor_remainder": lambda x, y: _floor_divide(x, y, signed)[1],
    }
    return binary[name]


def _order(op: str, of: DType) -> Callable[[V, V], V]:
    if of.kind == "bool":
        return V.__or__ if op == ">" else V.__and__
    return lambda x, y: where(x.cmp(op, y, of.signed), x, y)


def _floor(x: V, y: V) -> V:
    """Return x // y for a size y >= 0. A size of 0 is replaced by 1, since loops over it have no
    steps."""
    b = x.b
    y = y | y.eq(0).to(y.type, signed=False)
    q = V(b, b.sdiv(x.v, y.v))
    return q + ((x - q * y) >> 63)


def _floor_divide(x: V, y: V, signed: bool) -> tuple[V, V]:
    """Return the quotient rounded down, and the remainder. Both are 0 if the divisor is 0, or if
    the most negative number is divided by -1."""
    b = x.b
    if not signed:
        good = y.ne(0)
        d = where(good, y, 1)
        q, r = V(b, b.udiv(x.v, d.v)), V(b, b.urem(x.v, d.v))
        return where(good, q, q.const(0)), where(good, r, r.const(0))
    least = -(1 << y.width - 1)
    good = y.ne(0) & ~(y.eq(-1) & x.eq(least))
    d = where(good, y, 1)
    q, r = V(b, b.sdiv(x.v, d.v)), V(b, b.srem(x.v, d.v))
    below = r.ne(0) & (r ^ d).cmp("<", 0)
    q, r = where(below, q - 1, q), where(below, r + d, r)
    return where(good, q, q.const(0)), where(good, r, r.const(0))


def _negative(x: V) -> V:
    return V(x.b, x.b.fsub(x.const(-0.0).v, x.v))


def _square(x: V) -> V:
    return V(x.b, x.b.fmul(x.v, x.v))


_FLOATS: dict[str, Callable[..., V]] = {
    "neg": _negative,
    "sq": _square,
    "fma": fma,
    "is_finite": basic.is_finite,
}


def write_library_call(b: ir.IRBuilder, name: str, words: Sequence[ir.Value]) -> None:
    """Write a call of the entry of a library kernel, whose arguments are 64-bit integers."""
    pointer = I64.as_pointer()
    callee = external(b, PREFIX + name, ir.VoidType(), [pointer, pointer, I64, I64])
    with b.goto_entry_block():
        block = b.alloca(I64, size=ir.Constant(I64, len(words)))
    for k, word in enumerate(words):
        b.store(word, b.gep(block, [ir.Constant(I64, k)]))
    # Without a counter, the entry runs the range chunk..n, which is 0..1 here.
    b.call(callee, [block, ir.Constant(pointer, None), ir.Constant(I64, 1), ir.Constant(I64, 0)])
