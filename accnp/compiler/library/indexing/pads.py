"""The kernel of `pad` with interior padding, which no regions of an index space express."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from accnp.compiler.library.writing.loop_nests import Axis, Nest, Text, merged, total
from accnp.ir.aval import Aval, make_aval
from accnp.ir.kernel import Operand, OwnKernel
from accnp.primitives.assemble import pad_regions

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["pad"]


def pad(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel:
    """For interior padding: fill the whole output, then write the elements. No cell of an index
    space belongs to one operand only, so fusion cannot read through the result."""
    x, size = operands[0], prod(results[0].shape)
    regions = pad_regions(make_aval(x.shape, x.dtype), p, x.strides)
    _, (shape, src, start), (_, dst, at) = regions
    text = Text(3)
    text.add("unit = a1[0]")
    with text.block("for i in range(lo, hi):"):
        text.add("a2[i] = unit")
    kernel = text.own(size, size)
    if prod(shape):
        text = Text(3)
        axes = merged([Axis(n, (s, d)) for n, s, d in zip(shape, src, dst, strict=True)])
        nest = Nest(text, axes or [Axis(1, (0, 0))])
        first, to = text.integer(start), text.integer(at)
        for _ in nest.axes:
            nest.open()
        x_at, y_at = total([first, *nest.walk(0)]), total([to, *nest.walk(1)])
        text.add(f"a2[{y_at}] = a0[{x_at}]")
        kernel.then = (nest.own(1),)
    return kernel
