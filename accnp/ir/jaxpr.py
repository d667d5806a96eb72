"""Conversion of a `Graph` to a `ClosedJaxpr`, the form in which JAX shows programs.

Literals become inline operands, `item` nodes become the results of one equation, and `mark` nodes
disappear. Equations whose results are unused are kept, and equations keep the recorded order. Nodes
that the outermost graph closes over become its constants; an inner graph receives them as leading
operands. `make_jaxpr` and the tools of `inspect` call it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from accnp.ir.aval import result_avals
from accnp.ir.equations import (
    Atom,
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    SourceInfo,
    Var,
)
from accnp.ir.graph import Graph, graphs_in
from accnp.ir.node import LITERAL, Node, is_user_held_scalar
from accnp.ir.op import Op, as_tuple

if TYPE_CHECKING:
    from accnp.ir.equations import Primitive

__all__ = ["to_jaxpr"]


Env = dict[int, Any]  # by id of a node: its atom, or a list of those of several results


def to_jaxpr(
    graph: Graph, value_of: Callable[[Node], Any], primitive_of: Callable[[Op], Primitive]
) -> ClosedJaxpr:
    """Return the jaxpr of a graph.

    `value_of` returns the user-visible value of a constant's or literal's node, and `primitive_of`
    the user-visible primitive of an op.
    """
    builder = _Builder(value_of, primitive_of)
    jaxpr = builder.build(graph, {}, None)
    return ClosedJaxpr(jaxpr, [value_of(x) for x in builder.consts])


class _Builder:
    def __init__(
        self, value_of: Callable[[Node], Any], primitive_of: Callable[[Op], Primitive]
    ) -> None:
        self.value_of = value_of
        self.primitive_of = primitive_of
        self.consts: list[Node] = []
        self.const_atoms: dict[int, Atom] = {}
        self.constvars: list[Var] = []
        self.inner: dict[int, tuple[Graph, Jaxpr, list[Node]]] = {}
        self.marks: set[int] = set()  # ids of the marks inside the graphs
        self.outermost = True  # whether the outermost graph is being built

    def _collect_marks(self, graph: Graph) -> Sequence[Node]:
        nodes = graph.nodes
        self.marks.update(id(x) for x in nodes if x.op.kind == "mark" and x.inputs)
        return nodes

    def _skip_marks(self, node: Node) -> Node:
        """Skip marks inside the graphs. A mark outside of them is a closed-over value of its own:
        the node under it has a different derivative, or none."""
        while id(node) in self.marks:
            node = node.inputs[0]
        return node

    def build(self, graph: Graph, env: Env, over: list[Node] | None) -> Jaxpr:
        """Convert one graph; `over` are closed-over nodes that become leading inputs (None for the
        outermost graph)."""
        invars = [Var(x.aval) for x in graph.inputs]
        leading = [Var(x.aval) for x in over or ()]
        for x, v in zip((*(over or ()), *graph.inputs), (*leading, *invars), strict=True):
            env[id(x)] = v
        eqns: list[JaxprEqn] = []
        before, self.outermost = self.outermost, over is None
        nodes = self._collect_marks(graph)
        item_nodes: dict[int, dict[int, Node]] = {}
        for node in nodes:
            if node.op.kind == "item":
                item_nodes.setdefault(id(node.inputs[0]), {})[node.params["index"]] = node
        for node in nodes:
            if node.op.kind not in ("item", "mark", "leaf"):
                self._add_equation(node, env, item_nodes, eqns)
        outvars = [self._get_atom(x, env) for x in graph.outputs]
        self.outermost = before
        jaxpr = Jaxpr(
            self.constvars if over is None else [],
            [*leading, *invars],
            outvars,
            eqns,
            debug_info=DebugInfo("jit", graph.name, graph.in_names),
        )
        if over is None:
            _drop_unused(jaxpr)
        return jaxpr

    def _add_equation(
        self,
        node: Node,
        env: Env,
        item_nodes: dict[int, dict[int, Node]],
        eqns: list[JaxprEqn],
    ) -> None:
        ins = list(node.inputs)
        params = dict(node.params)
        for g in graphs_in(params):
            ins = [*self._convert_graph(g, True)[2], *ins] if node.op.closes_over else ins
        own = self._own_constants(node, env)
        if own:
            ins = ins[len(own) :]
            inner = self._convert_graph(params["jaxpr"])[1]
            _bind_constants(inner, len(own))
            params["jaxpr"] = ClosedJaxpr(inner, [self.value_of(x) for x in own])
        invars = [self._get_atom(x, env) for x in ins]
        params = {k: self._convert_param(v) for k, v in params.items() if k not in _OWN}
        outvars = [Var(a) for a in result_avals(node.aval)]
        if isinstance(node.aval, tuple):
            for i, item in item_nodes.get(id(node), {}).items():
                env[id(item)] = outvars[i]
            env[id(node)] = outvars
        else:
            env[id(node)] = outvars[0]
        site = None if node.site is None else SourceInfo(*node.site)
        primitive = self.primitive_of(node.op)
        eqns.append(JaxprEqn(invars, outvars, primitive, params, source_info=site))

    def _own_constants(self, node: Node, env: Env) -> list[Node]:
        """Return the constants that a jitted function closes over; they belong to its own jaxpr.

        Closed-over nodes are the leading inputs of its graph; `in_names` names only the others.
        """
        graph = node.params.get("jaxpr")
        if not node.op.inline or not isinstance(graph, Graph) or not graph.in_names:
            return []
        leading = node.inputs[: len(graph.inputs) - len(graph.in_names)]
        known = [x for x in map(self._skip_marks, leading) if x.trace is None and id(x) not in env]
        return known if len(known) == len(leading) else []

    def _convert_param(self, value: object) -> object:
        if isinstance(value, Graph):
            return ClosedJaxpr(self._convert_graph(value)[1])
        values = as_tuple(value)
        graphs = [g for g in values if isinstance(g, Graph)]
        if graphs and len(graphs) == len(values):
            return tuple([ClosedJaxpr(self._convert_graph(g)[1]) for g in graphs])
        return value

    def _convert_graph(
        self, graph: Graph, closing: bool = False
    ) -> tuple[Graph, Jaxpr, list[Node]]:
        entry = self.inner.get(id(graph))
        if entry is None:
            over = self._find_closed_over(graph, closing)
            entry = graph, self.build(graph, {}, over), over
            self.inner[id(graph)] = entry
        return entry

    def _find_closed_over(self, graph: Graph, closing: bool) -> list[Node]:
        """Return the nodes of outer traces and the constants that an inner graph uses. Scalars that
        users hold as arrays are included only if the call op closes over nodes: other ops already
        receive closed-over nodes as operands, and those exclude scalars."""
        nodes = self._collect_marks(graph)
        inner = {id(x) for x in (*graph.inputs, *nodes)}
        seen: dict[int, Node] = {}

        def add(x: Node) -> None:
            x = self._skip_marks(x)
            if id(x) in inner or (x.op is LITERAL and not (closing and is_user_held_scalar(x))):
                return
            seen.setdefault(id(x), x)

        for node in nodes:
            for x in node.inputs:
                add(x)
            if node.op.closes_over:
                for g in graphs_in(node.params):
                    for x in self._convert_graph(g, True)[2]:
                        add(x)
        for x in graph.outputs:
            add(x)
        return list(seen.values())

    def _get_atom(self, node: Node, env: Env) -> Atom:
        node = self._skip_marks(node)
        known = env.get(id(node))
        if known is not None:
            return known
        if node.op is LITERAL and not (self.outermost and is_user_held_scalar(node)):
            return Literal(self.value_of(node), node.aval)
        if node.op.kind == "item" and isinstance(env.get(id(node.inputs[0])), list):
            return env[id(node.inputs[0])][node.params["index"]]
        atom = self.const_atoms.get(id(node))
        if atom is None:
            atom = self.const_atoms[id(node)] = Var(node.aval)
            self.consts.append(node)
            self.constvars.append(atom)
        return atom


# Parameters that accnp adds for its own use; equations omit them.
_OWN = frozenset(("_function", "_program", "_transposed"))


def _bind_constants(jaxpr: Jaxpr, n: int) -> None:
    """Turn the first `n` inputs into constants, unless another call of the program did so."""
    if not jaxpr.constvars:
        jaxpr.constvars, jaxpr.invars = jaxpr.invars[:n], jaxpr.invars[n:]


def _drop_unused(jaxpr: Jaxpr) -> None:
    used = {id(v) for v in jaxpr.outvars}
    for eqn in jaxpr.eqns:
        used.update(id(v) for v in eqn.invars)
    for eqn in jaxpr.eqns:
        eqn.outvars = [v if id(v) in used else DropVar(v.aval) for v in eqn.outvars]
