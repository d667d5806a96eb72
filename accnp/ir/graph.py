"""A `Graph`: a closed program.

In: the input leaves and the output nodes. Out: equations in order, free nodes, re-recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from accnp.ir.node import Node, arg, has_effect, record
from accnp.ir.trace import Trace, current, sets_site, state

__all__ = [
    "Graph", "build", "derived", "evaluate", "expanded", "graphs_in", "interpret", "rewrite",
    "toposort",
]  # fmt: skip


class Graph:
    """Inputs (abstract leaves), outputs, and the nodes between.

    `consts` are closed-over nodes that are not inputs. `effects` are the operations that are done
    even if no output needs them, in order.
    """

    __slots__ = (
        "__weakref__",
        "_order",
        "calls_python",
        "effects",
        "extra",
        "in_names",
        "inputs",
        "level",
        "name",
        "outputs",
        "recorded",
        "trace",
    )

    def __init__(
        self,
        inputs: Sequence[Node],
        outputs: Sequence[Node],
        name: str = "",
        in_names: Sequence[str] = (),
        level: int = 1,
        recorded: list[Node] | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.name = name
        self.in_names = tuple(in_names)
        self.level = level  # nodes of shallower traces are closed over, not part of this program
        self.recorded = recorded  # all nodes in order, dead ones too, where a jaxpr is made
        # Where given, decides exactly: only nodes of this trace and of those within it belong
        self.trace = trace
        self.effects: tuple[Node, ...] = () if trace is None else tuple(trace.effects)
        self.calls_python = trace is not None and bool(trace.calls)
        self._order: list[Node] | None = None
        # Derived programs (plan, jvp, batched), cached by their makers.
        self.extra: dict[Any, Any] = {}

    @property
    def nodes(self) -> list[Node]:
        """All inner nodes in an order in which they can be computed; leaves excluded."""
        if self.recorded is not None:
            return self.recorded
        if self._order is None:
            # Effects first: an operation comes after those that it needs, so they keep their order.
            roots = (*self.effects, *self.outputs)
            self._order = toposort(roots, set(map(id, self.inputs)), self.holds)
        return self._order

    def holds(self, node: Node) -> bool:
        """Whether a node was recorded in this program, or in a trace within it."""
        trace = node.trace
        if self.trace is None:
            return trace is not None and trace.level >= self.level
        while trace is not None and trace is not self.trace:
            trace = trace.parent
        return trace is not None

    def drop_effects(self) -> None:
        """Keep only what the outputs need."""
        self.effects, self._order = (), None

    def keep_calls(self) -> None:
        """Keep callbacks without effects, too: they may raise where their results are not used."""
        if self.trace is None or len(self.trace.calls) == len(self.effects):
            return
        mine = set(map(id, self.effects))
        before: dict[int, list[Node]] = {}  # callbacks by the effect that follows them
        waiting: list[Node] = []
        for node in self.trace.calls:
            if id(node) in mine:
                before.setdefault(id(node), []).extend(waiting)
                waiting = []
            elif not has_effect(node.op, node.params):
                waiting.append(node)
        effects = [x for e in self.effects for x in (*before.get(id(e), ()), e)]
        self.effects, self._order = (*effects, *waiting), None

    def detach(self) -> None:
        """Let go of the trace around a program that needs nothing of it, and may outlive it."""
        if self.trace is not None:
            self.trace.parent = self.trace.previous = None

    @property
    def in_avals(self) -> tuple[Any, ...]:
        return tuple(x.aval for x in self.inputs)

    @property
    def out_avals(self) -> tuple[Any, ...]:
        return tuple(x.aval for x in self.outputs)

    def free(self) -> list[Node]:
        """Closed-over leaves (constants and nodes of outer traces), in order of first use.

        Literals are not counted.
        """
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

    Leaves, nodes in `stop` (ids) and nodes for which `enter` is false are not entered and not
    listed.
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


# How a program with effects is recorded where values are there (`primitives/unrolled.py`).
_with_effects: list[Callable[..., list[Node]]] = []


@sets_site
def evaluate(
    graph: Graph, inputs: Sequence[Node], closed: dict[int, Node] | None = None
) -> list[Node]:
    """Record the graph's operations again with other inputs (inlining); returns the new outputs.

    `closed` has other nodes, by identity, for those that it closes over.
    """
    if graph.effects and current() is None:
        return _with_effects[0](graph, inputs)
    env: dict[int, Node] = {id(old): new for old, new in zip(graph.inputs, inputs, strict=True)}
    if closed is not None:
        env.update(closed)
    for node in graph.nodes:
        state.site = node.site
        env[id(node)] = record(
            node.op, tuple([env.get(id(x), x) for x in node.inputs]), node.params
        )
    return [env.get(id(x), x) for x in graph.outputs]


@sets_site
def rewrite(
    graph: Graph,
    inputs: Sequence[Node],
    rule: Callable[[Node, list[Node]], list[Node] | None],
) -> list[Node]:
    """Record the graph's operations again with other inputs; returns the new outputs.

    `rule` gets each operation and its new operands. It returns the results to use in its place, or
    None to record the operation as it is.
    """
    env: dict[int, Any] = dict(zip(map(id, graph.inputs), inputs, strict=True))
    for node in graph.nodes:
        state.site = node.site
        operands = [env.get(id(x), x) for x in node.inputs]
        if node.op.kind == "item" and isinstance(operands[0], list):
            env[id(node)] = operands[0][node.params["index"]]
            continue
        found = rule(node, operands)
        if found is None:
            env[id(node)] = record(node.op, tuple(operands), node.params)
        else:
            env[id(node)] = found if isinstance(node.aval, tuple) else found[0]
    return [env.get(id(x), x) for x in graph.outputs]


def expanded(graph: Graph) -> Graph:
    """Return the program with its jitted calls in place."""
    if not any(node.op.name == "jit" for node in graph.nodes):
        return graph

    def inline(node: Node, operands: list[Node]) -> list[Node] | None:
        return (
            rewrite(graphs_in(node.params)[0], operands, inline) if node.op.name == "jit" else None
        )

    return build(lambda nodes: rewrite(graph, nodes, inline), graph.in_avals, graph.name)


def build(
    fn: Callable[[list[Node]], Sequence[Node]], avals: Sequence[Any], name: str = ""
) -> Graph:
    """Record `fn`, a function from leaves to results that is not the user's, into a Graph."""
    with Trace("jit", name) as t:
        leaves = [arg(a, t) for a in avals]
        outputs = fn(leaves)
    recorded = t.recorded if state.named else None
    return Graph(leaves, outputs, name, level=t.level, recorded=recorded, trace=t)


