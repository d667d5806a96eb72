"""`TOOLS`: the transformations as functions from Graph to Graph, handed to the rules of call ops.

In: closed programs and flags that say which inputs matter. Out: closed programs, cached on the
program they were derived from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from accnp.ir.aval import Aval, make_aval
from accnp.ir.graph import Graph, build
from accnp.ir.node import MARK, Node, arg, has_effect, record
from accnp.ir.trace import Trace, sets_site, state
from accnp.transforms.axes import bind
from accnp.transforms.batch import Scope, batched_in_place, batched_outputs, spread
from accnp.transforms.jvp import forward_graph, instantiate
from accnp.transforms.transpose import backward
from accnp.transforms.walk import dependents, in_order, nodes_within

__all__ = ["TOOLS", "Tools"]

Flags = tuple[bool, ...]


class Tools:
    """The running transformations, as rules of call ops see them."""

    __slots__ = ("axis", "reverse", "scope")

    def __init__(self, axis: Any = None, reverse: bool = False, scope: Scope | None = None) -> None:
        self.axis = axis  # the name of the mapped axis, while batching
        # Whether tangents are made for reverse mode, which may have no use for them.
        self.reverse = reverse
        self.scope = scope  # what rules that are batched may close over

    def in_reverse(self) -> Tools:
        """The same for tangents that reverse mode asks for."""
        return self if self.reverse else Tools(self.axis, True)

    def within(self, scope: Scope | None) -> Tools:
        """The same for rules that may close over the values of a program that is batched."""
        return self if self.scope is scope else Tools(self.axis, self.reverse, scope)

    def jvp_graph(
        self, graph: Graph, nonzero: Flags, instantiate_outs: Flags | None = None
    ) -> tuple[Graph, Flags]:
        """Return (primals, tangents of the nonzero inputs) -> (primal outputs, nonzero tangents).

        Also returns which outputs have a tangent; `instantiate_outs` asks for zeros elsewhere.
        """
        key = f"jvp {nonzero} {instantiate_outs} {self.reverse}"
        if key in graph.extra:
            return graph.extra[key]
        with Trace("jit", graph.name) as t:
            leaves = [arg(a, t) for a in graph.in_avals]
            tangents = [
                arg(a, t) if nz else None for a, nz in zip(graph.in_avals, nonzero, strict=True)
            ]
            pairs = forward_graph(graph, leaves, tangents, self)
            outs = _forced(pairs, instantiate_outs)
        inputs = leaves + [x for x in tangents if x is not None]
        flags = tuple(x is not None for x in outs)
        results = [p for p, _ in pairs] + [x for x in outs if x is not None]
        result = _graph(inputs, results, graph, t), flags
        graph.extra[key] = result
        return result

    def linearize_graph(
        self, graph: Graph, nonzero: Flags, instantiate_outs: Flags | None = None
    ) -> tuple[Graph, Graph, int, Flags]:
        """Split a program's derivative into its primal and its linear part.

        Returns:
            primal: inputs -> outputs + residuals.
            linear: residuals + tangents of the nonzero inputs -> nonzero tangents of the outputs.
            The number of residuals, and which outputs have a tangent. A residual may be an input of
            `primal` itself.
        """
        key = f"linearize {nonzero} {instantiate_outs}"
        if key in graph.extra:
            return graph.extra[key]
        with Trace("jit", graph.name) as t:
            leaves = [arg(a, t) for a in graph.in_avals]
            with Trace("linear") as inner:
                places = [
                    arg(a, inner) if nz else None
                    for a, nz in zip(graph.in_avals, nonzero, strict=True)
                ]
                pairs = forward_graph(graph, leaves, places, self, inner)
                outs = _forced(pairs, instantiate_outs)
                placeholders = [x for x in places if x is not None]
                tangents = [x for x in outs if x is not None]
                order = nodes_within(tangents, [*placeholders, *leaves], t)
                linear = in_order(dependents(order, placeholders), inner)
                residuals, constants = _residuals(linear, order, leaves, tangents)
        flags = tuple(x is not None for x in outs)
        primal = _live_graph(leaves, [p for p, _ in pairs] + residuals, graph, t)
        with Trace("jit", graph.name) as u:
            given = [arg(x.aval, u) for x in residuals]
            pushed = [arg(x.aval, u) for x in placeholders]
            env = dict(zip(map(id, [*residuals, *placeholders]), [*given, *pushed], strict=True))
            self.replay(constants, env)
            self.replay(linear, env)
            results = [env.get(id(x), x) for x in tangents]
        linear_part = _live_graph([*given, *pushed], results, graph, u)
        result = primal, linear_part, len(residuals), flags
        graph.extra[key] = result
        return result

    def transpose_graph(
        self, graph: Graph, n_res: int, ct_avals: Sequence[Aval] | None = None
    ) -> Graph:
        """Return residuals + cotangents -> cotangents of the inputs after the first `n_res`.

        The cotangents have the types of the outputs, or `ct_avals`, which may differ in the weak
        flag.
        """
        avals = graph.out_avals if ct_avals is None else tuple(ct_avals)
        key: Any = ("transpose", n_res, avals)
        if key in graph.extra:
            return graph.extra[key]
        with Trace("jit", graph.name) as t:
            given = [arg(x.aval, t) for x in graph.inputs[:n_res]]
            cts = [arg(a, t) for a in avals]
            env = dict(zip(map(id, graph.inputs[:n_res]), given, strict=True))
            order, outputs, places = self.rebuild(graph, env, graph.inputs[n_res:])
            found = backward(order, places, outputs, cts, self)
            results = [instantiate(x, ct) for x, ct in zip(places, found, strict=True)]
        result = graph.extra[key] = _live_graph([*given, *cts], results, graph, t)
        return result

    def batch_graph(
        self, graph: Graph, size: int, batched: Flags, force: Flags | bool = False
    ) -> tuple[Graph, Flags]:
        """Return the program for a batch, and which of its outputs have the batch axis.

        `force` asks for the batch axis on chosen outputs (or on all).
        """
        if isinstance(force, bool):
            force = (force,) * len(graph.outputs)
        key = f"batch {size} {batched} {force} {self.axis!r}"
        if key in graph.extra:
            return graph.extra[key]
        with Trace("jit", graph.name) as t:
            leaves = []
            for x, b in zip(graph.inputs, batched, strict=True):
                aval = x.aval
                if b:
                    aval = make_aval((size, *aval.shape), aval.dtype, aval.weak_type)
                leaves.append(arg(aval, t))
            pairs = batched_outputs(graph, leaves, batched, size, self.within(None))
            outs = [
                (spread(x, b, size), True) if f else (x, b)
                for (x, b), f in zip(pairs, force, strict=True)
            ]
        flags = tuple(b for _, b in outs)
        result = _graph(leaves, [x for x, _ in outs], graph, t), flags
        graph.extra[key] = result
        return result

    def batch_function(
        self,
        fn: Callable[[list[Node]], Sequence[Node]],
        xs: Sequence[Node],
        flags: Sequence[bool],
        size: int,
    ) -> list[Node]:
        """Record a function of one example's nodes for a batch; all results get the batch axis."""
        avals = [
            make_aval(x.aval.shape[1:] if f else x.aval.shape, x.aval.dtype, x.aval.weak_type)
            for x, f in zip(xs, flags, strict=True)
        ]
        # It may have collectives, and the mapped function's own trace may have ended.
        around = contextlib.nullcontext() if self.scope is None else self.scope.again()
        with bind(self.axis, size), around:
            graph = build(fn, avals, "custom rule")
        pairs = batched_in_place(graph, xs, flags, size, self)
        return [spread(x, b, size) for x, b in pairs]

    @sets_site
    def replay(self, order: Sequence[Node], env: dict[int, Node]) -> None:
        """Record nodes again with other inputs; `env`, from ids of old nodes to new, is filled."""
        for node in order:
            state.site = node.site
            inputs = tuple([env.get(id(x), x) for x in node.inputs])
            if node.op is MARK:
                env[id(node)] = inputs[0]
            else:
                env[id(node)] = record(node.op, inputs, node.params)

    def rebuild(
        self, graph: Graph, env: dict[int, Node], leaves: Sequence[Node]
    ) -> tuple[list[Node], list[Node], list[Node]]:
        """Record a program with values for its other inputs and placeholders for `leaves`.

        Returns the nodes recorded within in order, the outputs, and the placeholders.
        """
        with Trace("linear") as inner:
            places = [arg(x.aval, inner) for x in leaves]
            env = {**env, **dict(zip(map(id, leaves), places, strict=True))}
            self.replay(graph.nodes, env)
            outputs = [env.get(id(x), x) for x in graph.outputs]
            order = in_order(nodes_within(outputs, places, inner), inner)
        return order, outputs, places


