"""Batching (`vmap`): record the nodes of one example again for a batch, with a leading batch axis.

The input is a list of nodes in order and an environment that maps the ids of leaves to pairs (node,
whether it has the batch axis). `batch_nodes` applies the ops' batching rules and fills the
environment. The batch axis is axis 0 wherever the flag is set. `Scope` and `batched_in_place`
support custom derivative rules that close over batched values.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from accnp.ir.graph import Graph, toposort
from accnp.ir.node import MARK, Node, items, record
from accnp.ir.op import CALLS, OPS, as_tuple
from accnp.ir.trace import differentiating, sets_site, state
from accnp.primitives.control import call
from accnp.primitives.kinds import broadcast_to
from accnp.transforms.axes import names_used

if TYPE_CHECKING:
    from accnp.transforms.tools import Tools

__all__ = ["Scope", "batch_nodes", "batched_in_place", "batched_outputs", "with_batch_axis"]

Flagged = tuple[Node, bool]
Env = dict[int, Any]


def with_batch_axis(x: Node, batched: bool, size: int) -> Node:
    """Return a value with the batch axis; broadcast it if it has none."""
    return x if batched else broadcast_to(x, (size, *x.aval.shape))


@sets_site
def batch_nodes(order: Sequence[Node], env: Env, size: int, tools: Tools) -> None:
    """Record nodes again for a batch of `size` examples, filling `env`."""
    for node in order:
        state.site = node.site
        op = node.op
        entries = [env.get(id(x)) for x in node.inputs]
        if op.kind == "item":
            whole = entries[0]
            env[id(node)] = (
                (record(op, node.inputs, node.params), False)
                if whole is None
                else whole[node.params["index"]]
            )
            continue
        xs = [x if e is None else e[0] for x, e in zip(node.inputs, entries, strict=True)]
        flags = [e is not None and e[1] for e in entries]
        several = isinstance(node.aval, tuple)
        if op.kind == "mark" and len(xs) == 1 and op.batch is None:
            # A detached value stays detached; a MARK is dropped, since its trace has ended.
            y = xs[0] if op is MARK else record(op, tuple(xs), node.params)
            env[id(node)] = (y, flags[0])
        elif (
            not any(flags)
            and not op.places  # their rules move values, also those that all examples share
            and (tools.axis is None or tools.axis not in names_used(node))
        ):
            if several:
                known = OPS.holds(op)
                parts = (
                    call(op.name, xs, node.params)
                    if known
                    else items(record(op, tuple(xs), node.params))
                )
                env[id(node)] = [(part, False) for part in parts]
            else:
                env[id(node)] = (record(op, tuple(xs), node.params), False)
        elif op.batch is None:
            raise NotImplementedError(
                f"{op.name}: no batching rule is known; got it inside vmap; use a Python loop or "
                "lax.map"
            )
        elif op.kind in CALLS or op.kind == "mark":
            outs, out_flags = op.batch(size, xs, flags, node.params, tools)
            pairs = list(zip(outs, out_flags, strict=True))
            env[id(node)] = pairs if several else pairs[0]
        else:
            named = (tools,) if op.kind == "callback" or "axis_name" in node.params else ()
            y, flag = op.batch(size, xs, flags, node.params, *named)
            if several:
                parts = items(y) if isinstance(y, Node) else y
                out_flags = [flag] * len(parts) if isinstance(flag, bool) else flag
                env[id(node)] = list(zip(parts, out_flags, strict=True))
            else:
                env[id(node)] = (y, flag)


class Scope:
    """A program that was batched during differentiation, for custom rules that close over its
    values and run after its trace has ended.

    It keeps only the operands alive; a value that is gone when a rule needs it is recorded again.
    """

    __slots__ = ("graph", "inputs", "known", "outer", "size")

    def __init__(self, graph: Graph, inputs: Env, size: int, outer: Scope | None) -> None:
        self.graph = graph
        self.inputs = inputs  # the batched inputs: id -> (node, batched)
        self.known: dict[int, tuple[weakref.ref[Node], bool]] = {}
        self.size = size
        self.outer = outer  # scope of the rule that recorded this program

    def remember(self, env: Env) -> None:
        """Keep weak references to the batched values."""
        for node in self.graph.nodes:
            pair: Any = env.get(id(node))
            if isinstance(pair, tuple):
                pair = as_tuple(pair)
                self.known[id(node)] = weakref.ref(pair[0]), pair[1]

    @contextlib.contextmanager
    def again(self) -> Generator[None]:
        """Re-enter the program's trace, so that a rule may use its values."""
        assert self.graph.trace is not None
        around = contextlib.nullcontext() if self.outer is None else self.outer.again()
        with around, self.graph.trace.again():
            yield

    def values(self, nodes: Sequence[Node], tools: Tools) -> Env:
        """Return the batched counterparts of those `nodes` that belong to the program."""
        env = {} if self.outer is None else self.outer.values(nodes, tools)
        own = [x for x in nodes if id(x) not in env and self.graph.holds(x)]
        if own:
            env.update(self.inputs)
            for key, (ref, flag) in self.known.items():
                if (x := ref()) is not None:
                    env[key] = x, flag
            batch_nodes(toposort(own, set(env), self.graph.holds), env, self.size, tools)
        return env


def batched_outputs(
    graph: Graph, xs: Sequence[Node], flags: Sequence[bool], size: int, tools: Tools
) -> list[Flagged]:
    """Record a program for a batch; return each output with its batched flag."""
    env: Env = {id(a): (x, f) for a, x, f in zip(graph.inputs, xs, flags, strict=True)}
    batch_nodes(graph.nodes, env, size, tools)
    return [env.get(id(x), (x, False)) for x in graph.outputs]


def batched_in_place(
    graph: Graph, xs: Sequence[Node], flags: Sequence[bool], size: int, tools: Tools
) -> list[Flagged]:
    """Like `batched_outputs`, for recording in the trace around the program instead of as a
    separate program: custom rules may then close over the values of both."""
    outer = tools.scope
    if outer is None and not differentiating():
        return batched_outputs(graph, xs, flags, size, tools)
    env: Env = {id(a): (x, f) for a, x, f in zip(graph.inputs, xs, flags, strict=True)}
    scope = Scope(graph, dict(env), size, outer)
    if outer is not None:
        env.update(outer.values(graph.free(), tools))
    batch_nodes(graph.nodes, env, size, tools.within(scope))
    scope.remember(env)
    return [env.get(id(x), (x, False)) for x in graph.outputs]
