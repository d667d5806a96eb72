"""Conversions between half precision in memory and float32 in registers.

The functions get 16 bits, or a float or double ``V``. They return the same value in the other form,
or the nearest number of the format (ties to even; subnormal numbers are kept, NaN stays NaN, and
numbers out of range become infinite). Formats are "f2" (IEEE 754 binary16) and "e2" (bfloat16, the
upper half of a float32). Conversion instructions are used if the processor has them (F16C);
otherwise, and for bfloat16, integer arithmetic gives the same bits. `registers.py`, `casts.py`,
`intrinsics/scalars.py` and `numba/halves.py` call the functions.
"""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.llvm.scalars import cold
from accnp.compiler.llvm.scalars.forms import Lanes
from accnp.compiler.llvm.scalars.ir import (
    F32,
    F64,
    I16,
    I32,
    V,
    bits,
    fabs,
    isnan,
    on_gpu,
    unbits,
    where,
)

_HALF = ir.HalfType()
_QUIET = 0x00400000  # the bit that marks a NaN if its payload is cut off
_TINY = 2.0**-14  # the smallest normal number of binary16


def _has_conversions(x: V) -> bool:
    """Return whether there are instructions for binary16."""
    return cold.halves or on_gpu(x.b.module)


def _bits(x: V) -> V:
    """Return the binary16 bits of a float32, by an instruction. In scalar code, the sign is
    converted separately: for the sign of a double, LLVM would call a function that does not
    exist."""
    if _elides_conversions(x):
        return V(x.b, x.b.bitcast(x.b.fptrunc(x.v, _HALF), I16))
    size = V(x.b, x.b.bitcast(x.b.fptrunc(fabs(x).v, _HALF), I16))
    return size | (bits(x).lshr(16).to(I16) & -0x8000)


def _elides_conversions(x: V) -> bool:
    """Return whether LLVM removes the conversions of a number that is widened and then narrowed, as
    in vector code. The instructions make NaN quiet, which would change numbers that are only
    copied."""
    return isinstance(x.b, Lanes) or on_gpu(x.b.module)


def widen(h: V, code: str) -> V:
    """Return the number with these 16 bits, as a float32."""
    if code == "e2":
        return unbits(h.to(I32, signed=False) << 16)
    u = h.to(I32, signed=False)
    if _has_conversions(h):
        wide = V(h.b, h.b.fpext(h.b.bitcast(h.v, _HALF), F32))
        if _elides_conversions(h):
            return wide
        same = unbits((u & 0x8000) << 16 | (u & 0x7FFF) << 13 | 0x7F800000)
        return where((u & 0x7FFF) > 0x7C00, same, wide)
    size = u & 0x7FFF
    normal = unbits((size << 13) + where(size >= 0x7C00, size.const(0x70000000), 0x38000000))
    small = size.to(F32) * 2.0**-24
    return unbits(bits(where(size < 0x400, small, normal)) | (u & 0x8000) << 16)


def narrow(x: V, code: str) -> V:
    """Return the 16 bits of a float32 whose value the format has."""
    if code == "e2":
        return bits(x).lshr(16).to(I16)
    u, a = bits(x), fabs(x)
    if _has_conversions(x):
        if _elides_conversions(x):
            return _bits(x)
        same = (u.lshr(16) & 0x8000 | u.lshr(13) & 0x7FFF).to(I16)
        return where(isnan(x) & (same & 0x3FF).ne(0), same, _bits(x))
    size = bits(a)
    normal = (size - where(size >= 0x7F800000, size.const(0x70000000), 0x38000000)).lshr(13)
    small = bits(a + 0.5) - 0x3F000000  # whose last place is that of the subnormal numbers
    return (where(a < _TINY, small, normal) | u.lshr(16) & 0x8000).to(I16)


def rounded(x: V, code: str) -> V:
    """Round a float32 or a double to the nearest number of the format, and return a float32.

    Doubles become bfloat16 via float32, as in JAX and ml_dtypes; binary16 is rounded once, as in
    NumPy.
    """
    if x.type == F64:
        x = _round_to_odd(x) if code == "f2" else x.to(F32)
    if code == "f2" and _has_conversions(x):
        return widen(_bits(x), code)
    u = bits(x)
    gone = 16 if code == "e2" else 13
    mask = -(1 << gone)
    even = u.lshr(gone) & 1
    near = u + even + ((1 << gone - 1) - 1)
    if code == "e2":
        return unbits(where(isnan(x), u | _QUIET, near) & mask)
    near = near & mask
    sign, a = u & -0x80000000, fabs(x)
    near = where((near & 0x7FFFFFFF) >= 0x47800000, sign | 0x7F800000, near)
    near = where(a < _TINY, bits((a + 0.5) - 0.5) | sign, near)
    return unbits(where(isnan(x), (u | _QUIET) & mask, near))


def _round_to_odd(x: V) -> V:
    """Return a double as a float32 whose last bit says whether digits were cut off. Rounding this
    to fewer bits has the same result as rounding the double (Boldo and Melquiond, 2008)."""
    y = V(x.b, x.b.fptrunc(x.v, F32))
    back, u = y.to(F64), bits(y)
    inexact = back.ne(x) & ~isnan(x)
    above = fabs(back) > fabs(x)  # infinity comes back as the largest float32
    cut = where(inexact & above, u - 1, u)
    return unbits(where(inexact, cut | 1, cut))
