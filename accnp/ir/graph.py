"""A `Graph`: a closed program. In: the input leaves and the output nodes. Out: equations in order, free nodes, re-recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from accnp.ir.node import Node, record
from accnp.ir.trace import Trace

__all__ = ["Graph", "evaluate", "toposort"]


class Graph:
    """Inputs (abstract leaves), outputs, and the nodes between; `consts` are closed-over nodes that are not inputs."""

    __slots__ = (
        "__weakref__",
        "_order",
        "extra",
        "in_names",
        "inputs",
        "level",
        "name",
        "outputs",
        "recorded",
    )

    def __init__(
        self,
        inputs: Sequence[Node],
        outputs: Sequence[Node],
        name: str = "",
        in_names: Sequence[str] = (),
        level: int = 1,
        recorded: list[Node] | None = None,
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.name = name
        self.in_names = tuple(in_names)
        self.level = level  # nodes of shallower traces are closed over, not part of this program
        self.recorded = recorded  # all that was recorded, dead nodes too, for the printer
        self.trace = trace  # where given, decides exactly: only nodes of this trace and of those within it belong
        self._order: list[Node] | None = None
        self.extra: dict[
            str, Any
        ] = {}  # derived programs (plan, jvp, batched), cached by their makers

    @property
    def nodes(self) -> list[Node]:
        """All inner nodes in an order in which they can be computed; leaves excluded."""
        if self._order is None:
            self._order = toposort(self.outputs, set(map(id, self.inputs)), self._inside)
        return self._order

    def _inside(self, node: Node) -> bool:
        trace = node.trace
        if self.trace is None:
            return trace is not None and trace.level >= self.level
        while trace is not None and trace is not self.trace:
            trace = trace.parent
        return trace is not None

    @property
    def in_avals(self) -> tuple[Any, ...]:
        return tuple(x.aval for x in self.inputs)

    @property
    def out_avals(self) -> tuple[Any, ...]:
        return tuple(x.aval for x in self.outputs)

    def free(self) -> list[Node]:
        """Closed-over leaves (constants and nodes of outer traces), in order of first use; literals are not counted."""
        own = {id(x) for x in self.inputs}
        inner = {id(x) for x in self.nodes}
        seen: dict[int, Node] = {}
        for node in self.nodes:
            for x in node.inputs:
                if id(x) not in own and id(x) not in inner and x.op.name != "literal":
                    seen.setdefault(id(x), x)
        for x in self.outputs:
            if id(x) not in own and id(x) not in inner and x.op.name != "literal":
                seen.setdefault(id(x), x)
        return list(seen.values())


def toposort(
    outputs: Iterable[Node],
    stop: set[int] = frozenset(),  # type: ignore[assignment]
    enter: Callable[[Node], bool] | None = None,
) -> list[Node]:
    """Order the nodes above `outputs` so that inputs come first; iterative, since graphs are deep.

    Leaves, nodes in `stop` (ids) and nodes for which `enter` is false are not entered and not listed.
    """
    order: list[Node] = []
    seen: set[int] = set(stop)
    for root in outputs:
        stack: list[tuple[Node, int]] = [(root, 0)]
        while stack:
            node, i = stack.pop()
            if i == 0:
                if id(node) in seen or node.op.kind == "leaf" or (enter and not enter(node)):
                    continue
                seen.add(id(node))
            if i < len(node.inputs):
                stack.append((node, i + 1))
                child = node.inputs[i]
                if id(child) not in seen:
                    stack.append((child, 0))
            else:
                order.append(node)
    return order


def evaluate(graph: Graph, inputs: Sequence[Node]) -> list[Node]:
    """Record the graph's operations again with other inputs (inlining); returns the new outputs."""
    env: dict[int, Node] = {id(old): new for old, new in zip(graph.inputs, inputs, strict=True)}
    for node in graph.nodes:
        env[id(node)] = record(
            node.op, tuple([env.get(id(x), x) for x in node.inputs]), node.params
        )
    return [env.get(id(x), x) for x in graph.outputs]
