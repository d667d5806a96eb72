"""LLVM IR that takes elements of a short row at computed indices.

It gets pointers to elements of 32 or 64 bits, 32-bit indices and counts, and emits code that stores
the elements; the intrinsic `permute` (`intrinsics/compaction.py`) calls it. If one instruction
permutes 64 bytes by a register (AVX-512), it processes the whole row. On other processors, elements
are moved one by one. LLVM itself has no operation for permutations that are not constant.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from accnp.compiler.llvm.scalars import cold
from accnp.compiler.llvm.scalars.ir import I32, I64, below, masked_load

BYTES = 64  # the maximum size of a row


def permute(b: ir.IRBuilder, floating: bool, args: Sequence[ir.Value]) -> None:
    """Emit ``to[k] = src[places[k]]`` for k < n, where src has `size` elements.

    All must fit into BYTES. `to` and `places` have room for BYTES, and the elements of `to` from n
    on are overwritten.
    """
    to, src, size, n, places = args
    t = to.type.pointee
    width = 4 if t in (ir.FloatType(), I32) else 8
    count = BYTES // width
    if cold.vector_bytes != BYTES:
        assert isinstance(n, ir.Constant)
        for k in range(n.constant):
            place = b.sext(b.load(b.gep(places, [ir.Constant(I64, k)])), I64)
            b.store(b.load(b.gep(src, [place])), b.gep(to, [ir.Constant(I64, k)]))
        return
    v, index = ir.VectorType(t, count), ir.VectorType(I32, count)
    zero = ir.Constant(v, [ir.Constant(t, 0)] * count)
    row = masked_load(b, src, v, width, below(b, size, count), zero)
    order = b.load(b.bitcast(places, index.as_pointer()), typ=index, align=4)
    letter = ("s" if width == 4 else "d") + ("f" if floating else "i")
    kind = ir.VectorType(I32 if width == 4 else I64, count)
    if width == 8:
        order = b.zext(order, kind)
    name = f"llvm.x86.avx512.permvar.{letter}.512"
    fn = b.module.globals.get(name)
    if fn is None:
        fn = ir.Function(b.module, ir.FunctionType(v, [v, kind]), name)
    b.store(b.call(fn, [row, order]), b.bitcast(to, v.as_pointer()), align=width)
