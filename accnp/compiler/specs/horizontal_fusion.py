"""Several kernels in one launch, each of which has a part of a common range of tasks.

Input: descriptions of kernels that write different elements, which are the cells of an index space.
Output: a `GeneratedKernel` whose kernel calls theirs. The kernels of one group iterate over the
same rows: a task consists of some rows, which the kernels process one after the other while the
rows are in the cache.

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
from accnp.compiler.specs.calls import CallerBuilder
from accnp.compiler.specs.launches import build_generated
from accnp.ir.generated import GeneratedKernel
from accnp.ir.kernel import KernelSpec

__all__ = ["fuse_horizontally"]

EDGE_RATIO = 8  # a cell is an edge if another cell has at least this many times its elements
TASK_WORK = 1 << 16  # work of one task, in simple operations on one element


def fuse_horizontally(groups: Sequence[Sequence[KernelSpec]]) -> GeneratedKernel:
    """Return a kernel that runs several kernels in one launch."""
    builder = CallerBuilder()
    loop_ir = builder.loop_ir
    tasks = work = 0
    alike = _kernels_by_extent(groups)
    last = len(alike) - 1
    with loop_ir.loop("t", loop_ir.first, loop_ir.last) as loop:
        t = loop.index
        for k, texts in enumerate(alike):
            extent, weight = texts[0].extent, sum([text.weight for text in texts])
            rows = max(1, TASK_WORK // weight)
            first, tasks = tasks, tasks - (-extent // rows)
            work += extent * weight
            with ExitStack() as inside:
                task = t
                if k:
                    begin = builder.integer(first)
                    inside.enter_context(loop_ir.when(call("ge", t, begin)))
                    task = call("sub", t, begin)
                if k < last:
                    inside.enter_context(loop_ir.when(call("lt", t, builder.integer(tasks))))
                size, total = builder.integer(rows), builder.integer(extent)
                start = loop_ir.let("b", call("mul", task, size))
                stop = loop_ir.let("e", call("fmin", call("add", start, size), total))
                for text in texts:
                    builder.call(text, (start, stop))
    return builder.finish(tasks, work)


def _kernels_by_extent(groups: Sequence[Sequence[KernelSpec]]) -> list[list[GeneratedKernel]]:
    """Return the kernels of each group, in separate lists if their ranges differ (rows or tiles).

    A narrow edge uses the same kernel as the large cell next to it, to save compile time: it is not
    unrolled like short axes, and it uses tiles if that cell does.
    """
    kernels: list[list[GeneratedKernel]] = []
    most = max([_elements(spec) for specs in groups for spec in specs])
    for specs in groups:
        by_extent: dict[int, list[GeneratedKernel]] = {}
        for spec in specs:
            edge = spec.form == "map" and _elements(spec) * EDGE_RATIO <= most
            text = build_generated(spec, edge, nontemporal_argument=True)
            by_extent.setdefault(text.extent, []).append(text)
        kernels += by_extent.values()
    return kernels


def _elements(spec: KernelSpec) -> int:
    return prod((*spec.outer, *spec.reduced, *spec.inner))
