"""`TOOLS`: transformations from Graph to Graph, which the rules of call ops receive.

Each method takes a program and flags for its inputs, for example which ones have tangents, and
returns a new program. The result is cached on the source graph (`graph.extra`), so that the bodies
of loops and branches are transformed once. The rules in `primitives/` receive an instance as their
argument `tools`, because they must not import this package.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from accnp.ir.aval import Aval, batched_aval, row_aval
from accnp.ir.graph import Graph, build
from accnp.ir.node import MARK, Node, arg, has_effect, record
from accnp.ir.trace import Trace, sets_site, state, types_only
from accnp.transforms.axes import bind
from accnp.transforms.batch import Scope, batched_in_place, batched_outputs, with_batch_axis
from accnp.transforms.jvp import forward_graph, instantiate
from accnp.transforms.transpose import backward
from accnp.transforms.traversal import dependents, nodes_within, sort_as_recorded

if TYPE_CHECKING:
    from accnp.primitives import rule_types

__all__ = ["TOOLS", "Tools"]

Flags = tuple[bool, ...]


class Tools:
    """The transformations in progress, as the rules of call ops receive them."""

    __slots__ = ("axis", "of_shards", "reverse", "scope")

    def __init__(
        self,
        axis: Hashable = None,
        reverse: bool = False,
        scope: Scope | None = None,
        of_shards: bool = False,
    ) -> None:
        self.axis = axis  # the name of the mapped axis during batching
        self.of_shards = of_shards  # whether the examples are the shards of `shard_map`
        # Whether tangents are for reverse mode, which may not use them.
        self.reverse = reverse
        self.scope = scope  # the program whose values batched rules may close over

    def in_reverse(self) -> Tools:
        """Return tools for tangents that reverse mode requests."""
        return self if self.reverse else Tools(self.axis, True, None, self.of_shards)

    def within(self, scope: Scope | None) -> Tools:
        """Return tools for rules that may close over the values of a batched program."""
        if self.scope is scope:
            return self
        return Tools(self.axis, self.reverse, scope, self.of_shards)

    def jvp_graph(
        self, graph: Graph, nonzero: Flags, instantiate_outs: Flags | None = None
    ) -> tuple[Graph, Flags]:
        """Return (primals, tangents of the nonzero inputs) -> (primal outputs, nonzero tangents).

        Also return which outputs have a tangent; those in `instantiate_outs` get zeros if needed.
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
            outs = _select_tangents(pairs, instantiate_outs)
        inputs = leaves + [x for x in tangents if x is not None]
        flags = tuple(x is not None for x in outs)
        results = [p for p, _ in pairs] + [x for x in outs if x is not None]
        result = _new_graph(inputs, results, graph, t), flags
        graph.extra[key] = result
        return result

    def linearize_graph(
        self, graph: Graph, nonzero: Flags, instantiate_outs: Flags | None = None
    ) -> tuple[Graph, Graph, int, Flags]:
        """Split the derivative of a program into a primal part and a linear part.

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
                outs = _select_tangents(pairs, instantiate_outs)
                placeholders = [x for x in places if x is not None]
                tangents = [x for x in outs if x is not None]
                order = nodes_within(tangents, [*placeholders, *leaves], t)
                linear = sort_as_recorded(dependents(order, placeholders), inner)
                residuals, constants = _find_residuals(linear, order, leaves, tangents)
        flags = tuple(x is not None for x in outs)
        primal = _new_live_graph(leaves, [p for p, _ in pairs] + residuals, graph, t)
        with Trace("jit", graph.name) as u:
            residual_inputs = [arg(x.aval, u) for x in residuals]
            pushed = [arg(x.aval, u) for x in placeholders]
            env = dict(
                zip(map(id, [*residuals, *placeholders]), [*residual_inputs, *pushed], strict=True)
            )
            self.replay(constants, env)
            self.replay(linear, env)
            results = [env.get(id(x), x) for x in tangents]
        linear_part = _new_live_graph([*residual_inputs, *pushed], results, graph, u)
        result = primal, linear_part, len(residuals), flags
        graph.extra[key] = result
        return result

    def transpose_graph(
        self, graph: Graph, n_res: int, ct_avals: Sequence[Aval] | None = None
    ) -> Graph:
        """Return residuals + cotangents -> cotangents of the inputs after the first `n_res`.

        The cotangents have the avals of the outputs, or `ct_avals`, which may differ in weak_type.
        """
        avals = graph.out_avals if ct_avals is None else tuple(ct_avals)
        key: tuple[Hashable, ...] = ("transpose", n_res, avals)
        if key in graph.extra:
            return graph.extra[key]
        with Trace("jit", graph.name) as t:
            residual_inputs = [arg(x.aval, t) for x in graph.inputs[:n_res]]
            cts = [arg(a, t) for a in avals]
            env = dict(zip(map(id, graph.inputs[:n_res]), residual_inputs, strict=True))
            order, outputs, places = self.rebuild(graph, env, graph.inputs[n_res:])
            in_cotangents = backward(order, places, outputs, cts, self)
            results = [instantiate(x, ct) for x, ct in zip(places, in_cotangents, strict=True)]
        result = graph.extra[key] = _new_live_graph([*residual_inputs, *cts], results, graph, t)
        return result

    def batch_graph(
        self,
        graph: Graph,
        size: int,
        batched: Flags,
        force: Flags | bool = False,
        operand_avals: Sequence[Aval | None] = (),
    ) -> tuple[Graph, Flags]:
        """Return the program for a batch, and which outputs have the batch axis.

        `force` requests the batch axis for chosen outputs (or for all). `operand_avals` are the
        types of the operands, as far as they are known: those of batched ones say how these are
        sharded.
        """
        if isinstance(force, bool):
            force = (force,) * len(graph.outputs)
        operand_avals = operand_avals or [None] * len(batched)
        avals = [
            batched_aval(x.aval, size, operand) if b else x.aval
            for x, b, operand in zip(graph.inputs, batched, operand_avals, strict=True)
        ]
        key = ("batch", size, batched, force, repr(self.axis), self.of_shards, types_only(), *avals)
        if key in graph.extra:
            return graph.extra[key]
        with Trace("jit", graph.name) as t:
            leaves = [arg(aval, t) for aval in avals]
            pairs = batched_outputs(graph, leaves, batched, size, self.within(None))
            outs = [
                (with_batch_axis(x, b, size), True) if f else (x, b)
                for (x, b), f in zip(pairs, force, strict=True)
            ]
        flags = tuple(b for _, b in outs)
        result = _new_graph(leaves, [x for x, _ in outs], graph, t), flags
        graph.extra[key] = result
        return result

    def batch_function(
        self,
        fn: Callable[[list[Node]], Sequence[Node]],
        xs: Sequence[Node],
        flags: Sequence[bool],
        size: int,
    ) -> list[Node]:
        """Record a function of one example for a batch; all results have the batch axis."""
        avals = [row_aval(x.aval) if f else x.aval for x, f in zip(xs, flags, strict=True)]
        # `fn` may use collectives, and the mapped function's own trace may have ended.
        around = contextlib.nullcontext() if self.scope is None else self.scope.again()
        with bind(self.axis, size), around:
            graph = build(fn, avals, "custom rule")
        pairs = batched_in_place(graph, xs, flags, size, self)
        return [with_batch_axis(x, b, size) for x, b in pairs]

    @sets_site
    def replay(self, order: Sequence[Node], env: dict[int, Node]) -> None:
        """Record nodes again with other inputs, filling `env` (id of old node -> new node)."""
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

        Return the recorded nodes in order, the outputs, and the placeholders.
        """
        with Trace("linear") as inner:
            places = [arg(x.aval, inner) for x in leaves]
            env = {**env, **dict(zip(map(id, leaves), places, strict=True))}
            self.replay(graph.nodes, env)
            outputs = [env.get(id(x), x) for x in graph.outputs]
            order = sort_as_recorded(nodes_within(outputs, places, inner), inner)
        return order, outputs, places


