"""Reverse-mode derivatives: forward mode with placeholder tangents, then transposition.

`linearize_outputs` takes the outputs of a function that was recorded over marks (its arguments) and
returns a `LinearMap`, the derivative at that point. The map can be applied to tangents
(`jax.linearize`) and transposed (`jax.vjp`, `jax.grad`) any number of times.
"""

from __future__ import annotations

from collections.abc import Sequence

from accnp.ir.node import Node, arg
from accnp.ir.trace import Trace
from accnp.transforms.jvp import forward
from accnp.transforms.tools import TOOLS
from accnp.transforms.transpose import backward
from accnp.transforms.traversal import (
    dependents,
    inexact,
    nodes_within,
    sort_as_recorded,
    take_recorded,
)
from accnp.transforms.varying import copy_axes

__all__ = ["LinearMap", "linearize_outputs"]


class LinearMap:
    """The derivative at a point: `inputs` are placeholders, `outputs` tangents (None = zero)."""

    __slots__ = ("inputs", "order", "outputs", "primals")

    def __init__(
        self,
        inputs: list[Node],
        outputs: list[Node | None],
        primals: list[Node],
        order: list[Node],
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.primals = primals  # the function's values at the point
        self.order = order

    def apply(self, ts: Sequence[Node]) -> list[Node | None]:
        """Apply the derivative to tangents; outputs that do not depend on them are None."""
        env = {id(p): t for p, t in zip(self.inputs, ts, strict=True)}
        TOOLS.replay(self.order, env)
        return [None if x is None else env.get(id(x)) for x in self.outputs]

    def pull(self, cts: Sequence[Node | None]) -> list[Node | None]:
        """Apply the transposed derivative to cotangents; return those of the inputs."""
        return backward(self.order, self.inputs, self.outputs, cts, TOOLS)


def linearize_outputs(outputs: Sequence[Node], marks: Sequence[Node], trace: Trace) -> LinearMap:
    """Differentiate recorded outputs with respect to marks; call it while `trace` is active."""
    order = take_recorded(outputs, marks, trace)
    with Trace("linear") as inner:
        placeholders = [arg(m.aval, inner) for m in marks]
        copy_axes(placeholders, marks)
        env = {
            id(m): (m, p if inexact(m.aval.dtype) else None)
            for m, p in zip(marks, placeholders, strict=True)
        }
        forward(order, env, TOOLS, trace, linear=inner)
        pairs = [env.get(id(x), (x, None)) for x in outputs]
        tangents = [t for _, t in pairs]
        linear = nodes_within([t for t in tangents if t is not None], placeholders, inner)
        linear = sort_as_recorded(dependents(linear, placeholders), inner)
    return LinearMap(placeholders, tangents, [p for p, _ in pairs], linear)
