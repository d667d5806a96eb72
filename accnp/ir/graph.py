"""A `Graph`: a recorded program with inputs, outputs and the nodes between them.

Traces of Python functions (`jit`, `vmap`, bodies of loops and branches) end as graphs. This module
defines the class and what all consumers need: topological order, closed-over nodes, recording a
graph again with other inputs (`evaluate`, `rewrite`), recording a new one (`build`,
`derive_graph`), and a reference interpreter on NumPy arrays. `transforms/` and `engine/` consume
graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.ir.aval import result_avals
from accnp.ir.node import LITERAL, Node, arg, has_effect, record
from accnp.ir.op import as_tuple
from accnp.ir.trace import Trace, current, sets_site, state

if TYPE_CHECKING:
    from collections.abc import Hashable

    from accnp.ir.aval import Aval
    from accnp.ir.op_types import Params


__all__ = [
    "Graph", "build", "derive_graph", "evaluate", "graphs_in", "inline_calls",
    "install_effects", "interpret", "rewrite", "steps_of", "toposort",
]  # fmt: skip


class Graph:
    """Inputs (abstract leaves), outputs, and the nodes between them.

    `effects` are the operations that run in this order even if no output depends on them. `free`
    returns the nodes that the program closes over.
    """

    __slots__ = (
        "__weakref__", "_order", "calls_python", "effects", "extra", "in_names", "inputs", "level",
        "name", "outputs", "recorded", "trace",
    )  # fmt: skip

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
        self.level = level  # nodes of traces below this level are closed over
        self.recorded = recorded  # while a jaxpr is made: all nodes in order, including unused ones
        # If given, it decides which nodes belong to the program: those of it and of nested traces.
        self.trace = trace
        self.effects: tuple[Node, ...] = () if trace is None else tuple(trace.effects)
        self.calls_python = trace is not None and bool(trace.calls)
        self._order: list[Node] | None = None
        # Derived data (plan, jvp, batched program), cached by the code that computes it.
        self.extra: dict[Hashable, Any] = {}

    @property
    def nodes(self) -> list[Node]:
        """All inner nodes in an order in which they can be computed, without leaves."""
        if self.recorded is not None:
            return self.recorded
        if self._order is None:
            # Roots start with the effects. Each effect follows its operands, so effects stay in
            # order.
            roots = (*self.effects, *self.outputs)
            self._order = toposort(roots, set(map(id, self.inputs)), self.holds)
        return self._order

    def holds(self, node: Node) -> bool:
        """Return whether a node was recorded in this program or in a trace nested in it."""
        trace = node.trace
        if self.trace is None:
            return trace is not None and trace.level >= self.level
        while trace is not None and trace is not self.trace:
            trace = trace.parent
        return trace is not None

    def drop_effects(self) -> None:
        """Drop the operations on which no output depends."""
        self.effects, self._order = (), None

    def keep_calls(self) -> None:
        """Also keep callbacks without effects: they may raise even if their results are unused."""
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
        """Release the enclosing traces of a program that does not use them and may outlive them."""
        if self.trace is not None:
            self.trace.parent = self.trace.previous = None

    @property
    def in_avals(self) -> tuple[Aval, ...]:
        return tuple(x.aval for x in self.inputs)

    @property
    def out_avals(self) -> tuple[Aval, ...]:
        return tuple(x.aval for x in self.outputs)

    def free(self) -> list[Node]:
        """Return the closed-over nodes (constants, nodes of outer traces) in order of first use.

        Literals are excluded.
        """
        own = {id(x) for x in self.inputs}
        inner = {id(x) for x in self.nodes}
        seen: dict[int, Node] = {}
        for node in self.nodes:
            for x in node.inputs:
                if id(x) not in own and id(x) not in inner and x.op is not LITERAL:
                    seen.setdefault(id(x), x)
        for x in self.outputs:
            if id(x) not in own and id(x) not in inner and x.op is not LITERAL:
                seen.setdefault(id(x), x)
        return list(seen.values())


def toposort(
    outputs: Iterable[Node],
    stop: set[int] = frozenset(),  # type: ignore[assignment]
    enter: Callable[[Node], bool] | None = None,
) -> list[Node]:
    """Return the nodes on which `outputs` depend, operands first.

    Leaves, nodes whose ids are in `stop` and nodes for which `enter` returns False are neither
    listed nor followed. The search is iterative, because graphs are deep.
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


# Runs a program with effects operation by operation outside of traces (`primitives/unrolled.py`).
_with_effects: list[Callable[[Graph, Sequence[Node]], list[Node]]] = []


def install_effects(evaluate_with_effects: Callable[[Graph, Sequence[Node]], list[Node]]) -> None:
    """Set the function that runs a program with effects outside of traces."""
    _with_effects[:] = [evaluate_with_effects]


