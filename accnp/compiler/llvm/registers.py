"""The LLVM types of numbers in registers and in memory, and conversions between the two.

A bool is one bit in a register and a byte in memory; a number of half precision is a float32 in a
register and 16 bits in memory. A complex number is a pair of floats in both.
"""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.llvm.scalars import half
from accnp.compiler.llvm.scalars.ir import I8, I16, V
from accnp.compiler.loops.types import DType, Pointer, Type, part_of

__all__ = ["from_memory", "join_parts", "memory_type", "register_type", "split_parts", "to_memory"]


def register_type(d: Type) -> ir.Type:
    """Return the LLVM type of a number, or of an address, in a register."""
    if isinstance(d, Pointer):
        return memory_type(d.of).as_pointer()
    if d.kind == "half":
        return ir.FloatType()
    if d.kind == "float":
        return ir.FloatType() if d.size == 4 else ir.DoubleType()
    if d.kind == "complex":
        return ir.LiteralStructType([register_type(part_of(d))] * 2)
    return ir.IntType(1 if d.kind == "bool" else 8 * d.size)


def memory_type(d: DType) -> ir.Type:
    """Return the LLVM type of a number in memory."""
    return {"bool": I8, "half": I16}.get(d.kind) or register_type(d)


def from_memory(of: DType, b: ir.IRBuilder, v: ir.Value) -> ir.Value:
    """Return a number in a register that was loaded from memory."""
    if of.kind == "bool":
        return b.icmp_unsigned("!=", v, ir.Constant(I8, 0))
    return half.widen(V(b, v), of.token).v if of.kind == "half" else v


def to_memory(of: DType, b: ir.IRBuilder, v: ir.Value) -> ir.Value:
    """Return the form in memory of a number in a register."""
    if of.kind == "bool":
        return b.zext(v, I8)
    return half.narrow(V(b, v), of.token).v if of.kind == "half" else v


def split_parts(b: ir.IRBuilder, z: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the real and the imaginary part of a complex number."""
    return b.extract_value(z, 0), b.extract_value(z, 1)


def join_parts(b: ir.IRBuilder, real: ir.Value, imag: ir.Value) -> ir.Value:
    """Return the complex number with these parts."""
    z = ir.Constant(ir.LiteralStructType([real.type] * 2), ir.Undefined)
    return b.insert_value(b.insert_value(z, real, 0), imag, 1)
