"""The op `custom_vmap_call`: a program with a batching rule of the user's. In: the program and the
rule as parameters. Out: the op record.

Everybody but the batching looks through it. Forward derivatives of it are another such call, whose
rule is the derivative of the rule; reverse mode takes the program alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accnp.ir.aval import Aval
from accnp.ir.graph import Graph, build, evaluate, interpret
from accnp.ir.node import Node
from accnp.ir.op import OPS, Op, register
from accnp.primitives.control import call, keep, leading

__all__ = ["BatchRule"]

Nodes = list[Node]


class BatchRule:
    """A batching rule on nodes: (size, operands, flags) -> (results, flags)."""

    __slots__ = ("apply", "shown")

    def __init__(
        self,
        shown: Any,
        apply: Callable[[int, Sequence[Node], Sequence[bool]], tuple[Nodes, list[bool]]],
    ) -> None:
        self.shown = shown  # the user's function, for printing
        self.apply = apply

    def __repr__(self) -> str:
        return repr(self.shown)


def _infer(*_: Aval, call: Graph, **__: Any) -> tuple[Aval, ...]:
    return call.out_avals


def _run(*arrays: Any, call: Graph, **_: Any) -> list[Any]:
    return interpret(call, arrays)


def _batch(size: int, xs: Any, batched: Any, params: dict, tools: Any) -> Any:
    return params["rule"].apply(size, xs, [bool(b) for b in batched])


def _jvp(ts: Any, y: Node, xs: Any, params: dict, tools: Any) -> Any:
    nonzero = tuple(t is not None for t in ts)
    graph = params["call"]
    n_in, n_out = len(xs), len(graph.outputs)
    every = (True,) * n_out
    pushed = tools.jvp_graph(graph, nonzero, every)[0]

    def apply(size: int, operands: Sequence[Node], flags: Sequence[bool]) -> Any:
        """A tangent is batched if its primal is, or the other way round."""
        of = dict(zip(keep(nonzero, range(n_in)), range(n_in, len(operands)), strict=True))
        joint = [flags[i] or (i in of and flags[of[i]]) for i in range(n_in)]

        def taken(i: int, k: int) -> Node:
            return leading(size, operands[k], flags[k]) if joint[i] else operands[k]

        primals = [taken(i, i) for i in range(n_in)]
        tangents = [taken(i, k) for i, k in of.items()]
        outs: list[bool] = []

        def rule(nodes: Nodes) -> Nodes:
            results, outs[:] = params["rule"].apply(size, nodes, joint)
            return results

        whole = build(rule, [x.aval for x in primals], graph.name)
        derived = tools.jvp_graph(whole, nonzero, every)[0]
        return evaluate(derived, [*primals, *tangents]), [*outs, *outs]

    rule = BatchRule(params["rule"].shown, apply)
    made = call(
        "custom_vmap_call", [*xs, *keep(nonzero, ts)], {**params, "call": pushed, "rule": rule}
    )
    return made[:n_out], made[n_out:]


def _linearize(ts: Any, y: Node, xs: Any, params: dict, tools: Any) -> Any:
    inner = {"name": params["call"].name, "jaxpr": params["call"]}
    rule = OPS["jit"].linearize
    assert rule is not None
    return rule(ts, y, xs, inner, tools)


register(
    Op(
        "custom_vmap_call",
        "call",
        _infer,
        numpy=_run,
        jvp=_jvp,
        linearize=_linearize,
        batch=_batch,
    )
)
