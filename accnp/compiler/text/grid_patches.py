"""Maps on GPUs over rows that cannot be loaded four elements at a time: patches of 16 rows and 128
columns.

In: the emitter of a kernel of the form map. Out: lines in its writer. A block of threads does a
patch: a warp does two rows, a lane every 32nd column of them, and asks for all that it loads before
it waits for any. Where a patch lies is computed once for it and not for each element. Neighbors of
a stencil are in one patch, so that most of what they share is loaded from memory once.
"""

from __future__ import annotations

from math import prod

from accnp.compiler.text.grid_writer import THREADS, Grid, beside
from accnp.ir.kernel import Phase

__all__ = ["is_patched", "patched_map"]

LANES = 32
ACROSS, DOWN = 4, 2  # columns of a lane, rows of a warp
WIDTH, HEIGHT = LANES * ACROSS, THREADS // LANES * DOWN
FULL = 0.7  # of the threads that have work, so that it is worth it


def is_patched(e: Grid) -> bool:
    """Whether a kernel has rows and columns enough, and little to do for each element."""
    spec = e.spec
    if not spec.outer or beside("patch", spec.cost) < ACROSS * DOWN or not e.words:
        return False
    rows, columns = spec.outer[-1], spec.inner[0]
    return _full(rows, HEIGHT) * _full(columns, WIDTH) >= FULL


def _full(n: int, side: int) -> float:
    return n / (-(-n // side) * side)


def patched_map(e: Grid, phase: Phase) -> None:
    """Map form in patches along the last two axes."""
    spec, w = e.spec, e.w
    (inner,), d = e.of_inner, e.of_outer[-1]
    others = [*e.of_outer[:-1]]
    across, down = -(-spec.inner[0] // WIDTH), -(-spec.outer[-1] // HEIGHT)
    total = across * down * prod([e.sizes[k] for k in others])
    rows, columns = e.size(d), e.size(inner)
    count = e.integer("count", "count", total)
    w.add("u = block_of_grid()")
    with w.block(f"while u < {count}:"):
        w.add(f"v = {e.quotient('u', 'across', across)}")
        w.add(f"c = (u - v * across) * {WIDTH} + lane()")
        index: dict[int, str] = {}
        if others:
            w.add(f"o = {e.quotient('v', 'down', down)}", "v = v - o * down")
            e.decompose("o", others, index, "o")
        w.add(f"r = v * {HEIGHT} + warp() * {DOWN}")
        base = e.bases(index, e.all_accesses(), "p")
        inside = f"(r + {DOWN - 1} < {rows}) & (c + {LANES * (ACROSS - 1)} < {columns})"
        with w.block(f"if {inside}:"):
            _whole(e, phase, base, d)
        with w.block("else:"):
            w.add("q = r")
            with w.block(f"while (q < {rows}) & (q < r + {DOWN}):"):
                w.add("k = c")
                with w.block(f"while (k < {columns}) & (k < c + {WIDTH}):"):
                    e.body(phase, base, {d: "q", inner: "k"})
                    w.add(f"k = k + {LANES}")
                w.add("q = q + 1")
        w.add("u = u + blocks()")
    e.out.blocks, e.out.extent, e.out.weight = total, total, spec.cost * WIDTH * HEIGHT


def _whole(e: Grid, phase: Phase, base: dict[int, str], d: int) -> None:
    """All elements of a thread, none of which is beyond the ends."""
    (inner,), names = e.of_inner, {}
    rows: list[dict[int, str]] = []
    for x in range(DOWN):
        row = e.places({d: f"(r + {x})" if x else "r", inner: "c"}, base)
        for text in row.values():
            if text not in names:
                names[text] = f"b{len(names)}"
                e.w.add(f"{names[text]} = {text}")
        rows.append({a: names[text] for a, text in row.items()})
    e.copies(phase, [_along(e, row, LANES * k) for k in range(ACROSS) for row in rows])


def _along(e: Grid, row: dict[int, str], by: int) -> dict[int, str]:
    """The places this many columns further on."""
    (inner,), found = e.of_inner, {}
    for k, a in enumerate(e.all_accesses(), -len(e.spec.accesses)):
        step = e.stride(a, inner, f"a{a.number}" if a.number >= 0 else f"x{k}")
        more = "" if step == "0" or not by else f" + {by}" + ("" if step == "1" else f" * {step}")
        found[id(a)] = row[id(a)] + more
    return found
