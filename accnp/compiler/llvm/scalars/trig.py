"""Trigonometric functions: sin cos tan sin_pi.

The functions emit LLVM IR. They take a float or double ``V`` and return a ``V`` of the same type;
the registry makes them available to kernels. Moderate arguments are reduced by fma with three
pieces of pi/2. Huge arguments are reduced by the method of Payne and Hanek, in a separate function
that is called rarely. A polynomial of the reduced argument gives the result.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from accnp.compiler.llvm.scalars import coefs as k
from accnp.compiler.llvm.scalars.forms import lookup, rarely
from accnp.compiler.llvm.scalars.ir import (
    F64,
    I64,
    I128,
    MAGIC,
    V,
    bits,
    copysign,
    fabs,
    floor,
    fma,
    nearest,
    on_gpu,
    poly,
    pow2,
    rint,
    two_sum,
    unbits,
    where,
)
from accnp.compiler.llvm.scalars.registry import UNARY, define

PIO2_32 = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
PIO2_64 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
# The pieces are rounded down and have the same sign, so that the reduction of -0 is -0.
DOWN_32 = (1.570796251296997, 7.549789415861596e-08, 5.390302529957764e-15)
Finish = Callable[[V, V, V], V]
TWO_OVER_PI = 0.6366197723675814
LIMIT = {True: 65536.0, False: 2.0**40}
# 2/pi in binary, 64 bits a word, after one word of zeros
TABLE = (
    0,
    0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484,
    0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB, 0xF0CFBC209AF4361D,
)  # fmt: skip


def reduce_pio2(x: V) -> tuple[V, V, V]:
    """Return (r, correction of r, quadrant) for |x| below LIMIT."""
    a, b, c = PIO2_32 if x.single else PIO2_64
    t, q = nearest(x * TWO_OVER_PI)
    r1 = fma(t, x.const(-a), x)  # exact
    r2 = fma(t, x.const(-b), r1)
    r = fma(t, x.const(-c), r2)
    # The rounding error of the second fma; r1 - r2 would be inexact if they differ much.
    p = t * b
    s, e = two_sum(r1, -p)
    lost = ((s - r2) + e) - fma(t, x.const(b), -p)
    return r, fma(t, x.const(-c), r2 - r) + lost, q


def payne_hanek(x: V) -> tuple[V, V, V]:
    """Reduce doubles with |x| >= 2^16 as `reduce_pio2` does, by integer products with bits of
    2/pi."""
    b = x.b
    i = bits(fabs(x))
    m = (i & 0xFFFFFFFFFFFFF) | 0x10000000000000
    # x = m 2^e; bits of 2/pi above weight 2^(1 - e) give multiples of 4 and are left out
    s = i.lshr(52) - 1075 + 62
    word, shift = s.lshr(6), (s & 63).to(I128, signed=False)
    table = _table(b.module)

    def load(j: int) -> V:
        p = b.gep(table, [ir.Constant(I64, 0), (word + j).v], source_etype=table.value_type)
        return V(b, b.load(p, typ=I64)).to(I128, signed=False)

    def funnel(j: int) -> V:
        return ((((load(j) << 64) | load(j + 1)) << shift).lshr(64)).to(I64).to(I128, signed=False)

    w = m.to(I128, signed=False)
    p = ((w * funnel(0)) << 64) + w * funnel(1) + (w * funnel(2)).lshr(64)
    q = (p + (1 << 125)).lshr(126).to(I64)
    f = p << 2
    neg = f < 0
    a = where(neg, -f, f)
    fn = b.module.declare_intrinsic(
        "llvm.ctlz", [I128], ir.FunctionType(I128, [I128, ir.IntType(1)])
    )
    lz = V(b, b.call(fn, [a.v, ir.Constant(ir.IntType(1), 0)]))
    a = a << lz
    h = a.lshr(75).to(I64).to(F64)
    low = (a.lshr(22) & ((1 << 53) - 1)).to(I64).to(F64) * 2.0**-53
    unit = pow2(-lz.to(I64) - 53)
    hi = h * PIO2_64[0]
    lo = fma(h, x.const(PIO2_64[0]), -hi) + fma(h, x.const(PIO2_64[1]), low * PIO2_64[0])
    r = hi + lo
    rl = (hi - r) + lo
    flip = neg.cmp("!=", x < 0.0)
    unit = where(flip, -unit, unit)
    return r * unit, rl * unit, where(x < 0.0, -q, q)


def _table(module: ir.Module) -> ir.GlobalVariable:
    name = "accnp.two_over_pi"
    if name in module.globals:
        return module.globals[name]
    t = ir.ArrayType(I64, len(TABLE))
    g = ir.GlobalVariable(module, t, name)
    values = [ir.Constant(I64, w) for w in TABLE]
    g.initializer = ir.Constant(t, values)  # type: ignore[assignment]
    g.global_constant, g.linkage = True, "internal"
    return g


def _periodic(x: V, name: str, finish: Finish) -> V:
    return _handle_huge(x, finish(*reduce_pio2(x)), name, finish)


def _handle_huge(x: V, y: V, name: str, finish: Finish) -> V:
    """Return y, or the value of the function for arguments that are huge, infinite or NaN."""

    def far(x: V) -> V:
        z = finish(*payne_hanek(x.to(F64))).to(x.type)
        return where(fabs(x) < float("inf"), z, x - x)

    huge = V(x.b, x.b.fcmp_unordered(">=", fabs(x).v, x.const(LIMIT[x.single]).v))
    return rarely(huge, y, [x], name, far)


def _sin_poly(r: V) -> V:
    z = r * r
    return fma(r * z, poly(z, k.SIN_64), r)


def _cos_poly(r: V) -> V:
    z = r * r
    return fma(z * z, poly(z, k.COS_64), fma(z, r.const(-0.5), 1.0))


def _rotate_by_quarters(r: V, q: V) -> V:
    """Return sin(r + q pi/2)."""
    y = where((q & 1).ne(0), _cos_poly(r), _sin_poly(r))
    return unbits(bits(y) ^ ((q & 2) << (30 if r.single else 62)))


def _finish_sin(r: V, rl: V, q: V) -> V:
    return _rotate_by_quarters(r, q)


def _finish_cos(r: V, rl: V, q: V) -> V:
    return _rotate_by_quarters(r, q + 1)


def _finish_tan(r: V, rl: V, q: V) -> V:
    z = r * r
    p = poly(z, k.TAN_32 if r.single else k.TAN_64) * (r * z)
    t = r + p
    t = r + fma(rl, fma(t, t, 1.0), p)
    return where((q & 1).ne(0), -1.0 / t, t)


def _wave(x: V, name: str, shift: int, finish: Finish) -> V:
    """Return sin(x + shift pi/2) of floats, by a polynomial with coefficients of the quadrant."""
    t = fma(x, x.const(TWO_OVER_PI), x.const(MAGIC[True]))
    q = bits(t)
    n = t - MAGIC[True]
    a, b, c = DOWN_32
    r = fma(n, -c, fma(n, -b, fma(n, -a, x)))
    z = r * r
    if on_gpu(x.b.module):  # without tables, which would be in memory
        turn = q + shift
        odd = (turn & 1).ne(0)
        u = unbits(bits(where(odd, 1.0, r)) ^ ((turn & 2) << 30))
        sine, cosine = ([row[j] for row in k.WAVE_32[2:]] for j in range(2))
        p = where(odd, poly(z, cosine), poly(z, sine))
    else:
        table = [lookup([row[(j + shift) % 4] for j in range(4)], q) for row in k.WAVE_32]
        u = fma(r, table[0], table[1])
        p = poly(z, table[2:])
    return _handle_huge(x, copysign(fma(u * z, p, u), u), name, finish)


@define(UNARY)
def sin(x: V) -> V:
    if x.single:
        return _wave(x, "sin", 0, _finish_sin)
    # The reduction loses the sign of -0.
    return where(x.eq(0.0), x, _periodic(x, "sin", _finish_sin))


@define(UNARY)
def cos(x: V) -> V:
    return _wave(x, "cos", 1, _finish_cos) if x.single else _periodic(x, "cos", _finish_cos)


@define(UNARY)
def tan(x: V) -> V:
    return where(x.eq(0.0), x, _periodic(x, "tan", _finish_tan))


def from_whole(x: V) -> tuple[V, V]:
    """Return the distance from the nearest integer, and 1 or -1 if that is even or odd."""
    whole = rint(x)
    half = whole * 0.5
    return x - whole, where(half.eq(floor(half)), x.const(1.0), -1.0)


@define(UNARY)
def sin_pi(x: V) -> V:
    """Return sin(pi x). The argument is reduced before the product: far from 0, the rounding error
    of pi x would be as large as a period."""
    part, sign = from_whole(x)
    return sin(part * 3.141592653589793) * sign
