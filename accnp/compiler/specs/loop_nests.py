"""Loops over several axes: all of them, or a part in runs along the last one."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod

from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import Const, Index, Var
from accnp.compiler.loops.types import I8
from accnp.compiler.specs.kernel_builder import KernelBuilder, Place

__all__ = ["loop_over_axes", "loop_over_range"]


@contextmanager
def loop_over_axes(
    builder: KernelBuilder, axes: Sequence[int], independent: bool
) -> Generator[dict[int, Var]]:
    """Loop over all elements of some axes; yields the indices along them."""
    index: dict[int, Var] = {}
    with ExitStack() as loops:
        for d in axes:
            last = d == axes[-1]
            loop = builder.loop_ir.loop(
                "k", Const(0, I8), builder.size(d), independent=independent and last
            )
            index[d] = loops.enter_context(loop).index
        yield index


@contextmanager
def loop_over_range(
    builder: KernelBuilder, start: Var, end: Var, axes: Sequence[int], independent: bool = True
) -> Generator[tuple[dict[int, Place], Place]]:
    """Loop over start..end of the flat index of some axes.

    Yields the indices along these axes, and the flat index relative to the start. A tiny kernel
    processes all elements in one part.
    """
    loop_ir = builder.loop_ir
    *others, along = axes
    if not others:
        extent = affine((end, 1), (start, -1))
        with loop_ir.loop("j", Const(0, I8), extent, independent=independent) as steps:
            yield {along: Index(((start, 1), (steps.index, 1)))}, steps.index
        return
    if builder.tiny:
        with loop_over_axes(builder, axes, independent) as inside:
            spec = builder.spec
            sizes = [(*spec.outer, *spec.reduced, *spec.inner)[d] for d in axes]
            steps = [prod(sizes[k + 1 :]) for k in range(len(sizes))]
            terms = tuple([(inside[d], n) for d, n in zip(axes, steps, strict=True)])
            yield dict(inside), Index(terms)
        return
    size = builder.size(along)
    first = call("floordiv", start, size)
    last = loop_ir.let("last", call("floordiv", affine((end, 1), constant=-1), size))
    with loop_ir.loop("run", first, affine((last, 1), constant=1)) as loop:
        run = loop_ir.let("begin", call("mul", loop.index, size))
        begin = loop_ir.let("begin", call("fmax", run, start))
        extent = call("sub", call("fmin", affine((run, 1), (size, 1)), end), begin)
        index: dict[int, Place] = {**builder.indices(loop.index, others, "d")}
        in_run = loop_ir.let("q", affine((begin, 1), (run, -1)))
        before = loop_ir.let("k", affine((begin, 1), (start, -1)))
        with loop_ir.loop("j", Const(0, I8), extent, independent=independent) as steps:
            index[along] = Index(((in_run, 1), (steps.index, 1)))
            yield index, Index(((before, 1), (steps.index, 1)))
