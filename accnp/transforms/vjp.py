"""Reverse derivatives: a forward walk with placeholder tangents, then the linear part transposed.

In: the outputs of a function recorded over marks. Out: a `LinearMap`, the derivative at that point,
which can be applied to tangents and transposed, any number of times.
"""

from __future__ import annotations

from collections.abc import Sequence

from accnp.ir.node import Node, arg
from accnp.ir.trace import Trace
from accnp.transforms.jvp import forward
from accnp.transforms.tools import TOOLS
from accnp.transforms.transpose import backward
from accnp.transforms.varying import settled
from accnp.transforms.walk import dependents, in_order, inexact, nodes_within, taken_back

__all__ = ["LinearMap", "linearise"]


class LinearMap:
    """A derivative at a point: `inputs` are placeholders, `outputs` tangents (None = zero)."""

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
        """Push tangents forward; outputs that do not depend on them give None."""
        env = {id(p): t for p, t in zip(self.inputs, ts, strict=True)}
        TOOLS.replay(self.order, env)
        return [None if x is None else env.get(id(x)) for x in self.outputs]

    def pull(self, cts: Sequence[Node | None]) -> list[Node | None]:
        """Pull cotangents back to the inputs."""
        return backward(self.order, self.inputs, self.outputs, cts, TOOLS)


def linearise(outputs: Sequence[Node], marks: Sequence[Node], trace: Trace) -> LinearMap:
    """Differentiate recorded outputs with respect to marks; call it while `trace` is active."""
    order = taken_back(outputs, marks, trace)
    with Trace("linear") as inner:
        placeholders = [arg(m.aval, inner) for m in marks]
        settled(placeholders, marks)
        env = {
            id(m): (m, p if inexact(m.aval.dtype) else None)
            for m, p in zip(marks, placeholders, strict=True)
        }
        forward(order, env, TOOLS, trace, linear=inner)
        pairs = [env.get(id(x), (x, None)) for x in outputs]
        tangents = [t for _, t in pairs]
        linear = nodes_within([t for t in tangents if t is not None], placeholders, inner)
        linear = in_order(dependents(linear, placeholders), inner)
    return LinearMap(placeholders, tangents, [p for p, _ in pairs], linear)