def derived(
    source: Graph,
    key: tuple[Any, ...],
    fn: Callable[[list[Node]], Sequence[Node]],
    avals: Sequence[Any],
) -> Graph:
    """Record `fn` for a rule, or return what it was recorded into before: the source, the key and
    the avals say all that it depends on.

    A program that is made anew for each call counts as another one where programs are keys: an
    operation that has it among its parameters is planned again, and that plan is kept.
    """
    whole = (*key, tuple(avals), state.named)
    found = source.extra.get(whole)
    if found is None:
        found = source.extra[whole] = build(fn, avals, source.name)
    return found


def graphs_in(params: dict[str, Any]) -> list[Graph]:
    """Return the graphs among an op's parameters, also those in tuples."""
    found = []
    for v in params.values():
        if isinstance(v, Graph):
            found.append(v)
        elif isinstance(v, tuple):
            found.extend(g for g in v if isinstance(g, Graph))
    return found


def interpret(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run a program on concrete arrays with the reference functions.

    Closed-over nodes must be literals or have their values.
    """
    program = graph.extra.get("steps")
    if program is None:
        program = graph.extra["steps"] = _steps(graph)
    slots, steps, results = program
    env = list(slots)
    env[: len(arrays)] = arrays
    for fn, ins, params, dtype, out in steps:
        value = fn(*[env[i] for i in ins], **params)
        if dtype is None:
            env[out] = value
        elif isinstance(dtype, tuple):
            env[out] = [np.asarray(v, d) for v, d in zip(value, dtype, strict=True)]
        else:
            env[out] = np.asarray(value, dtype)
    return [env[i] for i in results]


def _steps(graph: Graph) -> tuple[list[Any], list[Any], list[int]]:
    """Number the values of a program once, so that a loop over it does no lookups by node."""
    where: dict[int, int] = {id(x): i for i, x in enumerate(graph.inputs)}
    slots: list[Any] = [None] * len(graph.inputs)

    def place(x: Node) -> int:
        found = where.get(id(x))
        if found is None:
            found = where[id(x)] = len(slots)
            slots.append(_known(x))
        return found

    steps = []
    for node in graph.nodes:
        ins = [place(x) for x in node.inputs]
        where[id(node)] = len(slots)
        slots.append(None)
        if node.op.numpy is None:
            raise NotImplementedError(
                f"{node.op.name}: there is no reference meaning to interpret it with"
            )
        if node.op.kind == "item":
            dtype = None
        else:
            several = isinstance(node.aval, tuple)
            dtype = tuple(a.dtype for a in node.aval) if several else node.aval.dtype
        steps.append((node.op.numpy, ins, node.params, dtype, where[id(node)]))
    return slots, steps, [place(x) for x in graph.outputs]


def _known(x: Node) -> np.ndarray:
    if x.op.name == "literal":
        return np.asarray(x.params["value"]).astype(x.aval.dtype)
    if x.value is None:
        raise RuntimeError(f"interpret: {x} is closed over and has no value; make it an input")
    return x.value.view(x.aval.shape, x.aval.dtype)
