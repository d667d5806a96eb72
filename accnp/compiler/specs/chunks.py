"""Reductions of rows in chunks: each step of the kernel reduces one chunk of one row."""

from __future__ import annotations

from math import prod

from accnp.compiler.formulas import converted
from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import Buffer, Const
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.accumulators import accumulator
from accnp.compiler.specs.blocked_reductions import reduce_range
from accnp.compiler.specs.kernel_builder import KernelBuilder, loop_type
from accnp.ir.kernel import CHUNK

__all__ = ["add_chunks"]


def add_chunks(builder: KernelBuilder) -> None:
    """Add a loop whose steps reduce one chunk of one row each. If a row has one chunk, this is the
    result; otherwise another kernel reduces the partial results."""
    spec, loop_ir, out = builder.spec, builder.loop_ir, builder.out
    (phase,) = spec.phases
    chunks = max(1, -(-prod(spec.reduced) // CHUNK))
    out.extent = prod(spec.outer) * chunks
    out.weight = spec.cost * min(prod(spec.reduced), CHUNK)
    parts: list[Buffer] = []
    results = {name: a for a, name in phase.row_stores}
    for k, f in enumerate(phase.reductions):
        acc = accumulator(f.dtype, f.combine)
        parts.append(loop_ir.buffer(f"part{k}", loop_type(acc)))
        out.pointers.append((f"part{k}", k, acc))
        out.partials.append((f, results[f.name], chunks))
    count = builder.integer("chunks", "chunks", chunks)
    total = builder.total()
    with loop_ir.loop("u", loop_ir.first, loop_ir.last) as loop:
        u = loop.index
        o = loop_ir.let("o", call("floordiv", u, count))
        chunk = call("sub", u, call("mul", o, count))
        start = loop_ir.let("start", call("mul", chunk, Const(CHUNK, I8)))
        stop = loop_ir.let("stop", call("fmin", affine((start, 1), constant=CHUNK), total))
        index = builder.outer_indices(o) if spec.outer else {}
        for s in spec.row_head:
            builder.statement(s, index)
        accumulators = reduce_range(builder, phase, index, start, stop)
        with loop_ir.when(call("eq", count, Const(1, I8))):
            for f, acc in zip(phase.reductions, accumulators, strict=True):
                a = results[f.name]
                value = converted(acc, loop_type(f.dtype))
                loop_ir.store(builder.buffers[id(a)], builder.place(a, index), value)
        with loop_ir.otherwise():
            for part, acc in zip(parts, accumulators, strict=True):
                loop_ir.store(part, u, acc)
