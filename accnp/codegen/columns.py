"""The column form: folds over the middle axes, for a tile of inner indices at once.

In: the emitter of a kernel. Out: lines in its writer.
"""

from __future__ import annotations

from math import prod
from typing import Any

from accnp.codegen.folds import accumulator, combined, identity
from accnp.ir.kernel import BLOCK, ROWS, dtype_code

__all__ = ["column"]


def column(e: Any) -> None:
    """Each step folds over all reduced indices for one tile of inner indices."""
    spec = e.spec
    e.prologue()
    inner = e.of_inner[0]
    tiles = -(-spec.inner[0] // BLOCK)
    e.out.extent = prod(spec.outer) * tiles
    e.out.weight = spec.cost * prod(spec.reduced) * min(spec.inner[0], BLOCK)
    count = e.integer("tiles", "tiles", tiles)
    phase = spec.phases[0]
    accs = [accumulator(f.dtype, f.combine) for f in phase.folds]
    totals = [e.stack(a) for a in accs]
    parts = [e.stack(f.dtype) for f in phase.folds]
    w = e.w
    with w.block("for u in range(lo, hi):"):
        w.add(f"o = u // {count}", f"j0 = (u - o * {count}) * {BLOCK}")
        w.add(f"m = {e.size(inner)} - j0", f"m = m if m < {BLOCK} else {BLOCK}")
        index: dict[int, str] = {}
        e.begin_outer("o", index)
        base = e.bases(index, e.all_accesses(), "p")
        with w.block("for j in range(m):"):
            for t, a, f in zip(totals, accs, phase.folds, strict=True):
                w.add(f"{t}[j] = {dtype_code(a)}({identity(a, f.combine)})")
        rows = e.total()
        with w.block(f"for rb in range(0, {rows}, {ROWS}):"):
            with w.block("for j in range(m):"):
                for p, f in zip(parts, phase.folds, strict=True):
                    w.add(f"{p}[j] = {dtype_code(f.dtype)}({identity(f.dtype, f.combine)})")
            w.add(f"re = rb + {ROWS}", f"re = re if re < {rows} else {rows}")
            with w.block("for r in range(rb, re):"):
                inside: dict[int, str] = {}
                dims = list(e.of_reduced)
                if len(dims) == 1:
                    inside[dims[0]] = "r"
                else:
                    e.decompose("r", dims, inside, "d")
                deep = e.deepen(base, inside)
                e.hoisted(phase, deep, {})
                with w.block("for j in range(m):"):
                    w.add("q = j0 + j")
                    e.body(phase, deep, {inner: "q"})
                    for p, f in zip(parts, phase.folds, strict=True):
                        w.add(f"{p}[j] = {combined(f.combine, f.dtype, f'{p}[j]', f.source)}")
            with w.block("for j in range(m):"):
                for t, p, a, f in zip(totals, parts, accs, phase.folds, strict=True):
                    wide = f"{dtype_code(a)}({p}[j])" if a != f.dtype else f"{p}[j]"
                    w.add(f"{t}[j] = {combined(f.combine, a, f'{t}[j]', wide)}")
        with w.block("for j in range(m):"):
            w.add("q = j0 + j")
            for t, f in zip(totals, phase.folds, strict=True):
                w.add(f"{f.name} = {dtype_code(f.dtype)}({t}[j])")
            e.row_body(phase, base, {inner: "q"})
