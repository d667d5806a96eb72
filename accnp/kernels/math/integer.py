"""Integer arithmetic without traps, bit counts, and threefry2x32.

In: integer ``V`` of one width (and whether it is signed). Out: a ``V`` of the same type.
"""

from __future__ import annotations

from llvmlite import ir

from .ir import F64, I1, V, on_gpu, where

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _limits(x: V) -> tuple[int, int]:
    n = x.type.width
    return -(1 << (n - 1)), n


def idiv(x: V, y: V, signed: bool) -> V:
    """Truncating quotient; x / 0 = -1 (all bits), MIN / -1 = MIN."""
    b, zero = x.b, y.eq(0)
    if not signed:
        return where(zero, x.const(-1), V(b, b.udiv(x.v, where(zero, y.const(1), y).v)))
    low, _ = _limits(x)
    over = x.eq(low) & y.eq(-1)
    q = V(b, b.sdiv(x.v, where(zero | over, y.const(1), y).v))
    return where(zero, x.const(-1), q)


def _rem32(x: V, y: V, signed: bool) -> V:
    """Remainder of 32-bit numbers by a double's division, which processors have for vectors.

    A quotient that is not whole lies 1 / y or more from the next whole number, and it is rounded by
    less than 2^-20 / y: it is cut off at the right one.
    """
    q = (x.to(F64, signed) / y.to(F64, signed)).to(x.type, signed)
    return x - q * y


def irem(x: V, y: V, signed: bool) -> V:
    """Remainder with the sign of x; x rem 0 = x, MIN rem -1 = 0."""
    b, zero = x.b, y.eq(0)
    if x.type.width == 32:
        safe = where(zero | y.eq(-1) if signed else zero, y.const(1), y)
        return where(zero, x, _rem32(x, safe, signed))
    if not signed:
        return where(zero, x, V(b, b.urem(x.v, where(zero, y.const(1), y).v)))
    safe = where(zero | y.eq(-1), y.const(1), y)
    return where(zero, x, V(b, b.srem(x.v, safe.v)))


def shift_left(x: V, n: V) -> V:
    """Zero when the count is negative or at least the width."""
    ok = n.cmp("<", x.type.width, signed=False)
    return where(ok, x << _count_of(ok, n), 0)


def _count_of(ok: V, n: V) -> V:
    """A count below the width.

    On a GPU the last bits, for LLVM takes the choice away there, with the hardware's own treatment
    of large counts, and loses the upper half of a count of 64 bits.
    """
    return n & (n.type.width - 1) if on_gpu(n.b.module) else where(ok, n, 0)


def shift_right_logical(x: V, n: V) -> V:
    ok = n.cmp("<", x.type.width, signed=False)
    return where(ok, x.lshr(_count_of(ok, n)), 0)


def shift_right_arithmetic(x: V, n: V) -> V:
    """Copies of the sign when the count is negative or at least the width."""
    ok = n.cmp("<", x.type.width, signed=False)
    return x >> where(ok, n, x.type.width - 1)


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
