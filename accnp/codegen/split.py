"""The split form: rows cut into chunks, each folded by itself; another kernel folds the results.

In: the emitter of a kernel. Out: lines in its writer.
"""

from __future__ import annotations

from math import prod
from typing import Any

from accnp.codegen.folds import accumulator
from accnp.ir.kernel import CHUNK, dtype_code

__all__ = ["split"]


def split(e: Any) -> None:
    """Each step folds one chunk of one row; one chunk in all goes straight to the output."""
    spec = e.spec
    e.prologue()
    total = prod(spec.reduced)
    chunks = max(1, -(-total // CHUNK))
    e.out.extent = prod(spec.outer) * chunks
    e.out.weight = spec.cost * min(total, CHUNK)
    count = e.integer("chunks", "chunks", chunks)
    phase = spec.phases[0]
    with e.w.block("for u in range(lo, hi):"):
        e.w.add(f"o = u // {count}", f"start = (u - o * {count}) * {CHUNK}")
        index: dict[int, str] = {}
        e.begin_outer("o", index)
        base = e.bases(index, e.all_accesses(), "p")
        for s in spec.row_head:
            e.statement(s, base, {})
        e.w.add(
            f"stop = start + {CHUNK}",
            f"stop = stop if stop < {e.total()} else {e.total()}",
        )
        e.one_pass(phase, base, "start", "stop")
        results = dict((name, a) for a, name in phase.row_stores)
        with e.w.block(f"if {count} == 1:"):
            for f in phase.folds:
                a = results[f.name]
                place = e.place(a, base, {})
                e.w.add(f"a{a.number}[{place}] = {dtype_code(f.dtype)}({f.name}_acc)")
        with e.w.block("else:"):
            for k, f in enumerate(phase.folds):
                acc = accumulator(f.dtype, f.combine)
                e.out.pointers.append((f"part{k}", k, acc))
                e.out.partials.append((f, results[f.name], chunks))
                e.w.add(f"part{k}[u] = {f.name}_acc")
    e.arguments += [p[0] for p in e.out.pointers if isinstance(p, tuple)]
