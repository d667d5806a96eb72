"""Several maps in one launch on a GPU: each has a share of the blocks of threads.

In: maps that write different elements (the cells of an index space that is cut: concatenate, stack,
roll). Out: a `Generated` whose text holds theirs, each text once, and calls them:

    def kernel(a0, a1, n0, n1, ...):
        b = block_of_grid()
        while b < n9:
            if b < n1:                            # blocks of the first map
                k3f2a1c(b, n1, at(a0, n3), a1, n4, n5)
            if (b >= n1) & (b < n2):
                ...
            b = b + blocks()
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from accnp.codegen.cells import Launch
from accnp.codegen.generated import Generated
from accnp.codegen.grid import generate_grid
from accnp.codegen.grid_writer import WAVE
from accnp.ir.kernel import KernelSpec

__all__ = ["generate_grid_cells"]

# What a text asks of the whole grid it asks of its share: block `lo` of `hi`.
_OF_SHARE = {
    "thread": "(lo * threads_of_block() + thread_of_block())",
    "threads": "(hi * threads_of_block())",
    "block_of_grid": "lo",
    "blocks": "hi",
}
_ASKED = re.compile(rf"\b({'|'.join(_OF_SHARE)})\(\)")


def generate_grid_cells(specs: Sequence[KernelSpec], wave: int = WAVE) -> Generated | None:
    """Write the source of maps in one launch; None if some of them are no maps."""
    if any(spec.form != "map" for spec in specs):
        return None
    launch = Launch()
    w = launch.w
    texts = [generate_grid(spec, wave=wave) for spec in specs]
    total, work = 0, 0
    every = launch.integer(sum(t.blocks for t in texts))
    w.add("b = block_of_grid()")
    with w.block(f"while b < {every}:"):
        for text in texts:
            source = _ASKED.sub(lambda m: _OF_SHARE[m[1]], text.source)
            text.source = source.replace("def kernel(", "def kernel(lo, hi, ", 1)
            count = launch.integer(text.blocks)
            first = launch.integer(total)
            total, work = total + text.blocks, work + text.extent * text.weight
            with w.block(f"if (b >= {first}) & (b < {first} + {count}):"):
                w.add(launch.call(text, f"b - {first}", count))
        w.add("b = b + blocks()")
    out = launch.finish(total, work)
    head = out.source.rindex("def kernel(lo, hi, ")
    out.source = out.source[:head] + out.source[head:].replace("(lo, hi, ", "(", 1)
    out.threads, out.blocks = texts[0].threads, total
    return out