@sets_site
def evaluate(
    graph: Graph, inputs: Sequence[Node], closed: dict[int, Node] | None = None
) -> list[Node]:
    """Record the graph's operations again with other inputs (inlining); return the new outputs.

    `closed` maps ids of closed-over nodes to the nodes that replace them.
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
    """Record the graph's operations again with other inputs; return the new outputs.

    `rule` receives each operation and its new operands. It returns the results to use instead, or
    None to record the operation unchanged.
    """
    env: dict[int, Any] = dict(zip(map(id, graph.inputs), inputs, strict=True))
    for node in graph.nodes:
        state.site = node.site
        operands = [env.get(id(x), x) for x in node.inputs]
        if node.op.kind == "item" and isinstance(operands[0], list):
            env[id(node)] = operands[0][node.params["index"]]
            continue
        replacements = rule(node, operands)
        if replacements is None:
            env[id(node)] = record(node.op, tuple(operands), node.params)
        else:
            env[id(node)] = replacements if isinstance(node.aval, tuple) else replacements[0]
    return [env.get(id(x), x) for x in graph.outputs]


def inline_calls(graph: Graph) -> Graph:
    """Return the program with all jitted calls inlined."""
    if not any(node.op.inline for node in graph.nodes):
        return graph

    def inline(node: Node, operands: list[Node]) -> list[Node] | None:
        return rewrite(graphs_in(node.params)[0], operands, inline) if node.op.inline else None

    return build(lambda nodes: rewrite(graph, nodes, inline), graph.in_avals, graph.name)


def build(
    fn: Callable[[list[Node]], Sequence[Node]], avals: Sequence[Aval], name: str = ""
) -> Graph:
    """Record `fn`, an internal function of leaves (not a user function), as a Graph."""
    with Trace("jit", name) as t:
        leaves = [arg(a, t) for a in avals]
        outputs = fn(leaves)
    recorded = t.recorded if state.named else None
    return Graph(leaves, outputs, name, level=t.level, recorded=recorded, trace=t)


def derive_graph(
    source: Graph,
    key: tuple[Hashable, ...],
    fn: Callable[[list[Node]], Sequence[Node]],
    avals: Sequence[Aval],
) -> Graph:
    """Record `fn` for a transformation rule, or return the graph recorded for the same arguments.

    `source`, `key` and `avals` must determine the graph completely. The cache matters because
    graphs are compared by identity: an operation with a new graph among its parameters would be
    planned again for each call, and each of these plans would be kept.
    """
    whole = (*key, tuple(avals), state.named)
    cached = source.extra.get(whole)
    if cached is None:
        cached = source.extra[whole] = build(fn, avals, source.name)
    return cached


def graphs_in(params: Params) -> list[Graph]:
    """Return the graphs among an op's parameters, including those in tuples."""
    graphs: list[Graph] = []
    for v in params.values():
        if isinstance(v, Graph):
            graphs.append(v)
        elif isinstance(v, tuple):
            graphs.extend([g for g in as_tuple(v) if isinstance(g, Graph)])
    return graphs


def interpret(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run a program on concrete arrays with the ops' reference functions.

    Closed-over nodes must be literals or must have values.
    """
    program: tuple[list[Any], list[_Step], list[int]] | None = graph.extra.get("steps")
    if program is None:
        program = graph.extra["steps"] = steps_of(graph)
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


# A call of a reference function: the function, the slots of its operands, its parameters, the dtype
# (or dtypes) of its result, None for those of its operand, and the slot of the result.
_Step = tuple[
    Callable[..., Any], list[int], "Params", "np.dtype | tuple[np.dtype, ...] | None", int
]


def steps_of(graph: Graph) -> tuple[list[Any], list[_Step], list[int]]:
    """Assign slots to the values once, so that repeated runs need no lookups by node."""
    where: dict[int, int] = {id(x): i for i, x in enumerate(graph.inputs)}
    slots: list[Any] = [None] * len(graph.inputs)

    def place(x: Node) -> int:
        slot = where.get(id(x))
        if slot is None:
            slot = where[id(x)] = len(slots)
            slots.append(_value_of_leaf(x))
        return slot

    steps: list[_Step] = []
    for node in graph.nodes:
        ins = [place(x) for x in node.inputs]
        where[id(node)] = len(slots)
        slots.append(None)
        if node.op.numpy is None:
            raise NotImplementedError(
                f"{node.op.name}: no reference implementation to interpret; got it in a program "
                "that runs on the host; use another operation"
            )
        if node.op.kind == "item":
            dtype = None
        else:
            dtypes = tuple([a.dtype for a in result_avals(node.aval)])
            dtype = dtypes if isinstance(node.aval, tuple) else dtypes[0]
        steps.append((node.op.numpy, ins, node.params, dtype, where[id(node)]))
    return slots, steps, [place(x) for x in graph.outputs]


def _value_of_leaf(x: Node) -> np.ndarray:
    if x.op is LITERAL:
        return np.asarray(x.params["value"]).astype(x.aval.dtype)
    if x.value is None:
        raise RuntimeError(f"interpret: {x} is closed over and has no value; make it an input")
    return x.value.view(x.aval.shape, x.aval.dtype)
