"""Write conversions between types, with JAX's rules.

Floats outside the range of an integer type saturate, and NaN becomes 0. Conversion from complex to
real discards the imaginary part, except that conversion to bool tests both parts.
"""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.llvm.registers import join_parts, register_type, split_parts
from accnp.compiler.llvm.scalars import basic, half
from accnp.compiler.llvm.scalars.ir import V
from accnp.compiler.loops.types import F4, DType, part_of

__all__ = ["write_cast"]


def write_cast(of: DType, to: DType, b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """Write a conversion; returns the result."""
    if of == to:
        return value
    if of.kind == "half":
        if to.kind == "half":
            return half.rounded(V(b, value), to.token).v
        return write_cast(F4, to, b, value)
    if of.kind == "complex":
        return _of_complex(of, to, b, value)
    if to.kind == "complex":
        real = write_cast(of, part_of(to), b, value)
        return join_parts(b, real, V(b, real).const(0.0).v)
    if to.kind == "half":
        # Integers are converted to float32 first, as in JAX and ml_dtypes: large numbers are
        # rounded twice in bfloat16.
        real = value if of.kind == "float" else write_cast(of, F4, b, value)
        return half.rounded(V(b, real), to.token).v
    x = V(b, value)
    if to.kind == "bool":
        return x.ne(0.0 if of.kind == "float" else 0).v
    if of.kind == "float" and to.kind != "float":
        return basic.to_int(x, register_type(to), to.signed).v
    return x.to(register_type(to), signed=of.signed).v


def _of_complex(of: DType, to: DType, b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    real, imag = split_parts(b, value)
    part = part_of(of)
    if to.kind == "bool":
        return b.or_(V(b, real).ne(0.0).v, V(b, imag).ne(0.0).v)
    if to.kind == "complex":
        return join_parts(b, *[write_cast(part, part_of(to), b, p) for p in (real, imag)])
    return write_cast(part, to, b, real)