def _graph(inputs: Sequence[Node], outputs: Sequence[Node], of: Graph, trace: Trace) -> Graph:
    recorded = trace.recorded if state.named else None
    return Graph(inputs, outputs, of.name, (), trace.level, recorded, trace)


def _live_graph(inputs: Sequence[Node], outputs: Sequence[Node], of: Graph, trace: Trace) -> Graph:
    """A program of which nothing is shown but what its outputs need."""
    graph = Graph(inputs, outputs, of.name, (), trace.level, None, trace)
    if state.named:
        graph.recorded = in_order(graph.nodes, trace)
    return graph


def _forced(pairs: Sequence, wanted: Flags | None) -> list[Node | None]:
    if wanted is None:
        return [t for _, t in pairs]
    return [instantiate(p, t) if w else t for (p, t), w in zip(pairs, wanted, strict=True)]


def _residuals(
    linear: Sequence[Node], order: Sequence[Node], leaves: Sequence[Node], tangents: Sequence[Node]
) -> tuple[list[Node], list[Node]]:
    """Return what the linear part needs of the primal part, and constants it can make itself."""
    own = set(map(id, linear))
    given = [*leaves, *[n for n in order if has_effect(n.op, n.params)]]
    depend = set(map(id, dependents(order, given))) | set(map(id, given))
    placed = {id(n): n for n in order}
    residuals: dict[int, Node] = {}
    constant: dict[int, Node] = {}
    wanted = [x for node in linear for x in node.inputs] + list(tangents)
    for x in wanted:
        if id(x) in own or id(x) in residuals or id(x) in constant:
            continue
        # Jaxprs have constants of the primal part as its results, as jax has them.
        if id(x) in depend or (state.named and _shown(x, placed)):
            residuals[id(x)] = x
        elif id(x) in placed:
            constant[id(x)] = x
    made = set()
    stack = list(constant.values())
    while stack:
        x = stack.pop()
        if id(x) in placed and id(x) not in made:
            made.add(id(x))
            stack.extend(x.inputs)
    return list(residuals.values()), [n for n in order if id(n) in made]


def _shown(x: Node, placed: dict[int, Node]) -> bool:
    """Whether a value is computed by the primal part."""
    return id(x) in placed and x.trace is not None and x.trace.kind != "linear"


TOOLS = Tools()
