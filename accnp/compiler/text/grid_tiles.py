"""Operands that lie across, on GPUs: their memory runs along an outer axis.

In: the emitter of a kernel with loads whose stride is 1 along an outer axis and long along the
innermost one. Out: lines in its writer. A fold along rows has the lanes of a warp walk 32 rows side
by side, in the order of each row's sum.
"""

from __future__ import annotations

from math import prod
from typing import Any

from accnp.compiler.specs.accumulators import accumulator, lanes
from accnp.compiler.text.folds import combined, identity, joined
from accnp.compiler.text.grid_products import again_beside
from accnp.compiler.text.grid_writer import Copy
from accnp.ir.kernel import BLOCK, dtype_code

__all__ = ["turned_row"]

SIDE = 32  # of a tile
WARPS = 8  # of a block of threads


def _tile(e: Any, others: list[int], d: int) -> dict[int, str]:
    """Where the tile of number u begins: c0 along axis d."""
    down = -(-e.sizes[d] // SIDE)
    e.w.add(f"o = {e.quotient('u', 'down', down)}", f"c0 = (u - o * down) * {SIDE}")
    index: dict[int, str] = {}
    if others:
        e.decompose("o", others, index, "o")
    return e.bases(index, e.all_accesses(), "p")


def turned_row(e: Any, d: int) -> None:
    """Row form of one pass without stores: 32 rows by a block of threads, whose warps have the
    lanes of `block_*` among them."""
    spec, w = e.spec, e.w
    others = [k for k in e.of_outer if k != d]
    total = prod([e.sizes[k] for k in others]) * -(-e.sizes[d] // SIDE)
    count = e.integer("count", "count", total)
    e.prologue()
    e.out.extent = e.out.blocks = total
    e.out.threads, e.out.weight = 32 * WARPS, spec.cost * prod(spec.reduced) * SIDE
    phase = spec.phases[0]
    most = max([lanes(f.combine) for f in phase.folds])
    stop = e.total()
    for f in phase.folds:
        w.add(f"{f.name}_parts = shared_{dtype_code(f.dtype)}({32 * WARPS})")
    w.add("u = block_of_grid()")
    with w.block(f"while u < {count}:"):
        outside = _tile(e, others, d)
        w.add("c = c0 + lane()", f"live = c < {e.size(d)}", f"c = c if live else {e.size(d)} - 1")
        base = e.deepen(outside, {d: "c"}, "r")
        for s in spec.row_head:
            e.statement(s, base, {})
        for f in phase.folds:
            acc = accumulator(f.dtype, f.combine)
            w.add(f"{f.name}_acc = {dtype_code(acc)}({identity(acc, f.combine)})")
        w.add("b = 0")
        with w.block(f"while b < {stop}:"):
            w.add(f"end = b + {BLOCK}", f"end = end if end < {stop} else {stop}")
            for f in phase.folds:
                start = f"{dtype_code(f.dtype)}({identity(f.dtype, f.combine)})"
                w.add(*[f"{f.name}_{k} = {start}" for k in range(lanes(f.combine) // WARPS)])
            w.add("g = b + warp()")
            with w.block(f"while g + {most - WARPS} < end:"):
                _elements(e, base, most // WARPS)
                w.add(f"g = g + {most}")
            for k in range(most // WARPS):
                with w.block("if g < end:"):
                    _elements(e, base, 1, k)
                w.add(f"g = g + {WARPS}")
            for f in phase.folds:
                _halves(e, f)
            w.add("barrier()")
            for f in phase.folds:
                acc = accumulator(f.dtype, f.combine)
                wide = f"{dtype_code(acc)}({f.name}_0)" if acc != f.dtype else f"{f.name}_0"
                _across_warps(e, f)
                again_beside(e, phase, f, outside, d)
                w.add(f"{f.name}_acc = {combined(f.combine, acc, f'{f.name}_acc', wide)}")
            w.add("barrier()", f"b = b + {BLOCK}")
        with w.block("if live & (warp() == 0):"):
            for f in phase.folds:
                w.add(f"{f.name} = {dtype_code(f.dtype)}({f.name}_acc)")
                e.dtypes[f.name] = f.dtype
            e.row_body(phase, base, {})
        w.add("u = u + blocks()")


def _join(f: Any, x: str, y: str) -> str:
    return joined(f.combine, f.dtype, x, y)


def _elements(e: Any, base: dict[int, str], side: int, first: int = 0) -> None:
    """Join elements g, g + 8... of the row to the lanes from the first on."""
    w, phase = e.w, e.spec.phases[0]
    names = {s.name for s in phase.full}
    dims = list(e.of_reduced)
    copies, where = [], []
    for k in range(side):
        copies.append(Copy(e, first + k, names))
        place = f"(g + {WARPS * k})" if k else "g"
        index: dict[int, str] = {dims[0]: place}
        if len(dims) > 1:
            e.decompose(place, dims, index, f"d{first + k}_")
        where.append(index)
    early = [s for s in phase.full if s.access is not None and not s.args]
    for copy, index in zip(copies, where, strict=True):
        for s in early:
            copy.statement(s, base, index)
    for k, (copy, index) in enumerate(zip(copies, where, strict=True), first):
        for s in phase.full:
            if s not in early:
                copy.statement(s, base, index)
        for f in phase.folds:
            lane = f"{f.name}_{k % (lanes(f.combine) // WARPS)}"
            w.add(f"{lane} = {_join(f, lane, copy.name(f.source))}")


def _halves(e: Any, f: Any) -> None:
    """Fold the lanes of one thread by halves, and leave the rest for the other warps."""
    many = lanes(f.combine) // WARPS
    while many > 1:
        many //= 2
        for k in range(many):
            x = f"{f.name}_{k}"
            e.w.add(f"{x} = {_join(f, x, f'{f.name}_{k + many}')}")
    e.w.add(f"{f.name}_parts[thread_of_block()] = {f.name}_0")


def _across_warps(e: Any, f: Any) -> None:
    many, name = WARPS, f"{f.name}_parts[{{}} + lane()]"
    values = [name.format(32 * k) for k in range(many)]
    while many > 1:
        many //= 2
        for k in range(many):
            e.w.add(f"{f.name}_{k} = {_join(f, values[k], values[k + many])}")
        values = [f"{f.name}_{k}" for k in range(many)]
