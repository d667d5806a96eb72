"""Memory of the heap for kernels: from the C library, at addresses that suit vectors.

In: a builder of LLVM, and how many bytes are needed. Out: pointers to bytes.
"""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.llvm.scalars.ir import I64, external

__all__ = ["free_aligned", "malloc_aligned"]

_BYTES = ir.IntType(8).as_pointer()
_ALIGN = 64  # bytes


def malloc_aligned(b: ir.IRBuilder, nbytes: ir.Value) -> ir.Value:
    """Write code that gets memory; returns the pointer to it, which `free_aligned` takes."""
    room = b.add(nbytes, ir.Constant(I64, 2 * _ALIGN))
    start = b.call(external(b, "malloc", _BYTES, [I64]), [room])
    # The address that malloc gave lies before the memory.
    address = b.add(b.ptrtoint(start, I64), ir.Constant(I64, 2 * _ALIGN - 1))
    aligned = b.inttoptr(b.and_(address, ir.Constant(I64, -_ALIGN)), _BYTES.as_pointer())
    b.store(start, b.gep(aligned, [ir.Constant(I64, -1)]))
    return b.bitcast(aligned, _BYTES)


def free_aligned(b: ir.IRBuilder, p: ir.Value) -> None:
    """Write code that gives memory back."""
    start = b.load(b.gep(b.bitcast(p, _BYTES.as_pointer()), [ir.Constant(I64, -1)]))
    b.call(external(b, "free", ir.VoidType(), [_BYTES]), [start])
