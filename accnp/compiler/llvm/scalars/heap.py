"""LLVM IR that allocates and frees aligned memory on the heap.

`malloc_aligned` gets an IR builder and a number of bytes, writes a call of the C library's malloc,
and returns a pointer that is aligned to 64 bytes, for vectors. `free_aligned` writes the call that
frees it. `llvm/lower.py` allocates buffers of kernels with them; `intrinsics/memory.py` and
`numba/functions.py` define the corresponding functions of the loop IR.
"""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.llvm.scalars.ir import I64, external

__all__ = ["free_aligned", "malloc_aligned"]

_BYTES = ir.IntType(8).as_pointer()
_ALIGN = 64  # bytes


def malloc_aligned(b: ir.IRBuilder, nbytes: ir.Value) -> ir.Value:
    """Write code that allocates memory, and return the pointer to it."""
    room = b.add(nbytes, ir.Constant(I64, 2 * _ALIGN))
    start = b.call(external(b, "malloc", _BYTES, [I64]), [room])
    # The address that malloc returned is stored before the memory, for `free_aligned`.
    address = b.add(b.ptrtoint(start, I64), ir.Constant(I64, 2 * _ALIGN - 1))
    aligned = b.inttoptr(b.and_(address, ir.Constant(I64, -_ALIGN)), _BYTES.as_pointer())
    b.store(start, b.gep(aligned, [ir.Constant(I64, -1)]))
    return b.bitcast(aligned, _BYTES)


def free_aligned(b: ir.IRBuilder, p: ir.Value) -> None:
    """Write code that frees memory from `malloc_aligned`."""
    start = b.load(b.gep(b.bitcast(p, _BYTES.as_pointer()), [ir.Constant(I64, -1)]))
    b.call(external(b, "free", ir.VoidType(), [_BYTES]), [start])
