"""Integer arithmetic without traps, bit counts, and threefry2x32.

In: integer ``V`` of one width (and whether it is signed). Out: a ``V`` of the same type.
"""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.llvm.scalars.ir import F32, F64, I1, V, on_gpu, where

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def idiv(x: V, y: V, signed: bool) -> V:
    """Truncating quotient; x / 0 = -1 (all bits), MIN / -1 = MIN."""
    zero, q = y.eq(0), _quotient(x, _safe_divisor(y, signed), signed)
    q = where(y.eq(-1), x.const(0) - x, q) if signed else q
    return where(zero, x.const(-1), q)


def irem(x: V, y: V, signed: bool) -> V:
    """Remainder with the sign of x; x rem 0 = x, MIN rem -1 = 0."""
    zero, y = y.eq(0), _safe_divisor(y, signed)
    if x.width > 32:
        return where(zero, x, V(x.b, (x.b.srem if signed else x.b.urem)(x.v, y.v)))
    return where(zero, x, x - _quotient(x, y, signed) * y)


def _safe_divisor(y: V, signed: bool) -> V:
    """A divisor by which no processor traps: 1 in the place of 0 and of -1 (MIN / -1 overflows)."""
    return where(y.eq(0) | y.eq(-1) if signed else y.eq(0), y.const(1), y)


def _quotient(x: V, y: V, signed: bool) -> V:
    """The whole part of x / y: up to 32 bits by a division of floating numbers that hold both, for
    processors have that for vectors (`I // 7` on 1e6 int32: 0.97 -> 0.19 ms; a reciprocal before
    the loop gained nothing more: memory is the limit).

    A quotient that is not whole lies 1 / y or more from the next whole number, and it is rounded by
    less than that (2^-21 / y in doubles, 2^-8 / y in single precision): it is cut off at the right
    one.
    """
    if x.width > 32:
        return V(x.b, (x.b.sdiv if signed else x.b.udiv)(x.v, y.v))
    wide = F64 if x.width == 32 else F32
    return (x.to(wide, signed) / y.to(wide, signed)).to(x.type, signed)


def shift_left(x: V, n: V) -> V:
    """Zero when the count is negative or at least the width."""
    ok = n.cmp("<", x.width, signed=False)
    return where(ok, x << _count_of(ok, n), 0)


def _count_of(ok: V, n: V) -> V:
    """A count below the width.

    On a GPU the last bits, for LLVM takes the choice away there, with the hardware's own treatment
    of large counts, and loses the upper half of a count of 64 bits.
    """
    return n & (n.width - 1) if on_gpu(n.b.module) else where(ok, n, 0)


def shift_right_logical(x: V, n: V) -> V:
    ok = n.cmp("<", x.width, signed=False)
    return where(ok, x.lshr(_count_of(ok, n)), 0)


def shift_right_arithmetic(x: V, n: V) -> V:
    """Copies of the sign when the count is negative or at least the width."""
    ok = n.cmp("<", x.width, signed=False)
    return x >> where(ok, n, x.width - 1)


def _count(name: str, x: V) -> V:
    args, types = [x.v], [x.type]
    if name == "llvm.ctlz":
        args, types = [x.v, ir.Constant(I1, 0)], [x.type, I1]
    fn = x.b.module.declare_intrinsic(name, [x.type], ir.FunctionType(x.type, types))
    return V(x.b, x.b.call(fn, args))


def clz(x: V) -> V:
    return _count("llvm.ctlz", x)


def popcount(x: V) -> V:
    return _count("llvm.ctpop", x)


def _rotate(x: V, r: int) -> V:
    return (x << r) | x.lshr(32 - r)


def threefry(k0: V, k1: V, c0: V, c1: V) -> tuple[V, V]:
    """The two output words of threefry2x32 with 20 rounds."""
    keys = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA)
    x, y = c0 + k0, c1 + k1
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x = x + y
            y = x ^ _rotate(y, r)
        x, y = x + keys[(i + 1) % 3], y + keys[(i + 2) % 3] + (i + 1)
    return x, y
