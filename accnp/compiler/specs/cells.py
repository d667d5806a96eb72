"""Several kernels in one launch: each goes over its part of a common range of tasks.

In: kernels that write different elements (the cells of an index space that is cut). Out: a
`Generated` whose kernel calls theirs. Those of one group go over the same rows: a task is some
rows, done by one after the other while they are in the cache.

    for t in lo..hi {
      if lt(t, n) {                       # tasks of the first group
        let b: i8 = mul(t, n_1)           # n_1 rows a task, n_2 in all
        let e: i8 = fmin(add(b, n_1), n_2)
        run k3f2a1c(b, e, ...)
      }
      if ge(t, n) {
        ...
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod

from accnp.compiler.loops.builder import call
from accnp.compiler.specs.calls import Calls
from accnp.compiler.specs.launches import generated
from accnp.ir.generated import Generated
from accnp.ir.kernel import KernelSpec

__all__ = ["generated_cells"]

EDGE = 8  # how many times the elements of an edge another cell has
TASK = 1 << 16  # work of one task, in simple element operations


def generated_cells(groups: Sequence[Sequence[KernelSpec]]) -> Generated:
    """Return the kernel that does some kernels in one launch."""
    cells = Calls()
    b = cells.b
    tasks = work = 0
    alike = _alike(groups)
    last = len(alike) - 1
    with b.loop("t", b.first, b.last) as loop:
        t = loop.index
        for k, texts in enumerate(alike):
            extent, weight = texts[0].extent, sum([text.weight for text in texts])
            rows = max(1, TASK // weight)
            first, tasks = tasks, tasks - (-extent // rows)
            work += extent * weight
            with ExitStack() as inside:
                task = t
                if k:
                    begin = cells.integer(first)
                    inside.enter_context(b.when(call("ge", t, begin)))
                    task = call("sub", t, begin)
                if k < last:
                    inside.enter_context(b.when(call("lt", t, cells.integer(tasks))))
                size, total = cells.integer(rows), cells.integer(extent)
                start = b.let("b", call("mul", task, size))
                stop = b.let("e", call("fmin", call("add", start, size), total))
                for text in texts:
                    cells.call(text, (start, stop))
    return cells.finish(tasks, work)


def _alike(groups: Sequence[Sequence[KernelSpec]]) -> list[list[Generated]]:
    """The kernels of each group; those that share work by tiles are apart from those by rows.

    A narrow edge has the kernel of the cell beside it, which is long to compile: it is not written
    out, as short axes are, and in tiles where that one is.
    """
    found: list[list[Generated]] = []
    most = max([_elements(spec) for specs in groups for spec in specs])
    for specs in groups:
        by_extent: dict[int, list[Generated]] = {}
        for spec in specs:
            edge = spec.form == "map" and _elements(spec) * EDGE <= most
            text = generated(spec, edge, told=True)
            by_extent.setdefault(text.extent, []).append(text)
        found += by_extent.values()
    return found


def _elements(spec: KernelSpec) -> int:
    return prod((*spec.outer, *spec.reduced, *spec.inner))