def _new_graph(inputs: Sequence[Node], outputs: Sequence[Node], of: Graph, trace: Trace) -> Graph:
    recorded = trace.recorded if state.named else None
    return Graph(inputs, outputs, of.name, (), trace.level, recorded, trace)


def _new_live_graph(
    inputs: Sequence[Node], outputs: Sequence[Node], of: Graph, trace: Trace
) -> Graph:
    """Return a program that, printed as a jaxpr, shows only the equations its outputs need."""
    graph = Graph(inputs, outputs, of.name, (), trace.level, None, trace)
    if state.named:
        graph.recorded = sort_as_recorded(graph.nodes, trace)
    return graph


def _select_tangents(
    pairs: Sequence[tuple[Node, Node | None]], flags: Flags | None
) -> list[Node | None]:
    if flags is None:
        return [t for _, t in pairs]
    return [instantiate(p, t) if flag else t for (p, t), flag in zip(pairs, flags, strict=True)]


def _find_residuals(
    linear: Sequence[Node], order: Sequence[Node], leaves: Sequence[Node], tangents: Sequence[Node]
) -> tuple[list[Node], list[Node]]:
    """Return the values of the primal part that the linear part needs, and the constants that the
    linear part can compute itself."""
    own = set(map(id, linear))
    sources = [*leaves, *[n for n in order if has_effect(n.op, n.params)]]
    depend = set(map(id, dependents(order, sources))) | set(map(id, sources))
    placed = {id(n): n for n in order}
    residuals: dict[int, Node] = {}
    constant: dict[int, Node] = {}
    targets = [x for node in linear for x in node.inputs] + list(tangents)
    for x in targets:
        if id(x) in own or id(x) in residuals or id(x) in constant:
            continue
        # In jaxprs, constants of the primal part are residuals, as in JAX.
        if id(x) in depend or (state.named and _is_primal(x, placed)):
            residuals[id(x)] = x
        elif id(x) in placed:
            constant[id(x)] = x
    node_ids: set[int] = set()
    stack = list(constant.values())
    while stack:
        x = stack.pop()
        if id(x) in placed and id(x) not in node_ids:
            node_ids.add(id(x))
            stack.extend(x.inputs)
    return list(residuals.values()), [n for n in order if id(n) in node_ids]


def _is_primal(x: Node, placed: dict[int, Node]) -> bool:
    """Return whether the primal part computes a value."""
    return id(x) in placed and x.trace is not None and x.trace.kind != "linear"


TOOLS = Tools()

if TYPE_CHECKING:
    _described: rule_types.Tools = TOOLS  # what the rules of lower layers use
